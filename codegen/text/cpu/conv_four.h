/* The register tile of data gradients of stride 2 with windows of 3 x 3 and one vector of channels.
 * The tile of conv_tile.h computes results of one remainder (AmpAxis), and loads an element of dy
 * for each product with a vector. This one computes results of all four remainders. Two rows and
 * two columns of dx that lie side by side, one result of each remainder, together read 2 x 2
 * elements of dy. All four results read one of these elements, two results read the second, two the
 * third, and one the fourth. So 4 elements are loaded for 9 products. A result is the same sum, in
 * the same order, as in conv_tile.h. */
#ifndef AMP_CONV_FOUR_H
#define AMP_CONV_FOUR_H

#include "codegen/text/cpu/conv_tile.h"

/* Along an axis, results of one remainder are sums over one tap, and those of the other over two.
 * The four remainders of both axes are numbered: 0 has one tap from left to right and one from top
 * to bottom; 1 has two from left to right; 2 has two from top to bottom; 3 has two both ways. An
 * element of dy is read by the results of all remainders, of 1 and 3, of 2 and 3, or of 3. These
 * are the sets as bits, bit r for remainder r. */
enum { AMP_FOUR_ALL = 15, AMP_FOUR_ACROSS = 10, AMP_FOUR_DOWN = 12, AMP_FOUR_LAST = 8 };

/* A register tile has at most so many results of each remainder, and reads so many elements of each
 * channel for them. */
enum { AMP_FOUR_PIXELS = 6, AMP_FOUR_ELEMENTS = 4 };

/* One of the 2 x 2 elements: where it lies, its readers, and for each of them the number of the tap
 * in the packed filter. */
struct AmpFourTap {
  int64_t x, filter[4];
  int readers;
};

#ifdef AMP_CONV_WIDE_TILES

/* Adds the products of n channels of one element to the sums of its readers. */
AMP_INLINE void amp_four_element(const AmpConvTile *a, AmpV sum[AMP_FOUR_PIXELS][4],
                                 const AmpFourTap *tap, const float *block, const float *filter,
                                 int64_t n, const unsigned char *next, const int pixels,
                                 const int readers) {
  const int near = pixels % 2 ? pixels : pixels / 2;
  const int64_t step = a->step, next_step = a->next_step;
  const AmpElement *x = (const AmpElement *)block + tap->x, *far_x = x + a->far;
  const float *w[4];
  AMP_UNROLL(4)
  for (int r = 0; r < 4; r++)
    w[r] = filter + tap->filter[r] * n * AMP_OUTS;
  for (int64_t i = 0; i < n; i++, x++, far_x++, next += next_step) {
    AMP_FORGET(x, far_x);
    AmpV b[4];
    AMP_UNROLL(4)
    for (int r = 0; r < 4; r++)
      if (readers >> r & 1)
        b[r] = amp_v_load(w[r] + i * AMP_OUTS);
    AMP_UNROLL(2)
    for (int l = 0; l < AMP_FETCH_LINES; l++)
      __builtin_prefetch(next + l * AMP_LINE);
    AMP_UNROLL(6)
    for (int p = 0; p < pixels; p++) {
      const AmpV q = amp_v_all(p < near ? x[p * step] : far_x[(p - near) * step]);
      AMP_UNROLL(4)
      for (int r = 0; r < 4; r++)
        if (readers >> r & 1)
          sum[p][r] = amp_v_fma(q, b[r], sum[p][r]);
    }
  }
}

/* Computes so many register tiles, one behind the other. */
AMP_INLINE void amp_four(const AmpConvTile *a, const float *restrict x, const float *restrict w,
                         void *restrict y, int64_t tiles, const int pixels) {
  const unsigned char *next = (const unsigned char *)a->next;
  for (; tiles > 0; tiles--, x += a->x_tile, y = (unsigned char *)y + a->y_tile) {
    AmpV sum[AMP_FOUR_PIXELS][4];
    AMP_UNROLL(6)
    for (int p = 0; p < pixels; p++)
      AMP_UNROLL(4)
    for (int r = 0; r < 4; r++) {
      __builtin_prefetch((const float *)y + amp_tile_result_at(a, p, pixels) + a->four_y[r], 1);
      sum[p][r] = amp_v_all(0);
    }
    const float *block = x, *filter = w;
    for (int64_t left = a->channels; left > 0; left -= a->run) {
      const int64_t n = left < a->run ? left : a->run;
      for (int t = 0; t < AMP_FOUR_ELEMENTS; t++, next += n * a->next_step) {
        const AmpFourTap *tap = &a->four[t];
        if (tap->readers == AMP_FOUR_ALL)
          amp_four_element(a, sum, tap, block, filter, n, next, pixels, AMP_FOUR_ALL);
        else if (tap->readers == AMP_FOUR_ACROSS)
          amp_four_element(a, sum, tap, block, filter, n, next, pixels, AMP_FOUR_ACROSS);
        else if (tap->readers == AMP_FOUR_DOWN)
          amp_four_element(a, sum, tap, block, filter, n, next, pixels, AMP_FOUR_DOWN);
        else
          amp_four_element(a, sum, tap, block, filter, n, next, pixels, AMP_FOUR_LAST);
      }
      block += a->block;
      filter += a->filter_taps * a->run * AMP_OUTS;
    }
    AMP_UNROLL(6)
    for (int p = 0; p < pixels; p++)
      AMP_UNROLL(4)
    for (int r = 0; r < 4; r++)
      amp_v_store((float *)y + amp_tile_result_at(a, p, pixels) + a->four_y[r], sum[p][r]);
  }
}

#define AMP_FOUR_TILES(T) T(6) T(4) T(1)
#define AMP_FOUR_TILE(pixels)                                                                      \
  AMP_FN void amp_four_##pixels(const AmpConvTile *a, const float *x, const float *w, void *y,     \
                                int64_t tiles) {                                                   \
    amp_four(a, x, w, y, tiles, pixels);                                                           \
  }
#define AMP_FOUR_ROW(pixels) {pixels, amp_four_##pixels, 0},
AMP_FOUR_TILES(AMP_FOUR_TILE)
static const AmpConvTileRow amp_four_tiles[] = {AMP_FOUR_TILES(AMP_FOUR_ROW){0}};

#endif
#endif
