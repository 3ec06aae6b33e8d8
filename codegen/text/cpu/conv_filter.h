/* The filter of a convolution as its kernels read it: for each group of AMP_OUTS channels of the
 * result, block of 16 channels that are read, tap of the window, and channel of the block, one
 * vector over the group. What lies beyond the last channel of the result is zero. */
#ifndef AMP_CONV_FILTER_H
#define AMP_CONV_FILTER_H

#include "codegen/text/cpu/conv_image.h"
#include "codegen/text/cpu/reduce.h"

enum { AMP_OUTS = 2 * AMP_WIDE };

AMP_INLINE int64_t amp_blocks(int64_t channels) {
  return (channels + AMP_BLOCK - 1) / AMP_BLOCK;
}
AMP_INLINE int amp_in_block(int64_t channels, int64_t block) {
  const int64_t left = channels - block * AMP_BLOCK;
  return left < AMP_BLOCK ? (int)left : AMP_BLOCK;
}
AMP_INLINE int64_t amp_filter_taps(const AmpConv *a) {
  return a->high.taps * a->wide.taps;
}
AMP_INLINE int64_t amp_filter_at(const AmpConv *a, int64_t group, int64_t block) {
  return (group * amp_blocks(a->c) + block) * amp_filter_taps(a) * AMP_BLOCK * AMP_OUTS;
}

typedef float AmpF4 __attribute__((vector_size(16)));

/* to[j * to_step + i] = from[i * from_step + j] for i, j below 4 */
AMP_INLINE void amp_turn4(float *to, int64_t to_step, const float *from, int64_t from_step) {
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
AMP_FN void amp_turn(float *restrict to, int64_t to_step, const float *restrict from,
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

/* One tap of one group and block: to[channel read][channel of the result], n and m of them. `at` is
 * the filter's first element. */
AMP_FN void amp_pack_tap(const AmpConv *a, const void *filter, float *to, int64_t at, int n,
                         int m) {
  float buf[AMP_OUTS][AMP_BLOCK], row[AMP_OUTS];
  const int dtype = a->filter.dtype;
  if (m < AMP_OUTS)
    amp_zero(to, (int64_t)n * AMP_OUTS);
  if (a->filter_out == 1) {
    for (int i = 0; i < n; i++) {
      const float *v = amp_read(dtype, filter, at + i * a->filter_in, m, row);
      __builtin_memcpy(to + i * AMP_OUTS, v, (size_t)m * sizeof *to);
    }
    return;
  }
  const float *from = (const float *)filter + at;
  if (dtype != AMPRT_F32)
    for (int i = 0; i < m; i++)
      amp_read(dtype, filter, at + i * a->filter_out, n, buf[i]);
  if (dtype == AMPRT_F32)
    amp_turn(to, AMP_OUTS, from, a->filter_out, m, n);
  else
    amp_turn(to, AMP_OUTS, buf[0], AMP_BLOCK, m, n);
}

/* Packs the filter on all threads. Returns whether it has an element that is Inf or NaN. */
AMP_FN int amp_pack_filter(const AmprtRun *run, const AmpConv *a) {
  const void *filter = amp_at(run, &a->filter);
  float *packed = (float *)(void *)(run->arena + a->packed);
  const int64_t blocks = amp_blocks(a->c), taps = amp_filter_taps(a);
  const int64_t chunks = (a->k + AMP_OUTS - 1) / AMP_OUTS * blocks;
  int bad = 0;
#pragma omp parallel for schedule(static) reduction(| : bad) if (chunks > 1)
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const int64_t group = chunk / blocks, block = chunk % blocks, left = a->k - group * AMP_OUTS;
    const int n = amp_in_block(a->c, block), m = left < AMP_OUTS ? (int)left : AMP_OUTS;
    float *to = packed + amp_filter_at(a, group, block);
    for (int64_t t = 0; t < taps; t++)
      amp_pack_tap(a, filter, to + t * n * AMP_OUTS,
                   group * AMP_OUTS * a->filter_out + t * a->filter_tap +
                       block * AMP_BLOCK * a->filter_in,
                   n, m);
    bad |= amp_any_bad32(to, taps * n * AMP_OUTS);
  }
  return bad;
}

#endif
