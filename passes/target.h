/* What passes may ask about the machine that the code is for. codegen/ supplies the answers
 * (codegen/cpu/target.c); passes know no library by name. */
#ifndef AMPCC_PASSES_TARGET_H
#define AMPCC_PASSES_TARGET_H

#include "ir/ir.h"
#include "ir/kernel.h"

enum { MAX_AROUND = 8 }; /* nodes of a kernel with a main op */

/* Parts of batch normalisations that a target may compute in one kernel with a main op. All but the
 * last are for a conv2d with a bn_sums of its result behind it; they differ in what stands in front
 * of the conv2d. The scale and shift vectors have the type of x. */
typedef enum NormForm {
  NORM_SUMS,      /* nothing                                                    */
  NORM_RELU_SUMS, /* relu(x * scale + shift)                                    */
  NORM_ADD_SUMS,  /* relu(x * scale + shift + z), which is stored too           */
  NORM_DUAL_SUMS, /* the same, z having a scale and a shift of its own          */
  NORM_RELU,      /* relu(x * scale + shift) in front of a conv2d_wgrad         */
} NormForm;

struct EvalTensor; /* ir/eval/eval.h */
typedef struct Target Target;
struct Target {
  const char *name;
  int64_t align;      /* of every offset in arena and state block, bytes */
  int64_t memory;     /* bytes for state and arena together; 0: whatever it takes */
  Layout activations; /* the physical layout of rank-4 activations */
  bool pixels;        /* the device converts images from bytes to floats */
  /* Finds which of the n nodes `among` run as one kernel with `main`, a CONV, MATMUL or POOL node:
   * writes them to `out`, `main` included, in any order, and returns how many; 1 if `main` runs
   * alone. None of them may read another through a view; results that other nodes read are stored.
   * A form that a target lacks is split, never approximated. If the function is NULL, all main ops
   * run alone. */
  int (*kernel_around)(const Target *target, Node *main, Node *const *among, int n,
                       Node *out[MAX_AROUND]);
  /* Has the target a kernel for `main` in this form? NULL if it has none. Pass norm-forms asks: the
   * forms change values, so a pass must write them into the graph. */
  bool (*has_form)(const Target *target, const Node *main, NormForm form);
  /* May `loop`, which reads the result of `main` element by element, run on each part of that
   * result as soon as the part is there, in one kernel with `main`? Such a kernel may write the
   * loop's results over its operands. NULL: never. */
  bool (*takes_loop)(const Target *target, const Node *main, const Kernel *loop);
  /* Scratch bytes that a kernel needs while it runs. */
  int64_t (*workspace)(const Target *target, const Kernel *kernel);
  /* For each element of the first result of `node`, by how much its kernel may differ from what
   * these operands give exactly; in `arena`. NULL where the target states no bound. The function
   * may be NULL. */
  const double *(*error_bound)(const Target *target, Arena *arena, const Node *node,
                               const struct EvalTensor *args);
  void *context; /* the target's own */
};

#endif
