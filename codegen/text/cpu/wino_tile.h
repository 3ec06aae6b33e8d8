/* The transforms of Winograd's method, with which the results of a tile, `side` x `side` of a
 * window of 3 x 3, take (side + 2)^2 products in the place of 9 * side^2: Y = A'((G g G') * (B' d
 * B))A for the filter g and the elements d that the tile reads (Lavin and Gray 2016, "Fast
 * algorithms for convolutional neural networks"). For F(2x2,3x3), whose points are 0, 1, -1 and
 * infinity:
 *
 *        | 1  0 -1  0 |        | 1   0   0  |
 *   B' = | 0  1  1  0 |    G = | 1/2  1/2 1/2 |    A' = | 1 1  1  0 |
 *        | 0 -1  1  0 |        | 1/2 -1/2 1/2 |         | 0 1 -1 -1 |
 *        | 0  1  0 -1 |        | 0   0   1  |
 *
 * For F(4x4,3x3) the points are 0, a, -a, b, -b and infinity, with
 * f(p, q) = 1 / (2 p p (p p - q q)):
 *
 *        | aabb   0   -aa-bb  0    1  0 |       | 1/aabb     0          0     |
 *        | 0    -abb   -bb    a    1  0 |       | f(a,b)  a f(a,b)  aa f(a,b) |
 *   B' = | 0     abb   -bb   -a    1  0 |   G = | f(a,b) -a f(a,b)  aa f(a,b) |
 *        | 0    -baa   -aa    b    1  0 |       | f(b,a)  b f(b,a)  bb f(b,a) |
 *        | 0     baa   -aa   -b    1  0 |       | f(b,a) -b f(b,a)  bb f(b,a) |
 *        | 0    aabb    0  -aa-bb  0  1 |       | 0          0          1     |
 *
 * and A' has the powers 0 to 3 of each point. With a = 5/8 and b = 3/2 all factors but those of G
 * are exact, and rounding errors are some twice those of direct convolutions, where the usual 1 and
 * 2 give six times them (root mean square, 64 channels, normal values; tests/ops/own.c has bounds).
 *
 * All of them go along the channels, and each element is the same sums in the same order whatever
 * the width of vectors. */
#ifndef AMP_WINO_TILE_H
#define AMP_WINO_TILE_H

#include "codegen/text/cpu/conv.h"

/* The points of F(4x4,3x3). */
#define AMP_WINO_P 0.625f
#define AMP_WINO_Q 1.5f

/* x + factor * y */
AMP_INLINE AmpV amp_wino_more(AmpV x, float factor, AmpV y) {
  return amp_v_fma(amp_v_all(factor), y, x);
}

/* ---- along one axis: a tile of `side` results has side + 2 elements and products ---- */

/* B' of the elements that a tile reads. */
AMP_INLINE void amp_wino_b(const int side, const AmpV *d, AmpV *to) {
  if (side == 2) {
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[1] - d[3];
    return;
  }
  const float pp = AMP_WINO_P * AMP_WINO_P, qq = AMP_WINO_Q * AMP_WINO_Q;
  const AmpV even_p = amp_wino_more(d[4], -qq, d[2]), odd_p = amp_wino_more(d[3], -qq, d[1]);
  const AmpV even_q = amp_wino_more(d[4], -pp, d[2]), odd_q = amp_wino_more(d[3], -pp, d[1]);
  to[0] = amp_wino_more(amp_wino_more(d[4], -pp - qq, d[2]), pp * qq, d[0]);
  to[1] = amp_wino_more(even_p, AMP_WINO_P, odd_p);
  to[2] = amp_wino_more(even_p, -AMP_WINO_P, odd_p);
  to[3] = amp_wino_more(even_q, AMP_WINO_Q, odd_q);
  to[4] = amp_wino_more(even_q, -AMP_WINO_Q, odd_q);
  to[5] = amp_wino_more(amp_wino_more(d[5], -pp - qq, d[3]), pp * qq, d[1]);
}

/* The factors of G: of one point, f(p,q), p f(p,q) and pp f(p,q). */
#define AMP_WINO_F(p, q) (1 / (2 * (p) * (p) * ((p) * (p) - (q) * (q))))
typedef struct AmpWinoFactors {
  float zero, of_p[3], of_q[3];
} AmpWinoFactors;
#define AMP_WINO_POINT(p, q)                                                                       \
  { AMP_WINO_F(p, q), (p)*AMP_WINO_F(p, q), (p) * (p)*AMP_WINO_F(p, q) }
static const AmpWinoFactors amp_wino_factors = {
    1 / (0.625 * 0.625 * 1.5 * 1.5), AMP_WINO_POINT(0.625, 1.5), AMP_WINO_POINT(1.5, 0.625)};

/* G of the three taps. */
AMP_INLINE void amp_wino_g(const int side, const AmpV g[3], AmpV *to) {
  if (side == 2) {
    const AmpV outer = g[0] + g[2], half = amp_v_all(0.5f);
    to[0] = g[0];
    to[1] = (outer + g[1]) * half;
    to[2] = (outer - g[1]) * half;
    to[3] = g[2];
    return;
  }
  const AmpWinoFactors *f = &amp_wino_factors;
  const AmpV even_p = amp_wino_more(amp_v_all(f->of_p[0]) * g[0], f->of_p[2], g[2]);
  const AmpV even_q = amp_wino_more(amp_v_all(f->of_q[0]) * g[0], f->of_q[2], g[2]);
  to[0] = amp_v_all(f->zero) * g[0];
  to[1] = amp_wino_more(even_p, f->of_p[1], g[1]);
  to[2] = amp_wino_more(even_p, -f->of_p[1], g[1]);
  to[3] = amp_wino_more(even_q, f->of_q[1], g[1]);
  to[4] = amp_wino_more(even_q, -f->of_q[1], g[1]);
  to[5] = g[2];
}

/* G' of the products, which gives the three taps. */
AMP_INLINE void amp_wino_gt(const int side, const AmpV *u, AmpV *to) {
  if (side == 2) {
    const AmpV half = amp_v_all(0.5f), middle = half * (u[1] + u[2]);
    to[0] = u[0] + middle;
    to[1] = half * (u[1] - u[2]);
    to[2] = middle + u[3];
    return;
  }
  const AmpWinoFactors *f = &amp_wino_factors;
  const AmpV even_p = u[1] + u[2], even_q = u[3] + u[4];
  const AmpV odd_p = u[1] - u[2], odd_q = u[3] - u[4];
  const AmpV outer = amp_v_all(f->zero) * u[0];
  to[0] = amp_wino_more(amp_wino_more(outer, f->of_p[0], even_p), f->of_q[0], even_q);
  to[1] = amp_wino_more(amp_v_all(f->of_p[1]) * odd_p, f->of_q[1], odd_q);
  to[2] = amp_wino_more(amp_wino_more(u[5], f->of_p[2], even_p), f->of_q[2], even_q);
}

/* A' of the products, which gives the results. */
AMP_INLINE void amp_wino_a(const int side, const AmpV *p, AmpV *to) {
  if (side == 2) {
    to[0] = p[0] + p[1] + p[2];
    to[1] = p[1] - p[2] - p[3];
    return;
  }
  const float pp = AMP_WINO_P * AMP_WINO_P, qq = AMP_WINO_Q * AMP_WINO_Q;
  const AmpV even_p = p[1] + p[2], even_q = p[3] + p[4];
  const AmpV odd_p = p[1] - p[2], odd_q = p[3] - p[4];
  to[0] = p[0] + even_p + even_q;
  to[1] = amp_wino_more(amp_v_all(AMP_WINO_P) * odd_p, AMP_WINO_Q, odd_q);
  to[2] = amp_wino_more(amp_v_all(pp) * even_p, qq, even_q);
  to[3] = amp_wino_more(amp_wino_more(p[5], pp * AMP_WINO_P, odd_p), qq * AMP_WINO_Q, odd_q);
}

/* A of results, or of their gradients. */
AMP_INLINE void amp_wino_e(const int side, const AmpV *y, AmpV *to) {
  if (side == 2) {
    to[0] = y[0];
    to[1] = y[0] + y[1];
    to[2] = y[0] - y[1];
    to[3] = -y[1];
    return;
  }
  const float pp = AMP_WINO_P * AMP_WINO_P, qq = AMP_WINO_Q * AMP_WINO_Q;
  const AmpV even_p = amp_wino_more(y[0], pp, y[2]), odd_p = amp_wino_more(y[1], pp, y[3]);
  const AmpV even_q = amp_wino_more(y[0], qq, y[2]), odd_q = amp_wino_more(y[1], qq, y[3]);
  to[0] = y[0];
  to[1] = amp_wino_more(even_p, AMP_WINO_P, odd_p);
  to[2] = amp_wino_more(even_p, -AMP_WINO_P, odd_p);
  to[3] = amp_wino_more(even_q, AMP_WINO_Q, odd_q);
  to[4] = amp_wino_more(even_q, -AMP_WINO_Q, odd_q);
  to[5] = y[3];
}

/* ---- of an image ---- */

/* The rows of an image that a row of tiles reads, and columns 0..cols-1 of them: what lies beyond
 * is zeros. */
typedef struct AmpWinoRows {
  int dtype;
  const char *at[AMP_WINO_EDGE];
  int64_t step, cols; /* bytes from column to column, of rows of zeros, too */
  int64_t line;       /* bytes from row to row; 0 where they are copies */
} AmpWinoRows;

/* Zeros that are read in the place of a row outside of the image, however far the columns of a row
 * lie apart. As nothing is ever written there, the system maps one page of zeros for all of it. */
enum { AMP_WINO_ZEROS = 1 << 20 };
static unsigned char amp_wino_zeros[AMP_WINO_ZEROS];

/* Sets r to n rows of an image, from row h on, of one block of channels. They are read where they
 * lie, in the image's type, if the block is whole, the image's channels lie side by side, and rows
 * are not longer than amp_wino_zeros. Otherwise they are copied to `copy` as floats.
 * (If r were returned by value, the compiler would copy it with wide vectors, which wait until all
 * stores before them are done: some 6 % of a step of CIFAR's ResNet-20.) */
AMP_FN void amp_wino_rows(AmpWinoRows *r, const AmpSource *s, float *copy, int64_t block,
                          int64_t image, int64_t h, int n) {
  const int64_t c = block * AMP_BLOCK, channels = amp_in_block(s->c, block);
  const int64_t pixel = s->pixel * amp_size(s->dtype);
  const int lies = s->channel == 1 && channels == AMP_BLOCK && s->w * pixel <= AMP_WINO_ZEROS;
  r->dtype = lies ? s->dtype : AMPRT_F32;
  r->step = lies ? pixel : AMP_BLOCK * (int64_t)sizeof(float);
  r->cols = s->w;
  r->line = lies ? s->w * pixel : 0;
  for (int i = 0; i < n; i++, copy += s->w * AMP_BLOCK) {
    const int inside = h + i >= 0 && h + i < s->h;
    const int64_t from = (image * s->h + h + i) * s->w * s->pixel + c * s->channel;
    if (lies) {
      const char *at = (const char *)s->data + from * amp_size(s->dtype);
      r->at[i] = inside ? at : (const char *)amp_wino_zeros;
      continue;
    }
    r->at[i] = (const char *)copy;
    if (channels < AMP_BLOCK || !inside)
      amp_zero(copy, s->w * AMP_BLOCK);
    if (inside)
      amp_copy_run(s, copy, AMP_BLOCK, from, s->w, s->pixel, (int)channels, 0);
  }
}

/* The vectors that begin at channel `lane` of one column, of n rows. */
AMP_INLINE void amp_wino_take_as(const int dtype, const AmpWinoRows *r, int64_t column, int lane,
                                 AmpV *d, const int n) {
  const int64_t at = column * r->step;
  AMP_UNROLL(6)
  for (int i = 0; i < n; i++)
    d[i] = amp_v_read(dtype, r->at[i] + at, lane);
}
AMP_INLINE void amp_wino_take(const AmpWinoRows *r, int64_t column, int lane, AmpV *d,
                              const int n) {
  if (column < 0 || column >= r->cols) {
    AMP_UNROLL(6)
    for (int i = 0; i < n; i++)
      d[i] = amp_v_all(0);
  } else {
    AMP_WITH_TYPE(r->dtype, amp_wino_take_as, r, column, lane, d, n);
  }
}

/* Loads, or stores, n vectors that lie `step` floats apart, of which n is even. Addresses are made
 * of two pointers, to the first vector of either half, plus 0, 1 or 2 times the step, which x86-64
 * computes as part of the instruction. The last of the vectors that are loaded lies `last` floats
 * behind where it would lie then. */
AMP_INLINE void amp_wino_get(const float *at, int64_t step, int64_t last, AmpV *v, const int n) {
  const float *low = at, *high = at + n / 2 * step;
  AMP_FORGET(low, high);
  AMP_UNROLL(6)
  for (int i = 0; i < n - 1; i++)
    v[i] = amp_v_load(i < n / 2 ? low + i * step : high + (i - n / 2) * step);
  v[n - 1] = amp_v_load(high + (n / 2 - 1) * step + last);
}
AMP_INLINE void amp_wino_put(float *at, int64_t step, const AmpV *v, const int n) {
  float *low = at, *high = at + n / 2 * step;
  AMP_FORGET(low, high);
  AMP_UNROLL(6)
  for (int i = 0; i < n; i++)
    amp_v_store(i < n / 2 ? low + i * step : high + (i - n / 2) * step, v[i]);
}

/* B' d B of the tiles of a strip, for one block of channels. The first tile reads from column
 * `column` of the rows on. What is stored of each tile lies `tile` floats behind that of the tile
 * before it, in the order of AmpWinoTiles from `to` on, and its transformed elements are `step`
 * apart. */
AMP_INLINE void amp_wino_in_row(const int side, const AmpWinoRows *r, const AmpWinoStrip *s,
                                int64_t column, float *to, int64_t tile, int64_t step) {
  enum { STRIP = 4 }; /* tiles that stay in the first-level cache, and their columns */
  const int edge = side + 2;
  const int64_t apart = side - s->less_wide, last = edge - 1;
  for (int64_t t = 0; t < s->tiles; t += STRIP)
    for (int l = 0; l < AMP_BLOCK; l += AMP_WIDE) {
      const int64_t tiles = amp_least(s->tiles - t, STRIP);
      AmpV columns[STRIP * (AMP_WINO_EDGE - 2) + 2][AMP_WINO_EDGE];
      for (int64_t j = 0; j < apart * (tiles - 1) + edge; j++) {
        AmpV d[AMP_WINO_EDGE];
        const int64_t at = column + apart * t + j;
        if (r->line && l == 0) { /* what is new to the next row of tiles */
          AMP_UNROLL(4)
          for (int i = 2; i < edge; i++)
            __builtin_prefetch(r->at[i] + (at * r->step + side * r->line));
        }
        amp_wino_take(r, at, l, d, edge);
        amp_wino_b(side, d, columns[j]);
      }
      for (int64_t i = 0; i < tiles; i++) {
        float *at = to + (s->at + t + i) * tile + l;
        for (int h = 0; h < edge - s->less_high; h++, at += edge * step) {
          AmpV d[AMP_WINO_EDGE], v[AMP_WINO_EDGE];
          AMP_UNROLL(6)
          for (int j = 0; j < edge; j++)
            d[j] = columns[apart * i + j][h];
          amp_wino_b(side, d, v);
          amp_wino_put(h == last ? at + s->last * tile : at, step, v, edge);
        }
      }
    }
}
AMP_FN void amp_wino_row_2(const AmpWinoRows *r, const AmpWinoStrip *s, int64_t column, float *to,
                           int64_t tile, int64_t step) {
  amp_wino_in_row(2, r, s, column, to, tile, step);
}
AMP_FN void amp_wino_row_4(const AmpWinoRows *r, const AmpWinoStrip *s, int64_t column, float *to,
                           int64_t tile, int64_t step) {
  amp_wino_in_row(4, r, s, column, to, tile, step);
}

/* ---- of a filter ---- */

/* G g G' of n elements, a multiple of a vector, of each tap of a filter; its taps are `tap` floats
 * apart, the transformed ones `step`. */
AMP_INLINE void amp_wino_in_filter(const int side, const float *from, int64_t tap, int64_t n,
                                   float *to, int64_t step) {
  const int edge = side + 2;
  for (int64_t i = 0; i < n; i += AMP_WIDE) {
    AmpV column[3][AMP_WINO_EDGE];
    AMP_UNROLL(3)
    for (int s = 0; s < 3; s++) {
      const AmpV g[3] = {amp_v_load(from + s * tap + i), amp_v_load(from + (3 + s) * tap + i),
                         amp_v_load(from + (6 + s) * tap + i)};
      amp_wino_g(side, g, column[s]);
    }
    AMP_UNROLL(6)
    for (int r = 0; r < edge; r++) {
      const AmpV row[3] = {column[0][r], column[1][r], column[2][r]};
      AmpV u[AMP_WINO_EDGE];
      amp_wino_g(side, row, u);
      AMP_UNROLL(6)
      for (int s = 0; s < edge; s++)
        amp_v_store(to + (edge * r + s) * step + i, u[s]);
    }
  }
}
AMP_FN void amp_wino_filter_2(const float *from, int64_t tap, int64_t n, float *to, int64_t step) {
  amp_wino_in_filter(2, from, tap, n, to, step);
}
AMP_FN void amp_wino_filter_4(const float *from, int64_t tap, int64_t n, float *to, int64_t step) {
  amp_wino_in_filter(4, from, tap, n, to, step);
}

/* ---- of products ---- */

/* One of the transforms above. */
typedef void AmpWinoTransform(const int side, const AmpV *from, AmpV *to);

/* T p T' of the products p of a tile, or of sums of them, which are `step` floats apart, for a
 * transform T that gives n elements: A' gives results, G' taps of a filter. The last row of
 * products lies `last` floats behind where it would lie then. With `less_wide` the tile has no last
 * column of products: the column before it is read in its place, and what comes of it, which is
 * not used, is finite if the products are. */
AMP_INLINE void amp_wino_back(AmpWinoTransform *transform, const int side, const int n,
                              const float *from, int64_t step, int64_t last, int less_wide,
                              AmpV to[4][4]) {
  const int edge = side + 2;
  AmpV column[AMP_WINO_EDGE][4];
  AMP_UNROLL(6)
  for (int j = 0; j < edge; j++, from += step) {
    AmpV p[AMP_WINO_EDGE];
    if (j == edge - 1 && less_wide)
      from -= step;
    amp_wino_get(from, edge * step, last, p, edge);
    transform(side, p, column[j]);
  }
  AMP_UNROLL(4)
  for (int i = 0; i < n; i++) {
    AmpV row[AMP_WINO_EDGE];
    AMP_UNROLL(6)
    for (int j = 0; j < edge; j++)
      row[j] = column[j][i];
    transform(side, row, to[i]);
  }
}

/* ---- products ---- */

enum { AMP_WINO_FETCH = 2 }; /* channels: a fetch with each one takes too many instructions */

/* One of the products of some tiles: x is what is read of the tiles, `block` floats from
 * one block of its channels to the next, w the filter, y the products. */
typedef struct AmpWinoRun {
  const float *x, *w;
  float *y;
  int64_t block, channels;
  int goes_on;       /* y has the sums over earlier channels */
  const char *next;  /* a line to fetch for each AMP_WINO_FETCH channels of a register tile, */
  int64_t next_step; /* so many bytes from the one before */
} AmpWinoRun;

/* Adds the products of one channel, whose elements lie at x, with the vectors at w to the sums. */
AMP_INLINE void amp_wino_channel(AmpV sum[16][2], const float *x, const float *w, const int tiles,
                                 const int vectors) {
  AmpV b[2];
  AMP_UNROLL(2)
  for (int v = 0; v < vectors; v++)
    b[v] = amp_v_load(w + v * AMP_WIDE);
  AMP_UNROLL(16)
  for (int t = 0; t < tiles; t++) {
    const AmpV q = amp_v_all(x[t * AMP_BLOCK]);
    AMP_UNROLL(2)
    for (int v = 0; v < vectors; v++)
      sum[t][v] = amp_v_fma(q, b[v], sum[t][v]);
  }
}

/* Computes `n` register tiles, each of `tiles` tiles and `vectors` vectors of channels of the
 * result. Each sum is in the order of the channels that are read. */
AMP_INLINE void amp_wino_products(AmpWinoRun *r, int64_t n, const int tiles, const int vectors) {
  const int outs = vectors * AMP_WIDE;
  const float *first = r->x;
  const char *next = r->next;
  const int64_t next_step = r->next_step;
  float *y = r->y;
  for (; n > 0; n--) {
    const float *x = first, *w = r->w;
    AmpV sum[16][2];
    AMP_UNROLL(16)
    for (int t = 0; t < tiles; t++)
      AMP_UNROLL(2)
    for (int v = 0; v < vectors; v++)
      sum[t][v] = r->goes_on ? amp_v_load(y + (t * vectors + v) * AMP_WIDE) : amp_v_all(0);
    int64_t left = r->channels;
    for (; left >= AMP_BLOCK; left -= AMP_BLOCK, x += r->block, w += AMP_BLOCK * outs)
      AMP_UNROLL(16)
    for (int c = 0; c < AMP_BLOCK; c++) {
      if (c % AMP_WINO_FETCH == 0) {
        __builtin_prefetch(next);
        next += next_step;
      }
      amp_wino_channel(sum, x + c, w + c * outs, tiles, vectors);
    }
    for (int64_t c = 0; c < left; c++)
      amp_wino_channel(sum, x + c, w + c * outs, tiles, vectors);
    AMP_UNROLL(16)
    for (int t = 0; t < tiles; t++)
      AMP_UNROLL(2)
    for (int v = 0; v < vectors; v++)
      amp_v_store(y + (t * vectors + v) * AMP_WIDE, sum[t][v]);
    first += tiles * AMP_BLOCK;
    y += tiles * outs;
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
