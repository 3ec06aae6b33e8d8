/* The text of loops for CUDA, and how threads share the elements. */
#ifndef AMPCC_CODEGEN_CUDA_LOOP_TEXT_H
#define AMPCC_CODEGEN_CUDA_LOOP_TEXT_H

#include "codegen/loop/loop_lines.h"

/* How threads share a loop. It follows from shapes and types alone, so that neither bits nor
 * workspace depend on the device. */
typedef struct LoopShape {
  int vector;     /* elements that a thread handles at once: one load of 16 bytes */
  bool wide;      /* 2^31 elements or more */
  bool sums;      /* by rows, for sums per channel; else as one line */
  int partials;   /* numbers that the sums leave for each channel and group of rows */
  int64_t blocks; /* without sums: of the launch */
  int64_t panels; /* with sums: blocks side by side, which share the channels */
  AmpSpace space; /* with `groups` blocks below each other, which share the rows */
} LoopShape;

LoopShape loop_shape(const Kernel *kernel);
int64_t loop_scratch(const LoopShape *shape);     /* bytes */
int64_t loop_tail_blocks(const LoopShape *shape); /* of the kernel that finishes the sums */

/* The kernel, with `@` for its name. Adds the numbers that it uses to the plan. `many`: one launch
 * for many kernels of the same text, without sums; its args are an AmpMany, whose list has theirs.
 */
const char *cuda_loop_text(LoopPlan *plan, const LoopShape *shape, bool many);
/* With sums: the second kernel, which finishes them and computes the tail. It has the args of the
 * first, whose name is `first`. Making its pieces adds the numbers that it uses to the plan. */
LoopPieces cuda_tail(LoopPlan *plan, const LoopShape *shape);
const char *cuda_tail_text(LoopPieces *tail, const char *first);

#endif
