#include "runtime/image/resample.h"

#include "runtime/image/room.h"

#include <string.h>

enum {
  /* Columns are summed so many at a time: a number that the compiler knows makes a loop of
   * vectors. */
  CHUNK = 32,
  /* libjpeg-turbo writes aligned rows around the caches (movntdq), although they are read again at
   * once; so rows are not aligned. */
  UNALIGNED = 4,
};

AmprtStatus amprt_resample_begin(AmprtResample *r, int64_t at, int64_t width, AmprtError *error) {
  r->at = at;
  r->width = width;
  r->done = 0;
  uint64_t bytes = (uint64_t)width * (uint64_t)r->lanes;
  r->stride = (bytes + CHUNK - 1) / CHUNK * CHUNK;
  uint64_t result = (uint64_t)(r->vertical.n * r->horizontal.n * (r->lanes == 1 ? 1 : 3));
  if (r->vertical.end - r->vertical.begin < r->vertical.n ||
      r->horizontal.end - r->horizontal.begin < r->horizontal.n)
    memset(r->out, 0, result);
  AmprtStatus status = amprt_room_grow((void **)&r->rows, &r->room[0],
                                       UNALIGNED + r->stride * (uint64_t)r->vertical.taps, error);
  if (!status)
    status = amprt_room_grow((void **)&r->sum, &r->room[1], r->stride * sizeof(float), error);
  const AmprtAxis *across = &r->horizontal;
  if (!status)
    status = amprt_room_grow((void **)&r->fourfold, &r->room[2],
                             4 * (uint64_t)(across->n * across->taps) * sizeof(float), error);
  for (int64_t i = across->begin * across->taps; i < across->end * across->taps && !status; i++)
    for (int64_t lane = 0; lane < 4; lane++)
      r->fourfold[4 * i + lane] = across->weight[i];
  return status;
}

unsigned char *amprt_resample_place(AmprtResample *r, int64_t y) {
  return r->rows + UNALIGNED + (size_t)(y % r->vertical.taps) * r->stride;
}

/* On x86-64 the loops below are compiled twice, for any such CPU and for those with AVX2. Both give
 * the same bytes. */
#define LOOP static inline __attribute__((always_inline)) void

LOOP sum_two(float *restrict sum, const unsigned char *restrict a, const unsigned char *restrict b,
             const float *weight, size_t n) {
  float w0 = weight[0], w1 = weight[1];
  for (size_t i = 0; i < n; i += CHUNK)
    for (size_t k = 0; k < CHUNK; k++)
      sum[i + k] = (float)a[i + k] * w0 + (float)b[i + k] * w1;
}

LOOP sum_more(float *restrict sum, const unsigned char *restrict row, float weight, size_t n) {
  for (size_t i = 0; i < n; i += CHUNK)
    for (size_t k = 0; k < CHUNK; k++)
      sum[i + k] += (float)row[i + k] * weight;
}

LOOP sum_columns(AmprtResample *r, int64_t start, const float *weight) {
  static const float all[2] = {1, 0};
  int64_t taps = r->vertical.taps;
  const unsigned char *first = amprt_resample_place(r, start);
  const unsigned char *second = taps > 1 ? amprt_resample_place(r, start + 1) : first;
  sum_two(r->sum, first, second, taps > 1 ? weight : all, r->stride);
  for (int64_t t = 2; t < taps; t++)
    if (weight[t] != 0)
      sum_more(r->sum, amprt_resample_place(r, start + t), weight[t], r->stride);
}

LOOP grey_row(const AmprtResample *r, unsigned char *out) {
  const AmprtAxis *axis = &r->horizontal;
  for (int64_t i = axis->begin; i < axis->end; i++) {
    const float *from = r->sum + (axis->start[i] - r->at), *weight = axis->weight + i * axis->taps;
    float sum = from[0] * weight[0];
    for (int64_t t = 1; t < axis->taps; t++)
      sum += from[t] * weight[t];
    out[i] = (unsigned char)(sum + 0.5f);
  }
}

/* The four lanes of one pixel. */
typedef float Pixel __attribute__((vector_size(16)));
typedef int32_t Whole __attribute__((vector_size(16)));
typedef unsigned char Bytes __attribute__((vector_size(16)));

/* A result in the first bytes; numbers lie with their low byte first. */
static inline __attribute__((always_inline)) Bytes colour(const Pixel *from, const float *weight,
                                                          int64_t taps, bool reversed) {
  Pixel sum = from[0] * weight[0];
  for (int64_t t = 1; t < taps; t++)
    sum += from[t] * weight[t];
  Bytes bytes = (Bytes) __builtin_convertvector(sum + 0.5f, Whole);
  return reversed ? __builtin_shufflevector(bytes, bytes, 8, 4, 0, 12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                            1, 1)
                  : __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                            1, 1);
}

LOOP colour_row(const AmprtResample *r, int64_t taps, bool reversed, unsigned char *out) {
  const AmprtAxis *axis = &r->horizontal;
  const Pixel *pixel = (const Pixel *)(const void *)r->sum - r->at;
  const int64_t *start = axis->start;
  const float *weight = axis->weight + axis->begin * taps;
  int64_t last = axis->end - 1;
  out += 3 * axis->begin;
  /* One store of four bytes is quicker than three of one; the next pixel replaces the fourth. */
  for (int64_t i = axis->begin; i < last; i++, out += 3, weight += taps) {
    Bytes bytes = colour(pixel + start[i], weight, taps, reversed);
    memcpy(out, &bytes, 4);
  }
  Bytes bytes = colour(pixel + start[last], weight, taps, reversed);
  memcpy(out, &bytes, 3);
}

/* Two pixels side by side. Rows of them are not aligned to more than their floats. */
typedef float Pair __attribute__((vector_size(32)));
typedef int32_t WholePair __attribute__((vector_size(32)));
typedef unsigned char BytesPair __attribute__((vector_size(32)));

LOOP weigh(Pair *out, const float *pair, const float *weight) {
  Pair a, w;
  memcpy(&a, pair, sizeof a);
  memcpy(&w, weight, sizeof w);
  *out = a * w;
}

/* What colour_row does for two taps, two pixels of the result at a time. `weight` has each weight
 * four times. */
LOOP two_taps_row(const AmprtResample *r, const float *weight, unsigned char *out) {
  const AmprtAxis *axis = &r->horizontal;
  const float *sum = r->sum - 4 * r->at;
  const int64_t *start = axis->start;
  int64_t i = axis->begin;
  out += 3 * i, weight += 8 * i;
  for (; i + 2 < axis->end; i += 2, out += 6, weight += 16) {
    Pair a, b;
    weigh(&a, sum + 4 * start[i], weight);
    weigh(&b, sum + 4 * start[i + 1], weight + 8);
    Pair first = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    Pair second = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    BytesPair all = (BytesPair) __builtin_convertvector(first + second + 0.5f, WholePair);
    Bytes low = __builtin_shufflevector(all, all, 0, 4, 8, 12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    Bytes high = __builtin_shufflevector(all, all, 16, 20, 24, 28, 17, 17, 17, 17, 17, 17, 17, 17,
                                         17, 17, 17, 17);
    memcpy(out, &low, 4);
    memcpy(out + 3, &high, 4);
  }
  const Pixel *pixel = (const Pixel *)(const void *)r->sum - r->at;
  for (; i < axis->end; i++, out += 3) {
    Bytes bytes = colour(pixel + start[i], axis->weight + 2 * i, 2, false);
    memcpy(out, &bytes, 3);
  }
}

/* The rows of the result whose last source row is y. */
LOOP make_rows(AmprtResample *r, int64_t y) {
  const AmprtAxis *axis = &r->vertical;
  int64_t first = axis->begin + r->done;
  size_t row = (size_t)(r->horizontal.n * (r->lanes == 1 ? 1 : 3));
  for (int64_t i = first; i < axis->end && axis->start[i] + axis->taps <= y + 1; i++, r->done++) {
    sum_columns(r, axis->start[i], axis->weight + i * axis->taps);
    if (r->lanes == 1)
      grey_row(r, r->out + (size_t)i * row);
    else if (r->horizontal.taps == 2 && !r->reversed)
      two_taps_row(r, r->fourfold, r->out + (size_t)i * row);
    else
      colour_row(r, r->horizontal.taps, r->reversed, r->out + (size_t)i * row);
  }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void make_rows_avx2(AmprtResample *r, int64_t y) {
  make_rows(r, y);
}
#endif

void amprt_resample_row(AmprtResample *r, int64_t y) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) {
    make_rows_avx2(r, y);
    return;
  }
#endif
  make_rows(r, y);
}

void amprt_resample_free(AmprtResample *r) {
  amprt_axis_free(&r->vertical);
  amprt_axis_free(&r->horizontal);
  free(r->rows);
  free(r->sum);
  free(r->fourfold);
}
