/* Pooling over windows of [N,H,W,C], vectorised over the channels. A gradient is gathered: each
 * element of dx is the sum of what the windows that cover it contribute, in ascending order. So no
 * two threads add to the same place. */
#ifndef AMP_PRELUDE_POOL_H
#define AMP_PRELUDE_POOL_H

#include "codegen/text/cpu/lanes.h"
#include "codegen/text/cpu/row.h"

typedef struct AmpSpan { /* the numbers from first to last - 1 */
  int64_t first, last;
} AmpSpan;

/* The taps of window `o` along `axis` that lie inside the image, that is in [0, size). */
AMP_INLINE AmpSpan amp_taps(const AmpPool *a, int axis, int64_t o, int64_t size) {
  int64_t from = o * a->stride[axis] - a->pad[axis];
  AmpSpan span = {from < 0 ? -from : 0, size - from};
  span.last = span.last > a->window[axis] ? a->window[axis] : span.last;
  return span;
}

/* Those of the `count` windows along `axis` that cover position `i`. */
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

/* A chunk's share of the N * rows image rows, one by one. */
#define AMP_POOL_ROWS(a, chunk, rows, row)                                                         \
  for (int64_t row = (chunk) * (a)->N * (rows) / (a)->chunks,                                      \
               end = ((chunk) + 1) * (a)->N * (rows) / (a)->chunks;                                \
       row < end; row++)

/* Takes in one tap of a window. NaN counts as larger than all numbers; among equal values the first
 * one stays. */
AMP_INLINE void amp_max_tap(AmpV *best, AmpVBits *at, AmpV x, int32_t tap) {
  const AmpVBits take = ~(x <= *best) & (*best == *best), all = {0};
  *best = (AmpV)AMP_SELECT(take, (AmpVBits)x, (AmpVBits)*best);
  *at = AMP_SELECT(take, all + tap, *at);
}

/* A window: its taps inside the image, and the element of channel 0 that tap 0 would read. */
typedef struct AmpMaxWindow {
  AmpSpan rows, cols;
  int64_t first;
} AmpMaxWindow;

/* Where there are as many channels, so many vectors of them are computed at a time: one vector
 * alone would wait for its own last comparison or sum at each tap. */
enum { AMP_POOL_VECTORS = 4, AMP_POOL_PANEL = AMP_POOL_VECTORS * AMP_WIDE };

/* Vector v of a panel whose channels begin at element `at`. Of a panel of one vector n exist. */
AMP_INLINE AmpV amp_pool_vector(const int dtype, const void *base, int64_t at, int v, int64_t n,
                                const int vectors) {
  return vectors > 1 ? amp_v_read(dtype, base, at + v * AMP_WIDE)
                     : amp_v_read_some(dtype, base, at, n);
}

/* Calls fn(..., dtype, vectors), which is inline, for each panel of n channels and then for single
 * vectors, with a type and a number of vectors that the compiler knows. `i` is the name by which
 * the other arguments know the first channel. */
#define AMP_POOL_PANELS(type, i, n, fn, ...)                                                       \
  do {                                                                                             \
    int i = 0;                                                                                     \
    for (; i + AMP_POOL_PANEL <= n; i += AMP_POOL_PANEL)                                           \
      if (type == AMPRT_F32)                                                                       \
        fn(__VA_ARGS__, AMPRT_F32, AMP_POOL_VECTORS);                                              \
      else if (type == AMPRT_F16)                                                                  \
        fn(__VA_ARGS__, AMPRT_F16, AMP_POOL_VECTORS);                                              \
      else                                                                                         \
        fn(__VA_ARGS__, AMPRT_BF16, AMP_POOL_VECTORS);                                             \
    for (; i < n; i += AMP_WIDE)                                                                   \
      fn(__VA_ARGS__, type, 1);                                                                    \
  } while (0)

/* Channels of a window from `c` on, of which n exist. */
AMP_INLINE void amp_max_window(const AmpPool *a, const void *x, const AmpMaxWindow *w, int64_t c,
                               int64_t n, float *best_out, int32_t *at_out, const int dtype,
                               const int vectors) {
  const int64_t row = a->W * a->C, top = w->rows.first, left = w->cols.first;
  const int empty = top >= w->rows.last || left >= w->cols.last;
  int64_t line = w->first + top * row + left * a->C + c; /* the first tap of a row */
  int64_t line_tap = top * a->window[1] + left;
  AmpVBits at[AMP_POOL_VECTORS] = {{0}};
  AmpV best[AMP_POOL_VECTORS];
  AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++) {
    best[v] = empty ? amp_v_all(-AMP_INF) : amp_pool_vector(dtype, x, line, v, n, vectors);
    at[v] = at[v] + (empty ? 0 : (int32_t)line_tap);
  }
  for (int64_t r = top; r < w->rows.last; r++, line += row, line_tap += a->window[1]) {
    int64_t from = line;
    int32_t tap = (int32_t)line_tap;
    for (int64_t s = left; s < w->cols.last; s++, tap++, from += a->C)
      AMP_UNROLL(4)
    for (int v = 0; v < vectors; v++)
      amp_max_tap(&best[v], &at[v], amp_pool_vector(dtype, x, from, v, n, vectors), tap);
  }
  AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++) {
    amp_v_store(best_out + v * AMP_WIDE, best[v]);
    __builtin_memcpy(at_out + v * AMP_WIDE, &at[v], sizeof at[v]);
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

AMP_FN void amp_max_pool_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpPool *a = (const AmpPool *)args;
  const void *x = amp_at(run, &a->in);
  void *y = amp_at(run, &a->out), *index = amp_at(run, &a->index);
  AMP_POOL_ROWS(a, chunk, a->P, row) {
    const int64_t top = row % a->P * a->stride[0] - a->pad[0];
    float best[AMP_BUFFER];
    int32_t at[AMP_BUFFER];
    for (int64_t q = 0; q < a->Q; q++) {
      const int64_t left = q * a->stride[1] - a->pad[1];
      const AmpMaxWindow w = {.rows = amp_taps(a, 0, row % a->P, a->H),
                              .cols = amp_taps(a, 1, q, a->W),
                              .first = ((row / a->P * a->H + top) * a->W + left) * a->C};
      for (int64_t c = 0; c < a->C; c += AMP_WIDTH) {
        int n = amp_piece(a->C, c);
        int64_t to = (row * a->Q + q) * a->C + c;
        AMP_POOL_PANELS(a->in.dtype, i, n, amp_max_window, a, x, &w, c + i, n - i, best + i,
                        at + i);
        amp_write(a->out.dtype, y, to, n, best);
        if (index)
          amp_store_index(a->index.dtype, index, to, at, n);
      }
    }
  }
}
AMP_OF_CHUNKS(AmpPool, amp_max_pool)

/* The windows that cover one element of x. */
typedef struct AmpCover {
  AmpSpan ps, qs;
  int64_t image, h, w;
} AmpCover;

/* A vector of bytes. */
typedef uint8_t AmpVBytes __attribute__((vector_size(AMP_WIDE)));

/* Bytes as integers. GCC converts a vector of bytes one by one. */
AMP_INLINE AmpVBits amp_v_widen(const uint8_t *from) {
#if defined __AVX2__ && !defined __clang__
  typedef char AmpB16 __attribute__((vector_size(16)));
  typedef long long AmpQ2 __attribute__((vector_size(16)));
#ifdef __AVX512F__
  AmpB16 all;
  __builtin_memcpy(&all, from, sizeof all);
  return (AmpVBits)__builtin_ia32_pmovzxbd512_mask(all, (AmpVBits){0}, (unsigned short)-1);
#else
  long long all;
  __builtin_memcpy(&all, from, sizeof all);
  return (AmpVBits)__builtin_ia32_pmovzxbd256((AmpB16)(AmpQ2){all, 0});
#endif
#else
  AmpVBytes b;
  __builtin_memcpy(&b, from, sizeof b);
  return __builtin_convertvector(b, AmpVBits);
#endif
}

/* AMP_WIDE indices from `at` on, of which n exist; the others fit no tap. */
AMP_FN void amp_read_some_index(const AmpPool *a, const void *index, int64_t at, int64_t n,
                                int32_t to[AMP_WIDE]) {
  for (int i = 0; i < AMP_WIDE; i++)
    to[i] = i >= n                       ? -1
            : a->index.dtype == AMPRT_U8 ? ((const uint8_t *)index)[at + i]
                                         : ((const int32_t *)index)[at + i];
}
AMP_INLINE AmpVBits amp_read_index(const AmpPool *a, const void *index, int64_t at, int64_t n) {
  if (n >= AMP_WIDE && a->index.dtype == AMPRT_U8)
    return amp_v_widen((const uint8_t *)index + at);
  AmpVBits some;
  int32_t each[AMP_WIDE];
  amp_read_some_index(a, index, at, n, each);
  __builtin_memcpy(&some, each, sizeof some);
  return some;
}

/* Each dy goes to the tap that its index names: channels from `c` on, of which n exist. */
AMP_INLINE void amp_max_collect(const AmpPool *a, const void *dy, const void *index,
                                const AmpCover *k, int64_t c, int64_t n, float *out,
                                const int dtype, const int vectors) {
  AmpV sum[AMP_POOL_VECTORS] = {{0}};
  for (int64_t p = k->ps.first; p < k->ps.last; p++) {
    int64_t from = ((k->image * a->P + p) * a->Q + k->qs.first) * a->C + c;
    int64_t r = k->h + a->pad[0] - p * a->stride[0];
    int64_t s = k->w + a->pad[1] - k->qs.first * a->stride[1];
    int32_t tap = (int32_t)(r * a->window[1] + s);
    for (int64_t q = k->qs.first; q < k->qs.last; q++) {
      AMP_UNROLL(4)
      for (int v = 0; v < vectors; v++) {
        const int64_t here = from + v * AMP_WIDE;
        const AmpVBits is_here = amp_read_index(a, index, here, n - v * AMP_WIDE) == tap;
        const AmpV all = amp_pool_vector(dtype, dy, from, v, n, vectors);
        sum[v] += (AmpV)((AmpVBits)all & is_here);
      }
      from += a->C;
      tap -= a->stride[1];
    }
  }
  AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++)
    amp_v_store(out + v * AMP_WIDE, sum[v]);
}

/* Each element of dy is divided equally among the elements that were averaged. */
AMP_INLINE void amp_avg_collect(const AmpPool *a, const void *dy, const AmpCover *k, int64_t c,
                                int64_t n, float *out) {
  AmpV sum = {0};
  for (int64_t p = k->ps.first; p < k->ps.last; p++)
    for (int64_t q = k->qs.first; q < k->qs.last; q++) {
      float share = amp_pool_share(a, amp_taps(a, 0, p, a->H), amp_taps(a, 1, q, a->W));
      sum += amp_v_read_some(a->in.dtype, dy, ((k->image * a->P + p) * a->Q + q) * a->C + c, n) /
             share;
    }
  amp_v_store(out, sum);
}

/* The gradient of the maximum, or of the average, which has no index. */
AMP_INLINE void amp_pool_grad(const AmprtRun *run, const AmpPool *a, const void *index,
                              const int is_max, int64_t chunk) {
  const void *dy = amp_at(run, &a->in);
  void *dx = amp_at(run, &a->out);
  AMP_POOL_ROWS(a, chunk, a->H, row) {
    AmpCover k = {.image = row / a->H, .h = row % a->H};
    k.ps = amp_windows(a, 0, k.h, a->P);
    for (k.w = 0; k.w < a->W; k.w++) {
      k.qs = amp_windows(a, 1, k.w, a->Q);
      for (int64_t c = 0; c < a->C; c += AMP_WIDTH) {
        float sum[AMP_BUFFER];
        int n = amp_piece(a->C, c);
        if (is_max)
          AMP_POOL_PANELS(a->in.dtype, i, n, amp_max_collect, a, dy, index, &k, c + i, n - i,
                          sum + i);
        else
          for (int i = 0; i < n; i += AMP_WIDE)
            amp_avg_collect(a, dy, &k, c + i, n - i, sum + i);
        amp_write(a->out.dtype, dx, (row * a->W + k.w) * a->C + c, n, sum);
      }
    }
  }
}

AMP_FN void amp_max_pool_grad_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpPool *a = (const AmpPool *)args;
  amp_pool_grad(run, a, amp_at(run, &a->index), 1, chunk);
}
AMP_OF_CHUNKS(AmpPool, amp_max_pool_grad)

AMP_FN void amp_avg_pool_grad_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  amp_pool_grad(run, (const AmpPool *)args, NULL, 0, chunk);
}
AMP_OF_CHUNKS(AmpPool, amp_avg_pool_grad)

AMP_FN void amp_avg_pool_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpPool *a = (const AmpPool *)args;
  const void *x = amp_at(run, &a->in);
  void *y = amp_at(run, &a->out);
  AMP_POOL_ROWS(a, chunk, a->P, row) {
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
AMP_OF_CHUNKS(AmpPool, amp_avg_pool)

#endif
