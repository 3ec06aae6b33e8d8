/* What the kernels of convolutions read: a tile of an image, copied to memory of the thread. The
 * copy is f32, in blocks of 16 channels, with zeros for the padding; or pairs of bf16 channels,
 * which are elements of 32 bits as well, and are counted as channels here. Where a window moves by
 * more than one element, rows and columns are sorted by their remainder, so that neighbours among
 * the results always read neighbours in the copy. For windows of one element the blocks of a pixel
 * lie side by side. A copy of few channels can be flat: pixels then lie side by side in their own
 * order, each as long as it has channels. */
#ifndef AMP_CONV_IMAGE_H
#define AMP_CONV_IMAGE_H

#include "codegen/text/cpu/conv_args.h"
#include "codegen/text/cpu/lanes.h"

/* Memory of the threads for which none was planned, as large as the largest lane; made by
 * amp_open. */
extern unsigned char *amp_more_lanes;
extern int64_t amp_more_lanes_each;

AMP_INLINE unsigned char *amp_lane(const AmprtRun *run, int64_t lane, int64_t bytes) {
  int64_t t = run->threads->number();
  return t < AMP_TEAM ? run->arena + lane + t * bytes
                      : amp_more_lanes + (t - AMP_TEAM) * amp_more_lanes_each;
}

/* ---- the copy ---- */

typedef struct AmpSource { /* images to copy from */
  const void *data;
  int64_t h, w, c, pixel, channel; /* elements from pixel to pixel, from channel to channel */
  int64_t pair;                    /* not 0: an element is a pair of bf16, which lie so far apart */
  int32_t odd;                     /* the last pair of a pixel has no second one */
  int32_t dtype;
} AmpSource;

/* A copy of what results first..first+n of both axes read; in floats. */
typedef struct AmpTileCopy {
  float *at;
  int64_t phase[2], step[2], block; /* from remainder to remainder, neighbour to neighbour: of rows,
                                       of columns */
  int64_t n[2];                     /* neighbours of a remainder */
  int32_t flat;                     /* n[1] is then the number of columns */
} AmpTileCopy;

AMP_INLINE AmpTileCopy amp_tile_copy(float *at, int64_t channels, const AmpAxis *high,
                                     const AmpAxis *wide, int64_t rows, int64_t cols) {
  const int one = high->taps == 1 && wide->taps == 1;
  AmpTileCopy t = {.at = at};
  t.n[0] = amp_reach(high, rows);
  t.n[1] = amp_reach(wide, cols);
  t.step[1] = one ? amp_odd_lines(channels) : AMP_BLOCK;
  t.phase[1] = t.n[1] * t.step[1];
  t.step[0] = amp_phases(wide) * t.phase[1];
  t.phase[0] = t.n[0] * t.step[0];
  t.block = one ? AMP_BLOCK : amp_phases(high) * t.phase[0];
  return t;
}

/* A flat copy of few channels: where images have no gaps between their pixels, and each column is
 * read. */
AMP_INLINE int amp_can_be_flat(const AmpSource *s, const AmpAxis *wide) {
  const int64_t pixel = s->pair ? 2 * s->c - s->odd : s->c;
  return s->c <= AMP_BLOCK && wide->taps >= wide->step && s->pixel == pixel &&
         (s->pair == 1 || s->channel == 1);
}
AMP_INLINE AmpTileCopy amp_tile_flat(float *at, int64_t channels, const AmpAxis *high,
                                     const AmpAxis *wide, int64_t rows, int64_t cols) {
  AmpTileCopy t = {.at = at, .flat = 1};
  t.n[0] = amp_reach(high, rows);
  t.n[1] = (cols - 1) * wide->step + wide->taps;
  t.phase[1] = channels;
  t.step[1] = wide->step * channels;
  t.step[0] = t.n[1] * channels;
  t.phase[0] = t.n[0] * t.step[0];
  return t;
}

/* The same without a copy: of f32 images as they lie. What is padding must not be read. */
AMP_INLINE AmpTileCopy amp_tile_direct(const AmpSource *s, const AmpAxis *high, const AmpAxis *wide,
                                       int64_t image, int64_t row, int64_t col) {
  const int64_t line = s->w * s->pixel, h = row * high->step + high->origin;
  return (AmpTileCopy){.at = (float *)(uintptr_t)s->data + (image * s->h + h) * line +
                             (col * wide->step + wide->origin) * s->pixel,
                       .phase = {line, s->pixel},
                       .step = {high->step * line, wide->step * s->pixel},
                       .block = AMP_BLOCK};
}

/* Where tap t of the tile's first result is read. */
AMP_INLINE int64_t amp_tap_at(const AmpTileCopy *copy, int axis, const AmpAxis *a, int64_t t) {
  return t % a->step * copy->phase[axis] + t / a->step * copy->step[axis];
}

/* Copies a whole block of channels of one pixel, which begins at element `from` of an image. */
AMP_INLINE void amp_copy_block(int dtype, float *to, const void *data, int64_t from) {
  AMP_UNROLL(4)
  for (int i = 0; i < AMP_BLOCK; i += AMP_WIDE)
    amp_v_store(to + i, amp_v_read(dtype, data, from + i));
}

/* The same of n pixels, each `step` elements after the one before, and of some blocks that follow
 * one another. Pixels of the copy lie `size` elements apart. */
AMP_INLINE void amp_copy_blocks(int dtype, const AmpSource *s, float *to, int64_t size,
                                int64_t from, int64_t n, int64_t step, int channels) {
  for (int64_t i = 0; i < n; i++, to += size, from += step)
    for (int c = 0; c < channels; c += AMP_BLOCK)
      amp_copy_block(dtype, to + c, s->data, from + c);
}

/* The same of a block with fewer channels. What lies behind them in the copy is never used. */
AMP_FN void amp_copy_few(const AmpSource *s, float *to, int64_t size, int64_t from, int64_t n,
                         int64_t step, int channels) {
  float buf[AMP_BLOCK];
  for (int64_t i = 0; i < n; i++, to += size, from += step) {
    const AmpElement *v = (const AmpElement *)s->data + from;
    if (s->dtype != AMPRT_F32)
      v = amp_read(s->dtype, s->data, from, channels, buf);
    for (int c = 0; c < channels; c++)
      to[c] = v[c];
  }
}

/* The same where pixels lie side by side and channels do not. */
AMP_FN void amp_copy_transposed(const AmpSource *s, float *to, int64_t size, int64_t from,
                                int64_t n, int channels) {
  float buf[AMP_BUFFER];
  for (int64_t i = 0; i < n; i += AMP_WIDTH) {
    const int m = n - i < AMP_WIDTH ? (int)(n - i) : AMP_WIDTH;
    for (int c = 0; c < channels; c++) {
      const float *v = amp_read(s->dtype, s->data, from + i + c * s->channel, m, buf);
      for (int j = 0; j < m; j++)
        to[(i + j) * size + c] = v[j];
    }
  }
}

/* Two bf16 as one element: `first` in the lower half. */
AMP_INLINE void amp_put_pair(float *to, uint16_t first, uint16_t second) {
  const uint32_t both = (uint32_t)second << 16 | first;
  __builtin_memcpy(to, &both, sizeof both);
}

/* Pixels of three channels, as those of photographs, become two pairs each. Returns how many of n
 * pixels it has copied. */
AMP_FN int64_t amp_copy_three(float *to, const uint16_t *from, int64_t n) {
  const AmpS8 zero = {0};
  int64_t i = 0;
  for (; i + 3 <= n; i += 2) { /* eight elements are read, and six used */
    AmpS8 v;
    __builtin_memcpy(&v, from + 3 * i, sizeof v);
    v = __builtin_shufflevector(v, zero, 0, 1, 2, 8, 3, 4, 5, 8);
    __builtin_memcpy(to + 2 * i, &v, sizeof v);
  }
  return i;
}

/* The same for any pairs: also where the two channels of a pair do not lie side by side, and where
 * the number of channels is odd, so that only every other pixel begins at a multiple of 4 bytes.
 * With `odd` the last element is a channel without a second one. */
AMP_FN void amp_copy_pairs(const AmpSource *s, float *to, int64_t size, int64_t from, int64_t n,
                           int64_t step, int channels, int odd) {
  const uint16_t *data = (const uint16_t *)s->data + from;
  const int whole = channels - odd;
  if (channels == 2 && size == 2 && odd && step == 3 && s->pair == 1) {
    const int64_t done = amp_copy_three(to, data, n);
    to += done * size;
    data += done * step;
    n -= done;
  }
  for (int c = 0; c < whole; c++)
    for (int64_t i = 0; i < n; i++) {
      const uint16_t *v = data + i * step + c * s->channel;
      if (s->pair == 1)
        __builtin_memcpy(to + i * size + c, v, sizeof *to);
      else
        amp_put_pair(to + i * size + c, v[0], v[s->pair]);
    }
  for (int64_t i = 0; i < n && odd; i++)
    amp_put_pair(to + i * size + whole, data[i * step + whole * s->channel], 0);
}

/* Some channels of n pixels: a block, or several whole ones where those lie side by side in the
 * image and in the copy. */
AMP_FN void amp_copy_run(const AmpSource *s, float *to, int64_t size, int64_t from, int64_t n,
                         int64_t step, int channels, int is_last) {
  if (s->pair)
    amp_copy_pairs(s, to, size, from, n, step, channels, is_last && s->odd);
  else if (s->channel != 1)
    amp_copy_transposed(s, to, size, from, n, channels);
  else if (channels % AMP_BLOCK)
    amp_copy_few(s, to, size, from, n, step, channels);
  else if (s->dtype == AMPRT_F32)
    amp_copy_blocks(AMPRT_F32, s, to, size, from, n, step, channels);
  else if (s->dtype == AMPRT_F16)
    amp_copy_blocks(AMPRT_F16, s, to, size, from, n, step, channels);
  else
    amp_copy_blocks(AMPRT_BF16, s, to, size, from, n, step, channels);
}

AMP_INLINE void amp_zero(float *to, int64_t n) {
  __builtin_memset(to, 0, (size_t)n * sizeof *to);
}
/* The same of some channels of n pixels. */
AMP_INLINE void amp_zero_pixels(float *to, int64_t size, int64_t n, int channels) {
  const int64_t each = amp_ceil(channels, AMP_BLOCK);
  if (size == each) { /* one call for all of them */
    amp_zero(to, n * size);
    return;
  }
  for (; n > 0; n--, to += size)
    amp_zero(to, each);
}

/* Some channels of one row: the columns from `column` on, `stride` apart, n of them. */
AMP_FN void amp_copy_row(const AmpSource *s, float *to, int64_t size, int64_t row, int64_t column,
                         int64_t stride, int64_t n, int64_t channel, int channels) {
  int64_t first = column < 0 ? (-column + stride - 1) / stride : 0;
  int64_t last = column < s->w ? (s->w - column + stride - 1) / stride : 0;
  first = first < n ? first : n;
  last = last < first ? first : last < n ? last : n;
  const int64_t from = row + (column + first * stride) * s->pixel;
  amp_zero_pixels(to, size, first, channels);
  amp_copy_run(s, to + first * size, size, from + channel * s->channel, last - first,
               stride * s->pixel, channels, channel + channels == s->c);
  amp_zero_pixels(to + last * size, size, n - last, channels);
}

/* One row of a flat copy: n columns from `column` on. */
AMP_FN void amp_copy_flat_row(const AmpSource *s, float *to, int64_t row, int64_t column,
                              int64_t n) {
  const int64_t first = column < 0 ? (-column < n ? -column : n) : 0;
  const int64_t left = s->w - column, last = left < first ? first : left < n ? left : n;
  const int64_t from = row + (column + first) * s->pixel;
  amp_zero(to, first * s->c);
  if (s->pair)
    amp_copy_pairs(s, to + first * s->c, s->c, from, last - first, s->pixel, (int)s->c, s->odd);
  else
    amp_copy_some(s->dtype, s->data, from, (int)((last - first) * s->c), to + first * s->c);
  amp_zero(to + last * s->c, (n - last) * s->c);
}

/* Where pixels lie at least so many bytes apart, which is a page, a few pixels at a time are copied
 * in all their blocks; else all pixels of a row in one block after the other. */
enum { AMP_FAR_PIXELS = 4096 };

/* Copies what the results from (row, column) on read of one image. */
AMP_FN void amp_copy_tile(const AmpSource *s, const AmpTileCopy *t, const AmpAxis *high,
                          const AmpAxis *wide, int64_t image, int64_t row, int64_t column) {
  const int64_t phases[2] = {amp_phases(high), amp_phases(wide)};
  const int64_t pixel = s->pixel * amp_size(s->dtype);
  const int64_t strip = pixel < AMP_FAR_PIXELS ? t->n[1] : AMP_BLOCK;
  const int together = t->block == AMP_BLOCK && s->channel == 1 && !s->pair;
  const int64_t whole = together ? s->c - s->c % AMP_BLOCK : 0; /* channels copied at once */
  for (int64_t i = 0; i < phases[0] * t->n[0]; i++) {
    const int64_t f = i % phases[0], m = i / phases[0];
    const int64_t h = (row + m) * high->step + f + high->origin;
    float *to = t->at + f * t->phase[0] + m * t->step[0];
    if (t->flat && (h < 0 || h >= s->h)) {
      amp_zero(to, t->step[0]);
      continue;
    }
    if (t->flat) {
      amp_copy_flat_row(s, to, (image * s->h + h) * s->w * s->pixel,
                        column * wide->step + wide->origin, t->n[1]);
      continue;
    }
    for (int64_t j = 0; j < t->n[1]; j += strip)
      for (int64_t c = 0, channels = 0; c < s->c; c += channels) {
        channels = c < whole ? whole : amp_least(s->c - c, AMP_BLOCK);
        for (int64_t g = 0; g < phases[1]; g++) {
          float *at = to + c / AMP_BLOCK * t->block + g * t->phase[1] + j * t->step[1];
          const int64_t n = amp_least(t->n[1] - j, strip);
          if (h < 0 || h >= s->h)
            amp_zero_pixels(at, t->step[1], n, (int)channels);
          else
            amp_copy_row(s, at, t->step[1], (image * s->h + h) * s->w * s->pixel,
                         (column + j) * wide->step + g + wide->origin, wide->step, n, c,
                         (int)channels);
        }
      }
  }
}

#endif
