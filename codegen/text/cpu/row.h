/* Softmax, losses, and top-k. They go row by row, a row being K classes, in pieces that fit
 * the first-level cache. Sums are in double and have a fixed number of partial sums (lanes). A
 * label outside [0, K) makes loss and gradient NaN and is never a hit. */
#ifndef AMP_PRELUDE_ROW_H
#define AMP_PRELUDE_ROW_H

#include "codegen/text/cpu/prelude.h"
#include "codegen/text/common/math.h"

enum { AMP_LANES = 8 };

AMP_INLINE double amp_lanes(const double *lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Sum of n floats. */
AMP_FN double amp_sum(const float *x, int n) {
  double lane[AMP_LANES] = {0};
  int i = 0;
  for (; i + AMP_LANES <= n; i += AMP_LANES)
    for (int j = 0; j < AMP_LANES; j++)
      lane[j] += (double)x[i + j];
  for (int j = 0; i < n; i++, j++)
    lane[j] += (double)x[i];
  return amp_lanes(lane);
}

AMP_INLINE int amp_piece(int64_t K, int64_t k) {
  return K - k < AMP_WIDTH ? (int)(K - k) : AMP_WIDTH;
}

/* Sum of the squares of elements [at, end) times `factor`, each clipped to +-bound. */
AMP_FN double amp_squares(int dtype, const void *x, int64_t at, int64_t end, float factor,
                          float bound) {
  double lane[AMP_LANES] = {0};
  float buf[AMP_BUFFER];
  for (; at < end; at += AMP_WIDTH) {
    int n = amp_piece(end, at);
    const float *v = amp_read(dtype, x, at, n, buf);
    for (int i = 0; i < n; i++) {
      double s = (double)v[i] * (double)factor;
      s = s > (double)bound ? (double)bound : s < -(double)bound ? -(double)bound : s;
      lane[i % AMP_LANES] += s * s;
    }
  }
  return amp_lanes(lane);
}

/* The maximum without regard to NaN, which later makes the sum NaN. */
AMP_FN float amp_row_max(const AmpRow *a, const void *x, int64_t first) {
  float buf[AMP_BUFFER], lane[AMP_LANES];
  for (int j = 0; j < AMP_LANES; j++)
    lane[j] = -AMP_INF;
  for (int64_t k = 0; k < a->K; k += AMP_WIDTH) {
    int n = amp_piece(a->K, k), i = 0;
    const float *v = amp_read(a->x.dtype, x, first + k, n, buf);
    for (; i + AMP_LANES <= n; i += AMP_LANES)
      for (int j = 0; j < AMP_LANES; j++)
        lane[j] = v[i + j] > lane[j] ? v[i + j] : lane[j];
    for (; i < n; i++)
      lane[0] = v[i] > lane[0] ? v[i] : lane[0];
  }
  for (int j = 1; j < AMP_LANES; j++)
    lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
  return lane[0];
}

/* e = exp(x - max) for one piece. */
AMP_FN void amp_row_exp(float *restrict e, const float *restrict v, int n, float max) {
  AMP_SIMD
  for (int i = 0; i < n; i++)
    e[i] = amp_exp(v[i] - max);
}

/* The sum of exp(x - max); *plain becomes the sum of x. */
AMP_FN double amp_row_sums(const AmpRow *a, const void *x, int64_t first, float max,
                           double *plain) {
  float buf[AMP_BUFFER], e[AMP_BUFFER];
  double sum = 0;
  *plain = 0;
  for (int64_t k = 0; k < a->K; k += AMP_WIDTH) {
    int n = amp_piece(a->K, k);
    const float *v = amp_read(a->x.dtype, x, first + k, n, buf);
    *plain += amp_sum(v, n);
    amp_row_exp(e, v, n, max);
    sum += amp_sum(e, n);
  }
  return sum;
}

/* out = (exp(x - max) / sum - rest) * factor. At `label`, unless that is -1, `own` is subtracted as
 * well as `rest`. */
AMP_FN void amp_row_softmax(const AmpRow *a, const void *x, void *out, int64_t first, int64_t label,
                            double own, double rest, double factor) {
  float buf[AMP_BUFFER], e[AMP_BUFFER], max = amp_row_max(a, x, first);
  double plain, inv = 1 / amp_row_sums(a, x, first, max, &plain);
  float scale = (float)inv, less = (float)rest, by = (float)factor;
  for (int64_t k = 0; k < a->K; k += AMP_WIDTH) {
    int n = amp_piece(a->K, k);
    amp_row_exp(e, amp_read(a->x.dtype, x, first + k, n, buf), n, max);
    double at_label = label >= k && label < k + n ? (double)e[label - k] : 0;
    AMP_SIMD
    for (int i = 0; i < n; i++)
      e[i] = (e[i] * scale - less) * by;
    if (label >= k && label < k + n)
      e[label - k] = (float)((at_label * inv - rest - own) * factor);
    amp_write(a->out.dtype, out, first + k, n, e);
  }
}

/* The rows of a chunk. */
#define AMP_ROWS(a, chunk, row)                                                                    \
  for (int64_t row = (chunk) * (a)->rows / (a)->chunks,                                            \
               last = ((chunk) + 1) * (a)->rows / (a)->chunks;                                     \
       row < last; row++)

AMP_FN void amp_softmax_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpRow *a = (const AmpRow *)args;
  const void *x = amp_at(run, &a->x);
  void *out = amp_at(run, &a->out);
  AMP_ROWS(a, chunk, row) {
    amp_row_softmax(a, x, out, row * a->K, -1, 0, 0, 1);
  }
}
AMP_OF_CHUNKS(AmpRow, amp_softmax)

/* y * (dy - the sum of dy * y), with dy in a->x and y in a->other. */
AMP_FN void amp_softmax_grad_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpRow *a = (const AmpRow *)args;
  const void *dy = amp_at(run, &a->x), *y = amp_at(run, &a->other);
  void *out = amp_at(run, &a->out);
  AMP_ROWS(a, chunk, row) {
    float buf[AMP_BUFFER], buf2[AMP_BUFFER], r[AMP_BUFFER];
    double dot = 0;
    for (int64_t k = 0; k < a->K; k += AMP_WIDTH) {
      int n = amp_piece(a->K, k);
      const float *d = amp_read(a->x.dtype, dy, row * a->K + k, n, buf);
      const float *v = amp_read(a->other.dtype, y, row * a->K + k, n, buf2);
      AMP_SIMD
      for (int i = 0; i < n; i++)
        r[i] = d[i] * v[i];
      dot += amp_sum(r, n);
    }
    for (int64_t k = 0; k < a->K; k += AMP_WIDTH) {
      int n = amp_piece(a->K, k);
      const float *d = amp_read(a->x.dtype, dy, row * a->K + k, n, buf), less = (float)dot;
      const float *v = amp_read(a->other.dtype, y, row * a->K + k, n, buf2);
      AMP_SIMD
      for (int i = 0; i < n; i++)
        r[i] = v[i] * (d[i] - less);
      amp_write(a->out.dtype, out, row * a->K + k, n, r);
    }
  }
}
AMP_OF_CHUNKS(AmpRow, amp_softmax_grad)

AMP_INLINE float amp_read1(const AmpRef *ref, const void *base, int64_t at) {
  float buf[1];
  return *amp_read(ref->dtype, base, at, 1, buf);
}

/* A class of weight 0 adds nothing, even if its logit is -Inf. */
AMP_FN void amp_softmax_xent_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpRow *a = (const AmpRow *)args;
  const void *x = amp_at(run, &a->x);
  const int32_t *label = (const int32_t *)amp_at(run, &a->label);
  float *out = (float *)amp_at(run, &a->out);
  AMP_ROWS(a, chunk, row) {
    float max = amp_row_max(a, x, row * a->K);
    double plain, loss = log(amp_row_sums(a, x, row * a->K, max, &plain)) + (double)max;
    if (label[row] < 0 || label[row] >= a->K)
      loss = (double)AMP_NAN;
    else if (a->smoothing < 1)
      loss -= (1 - a->smoothing) * (double)amp_read1(&a->x, x, row * a->K + label[row]);
    if (a->smoothing > 0)
      loss -= a->smoothing / (double)a->K * plain;
    out[row] = (float)loss;
  }
}
AMP_OF_CHUNKS(AmpRow, amp_softmax_xent)

AMP_FN void amp_softmax_xent_grad_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpRow *a = (const AmpRow *)args;
  const void *x = amp_at(run, &a->x);
  const int32_t *label = (const int32_t *)amp_at(run, &a->label);
  const float *dloss = (const float *)amp_at(run, &a->dloss);
  void *out = amp_at(run, &a->out);
  AMP_ROWS(a, chunk, row) {
    double bad = label[row] < 0 || label[row] >= a->K ? (double)AMP_NAN : 1;
    amp_row_softmax(a, x, out, row * a->K, label[row], 1 - a->smoothing,
                    a->smoothing / (double)a->K, (double)dloss[row] * bad);
  }
}
AMP_OF_CHUNKS(AmpRow, amp_softmax_xent_grad)

/* The wanted share of the label's class and of every other; NaN for a label that is none. */
AMP_INLINE float amp_wanted(const AmpRow *a, int64_t label, float *own) {
  double rest = label < 0 || label >= a->K ? (double)AMP_NAN : a->smoothing / (double)a->K;
  *own = (float)(1 - a->smoothing + rest);
  return (float)rest;
}

/* Losses that are a mean over the classes of one function of logit and wanted share. */
#define AMP_MEAN_LOSS(name)                                                                        \
  AMP_FN void amp_##name##_chunk(const AmprtRun *run, const void *args, int64_t chunk) {           \
    const AmpRow *a = (const AmpRow *)args;                                                        \
    const void *x = amp_at(run, &a->x);                                                            \
    const int32_t *label = (const int32_t *)amp_at(run, &a->label);                                \
    float *out = (float *)amp_at(run, &a->out);                                                    \
    AMP_ROWS(a, chunk, row) {                                                                      \
      float buf[AMP_BUFFER], e[AMP_BUFFER], own, rest = amp_wanted(a, label[row], &own);           \
      double sum = 0;                                                                              \
      for (int64_t k = 0; k < a->K; k += AMP_WIDTH) {                                              \
        int n = amp_piece(a->K, k);                                                                \
        const float *v = amp_read(a->x.dtype, x, row * a->K + k, n, buf);                          \
        AMP_SIMD                                                                                   \
        for (int i = 0; i < n; i++)                                                                \
          e[i] = amp_##name##_of(v[i], rest);                                                      \
        if (label[row] >= k && label[row] < k + n)                                                 \
          e[label[row] - k] = amp_##name##_of(v[label[row] - k], own);                             \
        sum += amp_sum(e, n);                                                                      \
      }                                                                                            \
      out[row] = (float)(sum / (double)a->K);                                                      \
    }                                                                                              \
  }                                                                                                \
  AMP_OF_CHUNKS(AmpRow, amp_##name)                                                                \
                                                                                                   \
  AMP_FN void amp_##name##_grad_chunk(const AmprtRun *run, const void *args, int64_t chunk) {      \
    const AmpRow *a = (const AmpRow *)args;                                                        \
    const void *x = amp_at(run, &a->x);                                                            \
    const int32_t *label = (const int32_t *)amp_at(run, &a->label);                                \
    const float *dloss = (const float *)amp_at(run, &a->dloss);                                    \
    void *out = amp_at(run, &a->out);                                                              \
    AMP_ROWS(a, chunk, row) {                                                                      \
      float buf[AMP_BUFFER], e[AMP_BUFFER], own, rest = amp_wanted(a, label[row], &own);           \
      float by = (float)((double)dloss[row] / (double)a->K);                                       \
      for (int64_t k = 0; k < a->K; k += AMP_WIDTH) {                                              \
        int n = amp_piece(a->K, k);                                                                \
        const float *v = amp_read(a->x.dtype, x, row * a->K + k, n, buf);                          \
        AMP_SIMD                                                                                   \
        for (int i = 0; i < n; i++)                                                                \
          e[i] = amp_##name##_slope(v[i], rest) * by;                                              \
        if (label[row] >= k && label[row] < k + n)                                                 \
          e[label[row] - k] = amp_##name##_slope(v[label[row] - k], own) * by;                     \
        amp_write(a->out.dtype, out, row * a->K + k, n, e);                                        \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  AMP_OF_CHUNKS(AmpRow, amp_##name##_grad)

AMP_MEAN_LOSS(sigmoid_xent)
AMP_MEAN_LOSS(squared_error)

AMP_FN void amp_in_top_k_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpRow *a = (const AmpRow *)args;
  const void *x = amp_at(run, &a->x);
  const int32_t *label = (const int32_t *)amp_at(run, &a->label);
  float *out = (float *)amp_at(run, &a->out);
  AMP_ROWS(a, chunk, row) {
    float buf[AMP_BUFFER], own = AMP_NAN;
    if (label[row] >= 0 && label[row] < a->K)
      own = amp_read1(&a->x, x, row * a->K + label[row]);
    int64_t larger = 0;
    for (int64_t k = 0; k < a->K; k += AMP_WIDTH) {
      int n = amp_piece(a->K, k);
      const float *v = amp_read(a->x.dtype, x, row * a->K + k, n, buf);
      for (int i = 0; i < n; i++)
        larger += v[i] > own;
    }
    out[row] = own == own && larger < a->top ? 1.0f : 0.0f;
  }
}
AMP_OF_CHUNKS(AmpRow, amp_in_top_k)

#endif
