/* A convolution and the nodes that run with it as one plan of cuDNN: a form of conv_forms.def,
 * found in the nodes of a graph. */
#ifndef AMPCC_CODEGEN_CUDA_CONV_KERNEL_H
#define AMPCC_CODEGEN_CUDA_CONV_KERNEL_H

#include "codegen/cuda/toolkit/plan.h"
#include "ir/kernel.h"
#include "passes/target.h"

/* An operand of the plan: a value of the graph or, where `value` is NULL, n numbers in f32. These
 * are either a result that nobody reads, in the workspace behind the plan's own, or constants which
 * are all equal to `each`. */
typedef struct ConvOperand {
  const Value *value;
  int64_t n;
  bool is_scratch;
  float each;
} ConvOperand;

typedef struct ConvKernel {
  ConvOp op;
  int n_nodes, n_operands;
  Node *node[MAX_AROUND]; /* in any order */
  ConvOperand operand[CONV_MAX_OPERANDS];
} ConvKernel;

/* Which fused forms may be used: the rows of plan_forms.def for this device whose level is at most
 * this one. */
typedef struct ConvForms {
  const Device *device;
  int level; /* a FuseLevel */
} ConvForms;

/* The largest form around `main` whose nodes are all `among` the n given ones and that may be used;
 * the plain convolution if there is none. It counts the readers of values, so the graph must have
 * no dead nodes. */
ConvKernel conv_kernel_around(ConvForms forms, Node *main, Node *const *among, int n);
/* For Target.has_form. */
bool conv_kernel_exists(ConvForms forms, const Node *main, NormForm form);
/* The form of a kernel of the graph, all of whose nodes belong to it. */
ConvKernel conv_kernel_of(ConvForms forms, const Kernel *kernel);

#endif
