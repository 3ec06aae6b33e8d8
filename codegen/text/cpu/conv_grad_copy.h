/* What a filter's gradient reads: the elements of x and dy that belong to a tile of the results,
 * copied to memory of the thread: f32, in blocks of 16 channels, with zeros for the padding. Where
 * a window moves by more than one element, rows and columns are sorted by their remainder, so that
 * neighbours among the results always read neighbours in the copy. */
#ifndef AMP_CONV_GRAD_COPY_H
#define AMP_CONV_GRAD_COPY_H

#include "codegen/text/cpu/conv_image.h"

/* Results of a tile: rows x cols of `images` images, from these on. */
typedef struct AmpGradSpan {
  int64_t image, row, col, images, rows, cols;
} AmpGradSpan;

/* Where the elements of a tile lie: `at` and the distances are in floats. */
typedef struct AmpGradView {
  const float *at;
  int64_t first;             /* what the first tap of the first result reads; may lie in padding */
  int64_t image, block;      /* from image to image, from block to block */
  int64_t phase[2], step[2]; /* from remainder to remainder, neighbour to neighbour: of rows, of
                                columns */
} AmpGradView;

/* Of f32 as it lies. */
AMP_INLINE AmpGradView amp_grad_direct(const AmpSource *s, const AmpAxis *high, const AmpAxis *wide,
                                       const AmpGradSpan *t) {
  const int64_t line = s->w * s->pixel, h = t->row * high->step + high->origin;
  const int64_t w = t->col * wide->step + wide->origin;
  return (AmpGradView){.at = (const float *)s->data,
                       .first = (t->image * s->h + h) * line + w * s->pixel,
                       .image = s->h * line,
                       .block = AMP_BLOCK,
                       .phase = {line, s->pixel},
                       .step = {high->step * line, wide->step * s->pixel}};
}

AMP_INLINE AmpGradView amp_grad_view(const float *at, const AmpAxis *high, const AmpAxis *wide,
                                     const AmpGradSpan *t) {
  AmpGradView v = {.at = at};
  v.step[1] = AMP_BLOCK;
  v.phase[1] = amp_reach(wide, t->cols) * v.step[1];
  v.step[0] = amp_phases(wide) * v.phase[1];
  v.phase[0] = amp_reach(high, t->rows) * v.step[0];
  v.image = amp_phases(high) * v.phase[0];
  v.block = t->images * v.image;
  return v;
}

AMP_INLINE void amp_grad_copy_block(float *to, const float *from) {
  for (int i = 0; i < AMP_BLOCK; i += AMP_WIDE)
    amp_v_store(to + i, amp_v_load(from + i));
}

/* n pixels, the first at element `from`, each `step` after the one before, of all blocks. What lies
 * behind the last channel in the copy is never used. */
AMP_INLINE void amp_grad_copy_pixels(int dtype, const AmpSource *s, float *to, int64_t block,
                                     int64_t from, int64_t n, int64_t step) {
  const int64_t whole = s->c / AMP_BLOCK;
  const int few = (int)(s->c % AMP_BLOCK);
  for (int64_t i = 0; i < n; i++, to += AMP_BLOCK, from += step) {
    float *at = to;
    for (int64_t b = 0; b < whole; b++, at += block) {
      if (dtype == AMPRT_F32) {
        amp_grad_copy_block(at, (const float *)s->data + from + b * AMP_BLOCK);
        continue;
      }
      AmpF8 v[2];
      amp_read8(dtype, s->data, from + b * AMP_BLOCK, 8, &v[0]);
      amp_read8(dtype, s->data, from + b * AMP_BLOCK + 8, 8, &v[1]);
      __builtin_memcpy(at, v, sizeof v);
    }
    if (few)
      amp_copy_some(dtype, s->data, from + whole * AMP_BLOCK, few, at);
  }
}

AMP_FN void amp_grad_copy_run(const AmpSource *s, float *to, int64_t block, int64_t from, int64_t n,
                              int64_t step) {
  if (s->dtype == AMPRT_F32)
    amp_grad_copy_pixels(AMPRT_F32, s, to, block, from, n, step);
  else if (s->dtype == AMPRT_F16)
    amp_grad_copy_pixels(AMPRT_F16, s, to, block, from, n, step);
  else
    amp_grad_copy_pixels(AMPRT_BF16, s, to, block, from, n, step);
}

AMP_FN void amp_grad_clear(float *to, int64_t block, int64_t blocks, int64_t pixels) {
  for (int64_t b = 0; b < blocks && pixels > 0; b++)
    amp_zero(to + b * block, pixels * AMP_BLOCK);
}

/* n columns of a row, from `column` on, `stride` apart. */
AMP_FN void amp_grad_copy_row(const AmpSource *s, float *to, int64_t block, int64_t row,
                              int64_t column, int64_t stride, int64_t n) {
  const int64_t blocks = (s->c + AMP_BLOCK - 1) / AMP_BLOCK;
  int64_t first = column < 0 ? (-column + stride - 1) / stride : 0;
  int64_t last = column < s->w ? (s->w - column + stride - 1) / stride : 0;
  first = first < n ? first : n;
  last = last < first ? first : last < n ? last : n;
  amp_grad_clear(to, block, blocks, first);
  amp_grad_copy_run(s, to + first * AMP_BLOCK, block,
                    (row * s->w + column + first * stride) * s->pixel, last - first,
                    stride * s->pixel);
  amp_grad_clear(to + last * AMP_BLOCK, block, blocks, n - last);
}

/* Copies what a tile reads. */
AMP_FN void amp_grad_copy(const AmpSource *s, float *to, const AmpGradView *v, const AmpAxis *high,
                          const AmpAxis *wide, const AmpGradSpan *t) {
  const int64_t phases[2] = {amp_phases(high), amp_phases(wide)};
  const int64_t rows = amp_reach(high, t->rows), cols = amp_reach(wide, t->cols);
  for (int64_t n = 0; n < t->images; n++)
    for (int64_t i = 0; i < phases[0] * rows; i++) {
      const int64_t f = i % phases[0], m = i / phases[0];
      const int64_t h = (t->row + m) * high->step + f + high->origin;
      float *row = to + n * v->image + f * v->phase[0] + m * v->step[0];
      for (int64_t g = 0; g < phases[1]; g++)
        if (h < 0 || h >= s->h)
          amp_grad_clear(row + g * v->phase[1], v->block, (s->c + AMP_BLOCK - 1) / AMP_BLOCK, cols);
        else
          amp_grad_copy_row(s, row + g * v->phase[1], v->block, (t->image + n) * s->h + h,
                            t->col * wide->step + g + wide->origin, wide->step, cols);
    }
}

/* ---- fetching ahead ---- */

/* Lines of memory that a later tile reads: those of some pixels of some rows. */
typedef struct AmpGradLines {
  const char *at;
  int64_t rows, pixels, lines;  /* how many: of a row, of a pixel */
  int64_t from_row, from_pixel; /* bytes from one to the next */
  int64_t row, pixel, line;     /* the next one */
} AmpGradLines;

AMP_FN AmpGradLines amp_grad_lines(const AmpSource *s, const AmpAxis *high, const AmpAxis *wide,
                                   const AmpGradSpan *t) {
  const int64_t size = s->dtype == AMPRT_F32 ? 4 : 2;
  int64_t row = t->row * high->step + high->origin, col = t->col * wide->step + wide->origin;
  int64_t rows = (t->rows - 1) * high->step + high->taps;
  int64_t cols = (t->cols - 1) * wide->step + wide->taps;
  rows = (row < 0 ? rows + row : rows);
  cols = (col < 0 ? cols + col : cols);
  row = row < 0 ? 0 : row;
  col = col < 0 ? 0 : col;
  rows = rows < s->h - row ? rows : s->h - row;
  cols = cols < s->w - col ? cols : s->w - col;
  if (t->images > 1)
    rows += (t->images - 1) * s->h;
  const int64_t step = wide->taps == 1 ? wide->step : 1;
  const int64_t down = high->taps == 1 && t->images == 1 ? high->step : 1;
  AmpGradLines l = {.rows = (rows + down - 1) / down,
                    .pixels = (cols + step - 1) / step,
                    .lines = (s->c * size + 63) / 64,
                    .from_row = down * s->w * s->pixel * size,
                    .from_pixel = step * s->pixel * size};
  l.at = (const char *)s->data + ((t->image * s->h + row) * s->w + col) * s->pixel * size;
  if (rows <= 0 || cols <= 0)
    l.rows = 0;
  return l;
}

/* Fetches n lines of three such, or what is left. */
AMP_INLINE void amp_grad_fetch(AmpGradLines l[3], int64_t n) {
  for (int i = 0; i < 3 && n > 0;) {
    if (l->row >= l->rows) {
      l++, i++;
      continue;
    }
    __builtin_prefetch(l->at + l->row * l->from_row + l->pixel * l->from_pixel + l->line * 64, 0,
                       2);
    n--;
    if (++l->line < l->lines)
      continue;
    l->line = 0;
    if (++l->pixel < l->pixels)
      continue;
    l->pixel = 0;
    l->row++;
  }
}

#endif
