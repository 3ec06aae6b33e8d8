/* The plain convolutions of conv_forms.def, and what the fused forms share with them. */
#include "codegen/cudnn/conv_build.h"

static const cudnnDataType_t cudnn_type[] = {
    [CONV_F32] = CUDNN_DATA_FLOAT, [CONV_F16] = CUDNN_DATA_HALF, [CONV_BF16] = CUDNN_DATA_BFLOAT16};

/* cuDNN lists dimensions as N,C,H,W whatever their order in memory, which is N,H,W,C here: the
 * strides say so. */
static CudnnObject tensor(ConvBuilder *b, const int64_t dim[4], cudnnDataType_t type,
                          bool is_virtual) {
  Draft *d = b->draft;
  int64_t uid = is_virtual ? VIRTUAL_UID + b->n_virtual++ : ++b->uid;
  const int64_t stride[] = {dim[1] * dim[2] * dim[3], 1, dim[3] * dim[1], dim[1]};
  CudnnObject object = cuda_draft_new(d, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  cuda_draft_set(d, object, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  cuda_draft_set(d, object, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
  cuda_draft_set(d, object, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
  cuda_draft_set_int(d, object, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
  cuda_draft_set_int(d, object, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  cuda_draft_set(d, object, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  cuda_draft_finish(d, object, "tensor");
  return object;
}

CudnnObject cuda_conv_x(ConvBuilder *b) {
  return tensor(b, b->x, b->type, false);
}

CudnnObject cuda_conv_w(ConvBuilder *b) {
  return tensor(b, b->w, b->type, false);
}

CudnnObject cuda_conv_y(ConvBuilder *b) {
  return tensor(b, b->y, b->type, false);
}

CudnnObject cuda_conv_vector(ConvBuilder *b, int64_t n, cudnnDataType_t type) {
  const int64_t dim[] = {1, n, 1, 1};
  return tensor(b, dim, type, false);
}

CudnnObject cuda_conv_between(ConvBuilder *b) {
  return tensor(b, b->x, CUDNN_DATA_FLOAT, true);
}

/* Stride and padding. Sums are in f32 whatever the type of the tensors. */
static CudnnObject geometry(ConvBuilder *b) {
  Draft *d = b->draft;
  const int64_t *pad = b->op->pad, before[] = {pad[0], pad[2]}, after[] = {pad[1], pad[3]};
  const int64_t one[] = {1, 1};
  cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  CudnnObject object = cuda_draft_new(d, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  cuda_draft_set(d, object, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  cuda_draft_set(d, object, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
                 &mode);
  cuda_draft_set_int(d, object, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  cuda_draft_set(d, object, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
  cuda_draft_set(d, object, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
  cuda_draft_set(d, object, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, one);
  cuda_draft_set(d, object, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2,
                 b->op->stride);
  cuda_draft_finish(d, object, "convolution");
  return object;
}

/* The three convolutions differ only in the names of their attributes. */
typedef struct ConvNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t geometry, a, b, out, alpha, beta;
} ConvNames;

static const ConvNames fprop_names = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
static const ConvNames dgrad_names = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
static const ConvNames wgrad_names = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

void cuda_conv_operation(ConvBuilder *b, CudnnObject object, const char *what) {
  cuda_draft_finish(b->draft, object, what);
  b->operation[b->n_operations++] = object;
}

static void convolution(ConvBuilder *builder, const ConvNames *names, CudnnObject a, CudnnObject b,
                        CudnnObject out) {
  Draft *d = builder->draft;
  const double one = 1, zero = 0;
  CudnnObject object = cuda_draft_new(d, names->type);
  cuda_draft_set_object(d, object, names->geometry, geometry(builder));
  cuda_draft_set_object(d, object, names->a, a);
  cuda_draft_set_object(d, object, names->b, b);
  cuda_draft_set_object(d, object, names->out, out);
  cuda_draft_set(d, object, names->alpha, CUDNN_TYPE_DOUBLE, 1, &one);
  cuda_draft_set(d, object, names->beta, CUDNN_TYPE_DOUBLE, 1, &zero);
  cuda_conv_operation(builder, object, "convolution");
}

void cuda_conv_forward(ConvBuilder *b, CudnnObject x, CudnnObject w, CudnnObject y) {
  convolution(b, &fprop_names, x, w, y);
}

void cuda_conv_backward_data(ConvBuilder *b, CudnnObject dy, CudnnObject w, CudnnObject dx) {
  convolution(b, &dgrad_names, dy, w, dx);
}

void cuda_conv_backward_filter(ConvBuilder *b, CudnnObject x, CudnnObject dy, CudnnObject dw) {
  convolution(b, &wgrad_names, x, dy, dw);
}

/* The order in which a form makes its tensors gives them their unique ids: that of
 * conv_forms.def. */

void cuda_conv_build_fprop(ConvBuilder *b) {
  CudnnObject x = cuda_conv_x(b), w = cuda_conv_w(b), y = cuda_conv_y(b);
  cuda_conv_forward(b, x, w, y);
}

void cuda_conv_build_dgrad(ConvBuilder *b) {
  CudnnObject dy = cuda_conv_y(b), w = cuda_conv_w(b), dx = cuda_conv_x(b);
  cuda_conv_backward_data(b, dy, w, dx);
}

void cuda_conv_build_wgrad(ConvBuilder *b) {
  CudnnObject x = cuda_conv_x(b), dy = cuda_conv_y(b), dw = cuda_conv_w(b);
  cuda_conv_backward_filter(b, x, dy, dw);
}

static void (*const build[CONV_FORM_COUNT])(ConvBuilder *) = {
#define CONV_FORM(id, name, build, operands) [CONV_##id] = cuda_conv_build_##build,
#include "codegen/cudnn/conv_forms.def"
};

CudnnObject cuda_conv_graph(Draft *draft, const ConvOp *op) {
  int64_t ho, wo;
  if (!cuda_conv_output(op, &ho, &wo)) {
    cuda_draft_fail(draft, "no output", CUDNN_STATUS_BAD_PARAM);
    return NULL;
  }
  /* cuDNN has no attribute for groups: there are as many as w's channels fit into those of x. */
  ConvBuilder b = {.draft = draft,
                   .op = op,
                   .type = cudnn_type[op->dtype],
                   .x = {op->n, op->c, op->h, op->w},
                   .w = {op->k, op->c / op->groups, op->r, op->s},
                   .y = {op->n, op->k, ho, wo}};
  build[op->form](&b);
  CudnnObject graph = cuda_draft_new(draft, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  cuda_draft_set(draft, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 b.n_operations, b.operation);
  cuda_draft_finish(draft, graph, "graph");
  return draft->failed ? NULL : graph;
}
