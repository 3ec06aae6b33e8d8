/* How operation graphs are put together. For conv_graph.c and conv_fused.c alone. */
#ifndef AMPCC_CODEGEN_CUDNN_CONV_BUILD_H
#define AMPCC_CODEGEN_CUDNN_CONV_BUILD_H

#include "codegen/cudnn/conv_graph.h"

enum { CONV_MAX_OPERATIONS = 16, VIRTUAL_UID = 1000 };

typedef struct ConvBuilder {
  Draft *draft;
  const ConvOp *op;
  int64_t x[4], w[4], y[4]; /* extents, in cuDNN's order N,C,H,W */
  cudnnDataType_t type;     /* of x, w and y */
  int64_t uid, n_virtual;   /* how many tensors in memory, and how many others, there are so far */
  CudnnObject operation[CONV_MAX_OPERATIONS];
  int n_operations;
} ConvBuilder;

/* New tensors: with the shape of x, of w, of y; with one number for each of n channels; and with
 * the shape of x in f32, virtual, that is never in memory. */
CudnnObject cuda_conv_x(ConvBuilder *b);
CudnnObject cuda_conv_w(ConvBuilder *b);
CudnnObject cuda_conv_y(ConvBuilder *b);
CudnnObject cuda_conv_vector(ConvBuilder *b, int64_t n, cudnnDataType_t type);
CudnnObject cuda_conv_between(ConvBuilder *b);

/* Finishes an operation and appends it to the graph; `what` names it in an error. */
void cuda_conv_operation(ConvBuilder *b, CudnnObject object, const char *what);
void cuda_conv_forward(ConvBuilder *b, CudnnObject x, CudnnObject w, CudnnObject y);
void cuda_conv_backward_data(ConvBuilder *b, CudnnObject dy, CudnnObject w, CudnnObject dx);
void cuda_conv_backward_filter(ConvBuilder *b, CudnnObject x, CudnnObject dy, CudnnObject dw);

/* One function for each row of conv_forms.def: makes its tensors, in the order of the row, and its
 * operations. */
#define CONV_FORM(id, name, build, operands) void cuda_conv_build_##build(ConvBuilder *b);
#include "codegen/cudnn/conv_forms.def"

#endif
