/* Sums over any axes, the test whether all gradients are finite, and the norm of all gradients.
 * Sums are in double. */
#ifndef AMP_PRELUDE_REDUCE_H
#define AMP_PRELUDE_REDUCE_H

#include "codegen/text/cpu/row.h"

AMP_FN void amp_reduce_run(const AmpReduce *a, const void *x, void *out, int64_t k) {
  int64_t base = amp_index(&a->kept, k);
  float buf[AMP_BUFFER], r;
  double sum = 0;
  for (int64_t g = 0; g < a->n_gone; g++) {
    int64_t at = base + amp_index(&a->gone, g);
    for (int64_t i = 0; i < a->inner; i += AMP_WIDTH) {
      int n = amp_piece(a->inner, i);
      sum += amp_sum(amp_read(a->x.dtype, x, at + i, n, buf), n);
    }
  }
  r = (float)(sum / a->divide);
  amp_write(a->out.dtype, out, k, 1, &r);
}

AMP_FN void amp_reduce_vector(const AmpReduce *a, const void *x, void *out, int64_t k) {
  int64_t base = amp_index(&a->kept, k);
  for (int64_t i = 0; i < a->inner; i += AMP_WIDTH) {
    int n = amp_piece(a->inner, i);
    float buf[AMP_BUFFER], r[AMP_BUFFER];
    double sum[AMP_BUFFER];
    for (int j = 0; j < n; j++)
      sum[j] = 0;
    for (int64_t g = 0; g < a->n_gone; g++) {
      const float *v = amp_read(a->x.dtype, x, base + amp_index(&a->gone, g) + i, n, buf);
      AMP_SIMD
      for (int j = 0; j < n; j++)
        sum[j] += (double)v[j];
    }
    for (int j = 0; j < n; j++)
      r[j] = (float)(sum[j] / a->divide);
    amp_write(a->out.dtype, out, k * a->inner + i, n, r);
  }
}

AMP_FN void amp_reduce_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpReduce *a = (const AmpReduce *)args;
  const void *x = amp_at(run, &a->x);
  void *out = amp_at(run, &a->out);
  for (int64_t k = chunk * a->n_kept / a->chunks; k < (chunk + 1) * a->n_kept / a->chunks; k++)
    if (a->inner_gone)
      amp_reduce_run(a, x, out, k);
    else
      amp_reduce_vector(a, x, out, k);
}
AMP_OF_CHUNKS(AmpReduce, amp_reduce)

/* Has any element an exponent of all ones, so that it is Inf or NaN? These look at the stored bits,
 * without a conversion. */
AMP_FN int amp_any_bad16(const uint16_t *x, int64_t n, uint16_t mask) {
  uint16_t bad = 0;
  for (int64_t i = 0; i < n; i++)
    bad |= (uint16_t)((x[i] & mask) == mask);
  return bad != 0;
}
AMP_FN int amp_any_bad32(const float *x, int64_t n) {
  uint32_t bad = 0;
  for (int64_t i = 0; i < n; i++)
    bad |= (amp_bits(x[i]) & 0x7f800000u) == 0x7f800000u;
  return bad != 0;
}

AMP_FN int amp_any_bad(int dtype, const void *x, int64_t first, int64_t n) {
  if (dtype == AMPRT_F32)
    return amp_any_bad32((const float *)x + first, n);
  return amp_any_bad16((const uint16_t *)x + first, n, dtype == AMPRT_F16 ? 0x7c00u : 0x7f80u);
}

enum { AMP_PIECE = 65536, AMP_NORM_PARTS = 64 };

typedef struct AmpFiniteLoop {
  const AmpTensor *tensor;
  int *bad; /* set by any chunk */
} AmpFiniteLoop;

AMP_FN void amp_finite_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpFiniteLoop *l = (const AmpFiniteLoop *)args;
  const AmpTensor *t = l->tensor;
  const int64_t at = chunk * AMP_PIECE, left = t->count - at;
  if (amp_any_bad(t->x.dtype, amp_at(run, &t->x), at, left < AMP_PIECE ? left : AMP_PIECE))
    __atomic_store_n(l->bad, 1, __ATOMIC_RELAXED);
}

AMP_LIBRARY_FN(amp_all_finite)(const AmprtRun *run, const void *args) {
  const AmpFinite *a = (const AmpFinite *)args;
  const AmpTensor *list = (const AmpTensor *)amp_at(run, &a->of.list);
  int bad = 0;
  for (int k = 0; k < a->of.n && !bad; k++) {
    const AmpFiniteLoop loop = {&list[k], &bad};
    amp_parallel(run, (list[k].count + AMP_PIECE - 1) / AMP_PIECE, amp_finite_chunk, &loop);
  }
  *(uint8_t *)amp_at(run, &a->out) = !bad;
}

/* The sum of squares of one tensor. It is cut into chunks in a way that depends on its size
 * alone. */
typedef struct AmpNormLoop {
  const AmpTensor *tensor;
  float inv;
  int64_t chunks;
  double *part;
} AmpNormLoop;

AMP_FN void amp_norm_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpNormLoop *l = (const AmpNormLoop *)args;
  const AmpTensor *t = l->tensor;
  l->part[chunk] = amp_squares(t->x.dtype, amp_at(run, &t->x), chunk * t->count / l->chunks,
                               (chunk + 1) * t->count / l->chunks, l->inv, AMP_INF);
}

AMP_FN double amp_norm_part(const AmprtRun *run, const AmpTensor *t, float inv) {
  const int64_t fits = (t->count + AMP_PIECE - 1) / AMP_PIECE;
  double part[AMP_NORM_PARTS], sum = 0;
  const AmpNormLoop loop = {t, inv, fits < AMP_NORM_PARTS ? fits : AMP_NORM_PARTS, part};
  amp_parallel(run, loop.chunks, amp_norm_chunk, &loop);
  for (int64_t c = 0; c < loop.chunks; c++)
    sum += part[c];
  return sum;
}

AMP_LIBRARY_FN(amp_clip_norm)(const AmprtRun *run, const void *args) {
  const AmpClipNorm *a = (const AmpClipNorm *)args;
  const AmpTensor *list = (const AmpTensor *)amp_at(run, &a->of.list);
  float inv = *(const float *)amp_at(run, &a->inv);
  double norm = 0;
  for (int k = 0; k < a->of.n; k++)
    norm += amp_norm_part(run, &list[k], inv);
  norm = sqrt(norm);
  float value[2] = {inv, (float)norm};
  if (!(norm < (double)AMP_INF))
    value[0] = AMP_NAN;
  else if (norm > a->clip)
    value[0] = (float)((double)inv * (a->clip / norm));
  for (int r = 0; r < 2; r++)
    if (a->out[r].where != AMP_NOWHERE)
      *(float *)amp_at(run, &a->out[r]) = value[r];
}

#endif
