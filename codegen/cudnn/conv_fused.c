/* Convolutions with parts of a batch normalisation in front of them or behind them, in the forms
 * for which cuDNN has engines (plan_forms.def says on which GPUs). */
#include "codegen/cudnn/conv_build.h"

/* y = mode(a, b); b NULL where the mode takes one operand. */
static void pointwise(ConvBuilder *builder, cudnnPointwiseMode_t mode, CudnnObject a, CudnnObject b,
                      CudnnObject y) {
  Draft *d = builder->draft;
  cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  CudnnObject what = cuda_draft_new(d, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  cuda_draft_set(d, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  cuda_draft_set(d, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
  cuda_draft_finish(d, what, "pointwise");
  bool is_gradient =
      mode == CUDNN_POINTWISE_RELU_BWD; /* then a is the result's gradient, b the argument */
  CudnnObject object = cuda_draft_new(d, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  cuda_draft_set_object(d, object, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  cuda_draft_set_object(d, object,
                        is_gradient ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC
                                    : CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                        a);
  if (b)
    cuda_draft_set_object(d, object,
                          is_gradient ? CUDNN_ATTR_OPERATION_POINTWISE_XDESC
                                      : CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                          b);
  cuda_draft_set_object(d, object,
                        is_gradient ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                                    : CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                        y);
  cuda_conv_operation(builder, object, "pointwise");
}

/* The sums of y, and of its squares, for each channel: two more operands. */
static void statistics(ConvBuilder *b, CudnnObject y) {
  Draft *d = b->draft;
  cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
  cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  CudnnObject sum = cuda_conv_vector(b, b->op->k, CUDNN_DATA_FLOAT);
  CudnnObject squares = cuda_conv_vector(b, b->op->k, CUDNN_DATA_FLOAT);
  CudnnObject object = cuda_draft_new(d, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  cuda_draft_set(d, object, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
  cuda_draft_set(d, object, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
                 &precision);
  cuda_draft_set_object(d, object, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y);
  cuda_draft_set_object(d, object, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum);
  cuda_draft_set_object(d, object, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
  cuda_conv_operation(b, object, "statistics");
}

/* x * scale + bias, whose scale and bias are two more operands. */
static CudnnObject scaled(ConvBuilder *b, CudnnObject x) {
  CudnnObject scale = cuda_conv_vector(b, b->op->c, b->type),
              bias = cuda_conv_vector(b, b->op->c, b->type);
  CudnnObject product = cuda_conv_between(b), sum = cuda_conv_between(b);
  pointwise(b, CUDNN_POINTWISE_MUL, x, scale, product);
  pointwise(b, CUDNN_POINTWISE_ADD, product, bias, sum);
  return sum;
}

/* relu(x * scale + bias) in front of a convolution. */
static CudnnObject scaled_relu(ConvBuilder *b, CudnnObject x) {
  CudnnObject sum = scaled(b, x), result = cuda_conv_between(b);
  pointwise(b, CUDNN_POINTWISE_RELU_FWD, sum, NULL, result);
  return result;
}

void cuda_conv_build_fprop_stats(ConvBuilder *b) {
  CudnnObject x = cuda_conv_x(b), w = cuda_conv_w(b), y = cuda_conv_y(b);
  cuda_conv_forward(b, x, w, y);
  statistics(b, y);
}

void cuda_conv_build_relu_fprop_stats(ConvBuilder *b) {
  CudnnObject x = cuda_conv_x(b), applied = scaled_relu(b, x), w = cuda_conv_w(b),
              y = cuda_conv_y(b);
  cuda_conv_forward(b, applied, w, y);
  statistics(b, y);
}

static void block_end(ConvBuilder *b, bool dual) {
  CudnnObject x = scaled(b, cuda_conv_x(b)), z = cuda_conv_x(b), sum = cuda_conv_between(b);
  if (dual)
    z = scaled(b, z);
  CudnnObject w = cuda_conv_w(b), out = cuda_conv_x(b), y = cuda_conv_y(b);
  pointwise(b, CUDNN_POINTWISE_ADD, x, z, sum);
  pointwise(b, CUDNN_POINTWISE_RELU_FWD, sum, NULL, out);
  cuda_conv_forward(b, out, w, y);
  statistics(b, y);
}

void cuda_conv_build_add_fprop_stats(ConvBuilder *b) {
  block_end(b, false);
}

void cuda_conv_build_dual_fprop_stats(ConvBuilder *b) {
  block_end(b, true);
}

void cuda_conv_build_relu_wgrad(ConvBuilder *b) {
  CudnnObject x = cuda_conv_x(b), applied = scaled_relu(b, x), dy = cuda_conv_y(b),
              dw = cuda_conv_w(b);
  cuda_conv_backward_filter(b, applied, dy, dw);
}

/* The operands of dgrad_bn that have one number for each channel. */
enum { MEAN, INVSTD, SCALE, BIAS, DSCALE, DBIAS, FACTOR_DX, FACTOR_X, FACTOR_1, N_CHANNEL };

/* (x - mean) * invstd * scale + bias, whose sign is the ReLU's mask. */
static CudnnObject normalised(ConvBuilder *b, CudnnObject x, const CudnnObject *channel) {
  static const cudnnPointwiseMode_t mode[] = {
      [MEAN] = CUDNN_POINTWISE_SUB,
      [INVSTD] = CUDNN_POINTWISE_MUL,
      [SCALE] = CUDNN_POINTWISE_MUL,
      [BIAS] = CUDNN_POINTWISE_ADD,
  };
  for (int i = MEAN; i <= BIAS; i++) {
    CudnnObject next = cuda_conv_between(b);
    pointwise(b, mode[i], x, channel[i], next);
    x = next;
  }
  return x;
}

/* The sums over dx, and the three factors that give the gradient of the normalisation's operand:
 * FACTOR_DX * dx + FACTOR_X * x + FACTOR_1. */
static void gradient_sums(ConvBuilder *b, CudnnObject x, CudnnObject dx,
                          const CudnnObject *channel) {
  static const cudnnBackendAttributeName_t name[N_CHANNEL] = {
      [MEAN] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC,
      [INVSTD] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC,
      [SCALE] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC,
      [DSCALE] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
      [DBIAS] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
      [FACTOR_DX] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
      [FACTOR_X] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
      [FACTOR_1] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS,
  };
  Draft *d = b->draft;
  cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  CudnnObject object = cuda_draft_new(d, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
  cuda_draft_set(d, object, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
                 &precision);
  cuda_draft_set_object(d, object, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, x);
  cuda_draft_set_object(d, object, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dx);
  for (int i = 0; i < N_CHANNEL; i++)
    if (i != BIAS)
      cuda_draft_set_object(d, object, name[i], channel[i]);
  cuda_conv_operation(b, object, "sums of a normalisation's gradient");
}

static CudnnObject sum_of(ConvBuilder *b, CudnnObject x, CudnnObject y) {
  CudnnObject sum = cuda_conv_between(b);
  pointwise(b, CUDNN_POINTWISE_ADD, x, y, sum);
  return sum;
}

static void dgrad_bn(ConvBuilder *b, bool has_shortcut, bool adds) {
  CudnnObject dy = cuda_conv_y(b), w = cuda_conv_w(b), x = cuda_conv_x(b), channel[N_CHANNEL];
  for (int i = MEAN; i <= BIAS; i++)
    channel[i] = cuda_conv_vector(b, b->op->c, CUDNN_DATA_FLOAT);
  CudnnObject shortcut = has_shortcut ? cuda_conv_x(b) : NULL, dz = adds ? cuda_conv_x(b) : NULL;
  CudnnObject dx = cuda_conv_x(b), gradient = cuda_conv_between(b);
  for (int i = DSCALE; i < N_CHANNEL; i++)
    channel[i] = cuda_conv_vector(b, b->op->c, CUDNN_DATA_FLOAT);
  cuda_conv_backward_data(b, dy, w, gradient);
  if (adds)
    gradient = sum_of(b, gradient, dz);
  CudnnObject masked_by = normalised(b, x, channel);
  if (has_shortcut)
    masked_by = sum_of(b, masked_by, shortcut);
  pointwise(b, CUDNN_POINTWISE_RELU_BWD, gradient, masked_by, dx);
  gradient_sums(b, x, dx, channel);
}

void cuda_conv_build_dgrad_bn(ConvBuilder *b) {
  dgrad_bn(b, false, false);
}

void cuda_conv_build_dgrad_bn_add(ConvBuilder *b) {
  dgrad_bn(b, false, true);
}

void cuda_conv_build_dgrad_bn_short(ConvBuilder *b) {
  dgrad_bn(b, true, true);
}
