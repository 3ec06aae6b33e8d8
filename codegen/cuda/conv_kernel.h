/* A convolution and the nodes that run with it as one plan of cuDNN: a form of conv_forms.def,
 * found in the nodes of a graph. */
#ifndef AMPCC_CODEGEN_CUDA_CONV_KERNEL_H
#define AMPCC_CODEGEN_CUDA_CONV_KERNEL_H

#include "codegen/cuda/toolkit/plan.h"
#include "ir/kernel.h"
#include "passes/target.h"

typedef struct ConvOperand {
  const Value *value; /* NULL: the operand is `n` numbers in f32, */
  int64_t n;
  bool is_scratch; /* results that nobody reads, in the workspace behind cuDNN's own, */
  float each;      /* or constants, all of this value */
} ConvOperand;

typedef struct ConvKernel {
  ConvOp op;
  int n_nodes, n_operands;
  Node *node[MAX_AROUND]; /* in any order */
  ConvOperand operand[CONV_MAX_OPERANDS];
} ConvKernel;

/* The largest form with `main` whose nodes are all `among` the n given and for which the device has
 * a plan; the plain convolution if there is none. Counts readers, so the graph must have no dead
 * nodes. */
ConvKernel conv_kernel_around(const Device *device, Node *main, Node *const *among, int n);
/* For Target.has_form. */
bool conv_kernel_exists(const Device *device, const Node *main, NormForm form);
/* The form of a kernel of the graph, all of whose nodes belong to it. */
ConvKernel conv_kernel_of(const Device *device, const Kernel *kernel);

#endif
