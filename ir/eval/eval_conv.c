/* Convolution, its two gradients, and the matrix product. */
#include "ir/eval/eval_ops.h"

/* A run of pixels in one row of y, and the pixels of x that one tap (r, s) of the filter multiplies
 * for them. */
typedef struct Taps {
  int64_t C, K, n; /* channels in, channels out, both of one group; pixels of the run */
  int64_t x_step, w_step, y_step; /* elements from pixel to pixel, and from k to k + 1 in w */
} Taps;

/* Adds the products of y[...,k] += x[...,c] * w[k,...,c], or of one of its gradients, for all
 * pixels of the run, k and c. `x` and `y` are at the first pixel, `w` at the tap; the three never
 * overlap. Nearly all of the evaluator's time goes into these loops, so rows of w stay in the cache
 * while the pixels pass, and the compiler is told that it may vectorise over c. */
typedef void TapFn(const Taps *t, double *restrict x, double *restrict w, double *restrict y);

static void tap_forward(const Taps *t, double *restrict x, double *restrict w, double *restrict y) {
  for (int64_t k = 0; k < t->K; k++)
    for (int64_t i = 0; i < t->n; i++) {
      const double *row = &w[k * t->w_step], *from = &x[i * t->x_step];
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t c = 0; c < t->C; c++)
        sum += from[c] * row[c];
      y[i * t->y_step + k] += sum;
    }
}

enum { BLOCK = 4 }; /* so many rows of w, or pixels, are added in one expression, in their order */

static void tap_data(const Taps *t, double *restrict x, double *restrict w, double *restrict y) {
  for (int64_t k = 0; k < t->K; k += BLOCK) {
    int rows = t->K - k < BLOCK ? (int)(t->K - k) : BLOCK;
    for (int64_t i = 0; i < t->n; i++) {
      const double *row = &w[k * t->w_step], *by = &y[i * t->y_step + k];
      double *to = &x[i * t->x_step];
      if (rows == BLOCK) {
#pragma omp simd
        for (int64_t c = 0; c < t->C; c++)
          to[c] = to[c] + by[0] * row[c] + by[1] * row[t->w_step + c] +
                  by[2] * row[2 * t->w_step + c] + by[3] * row[3 * t->w_step + c];
        continue;
      }
      for (int j = 0; j < rows; j++)
        for (int64_t c = 0; c < t->C; c++)
          to[c] += by[j] * row[j * t->w_step + c];
    }
  }
}

static void tap_weight(const Taps *t, double *restrict x, double *restrict w, double *restrict y) {
  for (int64_t i = 0; i < t->n; i += BLOCK) {
    int pixels = t->n - i < BLOCK ? (int)(t->n - i) : BLOCK;
    for (int64_t k = 0; k < t->K; k++) {
      const double *from = &x[i * t->x_step], *by = &y[i * t->y_step + k];
      double *row = &w[k * t->w_step];
      if (pixels == BLOCK) {
        const double b0 = by[0], b1 = by[t->y_step], b2 = by[2 * t->y_step], b3 = by[3 * t->y_step];
#pragma omp simd
        for (int64_t c = 0; c < t->C; c++)
          row[c] = row[c] + from[c] * b0 + from[t->x_step + c] * b1 + from[2 * t->x_step + c] * b2 +
                   from[3 * t->x_step + c] * b3;
        continue;
      }
      for (int j = 0; j < pixels; j++)
        for (int64_t c = 0; c < t->C; c++)
          row[c] += from[j * t->x_step + c] * by[j * t->y_step];
    }
  }
}

/* Calls `tap` for every tap (r, s), every row of output pixels and every group of channels, with
 * the run of pixels whose tap is not in the padding. */
static void conv_walk(const Node *node, EvalTensor x, EvalTensor w, EvalTensor y, TapFn *tap) {
  const int64_t *stride = attr_ints(node, ATTR_STRIDE, 2), *pad = attr_ints(node, ATTR_PAD, 4);
  int64_t H = x.type.dim[1], W = x.type.dim[2], C = x.type.dim[3];
  int64_t K = w.type.dim[0], R = w.type.dim[1], S = w.type.dim[2];
  int64_t P = y.type.dim[1], Q = y.type.dim[2];
  const int64_t groups = attr_int(node, ATTR_GROUPS, 1), c = C / groups, k = K / groups;
  for (int64_t n = 0; n < x.type.dim[0]; n++)
    for (int64_t p = 0; p < P; p++)
      for (int64_t r = 0; r < R; r++)
        for (int64_t s = 0; s < S; s++) {
          /* the pixels q..past-1 are those whose column q * stride + shift is in 0..W-1 */
          int64_t h = p * stride[0] + r - pad[0], shift = s - pad[2];
          int64_t q = shift < 0 ? (-shift + stride[1] - 1) / stride[1] : 0;
          int64_t past = shift < W ? (W - 1 - shift) / stride[1] + 1 : 0;
          past = past < Q ? past : Q;
          if (h < 0 || h >= H || q >= past)
            continue;
          const Taps taps = {c, k, past - q, stride[1] * C, R * S * c, K};
          double *from = &x.v[((n * H + h) * W + q * stride[1] + shift) * C];
          double *to = &y.v[((n * P + p) * Q + q) * K];
          for (int64_t g = 0; g < groups; g++)
            tap(&taps, from + g * c, &w.v[(g * k * R * S + r * S + s) * c], to + g * k);
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

/* Adds the product of a, whose elements are `step` apart, and each row of b to an element of r.
 * Some rows are taken at once, as each sum waits for itself. */
static void add_dots(double *restrict r, int64_t n_r, const double *a, int64_t step,
                     const double *restrict b, int64_t n_b) {
  enum { AT_ONCE = 8 };
  for (int64_t n = 0; n < n_r; n += AT_ONCE) {
    const int rows = n_r - n < AT_ONCE ? (int)(n_r - n) : AT_ONCE;
    double sum[AT_ONCE] = {0};
    const double *from[AT_ONCE];
    for (int j = 0; j < AT_ONCE; j++)
      from[j] = b + (n + (j < rows ? j : 0)) * n_b;
    for (int64_t i = 0; i < n_b; i++)
      for (int j = 0; j < AT_ONCE; j++)
        sum[j] += a[i * step] * from[j][i];
    for (int j = 0; j < rows; j++)
      r[n + j] += sum[j];
  }
}

void eval_matmul(const Node *node, const EvalTensor *a, EvalTensor *r) {
  bool trans_a = attr_int(node, ATTR_TRANS_A, 0), trans_b = attr_int(node, ATTR_TRANS_B, 0);
  int64_t M = r->type.dim[0], N = r->type.dim[1], I = a[0].type.dim[trans_a ? 0 : 1];
  if (trans_b)
    for (int64_t m = 0; m < M; m++)
      add_dots(&r->v[m * N], N, &a[0].v[trans_a ? m : m * I], trans_a ? M : 1, a[1].v, I);
  else if (trans_a) /* the gradient of a filter of one tap, from I pixels of N and M channels */
    tap_weight(&(Taps){N, M, I, N, N, M}, a[1].v, r->v, a[0].v);
  else /* the data gradient of M pixels of I channels, by a filter of one tap */
    tap_data(&(Taps){N, I, M, N, N, I}, r->v, a[1].v, a[0].v);
}
