/* Pooling over windows of [N,H,W,C], vectorised over the channels. Gradients gather: each element
 * of x collects from the windows that cover it, in ascending order, so no two threads add to one
 * place. */
#ifndef AMP_PRELUDE_POOL_H
#define AMP_PRELUDE_POOL_H

#include "codegen/cpu/prelude_row.h"

typedef struct AmpPool { /* x is [N,H,W,C], y is [N,P,Q,C] */
  AmpRef in, index, out;
  int64_t N, H, W, C, P, Q, chunks;
  int32_t window[2], stride[2], pad[2]; /* pad: top, left */
  int32_t include_pad;
} AmpPool;

typedef struct AmpSpan { /* first..last-1 */
  int64_t first, last;
} AmpSpan;

/* Taps of window `o` that lie in [0, size) along `axis`. */
AMP_INLINE AmpSpan amp_taps(const AmpPool *a, int axis, int64_t o, int64_t size) {
  int64_t from = o * a->stride[axis] - a->pad[axis];
  AmpSpan span = {from < 0 ? -from : 0, size - from};
  span.last = span.last > a->window[axis] ? a->window[axis] : span.last;
  return span;
}

/* Windows, of `count`, that cover position `i` along `axis`. */
AMP_INLINE AmpSpan amp_windows(const AmpPool *a, int axis, int64_t i, int64_t count) {
  int64_t at = i + a->pad[axis], before = at - a->window[axis];
  AmpSpan span = {before < 0 ? 0 : before / a->stride[axis] + 1, at / a->stride[axis] + 1};
  span.last = span.last > count ? count : span.last;
  return span;
}

AMP_INLINE float amp_pool_share(const AmpPool *a, AmpSpan r, AmpSpan s) {
  int64_t all = (int64_t)a->window[0] * a->window[1];
  return (float)(a->include_pad ? all : (r.last - r.first) * (s.last - s.first));
}

/* One thread's share of the N * rows image rows, one by one. */
#define AMP_POOL_ROWS(a, rows, row)                                                                \
  AMP_PARALLEL((a)->chunks)                                                                        \
  for (int64_t chunk = 0; chunk < (a)->chunks; chunk++)                                            \
    for (int64_t row = chunk * (a)->N * (rows) / (a)->chunks,                                      \
                 end = (chunk + 1) * (a)->N * (rows) / (a)->chunks;                                \
         row < end; row++)

/* NaN is larger than all; among equals the first stays. */
AMP_FN void amp_max_tap(float *restrict best, int32_t *restrict at, const float *restrict x, int n,
                        int32_t tap, int is_first) {
  AMP_SIMD
  for (int i = 0; i < n; i++) {
    int take = is_first | (x[i] > best[i]) | ((x[i] != x[i]) & (best[i] == best[i]));
    best[i] = take ? x[i] : best[i];
    at[i] = take ? tap : at[i];
  }
}

AMP_FN void amp_max_window(const AmpPool *a, const void *x, int64_t n, int64_t p, int64_t q,
                           int64_t c, int width, float *best, int32_t *at) {
  AmpSpan rows = amp_taps(a, 0, p, a->H), cols = amp_taps(a, 1, q, a->W);
  float buf[AMP_BUFFER];
  int is_first = 1;
  for (int i = 0; i < width; i++) {
    best[i] = -AMP_INF;
    at[i] = 0;
  }
  for (int64_t r = rows.first; r < rows.last; r++)
    for (int64_t s = cols.first; s < cols.last; s++) {
      int64_t h = p * a->stride[0] - a->pad[0] + r, w = q * a->stride[1] - a->pad[1] + s;
      const float *v = amp_read(a->in.dtype, x, ((n * a->H + h) * a->W + w) * a->C + c, width, buf);
      amp_max_tap(best, at, v, width, (int32_t)(r * a->window[1] + s), is_first);
      is_first = 0;
    }
}

AMP_FN void amp_store_index(int dtype, void *base, int64_t at, const int32_t *index, int n) {
  if (dtype == AMPRT_I32) {
    __builtin_memcpy((int32_t *)base + at, index, (size_t)n * sizeof *index);
    return;
  }
  uint8_t *to = (uint8_t *)base + at;
  AMP_SIMD
  for (int i = 0; i < n; i++)
    to[i] = (uint8_t)index[i];
}

AMP_FN void amp_max_pool(const AmprtRun *run, const void *args) {
  const AmpPool *a = (const AmpPool *)args;
  const void *x = amp_at(run, &a->in);
  void *y = amp_at(run, &a->out), *index = amp_at(run, &a->index);
  AMP_POOL_ROWS(a, a->P, row) {
    float best[AMP_BUFFER];
    int32_t at[AMP_BUFFER];
    for (int64_t q = 0; q < a->Q; q++)
      for (int64_t c = 0; c < a->C; c += AMP_WIDTH) {
        int n = amp_piece(a->C, c);
        int64_t to = (row * a->Q + q) * a->C + c;
        amp_max_window(a, x, row / a->P, row % a->P, q, c, n, best, at);
        amp_write(a->out.dtype, y, to, n, best);
        if (index)
          amp_store_index(a->index.dtype, index, to, at, n);
      }
  }
}

AMP_FN void amp_add_where8(float *restrict sum, const float *restrict dy,
                           const uint8_t *restrict at, uint8_t tap, int n) {
  AMP_SIMD
  for (int i = 0; i < n; i++)
    sum[i] += at[i] == tap ? dy[i] : 0.0f;
}
AMP_FN void amp_add_where32(float *restrict sum, const float *restrict dy,
                            const int32_t *restrict at, int32_t tap, int n) {
  AMP_SIMD
  for (int i = 0; i < n; i++)
    sum[i] += at[i] == tap ? dy[i] : 0.0f;
}

/* sum += dy of one window (at `from` in y), where its maximum was `tap` */
AMP_FN void amp_max_collect(const AmpPool *a, float *sum, const void *dy, const void *index,
                            int64_t from, int64_t tap, int n) {
  float buf[AMP_BUFFER];
  const float *d = amp_read(a->in.dtype, dy, from, n, buf);
  if (a->index.dtype == AMPRT_U8)
    amp_add_where8(sum, d, (const uint8_t *)index + from, (uint8_t)tap, n);
  else
    amp_add_where32(sum, d, (const int32_t *)index + from, (int32_t)tap, n);
}

/* sum += dy / (elements averaged) of one window */
AMP_FN void amp_avg_collect(const AmpPool *a, float *sum, const void *dy, int64_t from, int64_t p,
                            int64_t q, int n) {
  float buf[AMP_BUFFER];
  float share = amp_pool_share(a, amp_taps(a, 0, p, a->H), amp_taps(a, 1, q, a->W));
  const float *d = amp_read(a->in.dtype, dy, from, n, buf);
  AMP_SIMD
  for (int i = 0; i < n; i++)
    sum[i] += d[i] / share;
}

/* Both gradients; `index` is NULL for the average. */
AMP_FN void amp_pool_grad(const AmprtRun *run, const AmpPool *a, const void *index) {
  const void *dy = amp_at(run, &a->in);
  void *dx = amp_at(run, &a->out);
  AMP_POOL_ROWS(a, a->H, row) {
    int64_t image = row / a->H, h = row % a->H;
    AmpSpan ps = amp_windows(a, 0, h, a->P);
    for (int64_t w = 0; w < a->W; w++)
      for (int64_t c = 0; c < a->C; c += AMP_WIDTH) {
        AmpSpan qs = amp_windows(a, 1, w, a->Q);
        int n = amp_piece(a->C, c);
        float sum[AMP_BUFFER];
        for (int i = 0; i < n; i++)
          sum[i] = 0;
        for (int64_t p = ps.first; p < ps.last; p++)
          for (int64_t q = qs.first; q < qs.last; q++) {
            int64_t from = ((image * a->P + p) * a->Q + q) * a->C + c;
            int64_t r = h + a->pad[0] - p * a->stride[0], s = w + a->pad[1] - q * a->stride[1];
            if (index)
              amp_max_collect(a, sum, dy, index, from, r * a->window[1] + s, n);
            else
              amp_avg_collect(a, sum, dy, from, p, q, n);
          }
        amp_write(a->out.dtype, dx, (row * a->W + w) * a->C + c, n, sum);
      }
  }
}

AMP_FN void amp_max_pool_grad(const AmprtRun *run, const void *args) {
  const AmpPool *a = (const AmpPool *)args;
  amp_pool_grad(run, a, amp_at(run, &a->index));
}

AMP_FN void amp_avg_pool_grad(const AmprtRun *run, const void *args) {
  amp_pool_grad(run, (const AmpPool *)args, NULL);
}

AMP_FN void amp_avg_pool(const AmprtRun *run, const void *args) {
  const AmpPool *a = (const AmpPool *)args;
  const void *x = amp_at(run, &a->in);
  void *y = amp_at(run, &a->out);
  AMP_POOL_ROWS(a, a->P, row) {
    AmpSpan rs = amp_taps(a, 0, row % a->P, a->H);
    for (int64_t q = 0; q < a->Q; q++)
      for (int64_t c = 0; c < a->C; c += AMP_WIDTH) {
        AmpSpan ss = amp_taps(a, 1, q, a->W);
        int n = amp_piece(a->C, c);
        float buf[AMP_BUFFER], sum[AMP_BUFFER], share = amp_pool_share(a, rs, ss);
        for (int i = 0; i < n; i++)
          sum[i] = 0;
        for (int64_t r = rs.first; r < rs.last; r++)
          for (int64_t s = ss.first; s < ss.last; s++) {
            int64_t h = row % a->P * a->stride[0] - a->pad[0] + r,
                    w = q * a->stride[1] - a->pad[1] + s;
            int64_t from = ((row / a->P * a->H + h) * a->W + w) * a->C + c;
            const float *v = amp_read(a->in.dtype, x, from, n, buf);
            AMP_SIMD
            for (int i = 0; i < n; i++)
              sum[i] += v[i];
          }
        for (int i = 0; i < n; i++)
          sum[i] /= share;
        amp_write(a->out.dtype, y, (row * a->Q + q) * a->C + c, n, sum);
      }
  }
}

#endif
