/* The filter of a convolution as its kernels read it: for each group of AMP_OUTS channels of the
 * result, block of 16 channels that are read, tap of the window, and channel of the block, one
 * vector over the group. What lies beyond the last channel of the result is zero. The taps are in
 * the order in which they lie in the image that is read, which a data gradient reverses. */
#ifndef AMP_CONV_FILTER_H
#define AMP_CONV_FILTER_H

#include "codegen/text/cpu/amx.h"
#include "codegen/text/cpu/conv_image.h"

enum { AMP_OUTS = 2 * AMP_WIDE };

AMP_INLINE int64_t amp_blocks(int64_t channels) {
  return amp_pieces(channels, AMP_BLOCK);
}
AMP_INLINE int amp_in_block(int64_t channels, int64_t block) {
  return (int)amp_least(channels - block * AMP_BLOCK, AMP_BLOCK);
}
AMP_INLINE int amp_in_group(int64_t channels, int64_t group) {
  return (int)amp_least(channels - group * AMP_OUTS, AMP_OUTS);
}
AMP_INLINE int64_t amp_filter_taps(const AmpConv *a) {
  return a->high.taps * a->wide.taps;
}

/* The place of a tap of the filter among the packed taps. */
AMP_INLINE int64_t amp_packed_tap(const AmpConv *a, int64_t tap) {
  return a->backward ? amp_filter_taps(a) - 1 - tap : tap;
}

/* Is the convolution computed from pairs of bf16, so that kernels read elements that are pairs? How
 * many values of a tensor make an element, and how many elements a pixel has. */
AMP_INLINE int amp_in_pairs(const AmpConv *a) {
  return a->in.dtype == AMPRT_BF16 && a->filter.dtype == AMPRT_BF16 &&
         amp_takes_pairs(a->over_pairs);
}
AMP_INLINE int amp_element(const AmpConv *a) {
  return amp_in_pairs(a) ? 2 : 1;
}
AMP_INLINE int64_t amp_elements(const AmpConv *a) {
  return amp_in_pairs(a) ? (a->c + 1) / 2 : a->c;
}
AMP_INLINE int64_t amp_filter_at(const AmpConv *a, int64_t group, int64_t block) {
  return (group * amp_blocks(amp_elements(a)) + block) * amp_filter_taps(a) * AMP_BLOCK * AMP_OUTS;
}

/* Fetches n bytes of each row. */
AMP_INLINE void amp_fetch_rows(const void *from, int64_t step, int rows, int64_t n) {
  for (int i = 0; i < rows; i++)
    for (int64_t at = 0; at < n; at += AMP_LINE)
      __builtin_prefetch((const char *)from + i * step + at);
}

AMP_INLINE AmpF4 amp_load4(const AmpElement *from) {
  AmpF4 v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
#if defined __AVX__ || defined __ARM_FEATURE_SVE_BITS && __ARM_FEATURE_SVE_BITS >= 256
AMP_INLINE AmpF8 amp_load4_twice(const AmpElement *from, const AmpElement *other) {
  return __builtin_shufflevector(amp_load4(from), amp_load4(other), 0, 1, 2, 3, 4, 5, 6, 7);
}
#endif

/* amp_fours: a vector of the first four elements of every fourth row, of AMP_WIDE rows.
 * AMP_IN_FOURS: the same shuffle within each four elements of v and w; indices below 4 are elements
 * of v, others of w. */
#define AMP_OF(four, x) ((x) < 4 ? (x) + (four) : (x)-4 + AMP_WIDE + (four))
#define AMP_OF_ALL(four, a, b, c, d)                                                               \
  AMP_OF(four, a), AMP_OF(four, b), AMP_OF(four, c), AMP_OF(four, d)
#if defined __AVX512F__
#define AMP_IN_FOURS(v, w, ...)                                                                    \
  __builtin_shufflevector(v, w, AMP_OF_ALL(0, __VA_ARGS__), AMP_OF_ALL(4, __VA_ARGS__),            \
                          AMP_OF_ALL(8, __VA_ARGS__), AMP_OF_ALL(12, __VA_ARGS__))
AMP_INLINE AmpV amp_fours(const AmpElement *from, int64_t step) {
  const AmpF8 a = amp_load4_twice(from, from + 4 * step);
  const AmpF8 b = amp_load4_twice(from + 8 * step, from + 12 * step);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
#elif defined __AVX__ || defined __ARM_FEATURE_SVE_BITS && __ARM_FEATURE_SVE_BITS >= 256
#define AMP_IN_FOURS(v, w, ...)                                                                    \
  __builtin_shufflevector(v, w, AMP_OF_ALL(0, __VA_ARGS__), AMP_OF_ALL(4, __VA_ARGS__))
AMP_INLINE AmpV amp_fours(const AmpElement *from, int64_t step) {
  return amp_load4_twice(from, from + 4 * step);
}
#else
#define AMP_IN_FOURS(v, w, ...) __builtin_shufflevector(v, w, AMP_OF_ALL(0, __VA_ARGS__))
AMP_INLINE AmpV amp_fours(const AmpElement *from, int64_t step) {
  (void)step;
  return amp_load4(from);
}
#endif

/* Transposes each four elements of v[0] to v[3], as a matrix of four rows. */
AMP_INLINE void amp_transpose_fours(AmpV v[4]) {
  const AmpV p = AMP_IN_FOURS(v[0], v[1], 0, 4, 1, 5), q = AMP_IN_FOURS(v[2], v[3], 0, 4, 1, 5);
  const AmpV r = AMP_IN_FOURS(v[0], v[1], 2, 6, 3, 7), s = AMP_IN_FOURS(v[2], v[3], 2, 6, 3, 7);
  v[0] = AMP_IN_FOURS(p, q, 0, 1, 4, 5);
  v[1] = AMP_IN_FOURS(p, q, 2, 3, 6, 7);
  v[2] = AMP_IN_FOURS(r, s, 0, 1, 4, 5);
  v[3] = AMP_IN_FOURS(r, s, 2, 3, 6, 7);
}

/* to[j * to_step + i] = from[i * from_step + j] for i below AMP_WIDE and j below 4 */
AMP_INLINE void amp_transpose_vectors(float *to, int64_t to_step, const AmpElement *from,
                                      int64_t from_step) {
  AmpV v[4];
  AMP_UNROLL(4)
  for (int i = 0; i < 4; i++)
    v[i] = amp_fours(from + i * from_step, from_step);
  amp_transpose_fours(v);
  AMP_UNROLL(4)
  for (int j = 0; j < 4; j++)
    amp_v_store(to + j * to_step, v[j]);
}

/* The same for j below 16, where these are a vector: each row is read once, as 16 rows that lie a
 * multiple of 4096 bytes apart evict one another from the first-level cache. */
#ifdef __AVX512F__
#define AMP_FOUR(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
#define AMP_FOURS(v, w, a, b, c, d)                                                                \
  __builtin_shufflevector(v, w, AMP_FOUR(a), AMP_FOUR(b), AMP_FOUR(c), AMP_FOUR(d))
AMP_INLINE void amp_transpose_wide(float *to, int64_t to_step, const AmpElement *from,
                                   int64_t from_step) {
  AmpV v[4][4]; /* [n][j]: columns j, j + 4, ... of rows 4 * n to 4 * n + 3 */
  AMP_UNROLL(4)
  for (int n = 0; n < 4; n++) {
    AMP_UNROLL(4)
    for (int i = 0; i < 4; i++, from += from_step)
      v[n][i] = amp_v_load((const float *)from);
    amp_transpose_fours(v[n]);
  }
  AMP_UNROLL(4)
  for (int j = 0; j < 4; j++, to += to_step) {
    const AmpV p = AMP_FOURS(v[0][j], v[1][j], 0, 1, 4, 5);
    const AmpV q = AMP_FOURS(v[2][j], v[3][j], 0, 1, 4, 5);
    const AmpV r = AMP_FOURS(v[0][j], v[1][j], 2, 3, 6, 7);
    const AmpV s = AMP_FOURS(v[2][j], v[3][j], 2, 3, 6, 7);
    amp_v_store(to, AMP_FOURS(p, q, 0, 2, 4, 6));
    amp_v_store(to + 4 * to_step, AMP_FOURS(p, q, 1, 3, 5, 7));
    amp_v_store(to + 8 * to_step, AMP_FOURS(r, s, 0, 2, 4, 6));
    amp_v_store(to + 12 * to_step, AMP_FOURS(r, s, 1, 3, 5, 7));
  }
}
#else
AMP_INLINE void amp_transpose_wide(float *to, int64_t to_step, const AmpElement *from,
                                   int64_t from_step) {
  for (int j = 0; j < 16; j += 4)
    amp_transpose_vectors(to + j * to_step, to_step, from + j, from_step);
}
#endif

/* The same for any i below `rows` and j below `cols`. The last vectors of a side that they do not
 * divide overlap those before. */
AMP_FN void amp_transpose(float *restrict to, int64_t to_step, const AmpElement *restrict from,
                          int64_t from_step, int rows, int cols) {
  if (rows >= AMP_WIDE && cols >= 4) {
    for (int r = 0; r < rows; r += AMP_WIDE) {
      const int64_t i = amp_least(r, rows - AMP_WIDE);
      int c = 0;
      for (; c + 16 <= cols; c += 16)
        amp_transpose_wide(to + c * to_step + i, to_step, from + i * from_step + c, from_step);
      for (; c < cols; c += 4) {
        const int64_t j = amp_least(c, cols - 4);
        amp_transpose_vectors(to + j * to_step + i, to_step, from + i * from_step + j, from_step);
      }
    }
    return;
  }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++)
      to[j * to_step + i] = from[i * from_step + j];
}

/* The same of a tensor of floats of any type, from element `at` on, for at most AMP_OUTS rows and
 * AMP_BLOCK columns. */
AMP_FN void amp_transpose_read(float *to, int64_t to_step, int dtype, const void *base, int64_t at,
                               int64_t from_step, int rows, int cols) {
  float buf[AMP_OUTS][AMP_BLOCK];
  if (dtype == AMPRT_F32) {
    amp_transpose(to, to_step, (const AmpElement *)base + at, from_step, rows, cols);
    return;
  }
  for (int i = 0; i < rows; i++)
    amp_read(dtype, base, at + i * from_step, cols, buf[i]);
  amp_transpose(to, to_step, buf[0], AMP_BLOCK, rows, cols);
}

/* Is any of n floats, a multiple of AMP_OUTS, Inf or NaN? */
AMP_FN int amp_any_wild(const float *x, int64_t n) {
  AmpVBits wild[2] = {{0}};
  for (int64_t i = 0; i < n; i += AMP_OUTS)
    for (int v = 0; v < 2; v++)
      wild[v] |= amp_v_wild(amp_v_load(x + i + v * AMP_WIDE));
  return amp_v_any(wild[0] | wild[1]);
}

/* The same of pairs. */
AMP_FN int amp_any_wild_pair(const float *x, int64_t n) {
  AmpVBits wild[2] = {{0}};
  for (int64_t i = 0; i < n; i += AMP_OUTS)
    for (int v = 0; v < 2; v++) {
      const AmpVBits u = (AmpVBits)amp_v_load(x + i + v * AMP_WIDE);
      wild[v] |= amp_v_wild((AmpV)u) | ((u & 0x7f80) == 0x7f80);
    }
  return amp_v_any(wild[0] | wild[1]);
}

/* Packs one tap of one group and block where the channels that are read lie side by side: `have` of
 * them, which are n elements, for each of m channels of the result, from the one at `at` on. */
AMP_FN void amp_pack_transposed(const AmpConv *a, const void *filter, float *to, int64_t at, int n,
                                int have, int m) {
  const int64_t size = amp_size(a->filter.dtype), step = a->filter_out;
  amp_fetch_rows((const char *)filter + at * size + AMP_LINE, step * size, m, AMP_LINE);
  if (m < AMP_OUTS)
    amp_zero(to, (int64_t)n * AMP_OUTS);
  if (!amp_in_pairs(a)) {
    amp_transpose_read(to, AMP_OUTS, a->filter.dtype, filter, at, step, m, n);
  } else if (a->c % 2 == 0) {
    amp_transpose(to, AMP_OUTS, (const AmpElement *)filter + at / 2, step / 2, m, n);
  } else {
    float buf[AMP_OUTS][AMP_BLOCK];
    for (int i = 0; i < m; i++) {
      buf[i][n - 1] = 0;
      __builtin_memcpy(buf[i], (const uint16_t *)filter + at + i * step,
                       (size_t)have * sizeof(uint16_t));
    }
    amp_transpose(to, AMP_OUTS, buf[0], AMP_BLOCK, m, n);
  }
}

/* Packs m channels of the result that lie side by side. Each becomes a pair of its value at `from`
 * and its value at `other`, or 0 if that is NULL. */
AMP_FN void amp_pack_pairs(float *to, const uint16_t *from, const uint16_t *other, int m) {
  for (int i = 0; m == AMP_OUTS && other && i < AMP_OUTS; i += 8) {
    AmpS8 a, b;
    __builtin_memcpy(&a, from + i, sizeof a);
    __builtin_memcpy(&b, other + i, sizeof b);
    AmpU8 first, second;
    amp_widen8(&first, a);
    amp_widen8(&second, b);
    const AmpU8 both = second << 16 | first;
    __builtin_memcpy(to + i, &both, sizeof both);
  }
  if (m == AMP_OUTS && other)
    return;
  amp_zero(to, AMP_OUTS);
  for (int i = 0; i < m; i++)
    amp_put_pair(to + i, from[i], other ? other[i] : 0);
}

/* Packs one tap of one block for all groups, where channels of the result lie side by side. */
AMP_FN void amp_pack_rows(const AmpConv *a, const void *filter, float *packed, int64_t block,
                          int64_t tap, int n) {
  enum { AHEAD = 2 }; /* groups */
  const int64_t size = amp_size(a->filter.dtype), first = block * AMP_BLOCK * amp_element(a);
  const int rows = (int)amp_least(a->c - first, n * amp_element(a));
  for (int64_t k = 0; k < a->k; k += AMP_OUTS) {
    const int64_t at = tap * a->filter_tap + first * a->filter_in + k;
    const int m = amp_in_group(a->k, k / AMP_OUTS);
    float buf[AMP_OUTS];
    float *to =
        packed + amp_filter_at(a, k / AMP_OUTS, block) + amp_packed_tap(a, tap) * n * AMP_OUTS;
    for (int i = 0; i < n; i++, to += AMP_OUTS) {
      const int64_t row = at + i * amp_element(a) * a->filter_in;
      amp_fetch_rows((const char *)filter + (row + AHEAD * AMP_OUTS) * size, a->filter_in * size,
                     amp_element(a), AMP_OUTS * size);
      if (amp_in_pairs(a)) {
        const uint16_t *pair = (const uint16_t *)filter + row;
        amp_pack_pairs(to, pair, 2 * i + 1 < rows ? pair + a->filter_in : NULL, m);
        continue;
      }
      const float *from = amp_read(a->filter.dtype, filter, row, m, buf);
      if (m == AMP_OUTS) { /* a size that the compiler knows */
        __builtin_memcpy(to, from, AMP_OUTS * sizeof *to);
        continue;
      }
      amp_zero(to, AMP_OUTS);
      __builtin_memcpy(to, from, (size_t)m * sizeof *to);
    }
  }
}

typedef struct AmpPackLoop {
  const AmpConv *a;
  int look, *wild; /* is Inf or NaN looked for; set by chunks that find it */
} AmpPackLoop;

/* Packs one block of channels that are read and, of the two, taps or groups: that one which makes
 * the chunk read what lies side by side. */
AMP_FN void amp_pack_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpPackLoop *l = (const AmpPackLoop *)args;
  const AmpConv *a = l->a;
  const void *filter = amp_at(run, &a->filter);
  float *packed = (float *)(void *)(run->arena + a->packed);
  const int64_t elements = amp_elements(a), blocks = amp_blocks(elements),
                taps = amp_filter_taps(a);
  const int64_t groups = amp_pieces(a->k, AMP_OUTS);
  int (*any)(const float *, int64_t) = amp_in_pairs(a) ? amp_any_wild_pair : amp_any_wild;
  const int64_t block = a->filter_out == 1 ? chunk / taps : chunk % blocks;
  const int64_t other = a->filter_out == 1 ? chunk % taps : chunk / blocks;
  const int n = amp_in_block(elements, block);
  int wild = 0;
  if (a->filter_out == 1) {
    amp_pack_rows(a, filter, packed, block, other, n);
    for (int64_t g = 0; g < groups && l->look; g++)
      wild |= any(packed + amp_filter_at(a, g, block) + amp_packed_tap(a, other) * n * AMP_OUTS,
                  n * AMP_OUTS);
  } else {
    const int64_t first = block * AMP_BLOCK * amp_element(a);
    const int have = (int)amp_least(a->c - first, n * amp_element(a));
    const int m = amp_in_group(a->k, other);
    float *to = packed + amp_filter_at(a, other, block);
    for (int64_t t = 0; t < taps; t++)
      amp_pack_transposed(a, filter, to + amp_packed_tap(a, t) * n * AMP_OUTS,
                          other * AMP_OUTS * a->filter_out + t * a->filter_tap + first, n, have, m);
    wild = l->look && any(to, taps * n * AMP_OUTS);
  }
  if (wild)
    __atomic_store_n(l->wild, 1, __ATOMIC_RELAXED);
}

/* Packs the filter on all threads. Returns whether it has an element that is Inf or NaN, which is
 * looked for only with `look`. */
AMP_FN int amp_pack_filter(const AmprtRun *run, const AmpConv *a, int look) {
  const int64_t groups = amp_pieces(a->k, AMP_OUTS);
  const int64_t others = a->filter_out == 1 ? amp_filter_taps(a) : groups;
  int wild = 0;
  const AmpPackLoop loop = {a, look, &wild};
  amp_parallel(run, others * amp_blocks(amp_elements(a)), amp_pack_chunk, &loop);
  return wild;
}

#endif
