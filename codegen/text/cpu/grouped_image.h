/* What the kernels of grouped convolutions read: rows of an image for one column of channels,
 * copied to memory of the thread, in f32 and with zeros for the padding. The channels of a pixel,
 * and then pixels of a row, lie side by side, so that all taps of a row of the window are one run.
 */
#ifndef AMP_GROUPED_IMAGE_H
#define AMP_GROUPED_IMAGE_H

#include "codegen/text/cpu/conv_filter.h"
#include "codegen/text/cpu/grouped_args.h"

/* Element i is v[from[i]], for numbers below AMP_WIDE. */
AMP_INLINE AmpV amp_v_permute(AmpV v, AmpVBits from) {
#if defined __AVX512F__ && defined __clang__
  return __builtin_ia32_permvarsf512(v, from);
#elif defined __AVX512F__
  return __builtin_ia32_permvarsf512_mask(v, from, (AmpV){0}, (unsigned short)-1);
#elif defined __AVX2__
  return __builtin_ia32_permvarsf256(v, from);
#else
  AmpV to = {0};
  for (int i = 0; i < AMP_WIDE; i++)
    to[i] = v[from[i]];
  return to;
#endif
}

/* Some channels of the result that are computed together. */
typedef struct AmpColumn {
  int64_t first, n; /* channels of the result */
  int64_t read;     /* the first channel that they read; where they are spread, element i of */
  AmpVBits from;    /* vector j is channel read + from[i] + j */
  int span;         /* channels from `read` on that they read */
  int vectors;
} AmpColumn;

AMP_FN AmpColumn amp_column(const AmpGroups *g, int64_t i) {
  AmpColumn c = {.vectors = 1};
  if (!g->spread) {
    const int64_t each = amp_columns_of_group(g, AMP_WIDE), at = i % each * AMP_OUTS;
    c.first = i / each * g->makes + at;
    c.n = amp_least(AMP_OUTS, g->makes - at);
    c.read = i / each * g->reads;
    c.vectors = c.n > AMP_WIDE ? 2 : 1;
    return c;
  }
  c.first = i * AMP_WIDE;
  c.n = amp_least(AMP_WIDE, g->groups * g->makes - c.first);
  c.read = c.first / g->makes * g->reads;
  int64_t from = 0, left = g->makes - c.first % g->makes; /* channels of the group that remain */
  for (int k = 0; k < AMP_WIDE; k++, left--) {
    if (left == 0 && k < c.n) {
      from += g->reads;
      left = g->makes;
    }
    c.from[k] = (int32_t)from;
  }
  c.span = (int)(c.from[AMP_WIDE - 1] + g->reads);
  return c;
}

/* The images that are copied from. */
typedef struct AmpImages {
  const void *data;
  int64_t h, w, c;
  int64_t ahead; /* elements from what is copied to what is to be fetched */
  int dtype;
} AmpImages;

/* While the pixel at element `at` is copied: fetches one that is copied later. */
AMP_INLINE void amp_fetch_ahead(const AmpImages *images, int64_t at) {
  __builtin_prefetch((const unsigned char *)images->data +
                     (at + images->ahead) * amp_size(images->dtype));
}

/* Spreads n pixels, the first channel of which that is read lies at element `at` of the images. */
AMP_INLINE void amp_spread_as(const int dtype, const AmpImages *images, int64_t reads,
                              const AmpColumn *column, float *to, int64_t at, int64_t n) {
  const AmpVBits from = column->from;
  const int64_t have = images->c - column->read;
  for (; n > 0; n--, at += images->c) {
    amp_fetch_ahead(images, at);
    if (column->span <= AMP_WIDE) {
      const AmpV v = amp_v_read_some(dtype, images->data, at, have);
      for (int j = 0; j < reads; j++, to += AMP_WIDE)
        amp_v_store(to, amp_v_permute(v, from + j));
      continue;
    }
    for (int j = 0; j < reads; j++)
      for (int i = 0; i < AMP_WIDE; i++)
        amp_copy_some(dtype, images->data, at + from[i] + j, 1, to++);
  }
}
AMP_FN void amp_spread_pixels(const AmpImages *images, const AmpGroups *g, const AmpColumn *column,
                              float *to, int64_t at, int64_t n) {
  AMP_WITH_TYPE(images->dtype, amp_spread_as, images, g->reads, column, to, at, n);
}

/* Copies n channels of so many pixels, the first from element `at` of the images on. */
AMP_INLINE void amp_group_as(const int dtype, const AmpImages *images, int64_t n, float *to,
                             int64_t at, int64_t pixels) {
  for (; pixels > 0; pixels--, at += images->c, to += n) {
    amp_fetch_ahead(images, at);
    if (n % AMP_WIDE) {
      amp_copy_some(dtype, images->data, at, (int)n, to);
      continue;
    }
    for (int64_t i = 0; i < n; i += AMP_WIDE)
      amp_v_store(to + i, amp_v_read(dtype, images->data, at + i));
  }
}
AMP_FN void amp_group_pixels(const AmpImages *images, int64_t n, float *to, int64_t at,
                             int64_t pixels) {
  AMP_WITH_TYPE(images->dtype, amp_group_as, images, n, to, at, pixels);
}

/* Copies what a column reads of one row of an image: some of its pixels. */
AMP_FN void amp_grouped_copy(const AmpImages *images, const AmpGroups *g, const AmpColumn *column,
                             int64_t image, int64_t row, AmpReach cols, float *to) {
  const int64_t pixel = amp_column_pixel(g, AMP_WIDE);
  const int64_t first = amp_least(amp_most(-cols.first, 0), cols.n);
  const int64_t last = amp_most(first, amp_least(images->w - cols.first, cols.n));
  if (row < 0 || row >= images->h) {
    amp_zero(to, cols.n * pixel);
    return;
  }
  const int64_t at =
      ((image * images->h + row) * images->w + cols.first + first) * images->c + column->read;
  amp_zero(to, first * pixel);
  if (g->spread)
    amp_spread_pixels(images, g, column, to + first * pixel, at, last - first);
  else
    amp_group_pixels(images, g->reads, to + first * pixel, at, last - first);
  amp_zero(to + last * pixel, (cols.n - last) * pixel);
}

#endif
