/* A convolution and what runs with it, as one plan of cuDNN: a form of conv_forms.def read off the
 * nodes of a graph. */
#ifndef AMPCC_CODEGEN_CUDA_CONV_KERNEL_H
#define AMPCC_CODEGEN_CUDA_CONV_KERNEL_H

#include "codegen/cuda/toolkit/plan.h"
#include "ir/kernel.h"
#include "passes/target.h"

typedef struct ConvOperand {
  const Value *value; /* or NULL, and `n` numbers in f32: */
  int64_t n;
  bool is_scratch; /* nobody reads them: in the workspace behind cuDNN's own. Else a constant: */
  float each;
} ConvOperand;

typedef struct ConvKernel {
  ConvOp op;
  int n_nodes, n_operands;
  Node *node[MAX_AROUND]; /* in any order */
  ConvOperand operand[CONV_MAX_OPERANDS];
} ConvKernel;

/* The largest form that the device has a plan for whose nodes are `among` the n given; the plain
 * convolution if there is no other. Reads counts of uses: the graph must be swept. */
ConvKernel conv_kernel_around(const Device *device, Node *main, Node *const *among, int n);
/* Target.has_form. */
bool conv_kernel_exists(const Device *device, const Node *main, NormForm form);
/* A whole kernel of the graph. */
ConvKernel conv_kernel_of(const Device *device, const Kernel *kernel);

#endif
