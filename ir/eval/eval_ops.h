/* One function per entry of the column `eval` of ir/ops.def: from operands `a` and attributes to
 * results `r`, whose types are set and whose elements are zero. Letters as in ir/README.md.
 * Whatever the operands hold, nothing outside them is touched: labels and pool indices out of range
 * are defined below, not trusted. */
#ifndef AMPCC_IR_EVAL_EVAL_OPS_H
#define AMPCC_IR_EVAL_EVAL_OPS_H

#include "ir/eval/eval.h"

typedef void EvalFn(const Node *node, const EvalTensor *a, EvalTensor *r);

#define OP(id, name, lo, hi, rlo, rhi, shape, eval, ...) EvalFn eval_##eval;
#include "ir/ops.def"

/* Elements of the last axis (1 for a scalar). */
static inline int64_t last_dim(TensorType type) {
  return type.rank ? type.dim[type.rank - 1] : 1;
}

#endif
