/* The fastest way to compute each class of convolution, measured with oneDNN 2.6.3 on AVX2 over all
 * shapes of ResNet-50 and of the CIFAR ResNets; codegen/README.md has the table. The classes are
 * wide on purpose: a rule that fits one shape only would be a guess for all others. */
#include "codegen/cpu/onednn.h"

#include <stdbool.h>

/* oneDNN 2.6's strided 1x1 filter gradient races on AVX2 where channels do not fill a vector. */
static bool races(const DnnOp *op) {
  return op->kind == DNN_WGRAD && op->stride[0] * op->stride[1] != 1 && dnn_filter_c(op) % 8 != 0;
}

/* One matrix product needs no other layout of the filter, but oneDNN's is slow where the inner size
 * is the larger one or, for filter gradients, where both sides are of middling size. */
static DnnMethod choose_pointwise(const DnnOp *op) {
  bool wide = op->c >= 512 && op->k >= 512, narrow = op->c <= 64 || op->k <= 64;
  if (op->kind == DNN_DGRAD)
    return op->c >= 512 && op->k <= 2 * op->c ? DNN_GEMM : DNN_NHWC;
  if (op->kind == DNN_WGRAD && (wide || narrow || races(op)))
    return DNN_GEMM;
  if (op->kind == DNN_WGRAD && op->c >= 64 && op->ho * op->wo <= 200)
    return DNN_BLOCK;
  return DNN_NHWC;
}

/* oneDNN's 3x3 kernels for AVX2 lose a third of their speed on layout N,H,W,C, which is more than
 * two copies to another layout cost. Data gradients of small images are the exception. */
static DnnMethod choose_window(const DnnOp *op) {
  if (op->kind == DNN_WGRAD)
    return (op->c >= 64 && op->k >= 64) || op->r * op->s >= 25 ? DNN_BLOCK : DNN_NHWC;
  if (op->c < 64 || op->k < 64)
    return DNN_NHWC;
  bool large = op->h >= 28 && op->stride[0] == 1;
  return op->kind == DNN_CONV || large ? DNN_BLOCK : DNN_NHWC;
}

/* Whole images whose copies in f32 stay in cache between the steps; all of them if there are no
 * copies. The filter is read, or its gradient added up, once per chunk: it must be the smaller
 * part. Only 16-bit tensors gain from small chunks; the copies of f32 are just kept from growing
 * with the batch. */
static int32_t choose_chunk(const DnnOp *op) {
  enum { CACHE = 4 << 20, BOUND = 64 << 20, F32 = 4 };
  bool low = op->dtype != AMPRT_F32, copies = low || op->method == DNN_BLOCK;
  int64_t image = (op->h * op->w * op->c + op->ho * op->wo * op->k) * F32;
  int64_t filter = op->k * op->r * op->s * dnn_filter_c(op) * F32, chunk = op->n;
  int64_t most = !low ? BOUND : filter > CACHE / 4 ? filter * 4 : CACHE;
  while (copies && chunk > 1 && (chunk * image > most || op->n % chunk))
    chunk--;
  return (int32_t)chunk;
}

void onednn_choose(DnnOp *op) {
  bool padded = op->pad[0] || op->pad[1] || op->pad[2] || op->pad[3];
  if (op->kind == DNN_MATMUL)
    return;
  bool pointwise = op->r * op->s == 1 && !padded;
  if (op->groups > 1) /* there is no product, and a copy takes longer than what it saves */
    op->method = pointwise && races(op) ? DNN_BLOCK : DNN_NHWC;
  else
    op->method = pointwise ? choose_pointwise(op) : choose_window(op);
  op->chunk = choose_chunk(op);
}
