/* What ampcc knows of TensorFlow's ops: the ports of each and the types they may have, nothing of
 * what it computes. From frontend/tf/ops.def, or from the signature of a library function. */
#ifndef AMPCC_FRONTEND_TF_OPS_H
#define AMPCC_FRONTEND_TF_OPS_H

#include "frontend/tf/graphdef.pb-c.h"
#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct TfTypeAttr {
  const char *name;
  bool list;                     /* list(type): an element for each of its ports */
  int standard;                  /* the type if a node does not say; DT_INVALID: it must */
  bool half, half_gpu, half_cpu; /* may be DT_HALF; and has a kernel there */
  bool bfloat, bfloat_cpu;       /* may be DT_BFLOAT16; likewise */
  /* The op's other attributes have low kernels there only while this one is a DataType of these
   * bits; bit 0: or the low type itself. */
  uint64_t beside_gpu, beside_cpu;
} TfTypeAttr;

typedef struct TfPort {
  int attr; /* index into TfOp.attr, which gives the type; -1: `fixed` does */
  int fixed;
  const char *count; /* the attribute that says how many such ports follow; NULL: one. Where `attr`
                        is a list there are as many as it has elements */
  bool ref;
} TfPort;

typedef struct TfOp {
  const char *name;
  bool stateful, has_refs, is_function;
  bool has_beside; /* some attribute's beside_gpu or beside_cpu says something */
  int n_in, n_out, n_attrs;
  TfPort *in, *out;
  TfTypeAttr *attr;
} TfOp;

/* Does an attribute of type `type` leave the others their kernels for DataType `low`? */
bool tf_type_beside(const TfTypeAttr *attr, int type, int low, bool gpu);
/* NULL for an op that the table does not hold. */
const TfOp *tf_op_find(Arena *arena, const char *name);
TfOp *tf_op_of_function(Arena *arena, const Tensorflow__OpDef *signature);
/* "f32", "bool", "dt11": as our reports write DataType. */
const char *tf_type_name(Arena *arena, int type);

/* The table, for the test that walks it. */
extern const int n_tf_ops;
const char *tf_op_name(int i);

#endif
