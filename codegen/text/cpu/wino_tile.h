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
 * With stride 2, taps 0 and 2 of an axis meet its even elements, by F(4,2), whose points are 0, a,
 * -a, b and infinity,
 *
 *        | aab  -aa   -b     1  0 |       | 1/aab            0            |
 *        | 0    -ab   a-b    1  0 |       | 1/(2aa(a-b))     1/(2a(a-b))  |
 *   B' = | 0     ab  -a-b    1  0 |   G = | -1/(2aa(a+b))    1/(2a(a+b))  |
 *        | 0    -aa    0     1  0 |       | 1/(b(bb-aa))     1/(bb-aa)    |
 *        | 0    aab   -aa   -b  1 |       | 0                1            |
 *
 * and tap 1 meets the odd elements in plain products, which are added to the results. For a data
 * gradient dx at one place of two is the sum that F(4,2) gives, and at the other the plain product.
 * With a = 3/4 and b = 2, rounding errors are some 1.2 times those of direct convolutions.
 *
 * All of them go along the channels, and each element is the same sums in the same order whatever
 * the width of vectors. */
#ifndef AMP_WINO_TILE_H
#define AMP_WINO_TILE_H

#include "codegen/text/cpu/conv.h"

/* How many elements a tile reads along an axis, and how many it gives, at most AMP_WINO_GIVES.
 * Where dy of stride 2 is read for a data gradient (`backward`), these are 5 and 8. */
enum { AMP_WINO_GIVES = 8 };
AMP_INLINE int amp_wino_reads(const int form, const int backward) {
  return form == AMP_WINO_STRIDED && backward ? 5 : form;
}
AMP_INLINE int amp_wino_gives(const int form, const int backward) {
  return form == AMP_WINO_STRIDED && backward ? 8 : amp_wino_side(form);
}

/* x + factor * y */
AMP_INLINE AmpV amp_wino_more(AmpV x, float factor, AmpV y) {
  return amp_v_fma(amp_v_all(factor), y, x);
}

/* ---- along one axis: the products of a tile, as many as its form says ---- */

/* B' of the elements that a tile reads. */
AMP_INLINE void amp_wino_b(const int form, const int backward, const AmpV *d, AmpV *to) {
  if (form == AMP_WINO_STRIDED) {
    const int step = backward ? 1 : 2, odd = backward ? 0 : 1;
    const float a = AMP_WINO_A, b = AMP_WINO_B;
    AmpV e[4]; /* of neighbours: the later one minus b times the earlier one */
    AMP_UNROLL(4)
    for (int i = 0; i < 4; i++)
      e[i] = amp_wino_more(d[(i + 1) * step], -b, d[i * step]);
    to[0] = amp_wino_more(e[2], -a * a, e[0]);
    to[1] = amp_wino_more(e[2], a, e[1]);
    to[2] = amp_wino_more(e[2], -a, e[1]);
    to[3] = amp_wino_more(d[3 * step], -a * a, d[step]);
    AMP_UNROLL(4)
    for (int i = 0; i < 4; i++)
      to[4 + i] = d[i * step + odd];
    to[8] = amp_wino_more(e[3], -a * a, e[1]);
    return;
  }
  if (form == AMP_WINO_SMALL) {
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
    1 / (AMP_WINO_P * AMP_WINO_P * AMP_WINO_Q * AMP_WINO_Q), AMP_WINO_POINT(AMP_WINO_P, AMP_WINO_Q),
    AMP_WINO_POINT(AMP_WINO_Q, AMP_WINO_P)};

/* The rows of G of F(4,2) but the last. */
#define AMP_WINO_AA (AMP_WINO_A * AMP_WINO_A)
static const float amp_wino_strided[4][2] = {
    {1 / (AMP_WINO_AA * AMP_WINO_B), 0},
    {1 / (2 * AMP_WINO_AA * (AMP_WINO_A - AMP_WINO_B)),
     1 / (2 * AMP_WINO_A * (AMP_WINO_A - AMP_WINO_B))},
    {-1 / (2 * AMP_WINO_AA * (AMP_WINO_A + AMP_WINO_B)),
     1 / (2 * AMP_WINO_A * (AMP_WINO_A + AMP_WINO_B))},
    {1 / (AMP_WINO_B * (AMP_WINO_B * AMP_WINO_B - AMP_WINO_AA)),
     1 / (AMP_WINO_B * AMP_WINO_B - AMP_WINO_AA)}};

/* G of the three taps, as many as amp_wino_filters says. */
AMP_INLINE void amp_wino_g(const int form, const AmpV g[3], AmpV *to) {
  if (form == AMP_WINO_STRIDED) {
    to[0] = amp_v_all(amp_wino_strided[0][0]) * g[0];
    AMP_UNROLL(3)
    for (int i = 1; i < 4; i++)
      to[i] = amp_wino_more(amp_v_all(amp_wino_strided[i][0]) * g[0], amp_wino_strided[i][1], g[2]);
    to[4] = g[1];
    to[5] = g[2];
    return;
  }
  if (form == AMP_WINO_SMALL) {
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

/* G' of the sums of products, which gives the three taps. This and A have no form of stride 2. */
AMP_INLINE void amp_wino_gt(const int form, const AmpV *u, AmpV *to) {
  if (form == AMP_WINO_SMALL) {
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
AMP_INLINE void amp_wino_a(const int form, const AmpV *p, AmpV *to) {
  if (form == AMP_WINO_SMALL) {
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

/* The same of stride 2. */
AMP_INLINE void amp_wino_a_strided(const int backward, const AmpV *p, AmpV *to) {
  const float a = AMP_WINO_A, b = AMP_WINO_B;
  const AmpV even = p[1] + p[2], odd = p[1] - p[2], *plain = p + 4;
  const AmpV y[4] = {p[0] + even + p[3], amp_wino_more(amp_v_all(a) * odd, b, p[3]),
                     amp_wino_more(amp_v_all(a * a) * even, b * b, p[3]),
                     amp_wino_more(amp_wino_more(p[8], a * a * a, odd), b * b * b, p[3])};
  if (backward)
    for (int i = 0; i < 4; i++) {
      to[2 * i] = plain[i];
      to[2 * i + 1] = y[i];
    }
  else
    for (int i = 0; i < 4; i++)
      to[i] = y[i] + plain[i];
}

/* A of results, or of their gradients. */
AMP_INLINE void amp_wino_e(const int form, const AmpV *y, AmpV *to) {
  if (form == AMP_WINO_SMALL) {
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
  AMP_UNROLL(9)
  for (int i = 0; i < n; i++)
    d[i] = amp_v_read(dtype, r->at[i] + at, lane);
}
AMP_INLINE void amp_wino_take(const AmpWinoRows *r, int64_t column, int lane, AmpV *d,
                              const int n) {
  if (column < 0 || column >= r->cols) {
    AMP_UNROLL(9)
    for (int i = 0; i < n; i++)
      d[i] = amp_v_all(0);
  } else {
    AMP_WITH_TYPE(r->dtype, amp_wino_take_as, r, column, lane, d, n);
  }
}

/* Loads, or stores, n vectors that lie `step` floats apart, as many as a form has. Addresses are
 * made of two or three pointers, one for each half or third of the vectors, plus 0, 1 or 2 times
 * the step, which x86-64 computes as part of the instruction. The last vectors that are loaded, as
 * many as amp_wino_spared says, lie `last` floats behind where they would lie then. */
AMP_INLINE int amp_wino_each(const int n) {
  return n == 4 ? 2 : 3;
}
AMP_INLINE void amp_wino_get(const float *at, int64_t step, int64_t last, AmpV *v, const int n) {
  const int each = amp_wino_each(n), spared = amp_wino_spared(n);
  AMP_UNROLL(3)
  for (int i = 0; i < n; i += each) {
    const float *from = at + i * step;
    AMP_FORGET(at, from);
    AMP_UNROLL(3)
    for (int j = 0; j < each; j++)
      v[i + j] = amp_v_load(from + j * step + (i + j < n - spared ? 0 : last));
  }
}
AMP_INLINE void amp_wino_put(float *at, int64_t step, const AmpV *v, const int n) {
  const int each = amp_wino_each(n);
  AMP_UNROLL(3)
  for (int i = 0; i < n; i += each) {
    float *to = at + i * step;
    AMP_FORGET(at, to);
    AMP_UNROLL(3)
    for (int j = 0; j < each; j++)
      amp_v_store(to + j * step, v[i + j]);
  }
}

/* B' d B of the tiles of a strip, for one block of channels. The first tile reads from column
 * `column` of the rows on. What is stored of each tile lies `tile` floats behind that of the tile
 * before it, in the order of AmpWinoTiles from `to` on, and its transformed elements are `step`
 * apart. */
AMP_INLINE void amp_wino_in_row(const int form, const int backward, const AmpWinoRows *r,
                                const AmpWinoStrip *s, int64_t column, float *to, int64_t tile,
                                int64_t step) {
  /* Tiles that stay in the first-level cache, and the most columns that they read. */
  enum { STRIP = 4, COLUMNS = STRIP * 8 + 1 };
  const int reads = amp_wino_reads(form, backward), side = amp_wino_side(form);
  const int stride = form == AMP_WINO_STRIDED && !backward ? 2 : 1;
  const int moves = side * stride; /* to the next row of tiles */
  const int last = form - amp_wino_spared(form);
  const int64_t apart = (side - s->less_wide) * stride;
  for (int64_t t = 0; t < s->tiles; t += STRIP)
    for (int l = 0; l < AMP_BLOCK; l += AMP_WIDE) {
      const int64_t tiles = amp_least(s->tiles - t, STRIP);
      AmpV columns[COLUMNS * AMP_WINO_EDGE];
      for (int64_t j = 0; j < apart * (tiles - 1) + reads; j++) {
        AmpV d[AMP_WINO_EDGE];
        const int64_t at = column + apart * t + j;
        if (r->line && l == 0) { /* what is new to the next row of tiles */
          AMP_UNROLL(8)
          for (int i = reads - moves; i < reads; i++)
            __builtin_prefetch(r->at[i] + (at * r->step + moves * r->line));
        }
        amp_wino_take(r, at, l, d, reads);
        amp_wino_b(form, backward, d, columns + j * form);
      }
      for (int64_t i = 0; i < tiles; i++) {
        float *at = to + (s->at + t + i) * tile + l;
        const int rows = s->less_high ? last : form;
        for (int h = 0; h < rows; h++, at += form * step) {
          AmpV d[AMP_WINO_EDGE], v[AMP_WINO_EDGE];
          AMP_UNROLL(9)
          for (int j = 0; j < reads; j++)
            d[j] = columns[(apart * i + j) * form + h];
          amp_wino_b(form, backward, d, v);
          amp_wino_put(h >= last ? at + s->last * tile : at, step, v, form);
        }
      }
    }
}

/* The function of a form, whose name ends like that of the form. */
#define AMP_WINO_OF(form, name)                                                                    \
  ((form) == AMP_WINO_SMALL   ? name##_small                                                       \
   : (form) == AMP_WINO_LARGE ? name##_large                                                       \
                              : name##_strided)

typedef void AmpWinoRowFn(const AmpWinoRows *r, const AmpWinoStrip *s, int64_t column, float *to,
                          int64_t tile, int64_t step);
#define AMP_WINO_ROW(name, form, backward)                                                         \
  AMP_FN void name(const AmpWinoRows *r, const AmpWinoStrip *s, int64_t column, float *to,         \
                   int64_t tile, int64_t step) {                                                   \
    amp_wino_in_row(form, backward, r, s, column, to, tile, step);                                 \
  }
AMP_WINO_ROW(amp_wino_row_small, AMP_WINO_SMALL, 0)
AMP_WINO_ROW(amp_wino_row_large, AMP_WINO_LARGE, 0)
AMP_WINO_ROW(amp_wino_row_strided, AMP_WINO_STRIDED, 0)
AMP_WINO_ROW(amp_wino_row_strided_back, AMP_WINO_STRIDED, 1)
AMP_INLINE AmpWinoRowFn *amp_wino_row(int form, int backward) {
  return form == AMP_WINO_STRIDED && backward ? amp_wino_row_strided_back
                                              : AMP_WINO_OF(form, amp_wino_row);
}

/* ---- of a filter ---- */

/* G g G' of n elements, a multiple of a vector, of each tap of a filter; its taps are `tap` floats
 * apart, the transformed ones `step`. */
AMP_INLINE void amp_wino_in_filter(const int form, const float *from, int64_t tap, int64_t n,
                                   float *to, int64_t step) {
  const int all = amp_wino_filters(form);
  for (int64_t i = 0; i < n; i += AMP_WIDE) {
    AmpV column[3][AMP_WINO_LARGE];
    AMP_UNROLL(3)
    for (int s = 0; s < 3; s++) {
      const AmpV g[3] = {amp_v_load(from + s * tap + i), amp_v_load(from + (3 + s) * tap + i),
                         amp_v_load(from + (6 + s) * tap + i)};
      amp_wino_g(form, g, column[s]);
    }
    for (int r = 0; r < all; r++) {
      const AmpV row[3] = {column[0][r], column[1][r], column[2][r]};
      AmpV u[AMP_WINO_LARGE];
      amp_wino_g(form, row, u);
      AMP_UNROLL(6)
      for (int s = 0; s < all; s++)
        amp_v_store(to + (all * r + s) * step + i, u[s]);
    }
  }
}

#define AMP_WINO_FILTER(name, form)                                                                \
  AMP_FN void name(const float *from, int64_t tap, int64_t n, float *to, int64_t step) {           \
    amp_wino_in_filter(form, from, tap, n, to, step);                                              \
  }
AMP_WINO_FILTER(amp_wino_filter_small, AMP_WINO_SMALL)
AMP_WINO_FILTER(amp_wino_filter_large, AMP_WINO_LARGE)
AMP_WINO_FILTER(amp_wino_filter_strided, AMP_WINO_STRIDED)

/* ---- of products ---- */

/* A' or G'. */
typedef void AmpWinoTransform(const int form, const AmpV *from, AmpV *to);

/* T p T' of the products p of a tile of stride 1, or of sums of them, which are `step` floats
 * apart, for a transform T that gives n elements: A' gives results, G' taps of a filter. The last
 * row of products lies `last` floats behind where it would lie then. With `less_wide` the tile has
 * no last column of products: the column before it is read in its place, and what comes of it,
 * which is not used, is finite if the products are. */
AMP_INLINE void amp_wino_back(AmpWinoTransform *transform, const int form, const int n,
                              const float *from, int64_t step, int64_t last, int less_wide,
                              AmpV to[4][4]) {
  AmpV column[AMP_WINO_LARGE][4];
  AMP_UNROLL(6)
  for (int j = 0; j < form; j++, from += step) {
    AmpV p[AMP_WINO_LARGE];
    if (j == form - 1 && less_wide)
      from -= step;
    amp_wino_get(from, form * step, last, p, form);
    transform(form, p, column[j]);
  }
  AMP_UNROLL(4)
  for (int i = 0; i < n; i++) {
    AmpV row[AMP_WINO_LARGE];
    AMP_UNROLL(6)
    for (int j = 0; j < form; j++)
      row[j] = column[j][i];
    transform(form, row, to[i]);
  }
}

/* The same of a tile of stride 2, which gives as many results along each axis as amp_wino_gives
 * says. They do not fit the registers, so loops keep the program small. */
AMP_INLINE void amp_wino_back_strided(const int backward, const float *from, int64_t step,
                                      int64_t last, int less_wide,
                                      AmpV to[AMP_WINO_GIVES][AMP_WINO_GIVES]) {
  enum { FORM = AMP_WINO_STRIDED };
  const int n = amp_wino_gives(FORM, backward), spared = amp_wino_spared(FORM);
  AmpV column[FORM][AMP_WINO_GIVES];
  for (int j = 0; j < FORM; j++, from += step) {
    AmpV p[FORM];
    if (j >= FORM - spared && less_wide)
      from -= step;
    amp_wino_get(from, FORM * step, last, p, FORM);
    amp_wino_a_strided(backward, p, column[j]);
  }
  for (int i = 0; i < n; i++) {
    AmpV row[FORM];
    AMP_UNROLL(9)
    for (int j = 0; j < FORM; j++)
      row[j] = column[j][i];
    amp_wino_a_strided(backward, row, to[i]);
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

/* The register tiles. One with two vectors computes the products of AMP_WINO_SIDE tiles, one with a
 * single vector those of twice as many: so many sums fit the registers. Of each there is a second
 * one for one tile less; both together make up almost any number of tiles. The second one with a
 * single vector is left out, so that programs are smaller, where a vector holds fewer than the 16
 * channels from which this method pays, and where pairs of bf16 pay. */
#if defined __AVX512F__
enum { AMP_WINO_SIDE = 8 };
#else
enum { AMP_WINO_SIDE = 6 };
#endif
#if defined __AVX512F__ && !defined AMPCC_PAIRS_PAY
enum { AMP_WINO_THIN_FEWER = 1 };
#else
enum { AMP_WINO_THIN_FEWER = 0 };
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
AMP_FN void amp_wino_thin_fewer(AmpWinoRun *r, int64_t n) {
  amp_wino_products(r, n, 2 * AMP_WINO_SIDE - 1, 1);
}

#endif
