/* What passes may ask about the machine that the code is for. codegen/ supplies the answers
 * (codegen/cpu/target.c); passes know no library by name. */
#ifndef AMPCC_PASSES_TARGET_H
#define AMPCC_PASSES_TARGET_H

#include "ir/ir.h"
#include "ir/kernel.h"

enum { MAX_AROUND = 8 }; /* nodes of a kernel with a main op */

/* Parts of batch normalisations that a main op may take along; all but the last are of a conv2d
 * with bn_sums of its result behind. In front, with vectors of the type of x: */
typedef enum NormForm {
  NORM_SUMS,      /* nothing                                                    */
  NORM_RELU_SUMS, /* relu(x * scale + shift)                                    */
  NORM_ADD_SUMS,  /* relu(x * scale + shift + z), which is stored too           */
  NORM_DUAL_SUMS, /* the same, z having a scale and a shift of its own          */
  NORM_RELU,      /* of a conv2d_wgrad: relu(x * scale + shift) in front        */
} NormForm;

typedef struct Target Target;
struct Target {
  const char *name;
  int64_t align;      /* of every offset in arena and state block, bytes */
  int64_t memory;     /* bytes for state and arena together; 0: whatever it takes */
  Layout activations; /* the physical layout of rank-4 activations */
  bool pixels;        /* the program makes image inputs of bytes, on the device */
  /* The nodes `among` the n given that run as one kernel with `main` (a CONV, MATMUL, POOL node),
   * itself one of them, in any order; returns how many, 1 if it runs alone. None may read another
   * through a view; results of theirs that others read are stored. A form that a target lacks is
   * split, never approximated. NULL: all main ops run alone. */
  int (*kernel_around)(const Target *target, Node *main, Node *const *among, int n,
                       Node *out[MAX_AROUND]);
  /* Has the target such a kernel of `main`? NULL: never. For norm-forms: these change values, so a
   * pass must have written them. */
  bool (*has_form)(const Target *target, const Node *main, NormForm form);
  /* Scratch bytes that a kernel needs while it runs. */
  int64_t (*workspace)(const Target *target, const Kernel *kernel);
  void *context; /* the target's own */
};

#endif
