/* What a filter's gradient reads: the elements of x and dy that belong to a tile of the results,
 * copied to memory of the thread: f32, in blocks of 16 channels, with zeros for the padding. Where
 * a window moves by more than one element, rows and columns are sorted by their remainder, so that
 * neighbours among the results always read neighbours in the copy.
 *
 * Where the CPU multiplies bf16, two images that follow one another are copied as one, whose
 * elements are pairs: those of both images at the same place. An image without a second one has
 * zeros for it, of x and of dy. */
#ifndef AMP_CONV_GRAD_COPY_H
#define AMP_CONV_GRAD_COPY_H

#include "codegen/text/cpu/conv_grad_tile.h"
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

/* The view of f32 that is read where it lies. */
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

#ifdef __AVX512BF16__
typedef uint16_t AmpS16 __attribute__((vector_size(32)));
typedef uint32_t AmpU16 __attribute__((vector_size(64)));

/* Pairs of n channels of a pixel and those of the same pixel of another image, which lie `pair`
 * further on; 0: zeros in place of those. */
AMP_INLINE void amp_grad_copy_pair(float *to, const uint16_t *from, int64_t pair, int n) {
  AmpS16 a = {0}, b = {0};
  __builtin_memcpy(&a, from, (size_t)n * sizeof *from);
  if (pair)
    __builtin_memcpy(&b, from + pair, (size_t)n * sizeof *from);
  const AmpU16 both = __builtin_convertvector(a, AmpU16) | __builtin_convertvector(b, AmpU16) << 16;
  __builtin_memcpy(to, &both, sizeof both);
}

typedef uint16_t AmpS32 __attribute__((vector_size(64)));

/* The same of two whole blocks; their copies are `block` apart. */
AMP_INLINE void amp_grad_copy_two(float *to, int64_t block, const uint16_t *from, int64_t pair) {
  AmpS32 a, b = {0};
  __builtin_memcpy(&a, from, sizeof a);
  if (pair)
    __builtin_memcpy(&b, from + pair, sizeof b);
  const AmpS32 first =
      __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40,
                              9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
  const AmpS32 second =
      __builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                              24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
  __builtin_memcpy(to, &first, sizeof first);
  __builtin_memcpy(to + block, &second, sizeof second);
}
#else
AMP_INLINE void amp_grad_copy_two(float *to, int64_t block, const uint16_t *from, int64_t pair) {
  (void)to, (void)block, (void)from, (void)pair;
}
AMP_INLINE void amp_grad_copy_pair(float *to, const uint16_t *from, int64_t pair, int n) {
  (void)to, (void)from, (void)pair, (void)n;
}
#endif

/* A block of n channels. */
AMP_INLINE void amp_grad_copy_channels(int dtype, int pairs, const AmpSource *s, float *to,
                                       int64_t from, int64_t pair, int n) {
  if (pairs)
    amp_grad_copy_pair(to, (const uint16_t *)s->data + from, pair, n);
  else if (n < AMP_BLOCK)
    amp_copy_some(dtype, s->data, from, n, to);
  else
    amp_copy_block(dtype, to, s->data, from);
}

/* n pixels, the first at element `from`, each `step` after the one before, of all blocks. What lies
 * behind the last channel in the copy is never used. */
AMP_INLINE void amp_grad_copy_pixels(int dtype, int pairs, const AmpSource *s, float *to,
                                     int64_t block, int64_t from, int64_t pair, int64_t n,
                                     int64_t step) {
  const int64_t whole = s->c / AMP_BLOCK;
  const int few = (int)(s->c % AMP_BLOCK);
  for (int64_t i = 0; i < n; i++, to += AMP_BLOCK, from += step) {
    int64_t b = 0;
    for (; pairs && b + 2 <= whole; b += 2)
      amp_grad_copy_two(to + b * block, block, (const uint16_t *)s->data + from + b * AMP_BLOCK,
                        pair);
    for (; b < whole; b++)
      amp_grad_copy_channels(dtype, pairs, s, to + b * block, from + b * AMP_BLOCK, pair,
                             AMP_BLOCK);
    if (few)
      amp_grad_copy_channels(dtype, pairs, s, to + whole * block, from + whole * AMP_BLOCK, pair,
                             few);
  }
}

AMP_FN void amp_grad_copy_run(const AmpSource *s, float *to, int64_t block, int64_t from,
                              int64_t pair, int64_t n, int64_t step) {
  if (s->pair && pair)
    amp_grad_copy_pixels(AMPRT_BF16, 1, s, to, block, from, s->pair, n, step);
  else if (s->pair)
    amp_grad_copy_pixels(AMPRT_BF16, 1, s, to, block, from, 0, n, step);
  else if (s->dtype == AMPRT_F32)
    amp_grad_copy_pixels(AMPRT_F32, 0, s, to, block, from, 0, n, step);
  else if (s->dtype == AMPRT_F16)
    amp_grad_copy_pixels(AMPRT_F16, 0, s, to, block, from, 0, n, step);
  else
    amp_grad_copy_pixels(AMPRT_BF16, 0, s, to, block, from, 0, n, step);
}

AMP_FN void amp_grad_clear(float *to, int64_t block, int64_t blocks, int64_t pixels) {
  for (int64_t b = 0; b < blocks && pixels > 0; b++)
    amp_zero(to + b * block, pixels * AMP_BLOCK);
}

/* n columns of a row, from `column` on, `stride` apart. */
AMP_FN void amp_grad_copy_row(const AmpSource *s, float *to, int64_t block, int64_t row,
                              int64_t pair, int64_t column, int64_t stride, int64_t n) {
  const int64_t blocks = (s->c + AMP_BLOCK - 1) / AMP_BLOCK;
  int64_t first = column < 0 ? (-column + stride - 1) / stride : 0;
  int64_t last = column < s->w ? (s->w - column + stride - 1) / stride : 0;
  first = first < n ? first : n;
  last = last < first ? first : last < n ? last : n;
  amp_grad_clear(to, block, blocks, first);
  amp_grad_copy_run(s, to + first * AMP_BLOCK, block,
                    (row * s->w + column + first * stride) * s->pixel, pair, last - first,
                    stride * s->pixel);
  amp_grad_clear(to + last * AMP_BLOCK, block, blocks, n - last);
}

/* Copies what a tile reads; there are `all` images. */
AMP_FN void amp_grad_copy(const AmpSource *s, float *to, const AmpGradView *v, const AmpAxis *high,
                          const AmpAxis *wide, const AmpGradSpan *t, int64_t all) {
  const int64_t phases[2] = {amp_phases(high), amp_phases(wide)};
  const int64_t rows = amp_reach(high, t->rows), cols = amp_reach(wide, t->cols);
  for (int64_t n = 0; n < t->images; n++)
    for (int64_t i = 0; i < phases[0] * rows; i++) {
      const int64_t f = i % phases[0], m = i / phases[0];
      const int64_t h = (t->row + m) * high->step + f + high->origin;
      const int64_t image = (t->image + n) * (s->pair ? 2 : 1);
      float *row = to + n * v->image + f * v->phase[0] + m * v->step[0];
      for (int64_t g = 0; g < phases[1]; g++)
        if (h < 0 || h >= s->h)
          amp_grad_clear(row + g * v->phase[1], v->block, (s->c + AMP_BLOCK - 1) / AMP_BLOCK, cols);
        else
          amp_grad_copy_row(s, row + g * v->phase[1], v->block, image * s->h + h, image + 1 < all,
                            t->col * wide->step + g + wide->origin, wide->step, cols);
    }
}

/* ---- the copy of few channels ---- */

/* Pixels lie side by side, and the channels that a result reads of a row are a run of floats. */
AMP_INLINE AmpGradView amp_grad_view_few(const AmpConvGrad *a, const float *at, const AmpAxis *high,
                                         const AmpGradSpan *t) {
  AmpGradView v = {.at = at, .block = AMP_BLOCK};
  v.step[1] = a->wide.stride * a->few;
  v.step[0] = amp_grad_row(a, t->cols);
  v.phase[0] = amp_reach(high, t->rows) * v.step[0];
  v.image = amp_phases(high) * v.phase[0];
  return v;
}

/* n pixels of a row from `column` on. */
AMP_FN void amp_grad_copy_row_few(const AmpSource *s, float *to, int64_t row, int64_t pair,
                                  int64_t column, int64_t n, int64_t floats) {
  int64_t first = column < 0 ? -column : 0, last = s->w - column < n ? s->w - column : n;
  first = first < n ? first : n;
  last = last < first ? first : last;
  const int64_t from = (row * s->w + column + first) * s->c, count = (last - first) * s->c;
  float *at = to + first * s->c;
  amp_zero(to, first * s->c);
  if (s->pair)
    for (int64_t i = 0; i < count; i += AMP_BLOCK)
      amp_grad_copy_pair(at + i, (const uint16_t *)s->data + from + i, pair ? s->pair : 0,
                         count - i < AMP_BLOCK ? (int)(count - i) : AMP_BLOCK);
  else
    amp_copy_some(s->dtype, s->data, from, (int)count, at);
  amp_zero(to + last * s->c, floats - last * s->c);
}

AMP_FN void amp_grad_copy_few(const AmpConvGrad *a, const AmpSource *s, float *to,
                              const AmpGradView *v, const AmpAxis *high, const AmpGradSpan *t) {
  const int64_t phases = amp_phases(high), rows = amp_reach(high, t->rows);
  const int64_t cols = (t->cols - 1) * a->wide.stride + a->wide.taps;
  for (int64_t n = 0; n < t->images; n++)
    for (int64_t i = 0; i < phases * rows; i++) {
      const int64_t f = i % phases, m = i / phases, image = (t->image + n) * (s->pair ? 2 : 1);
      const int64_t h = (t->row + m) * high->step + f + high->origin;
      float *row = to + n * v->image + f * v->phase[0] + m * v->step[0];
      if (h < 0 || h >= s->h)
        amp_zero(row, v->step[0]);
      else
        amp_grad_copy_row_few(s, row, image * s->h + h, image + 1 < a->n,
                              t->col * a->wide.stride - a->wide.pad, cols, v->step[0]);
    }
}

/* ---- fetching ahead ---- */

/* Cache lines that are read later: so many of a pixel, pixels of a row, rows of an image, and
 * images. */
typedef struct AmpGradLines {
  const char *at;
  int64_t n[4], step[4]; /* how many, and bytes from one to the next */
  int64_t line, done[4]; /* how many of each are done; done[0] is not used */
  const char *next;      /* where the lines of the current pixel begin */
} AmpGradLines;

AMP_INLINE int64_t amp_grad_lines_count(const AmpGradLines *l) {
  return l->n[0] * l->n[1] * l->n[2] * l->n[3];
}

/* What results first..first+n-1 read of an axis with `in` elements: the first element, and how
 * many, `*step` apart. */
AMP_INLINE int64_t amp_grad_reads(const AmpAxis *axis, int64_t in, int64_t first, int64_t n,
                                  int64_t *count, int64_t *step) {
  int64_t from = first * axis->step + axis->origin;
  int64_t to = from + (n - 1) * axis->step + axis->taps;
  from = from < 0 ? 0 : from;
  to = to < in ? to : in;
  *step = axis->taps == 1 ? axis->step : 1;
  *count = from < to ? (to - from + *step - 1) / *step : 0;
  return from;
}

/* Pixels that follow one another without a gap become one. */
AMP_INLINE AmpGradLines amp_grad_lines_begin(AmpGradLines l) {
  for (int d = 1; d < 4 && l.n[0] * AMP_LINE == l.step[d]; d++) {
    l.n[0] *= l.n[d];
    l.n[d] = 1;
  }
  if (amp_grad_lines_count(&l) == 0)
    l.n[0] = 0;
  l.next = l.at;
  return l;
}

/* The lines that a tile reads; there are `all` images. */
AMP_FN AmpGradLines amp_grad_lines(const AmpSource *s, const AmpAxis *high, const AmpAxis *wide,
                                   const AmpGradSpan *t, int64_t all) {
  const int64_t size = amp_size(s->dtype), each = s->pair ? 2 : 1;
  int64_t rows, cols, down, across;
  const int64_t row = amp_grad_reads(high, s->h, t->row, t->rows, &rows, &down);
  const int64_t col = amp_grad_reads(wide, s->w, t->col, t->cols, &cols, &across);
  const int64_t image = t->image * each, images = t->images * each;
  AmpGradLines l = {.at = (const char *)s->data +
                          ((image * s->h + row) * s->w + col) * s->pixel * size,
                    .n = {amp_pieces(s->c * size, AMP_LINE), cols, rows,
                          images < all - image ? images : all - image},
                    .step = {AMP_LINE, across * s->pixel * size, down * s->w * s->pixel * size,
                             s->h * s->w * s->pixel * size}};
  if (across == 1 && s->c == s->pixel) { /* a row is one pixel */
    l.n[0] = amp_pieces(cols * s->c * size, AMP_LINE);
    l.n[1] = cols > 0;
    l.step[1] = s->w * s->pixel * size;
  }
  return amp_grad_lines_begin(l);
}

/* Goes on to the next row from behind the last pixel of one. */
AMP_FN void amp_grad_lines_next_row(AmpGradLines *l) {
  l->done[1] = 0;
  l->next -= l->n[1] * l->step[1];
  for (int d = 2; d < 4; d++) {
    l->next += l->step[d];
    if (++l->done[d] < l->n[d])
      return;
    l->done[d] = 0;
    l->next -= l->n[d] * l->step[d];
  }
  l->n[0] = 0;
}

/* Of three lists, the first that still has any lines, or NULL. */
AMP_INLINE AmpGradLines *amp_grad_lines_of(AmpGradLines l[3]) {
  for (int i = 0; i < 3; i++)
    if (l[i].n[0])
      return &l[i];
  return NULL;
}

/* How many lines of a list follow one another from the next one on. */
AMP_INLINE int64_t amp_grad_lines_run(const AmpGradLines *l) {
  return l->n[0] - l->line;
}

/* Takes n lines that follow one another. */
AMP_INLINE const char *amp_grad_lines_take(AmpGradLines *l, int64_t n) {
  const char *at = l->next + l->line * AMP_LINE;
  l->line += n;
  if (l->line == l->n[0]) {
    l->line = 0;
    l->next += l->step[1];
    if (++l->done[1] == l->n[1])
      amp_grad_lines_next_row(l);
  }
  return at;
}

/* What is read next, of x, dy and the result: `each` lines of it for each register tile, of which
 * `due` have not been fetched yet. */
typedef struct AmpGradFetch {
  AmpGradLines of[3];
  int64_t each, due;
} AmpGradFetch;

/* Shares out all lines to so many register tiles. */
AMP_INLINE void amp_grad_share(AmpGradFetch *f, int64_t tiles) {
  int64_t lines = 0;
  for (int i = 0; i < 3; i++)
    lines += amp_grad_lines_count(&f->of[i]);
  f->each = amp_pieces(lines, tiles);
  f->due = 0;
}

/* Prefetches the share of a register tile of so many results. If most of that share is one run of
 * lines and the tile can prefetch (`fetches`), the tile itself does so, a part of the run with each
 * result; what it is to prefetch is returned. Other lines are prefetched here, at once. A tile with
 * nothing to prefetch is given `own`, which it reads anyway. A second run is taken only if all of
 * it is due; else its lines wait for the next tile, so that runs are not cut into short pieces. */
AMP_INLINE AmpGradAhead amp_grad_ahead(AmpGradFetch *f, int64_t results, int fetches,
                                       const float *own) {
  AmpGradAhead ahead = {(const char *)own, 0};
  AmpGradLines *l;
  f->due += f->each;
  for (int taken = 0; f->due > 0 && (l = amp_grad_lines_of(f->of)); taken = 1) {
    const int64_t n = amp_least(amp_grad_lines_run(l), f->due);
    if (taken && n < amp_grad_lines_run(l))
      break;
    const char *at = amp_grad_lines_take(l, n);
    f->due -= n;
    if (fetches && 2 * n > f->each && !ahead.step) {
      ahead = (AmpGradAhead){at, n * AMP_LINE / results};
      continue;
    }
    for (int64_t i = 0; i < n; i++)
      __builtin_prefetch(at + i * AMP_LINE, 0, 2);
  }
  return ahead;
}

#endif
