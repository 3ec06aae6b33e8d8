/* The transforms of Winograd's method F(2x2,3x3), with which 2 x 2 results of a 3 x 3 window take
 * 16 products in the place of 36: Y = A'((G g G') * (B' d B))A for the filter g and the 4 x 4
 * elements d (Lavin and Gray 2016, "Fast algorithms for convolutional neural networks"). All of
 * them go along the channels, and each element is the same sums in the same order whatever the
 * width of vectors.
 *
 *        | 1  0 -1  0 |        | 1   0   0  |
 *   B' = | 0  1  1  0 |    G = | 1/2  1/2 1/2 |    A' = | 1 1  1  0 |
 *        | 0 -1  1  0 |        | 1/2 -1/2 1/2 |         | 0 1 -1 -1 |
 *        | 0  1  0 -1 |        | 0   0   1  |
 */
#ifndef AMP_WINO_TILE_H
#define AMP_WINO_TILE_H

#include "codegen/text/cpu/conv.h"

/* B' of four elements. */
AMP_INLINE void amp_wino_b(const AmpV d[4], AmpV to[4]) {
  to[0] = d[0] - d[2];
  to[1] = d[1] + d[2];
  to[2] = d[2] - d[1];
  to[3] = d[1] - d[3];
}

/* The same of a column of four elements, each `row` floats behind the one before. */
AMP_INLINE void amp_wino_column(const float *x, int64_t row, AmpV to[4]) {
  const AmpV d[4] = {amp_v_load(x), amp_v_load(x + row), amp_v_load(x + 2 * row),
                     amp_v_load(x + 3 * row)};
  amp_wino_b(d, to);
}

/* Ends the transform of a tile whose columns are transformed, the left two and the right two. The
 * right ones are the left ones of the next tile, so they are moved there. */
AMP_INLINE void amp_wino_b_rows(AmpV left[2][4], AmpV right[2][4], float *to, int64_t step) {
  AMP_UNROLL(4)
  for (int i = 0; i < 4; i++) {
    const AmpV b[4] = {left[0][i], left[1][i], right[0][i], right[1][i]};
    AmpV v[4];
    amp_wino_b(b, v);
    AMP_UNROLL(4)
    for (int j = 0; j < 4; j++)
      amp_v_store(to + (4 * i + j) * step, v[j]);
    left[0][i] = right[0][i];
    left[1][i] = right[1][i];
  }
}

/* A row of n neighbouring tiles of one block of channels. The image's pixels are AMP_BLOCK floats
 * apart and its rows `row`; the transformed elements of a tile are `step` apart. */
AMP_FN void amp_wino_row(const float *x, int64_t row, int64_t n, float *to, int64_t step) {
  for (int l = 0; l < AMP_BLOCK; l += AMP_WIDE) {
    const float *from = x + l;
    AmpV left[2][4], right[2][4];
    amp_wino_column(from, row, left[0]);
    amp_wino_column(from + AMP_BLOCK, row, left[1]);
    for (int64_t t = 0; t < n; t++) {
      from += 2 * AMP_BLOCK;
      amp_wino_column(from, row, right[0]);
      amp_wino_column(from + AMP_BLOCK, row, right[1]);
      amp_wino_b_rows(left, right, to + t * AMP_BLOCK + l, step);
    }
  }
}

/* G of three elements. */
AMP_INLINE void amp_wino_g(const AmpV g[3], AmpV to[4]) {
  const AmpV outer = g[0] + g[2], half = amp_v_all(0.5f);
  to[0] = g[0];
  to[1] = (outer + g[1]) * half;
  to[2] = (outer - g[1]) * half;
  to[3] = g[2];
}

/* n elements, a multiple of a vector, of each tap of a filter; its taps are `tap` floats apart,
 * the transformed ones `step`. */
AMP_FN void amp_wino_filter(const float *from, int64_t tap, int64_t n, float *to, int64_t step) {
  for (int64_t i = 0; i < n; i += AMP_WIDE) {
    AmpV column[3][4];
    AMP_UNROLL(3)
    for (int s = 0; s < 3; s++) {
      AmpV g[3];
      AMP_UNROLL(3)
      for (int r = 0; r < 3; r++)
        g[r] = amp_v_load(from + (3 * r + s) * tap + i);
      amp_wino_g(g, column[s]);
    }
    AMP_UNROLL(4)
    for (int r = 0; r < 4; r++) {
      const AmpV row[3] = {column[0][r], column[1][r], column[2][r]};
      AmpV u[4];
      amp_wino_g(row, u);
      AMP_UNROLL(4)
      for (int s = 0; s < 4; s++)
        amp_v_store(to + (4 * r + s) * step + i, u[s]);
    }
  }
}

/* A' of four elements. */
AMP_INLINE void amp_wino_a(const AmpV p[4], AmpV to[2]) {
  to[0] = p[0] + p[1] + p[2];
  to[1] = p[1] - p[2] - p[3];
}

/* The 2 x 2 results of a tile from its products, which are `step` floats apart. */
AMP_INLINE void amp_wino_results(const float *from, int64_t step, AmpV y[2][2]) {
  AmpV column[4][2];
  AMP_UNROLL(4)
  for (int j = 0; j < 4; j++) {
    const AmpV p[4] = {amp_v_load(from + j * step), amp_v_load(from + (4 + j) * step),
                       amp_v_load(from + (8 + j) * step), amp_v_load(from + (12 + j) * step)};
    amp_wino_a(p, column[j]);
  }
  AMP_UNROLL(2)
  for (int i = 0; i < 2; i++) {
    const AmpV row[4] = {column[0][i], column[1][i], column[2][i], column[3][i]};
    amp_wino_a(row, y[i]);
  }
}

/* ---- products ---- */

/* One of the AMP_WINO products of some tiles: x is what is read of the tiles, `block` floats from
 * one block of its channels to the next, w the filter, y the products. */
typedef struct AmpWinoRun {
  const float *x, *w;
  float *y;
  int64_t block, channels;
  int goes_on;       /* y has the sums over earlier channels */
  const char *next;  /* a line to fetch for each channel and register tile, */
  int64_t next_step; /* so many bytes from the one before */
} AmpWinoRun;

/* Computes `n` register tiles, each of `tiles` tiles and `vectors` vectors of channels of the
 * result. Each sum is in the order of the channels that are read. */
AMP_INLINE void amp_wino_products(AmpWinoRun *r, int64_t n, const int tiles, const int vectors) {
  const float *first = r->x;
  const char *next = r->next;
  const int64_t next_step = r->next_step;
  float *y = r->y;
  for (; n > 0; n--) {
    const float *x = first, *w = r->w;
    AmpV sum[16][2], b[2];
    AMP_UNROLL(16)
    for (int t = 0; t < tiles; t++)
      AMP_UNROLL(2)
    for (int v = 0; v < vectors; v++)
      sum[t][v] = r->goes_on ? amp_v_load(y + (t * vectors + v) * AMP_WIDE) : amp_v_all(0);
    for (int64_t left = r->channels; left > 0; left -= AMP_BLOCK, x += r->block) {
      const int64_t channels = left < AMP_BLOCK ? left : AMP_BLOCK;
      for (int64_t c = 0; c < channels; c++, w += vectors * AMP_WIDE) {
        __builtin_prefetch(next);
        next += next_step;
        AMP_UNROLL(2)
        for (int v = 0; v < vectors; v++)
          b[v] = amp_v_load(w + v * AMP_WIDE);
        AMP_UNROLL(16)
        for (int t = 0; t < tiles; t++) {
          const AmpV q = amp_v_all(x[t * AMP_BLOCK + c]);
          AMP_UNROLL(2)
          for (int v = 0; v < vectors; v++)
            sum[t][v] = amp_v_fma(q, b[v], sum[t][v]);
        }
      }
    }
    AMP_UNROLL(16)
    for (int t = 0; t < tiles; t++)
      AMP_UNROLL(2)
    for (int v = 0; v < vectors; v++)
      amp_v_store(y + (t * vectors + v) * AMP_WIDE, sum[t][v]);
    first += tiles * AMP_BLOCK;
    y += tiles * vectors * AMP_WIDE;
  }
  r->x = first;
  r->y = y;
  r->next = next;
}

/* The register tiles: of so many tiles and two vectors, of one less, so that both together make up
 * almost any number, and of twice as many and one vector. They fit the registers. */
#if defined __AVX512F__
enum { AMP_WINO_SIDE = 8 };
#else
enum { AMP_WINO_SIDE = 6 };
#endif
AMP_FN void amp_wino_many(AmpWinoRun *r, int64_t n) {
  amp_wino_products(r, n, AMP_WINO_SIDE, 2);
}
AMP_FN void amp_wino_fewer(AmpWinoRun *r, int64_t n) {
  amp_wino_products(r, n, AMP_WINO_SIDE - 1, 2);
}
AMP_FN void amp_wino_thin(AmpWinoRun *r, int64_t n) {
  amp_wino_products(r, n, 2 * AMP_WINO_SIDE, 1);
}

#endif
