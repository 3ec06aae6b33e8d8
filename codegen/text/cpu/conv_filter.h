/* The filter of a convolution as its kernels read it: for each group of AMP_OUTS channels of the
 * result, block of 16 channels that are read, tap of the window, and channel of the block, one
 * vector over the group. What lies beyond the last channel of the result is zero. The taps are in
 * the order in which they lie in the image that is read, which a data gradient reverses. */
#ifndef AMP_CONV_FILTER_H
#define AMP_CONV_FILTER_H

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

/* The number of a tap of the filter among the packed ones. */
AMP_INLINE int64_t amp_packed_tap(const AmpConv *a, int64_t tap) {
  return a->backward ? amp_filter_taps(a) - 1 - tap : tap;
}

/* Is it computed from pairs of bf16? How many bf16 or floats are then an element that kernels read,
 * and how many such elements a pixel has. */
AMP_INLINE int amp_in_pairs(const AmpConv *a) {
  return AMP_PAIRS && a->in.dtype == AMPRT_BF16 && a->filter.dtype == AMPRT_BF16;
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

typedef float AmpF4 __attribute__((vector_size(16)));

/* to[j * to_step + i] = from[i * from_step + j] for i, j below 4 */
AMP_INLINE void amp_turn4(float *to, int64_t to_step, const AmpElement *from, int64_t from_step) {
  AmpF4 a, b, c, d;
  __builtin_memcpy(&a, from, sizeof a);
  __builtin_memcpy(&b, from + from_step, sizeof b);
  __builtin_memcpy(&c, from + 2 * from_step, sizeof c);
  __builtin_memcpy(&d, from + 3 * from_step, sizeof d);
  const AmpF4 p = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const AmpF4 q = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const AmpF4 r = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const AmpF4 s = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(p, q, 0, 1, 4, 5);
  b = __builtin_shufflevector(p, q, 2, 3, 6, 7);
  c = __builtin_shufflevector(r, s, 0, 1, 4, 5);
  d = __builtin_shufflevector(r, s, 2, 3, 6, 7);
  __builtin_memcpy(to, &a, sizeof a);
  __builtin_memcpy(to + to_step, &b, sizeof b);
  __builtin_memcpy(to + 2 * to_step, &c, sizeof c);
  __builtin_memcpy(to + 3 * to_step, &d, sizeof d);
}

/* The same for any i below `rows` and j below `cols`. */
AMP_FN void amp_turn(float *restrict to, int64_t to_step, const AmpElement *restrict from,
                     int64_t from_step, int rows, int cols) {
  for (int i = 0; i < rows; i += 4)
    for (int j = 0; j < cols; j += 4)
      if (i + 4 <= rows && j + 4 <= cols)
        amp_turn4(to + j * to_step + i, to_step, from + i * from_step + j, from_step);
      else
        for (int k = i; k < i + 4 && k < rows; k++)
          for (int l = j; l < j + 4 && l < cols; l++)
            to[l * to_step + k] = from[k * from_step + l];
}

/* Is any of n floats, a multiple of AMP_OUTS, Inf or NaN? */
AMP_FN int amp_any_wild(const float *x, int64_t n) {
  AmpVBits wild[2] = {{0}};
  for (int64_t i = 0; i < n; i += AMP_OUTS)
    for (int v = 0; v < 2; v++)
      wild[v] |= ((AmpVBits)amp_v_load(x + i + v * AMP_WIDE) & 0x7f800000) == 0x7f800000;
  return amp_v_any(wild[0] | wild[1]);
}

/* The same of pairs. */
AMP_FN int amp_any_wild_pair(const float *x, int64_t n) {
  AmpVBits wild[2] = {{0}};
  for (int64_t i = 0; i < n; i += AMP_OUTS)
    for (int v = 0; v < 2; v++) {
      const AmpVBits u = (AmpVBits)amp_v_load(x + i + v * AMP_WIDE);
      wild[v] |= ((u & 0x7f800000) == 0x7f800000) | ((u & 0x7f80) == 0x7f80);
    }
  return amp_v_any(wild[0] | wild[1]);
}

/* Packs one tap of one group and block where channels that are read lie side by side: n elements of
 * m channels of the result, the first at `at`, of which `have` channels exist. */
AMP_FN void amp_pack_turned(const AmpConv *a, const void *filter, float *to, int64_t at, int n,
                            int have, int m) {
  float buf[AMP_OUTS][AMP_BLOCK];
  const AmpElement *from = (const AmpElement *)filter + at;
  int64_t step = a->filter_out;
  if (amp_in_pairs(a) && a->c % 2 == 0) {
    from = (const AmpElement *)filter + at / 2;
    step /= 2;
  } else if (amp_in_pairs(a)) {
    for (int i = 0; i < m; i++) {
      buf[i][n - 1] = 0;
      __builtin_memcpy(buf[i], (const uint16_t *)filter + at + i * step,
                       (size_t)have * sizeof(uint16_t));
    }
    from = buf[0];
    step = AMP_BLOCK;
  } else if (a->filter.dtype != AMPRT_F32) {
    for (int i = 0; i < m; i++)
      __builtin_memcpy(buf[i], amp_read(a->filter.dtype, filter, at + i * step, n, buf[i]),
                       (size_t)n * sizeof *to);
    from = buf[0];
    step = AMP_BLOCK;
  }
  if (m < AMP_OUTS)
    amp_zero(to, (int64_t)n * AMP_OUTS);
  amp_turn(to, AMP_OUTS, from, step, m, n);
}

/* Packs m channels of the result that lie side by side, of the pairs of `from` and, if it exists,
 * `other`. */
AMP_FN void amp_pack_pairs(float *to, const uint16_t *from, const uint16_t *other, int m) {
  for (int i = 0; m == AMP_OUTS && other && i < AMP_OUTS; i += 8) {
    AmpS8 a, b;
    __builtin_memcpy(&a, from + i, sizeof a);
    __builtin_memcpy(&b, other + i, sizeof b);
    const AmpU8 both = __builtin_convertvector(b, AmpU8) << 16 | __builtin_convertvector(a, AmpU8);
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
  float buf[AMP_OUTS];
  for (int i = 0; i < n; i++) {
    const int64_t channel = (block * AMP_BLOCK + i) * amp_element(a);
    const int64_t at = tap * a->filter_tap + channel * a->filter_in;
    for (int64_t k = 0; k < a->k; k += AMP_OUTS) {
      float *to = packed + amp_filter_at(a, k / AMP_OUTS, block) +
                  (amp_packed_tap(a, tap) * n + i) * AMP_OUTS;
      const int m = amp_in_group(a->k, k / AMP_OUTS);
      if (amp_in_pairs(a)) {
        const uint16_t *first = (const uint16_t *)filter + at + k;
        amp_pack_pairs(to, first, channel + 1 < a->c ? first + a->filter_in : NULL, m);
        continue;
      }
      const float *from = amp_read(a->filter.dtype, filter, at + k, m, buf);
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
  int look, *wild; /* set by any chunk */
} AmpPackLoop;

/* Each chunk reads what lies side by side. */
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
      amp_pack_turned(a, filter, to + amp_packed_tap(a, t) * n * AMP_OUTS,
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
