/* The text of loop kernels for CUDA, and the geometry that it assumes. */
#ifndef AMPCC_CODEGEN_CUDA_LOOP_TEXT_H
#define AMPCC_CODEGEN_CUDA_LOOP_TEXT_H

#include "codegen/loop/loop.h"

/* Follows from shapes and types alone, so that neither bits nor workspace depend on a device. */
typedef struct LoopShape {
  int vector;     /* elements that a thread handles at once: one load of 16 bytes */
  bool wide;      /* 2^31 elements or more */
  bool sums;      /* by rows, for sums per channel; else as one line */
  int partials;   /* numbers per channel and group that sums leave */
  int64_t blocks; /* of a line */
  int64_t panels; /* sums: blocks across the channels */
  AmpSpace space; /* groups: blocks down the rows */
} LoopShape;

LoopShape loop_shape(const Kernel *kernel);
int64_t loop_scratch(const LoopShape *shape);     /* bytes */
int64_t loop_tail_blocks(const LoopShape *shape); /* of the kernel that finishes the sums */

/* The kernel, `@` for its name. Appends the numbers that it uses to the plan. */
const char *cuda_loop_text(LoopPlan *plan, const LoopShape *shape);
/* Without sums: many of that kernel in one launch. Its args are AmpMany, whose list has their args;
 * blocks down choose. */
const char *cuda_joined_text(LoopPlan *plan, const LoopShape *shape);
/* With sums: the second kernel, which finishes them and computes the tail; `$` for the first one's
 * name, whose args it takes. */
const char *cuda_tail_text(LoopPlan *plan, const LoopShape *shape);

#endif
