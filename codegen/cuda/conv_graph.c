/* One operation graph per form of conv_forms.def. */
#include "codegen/cuda/conv_graph.h"

typedef struct Builder {
  Draft *draft;
  const ConvOp *op;
  int64_t ho, wo;
  cudnnDataType_t type; /* of activations and filters */
  int64_t uid;          /* of the last tensor that lies in memory */
  CudnnObject operation[16];
  int n_operations;
} Builder;

static const cudnnDataType_t cudnn_type[] = {
    [CONV_F32] = CUDNN_DATA_FLOAT, [CONV_F16] = CUDNN_DATA_HALF, [CONV_BF16] = CUDNN_DATA_BFLOAT16};

/* cuDNN names dimensions N,C,H,W whatever their order in memory: the strides say N,H,W,C. */
static CudnnObject tensor(Builder *b, int64_t n, int64_t c, int64_t h, int64_t w,
                          cudnnDataType_t type) {
  Draft *d = b->draft;
  CudnnObject object = draft_new(d, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t dim[] = {n, c, h, w}, stride[] = {c * h * w, 1, w * c, c};
  draft_set(d, object, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  draft_set(d, object, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
  draft_set(d, object, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
  draft_set_int(d, object, CUDNN_ATTR_TENSOR_UNIQUE_ID, ++b->uid);
  draft_set_int(d, object, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  draft_finish(d, object, "tensor");
  return object;
}

static CudnnObject tensor_x(Builder *b) {
  return tensor(b, b->op->n, b->op->c, b->op->h, b->op->w, b->type);
}

static CudnnObject tensor_w(Builder *b) {
  return tensor(b, b->op->k, b->op->c, b->op->r, b->op->s, b->type);
}

static CudnnObject tensor_y(Builder *b) {
  return tensor(b, b->op->n, b->op->k, b->ho, b->wo, b->type);
}

/* Stride and padding; sums in f32 whatever the type of the tensors. */
static CudnnObject geometry(Builder *b) {
  Draft *d = b->draft;
  const int64_t *pad = b->op->pad, before[] = {pad[0], pad[2]}, after[] = {pad[1], pad[3]};
  const int64_t one[] = {1, 1};
  cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  CudnnObject object = draft_new(d, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  draft_set(d, object, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  draft_set(d, object, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  draft_set_int(d, object, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  draft_set(d, object, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
  draft_set(d, object, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
  draft_set(d, object, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, one);
  draft_set(d, object, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, b->op->stride);
  draft_finish(d, object, "convolution");
  return object;
}

/* The three convolutions differ in their attributes' names alone. */
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

static void operation(Builder *b, CudnnObject object, const char *what) {
  draft_finish(b->draft, object, what);
  b->operation[b->n_operations++] = object;
}

static void convolution(Builder *builder, const ConvNames *names, CudnnObject a, CudnnObject b,
                        CudnnObject out) {
  Draft *d = builder->draft;
  const double one = 1, zero = 0;
  CudnnObject object = draft_new(d, names->type);
  draft_set_object(d, object, names->geometry, geometry(builder));
  draft_set_object(d, object, names->a, a);
  draft_set_object(d, object, names->b, b);
  draft_set_object(d, object, names->out, out);
  draft_set(d, object, names->alpha, CUDNN_TYPE_DOUBLE, 1, &one);
  draft_set(d, object, names->beta, CUDNN_TYPE_DOUBLE, 1, &zero);
  operation(builder, object, "operation");
}

static void build_fprop(Builder *b) {
  CudnnObject x = tensor_x(b), w = tensor_w(b), y = tensor_y(b);
  convolution(b, &fprop_names, x, w, y);
}

static void build_dgrad(Builder *b) {
  CudnnObject dy = tensor_y(b), w = tensor_w(b), dx = tensor_x(b);
  convolution(b, &dgrad_names, dy, w, dx);
}

static void build_wgrad(Builder *b) {
  CudnnObject x = tensor_x(b), dy = tensor_y(b), dw = tensor_w(b);
  convolution(b, &wgrad_names, x, dy, dw);
}

static void (*const build[CONV_FORM_COUNT])(Builder *) = {
#define CONV_FORM(id, name, build, operands) [CONV_##id] = build_##build,
#include "codegen/cuda/conv_forms.def"
};

CudnnObject conv_graph(Draft *draft, const ConvOp *op) {
  Builder b = {.draft = draft, .op = op, .type = cudnn_type[op->dtype]};
  if (!conv_output(op, &b.ho, &b.wo)) {
    draft_fail(draft, "no output", CUDNN_STATUS_BAD_PARAM);
    return NULL;
  }
  build[op->form](&b);
  CudnnObject graph = draft_new(draft, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  draft_set(draft, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            b.n_operations, b.operation);
  draft_finish(draft, graph, "graph");
  return draft->failed ? NULL : graph;
}
