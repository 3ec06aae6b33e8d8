/* Convolution, its two gradients, and the matrix product. */
#include "ir/eval/eval_ops.h"

/* One product of y[...,k] += x[...,c] * w[k,...,c] for all k, c; `x` and `y` are at their pixel,
 * `w` at its tap, rows of w are w_step apart. All three never overlap. These loops are nearly all
 * of the evaluator's time, so the compiler is told that it may take several c at once. */
typedef void TapFn(int64_t C, int64_t K, int64_t w_step, double *restrict x, double *restrict w,
                   double *restrict y);

static void tap_forward(int64_t C, int64_t K, int64_t w_step, double *restrict x,
                        double *restrict w, double *restrict y) {
  for (int64_t k = 0; k < K; k++) {
    const double *row = &w[k * w_step];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; c++)
      sum += x[c] * row[c];
    y[k] += sum;
  }
}

static void tap_data(int64_t C, int64_t K, int64_t w_step, double *restrict x, double *restrict w,
                     double *restrict y) {
  for (int64_t k = 0; k < K; k++)
#pragma omp simd
    for (int64_t c = 0; c < C; c++)
      x[c] += y[k] * w[k * w_step + c];
}

static void tap_weight(int64_t C, int64_t K, int64_t w_step, double *restrict x, double *restrict w,
                       double *restrict y) {
  for (int64_t k = 0; k < K; k++)
#pragma omp simd
    for (int64_t c = 0; c < C; c++)
      w[k * w_step + c] += x[c] * y[k];
}

/* Every pair of an output pixel (p, q) and a tap (r, s) that is not in the padding. */
static void conv_walk(const Node *node, EvalTensor x, EvalTensor w, EvalTensor y, TapFn *tap) {
  const int64_t *stride = attr_ints(node, ATTR_STRIDE, 2), *pad = attr_ints(node, ATTR_PAD, 4);
  int64_t H = x.type.dim[1], W = x.type.dim[2], C = x.type.dim[3];
  int64_t K = w.type.dim[0], R = w.type.dim[1], S = w.type.dim[2];
  int64_t P = y.type.dim[1], Q = y.type.dim[2];
  for (int64_t n = 0; n < x.type.dim[0]; n++)
    for (int64_t p = 0; p < P; p++)
      for (int64_t q = 0; q < Q; q++)
        for (int64_t r = 0; r < R; r++)
          for (int64_t s = 0; s < S; s++) {
            int64_t h = p * stride[0] + r - pad[0], v = q * stride[1] + s - pad[2];
            if (h >= 0 && h < H && v >= 0 && v < W)
              tap(C, K, R * S * C, &x.v[((n * H + h) * W + v) * C], &w.v[(r * S + s) * C],
                  &y.v[((n * P + p) * Q + q) * K]);
          }
}

void eval_conv2d(const Node *node, const EvalTensor *a, EvalTensor *r) {
  conv_walk(node, a[0], a[1], *r, tap_forward);
}

void eval_conv2d_dgrad(const Node *node, const EvalTensor *a, EvalTensor *r) {
  conv_walk(node, *r, a[1], a[0], tap_data);
}

void eval_conv2d_wgrad(const Node *node, const EvalTensor *a, EvalTensor *r) {
  conv_walk(node, a[0], *r, a[1], tap_weight);
}

void eval_matmul(const Node *node, const EvalTensor *a, EvalTensor *r) {
  bool trans_a = attr_int(node, ATTR_TRANS_A, 0), trans_b = attr_int(node, ATTR_TRANS_B, 0);
  int64_t M = r->type.dim[0], N = r->type.dim[1], I = a[0].type.dim[trans_a ? 0 : 1];
  for (int64_t m = 0; m < M; m++)
    for (int64_t n = 0; n < N; n++)
      for (int64_t i = 0; i < I; i++)
        r->v[m * N + n] +=
            a[0].v[trans_a ? i * M + m : m * I + i] * a[1].v[trans_b ? n * I + i : i * N + n];
}
