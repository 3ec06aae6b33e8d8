/* The gradient of a convolution's filter, a sum over the results of all images. The filter is cut
 * into parts, whose sums stay in the second-level cache of a thread, and the results into tiles:
 * for each part a thread copies tile after tile, of the part's channels alone, and adds what it
 * gives. Of small filters there are several slots, each of a fixed range of tiles, whose sums are
 * added up in their order. Either way the sums do not depend on the number of threads. */
#ifndef AMP_CONV_GRAD_H
#define AMP_CONV_GRAD_H

#include "codegen/text/cpu/conv.h"
#include "codegen/text/cpu/conv_grad_copy.h"
#include "codegen/text/cpu/conv_grad_tile.h"

typedef struct AmpGradPart { /* a part of the filter: some channels of x and of dy */
  const AmpConvGrad *a;
  int pairs;                     /* of images, of bf16 */
  AmpAxis high, wide, one;       /* how x is read, and `one`: dy, both ways */
  AmpSource x, dy;               /* of these channels alone */
  int64_t block, blocks, groups; /* the first block of units, how many, and groups of vectors */
  AmpGradSteps steps[2][2];      /* of any block or the last, of any group or the last */
  AmpGradTap *tap;
  float *x_copy, *dy_copy, *sums;
  AmpGradView x_view, dy_view; /* of a tile */
  int exact;                   /* of few channels: leave out products with padding that are not 0 */
  AmpGradFetch fetch;          /* what is read next */
} AmpGradPart;

/* ---- sizes ---- */

/* The sums of a block and group. */
AMP_INLINE int64_t amp_grad_each(const AmpConvGrad *a) {
  return amp_grad_taps(a) * AMP_BLOCK * amp_grad_outs(a);
}
/* Are bf16 multiplied in pairs? Two images that follow one another then count as one, whose
 * elements are pairs. */
AMP_INLINE int amp_grad_pairs(const AmpConvGrad *a) {
  return a->x.dtype == AMPRT_BF16 && a->dy.dtype == AMPRT_BF16 && amp_takes_pairs(a->over_pairs);
}
AMP_INLINE int64_t amp_grad_images(const AmpConvGrad *a) {
  return amp_grad_pairs(a) ? amp_pieces(a->n, 2) : a->n;
}
AMP_INLINE int64_t amp_grad_tile_count(const AmpConvGrad *a) {
  return amp_pieces(amp_grad_images(a), a->images) * amp_pieces(a->high.out, a->rows) *
         amp_pieces(a->wide.out, a->cols);
}
AMP_INLINE AmpGradSpan amp_grad_span(const AmpConvGrad *a, int64_t tile) {
  const int64_t across = amp_pieces(a->wide.out, a->cols);
  const int64_t down = amp_pieces(a->high.out, a->rows);
  AmpGradSpan t = {.image = tile / across / down * a->images,
                   .row = tile / across % down * a->rows,
                   .col = tile % across * a->cols};
  t.images = amp_least(a->images, amp_grad_images(a) - t.image);
  t.rows = amp_least(a->rows, a->high.out - t.row);
  t.cols = amp_least(a->cols, a->wide.out - t.col);
  return t;
}

/* ---- sums ---- */

/* Narrows results *first..*last-1 of an axis to those whose tap t reads no padding. */
AMP_INLINE void amp_trim(const AmpAxis *axis, int64_t in, int64_t t, int64_t *first,
                         int64_t *last) {
  const int64_t before = -axis->origin - t, after = in - axis->origin - t; /* below i * step */
  const int64_t from = before > 0 ? (before + axis->step - 1) / axis->step : 0;
  const int64_t to = after > 0 ? (after + axis->step - 1) / axis->step : 0;
  *first = *first > from ? *first : from;
  *last = amp_least(*last, to);
}

AMP_INLINE int64_t amp_grad_tap_at(const AmpGradView *v, int axis, int64_t step, int64_t t) {
  return t % step * v->phase[axis] + t / step * v->step[axis];
}

/* Rows that follow one another without a gap become one. */
AMP_INLINE void amp_grad_join(AmpGradTile *t) {
  if (t->cols * t->unit_col == t->unit_row && t->cols * t->vec_col == t->vec_row) {
    t->cols *= t->rows;
    t->rows = 1;
    if (t->cols * t->unit_col == t->unit_image && t->cols * t->vec_col == t->vec_image) {
      t->cols *= t->images;
      t->images = 1;
    }
  }
}

/* May the taps of three rows be computed together (amp_grad_three_rows)? That has the same bits.
 * Where pairs of bf16 pay, programs are smaller without it. */
AMP_INLINE int amp_grad_takes_three_rows(const AmpGradPart *p) {
#ifdef AMPCC_PAIRS_PAY
  (void)p;
  return 0;
#else
  const AmpConvGrad *a = p->a;
  return a->few && a->c == 3 && a->high.taps == 3 && a->high.stride == 1 && a->k <= AMP_BLOCK &&
         !p->pairs && !p->exact;
#endif
}

/* Lists for each tap what it adds up in rows down[0]..down[1]-1 and columns across[0]..across[1]-1
 * of a tile; where three rows are computed together, for the first tap what all of them add up. */
AMP_FN void amp_grad_list(AmpGradPart *p, const AmpGradSpan *t, const int64_t down[2],
                          const int64_t across[2]) {
  const AmpConvGrad *a = p->a;
  const AmpGradView *x = &p->x_view, *dy = &p->dy_view;
  const AmpGradView *unit = a->vec_x ? dy : x, *vec = a->vec_x ? x : dy;
  const int three_rows = amp_grad_takes_three_rows(p);
  AmpGradTap *tap = p->tap;
  for (int64_t r = 0; r < a->high.taps; r++) {
    int64_t r0 = t->row + down[0], r1 = t->row + down[1];
    if (!three_rows)
      amp_trim(&p->high, a->high.in, r, &r0, &r1);
    for (int64_t s = 0; s < (a->few ? 1 : a->wide.taps); s++, tap++) {
      int64_t c0 = t->col + across[0], c1 = t->col + across[1];
      if (!a->few)
        amp_trim(&p->wide, a->wide.in, s, &c0, &c1);
      tap->tile = (AmpGradTile){.images = r0 < r1 && c0 < c1 ? t->images : 0,
                                .rows = r1 - r0,
                                .cols = c1 - c0,
                                .unit_image = unit->image,
                                .unit_row = unit->step[0],
                                .unit_col = unit->step[1],
                                .vec_image = vec->image,
                                .vec_row = vec->step[0],
                                .vec_col = vec->step[1],
                                .vec_block = vec->block,
                                .outs = amp_grad_outs(a)};
      amp_grad_join(&tap->tile);
      r0 -= t->row;
      c0 -= t->col;
      const int64_t x_at = x->first + amp_grad_tap_at(x, 0, p->high.step, r) +
                           amp_grad_tap_at(x, 1, p->wide.step, s) + r0 * x->step[0] +
                           c0 * x->step[1];
      const int64_t dy_at = dy->first + r0 * dy->step[0] + c0 * dy->step[1];
      tap->unit = a->vec_x ? dy_at : x_at;
      tap->vec = a->vec_x ? x_at : dy_at;
      r0 += t->row;
    }
  }
}

/* Adds what the listed taps give to all sums of the part. */
AMP_FN void amp_grad_add(AmpGradPart *p) {
  const int64_t taps = amp_grad_taps(p->a), outs = amp_grad_outs(p->a);
  const int three_rows = amp_grad_takes_three_rows(p);
  const AmpGradView *units = p->a->vec_x ? &p->dy_view : &p->x_view;
  const AmpGradView *vecs = p->a->vec_x ? &p->x_view : &p->dy_view;
  float *sum = p->sums;
  for (int64_t g = 0; g < p->groups; g++)
    for (int64_t b = 0; b < p->blocks; b++) {
      const AmpGradSteps *steps = &p->steps[b + 1 == p->blocks][g + 1 == p->groups];
      const float *unit = units->at + b * units->block;
      const float *vec = vecs->at + g * (AMP_GRAD_GROUP / AMP_BLOCK) * vecs->block;
      if (three_rows) {
        for (int v = 0; v < outs; v += AMP_WIDE)
          amp_grad_three_rows(&p->tap->tile, unit + p->tap->unit, vec + p->tap->vec + v, sum + v);
        sum += taps * AMP_BLOCK * outs;
        continue;
      }
      for (int64_t t = 0; t < taps; t++, sum += AMP_BLOCK * outs) {
        const AmpGradTap *tap = &p->tap[t];
        const int64_t results = tap->tile.images * tap->tile.rows * tap->tile.cols;
        for (int i = 0; i < steps->n && results; i++) {
          const int u = steps->step[i].unit, v = steps->step[i].vec;
          const int tiles = steps->step[i].tiles;
          const float *from = unit + tap->unit + u;
          steps->step[i].run(
              &tap->tile, from, vec + tap->vec + v / AMP_BLOCK * vecs->block + v % AMP_BLOCK,
              sum + u * outs + v,
              amp_grad_ahead(&p->fetch, tiles * results, steps->step[i].fetches, from), tiles);
        }
      }
    }
}

/* ---- few channels, exactly: results whose windows reach beyond the row ---- */

/* Columns *first..*last-1 of a tile: those whose windows lie within the row. */
AMP_INLINE void amp_grad_inner(const AmpGradPart *p, const AmpGradSpan *t, int64_t *first,
                               int64_t *last) {
  int64_t from = t->col, to = t->col + t->cols;
  amp_trim(&p->wide, p->a->wide.in, 0, &from, &to);
  amp_trim(&p->wide, p->a->wide.in, p->a->wide.taps - 1, &from, &to);
  *first = amp_least(from - t->col, t->cols);
  *last = to - t->col > *first ? to - t->col : *first;
}

/* Adds the products of one result with n channels of dy, from k on, but none with the padding. */
AMP_FN void amp_grad_add_edge(AmpGradPart *p, int64_t image, int64_t row, int64_t col,
                              const float *dy, int64_t k, int64_t n) {
  const AmpConvGrad *a = p->a;
  const int64_t outs = amp_grad_outs(a), taps = a->high.taps;
  for (int64_t r = 0; r < taps; r++)
    for (int64_t c = 0; c < a->c; c++) {
      const int64_t h = row * p->high.step + p->high.origin + r;
      const int64_t w = col * p->wide.step + p->wide.origin + c / a->few;
      const int64_t b = c / AMP_BLOCK - p->block;
      float x;
      if (h < 0 || h >= a->high.in || w < 0 || w >= a->wide.in || b < 0 || b >= p->blocks)
        continue;
      amp_copy_some(p->x.dtype, p->x.data,
                    ((image * a->high.in + h) * a->wide.in + w) * a->few + c % a->few, 1, &x);
      for (int64_t i = k; i < k + n; i++) {
        const int64_t each = i / AMP_GRAD_GROUP * p->blocks + b;
        float *sum = p->sums + ((each * taps + r) * AMP_BLOCK + c % AMP_BLOCK) * outs;
        sum[i % AMP_GRAD_GROUP] += x * dy[i - k];
      }
    }
}

/* Adds products of n floats with 0 to `sum`: it stays 0 if they are finite. */
AMP_INLINE AmpV amp_grad_zeros(const float *v, int64_t n, AmpV sum) {
  int64_t i = 0;
  for (; i + AMP_WIDE <= n; i += AMP_WIDE)
    sum += amp_v_load(v + i) * 0;
  for (; i < n; i++)
    sum += amp_v_all(v[i]) * 0;
  return sum;
}

/* Is dy finite in all results of a tile outside of columns first..last-1? Its products with the
 * padding are then 0. With `add` adds what these results give, without such products. */
AMP_FN int amp_grad_edges(AmpGradPart *p, const AmpGradSpan *t, int64_t first, int64_t last,
                          int add) {
  const AmpConvGrad *a = p->a;
  const int64_t each = p->pairs ? 2 : 1;
  const int64_t images = amp_least(t->images * each, a->n - t->image * each);
  float buf[AMP_BUFFER];
  AmpV zeros = amp_v_all(0);
  for (int64_t i = 0; i < images * t->rows; i++)
    for (int64_t c = first ? 0 : last; c < t->cols; c = c + 1 == first ? last : c + 1) {
      const int64_t image = t->image * each + i / t->rows, row = t->row + i % t->rows;
      const int64_t at = ((image * a->high.out + row) * a->wide.out + t->col + c) * p->dy.pixel;
      for (int64_t k = 0; k < p->dy.c; k += AMP_WIDTH) {
        const int64_t n = amp_least(p->dy.c - k, AMP_WIDTH);
        const float *dy = amp_read(p->dy.dtype, p->dy.data, at + k, (int)n, buf);
        zeros = amp_grad_zeros(dy, n, zeros);
        if (add)
          amp_grad_add_edge(p, image, row, t->col + c, dy, k, n);
      }
    }
  for (int i = 0; i < AMP_WIDE; i++)
    if (!(zeros[i] == 0))
      return 0;
  return 1;
}

/* ---- tiles ---- */

/* Sets where the elements lie that a tile reads. Copies them first where the plan says so. */
AMP_INLINE void amp_grad_read(AmpGradPart *p, const AmpGradSpan *t) {
  const AmpConvGrad *a = p->a;
  if (a->few) {
    p->x_view = amp_grad_view_few(a, p->x_copy, &p->high, t);
    amp_grad_copy_few(a, &p->x, p->x_copy, &p->x_view, &p->high, t);
    p->x_view.first = p->block * AMP_BLOCK;
  } else if (a->copy_x) {
    p->x_view = amp_grad_view(p->x_copy, &p->high, &p->wide, t);
    amp_grad_copy(&p->x, p->x_copy, &p->x_view, &p->high, &p->wide, t, a->n);
  } else {
    p->x_view = amp_grad_direct(&p->x, &p->high, &p->wide, t);
  }
  if (a->copy_dy) {
    p->dy_view = amp_grad_view(p->dy_copy, &p->one, &p->one, t);
    amp_grad_copy(&p->dy, p->dy_copy, &p->dy_view, &p->one, &p->one, t, a->n);
  } else {
    p->dy_view = amp_grad_direct(&p->dy, &p->one, &p->one, t);
  }
}

/* Adds what one tile gives. */
AMP_FN void amp_grad_tile_sums(AmpGradPart *p, const AmpGradSpan *t) {
  const int64_t most = amp_grad_piece(p->a), cols = amp_even(t->cols, most);
  const int64_t rows = amp_even(t->rows, (most + cols / 2) / cols);
  int64_t first = 0, last = t->cols;
  amp_grad_read(p, t);
  amp_grad_share(&p->fetch, amp_pieces(t->cols, cols) * amp_pieces(t->rows, rows) * p->groups *
                                p->blocks * amp_grad_taps(p->a) * p->steps[0][0].n);
  if (p->a->few && p->exact) {
    amp_grad_inner(p, t, &first, &last);
    if (amp_grad_edges(p, t, first, last, 0)) {
      first = 0;
      last = t->cols;
    } else {
      amp_grad_edges(p, t, first, last, 1);
    }
  }
  for (int64_t r = 0; r < t->rows; r += rows)
    for (int64_t c = first; c < last; c += cols) {
      const int64_t down[2] = {r, amp_least(r + rows, t->rows)};
      const int64_t across[2] = {c, amp_least(c + cols, last)};
      amp_grad_list(p, t, down, across);
      amp_grad_add(p);
    }
}

/* to[j * to_step + i] = from[i * from_step + j] for i below n and j below m, four rows of `to` at a
 * time. */
AMP_INLINE void amp_grad_transpose(float *to, int64_t to_step, const float *from, int64_t from_step,
                                   int n, int m) {
  for (int j = 0; j < m; j += 4)
    amp_transpose(to + j * to_step, to_step, from + j, from_step, n, m - j < 4 ? m - j : 4);
}

/* Stores the sums of a tap as K,R,S,C: m channels of vectors from `vec` on for each of n units from
 * `unit` on. */
AMP_FN void amp_grad_store_tap(const AmprtRun *run, const AmpConvGrad *a, const float *sums,
                               int64_t t, int64_t unit, int n, int64_t vec, int m) {
  const int64_t taps = amp_grad_taps(a), outs = amp_grad_outs(a), row = taps * a->c;
  const int64_t at = (a->vec_x ? unit : vec) * row + t * a->c + (a->vec_x ? vec : unit);
  float transposed[AMP_GRAD_GROUP][AMP_BLOCK];
  void *out = amp_at(run, &a->out);
  if (a->vec_x) {
    for (int i = 0; i < n; i++)
      amp_write(a->out.dtype, out, at + i * row, m, sums + i * outs);
  } else if (a->out.dtype == AMPRT_F32) {
    amp_grad_transpose((float *)out + at, row, sums, outs, n, m);
  } else {
    amp_grad_transpose(transposed[0], AMP_BLOCK, sums, outs, n, m);
    for (int i = 0; i < m; i++)
      amp_write(a->out.dtype, out, at + i * row, n, transposed[i]);
  }
}

/* Adds up the slots of one block and group, and stores them. */
AMP_FN void amp_grad_store(const AmprtRun *run, const AmpConvGrad *a, const float *sums,
                           int64_t from_slot, int64_t block, int64_t group) {
  const int64_t taps = amp_grad_taps(a), outs = amp_grad_outs(a), vec = group * AMP_GRAD_GROUP;
  const int m = (int)amp_least(amp_grad_vecs(a) - vec, AMP_GRAD_GROUP);
  const int n = amp_in_block(amp_grad_units(a), block);
  float sum[AMP_BLOCK * AMP_GRAD_GROUP];
  for (int64_t t = 0; t < taps; t++, sums += AMP_BLOCK * outs) {
    const float *all = sums;
    if (a->slots > 1) {
      __builtin_memcpy(sum, sums, (size_t)(n * outs) * sizeof *sum);
      for (int64_t slot = 1; slot < a->slots; slot++) {
        const float *other = sums + slot * from_slot;
        AMP_SIMD
        for (int i = 0; i < n * (int)outs; i++)
          sum[i] += other[i];
      }
      all = sum;
    }
    amp_grad_store_tap(run, a, all, t, block * AMP_BLOCK, n, vec, m);
  }
}

AMP_INLINE AmpSource amp_grad_source(const AmprtRun *run, const AmpRef *ref, const int64_t size[3],
                                     int64_t first, int64_t n, int pairs) {
  const int64_t bytes = amp_size(ref->dtype);
  return (AmpSource){.data = (const char *)amp_at(run, ref) + first * bytes,
                     .h = size[0],
                     .w = size[1],
                     .c = n,
                     .pixel = size[2],
                     .channel = 1,
                     .dtype = ref->dtype,
                     .pair = pairs ? size[0] * size[1] * size[2] : 0};
}

typedef struct AmpGradBox { /* some channels: blocks of units, groups of vectors */
  int64_t block, blocks, group, groups;
} AmpGradBox;
typedef struct AmpGradChannels {
  int64_t first, n;
} AmpGradChannels;

/* The channels of x in a box, or with `x` 0 those of dy. */
AMP_INLINE AmpGradChannels amp_grad_channels(const AmpConvGrad *a, const AmpGradBox *box, int x) {
  const int64_t all = x ? a->c : a->k, vec = x == !!a->vec_x;
  const int64_t first = vec ? box->group * AMP_GRAD_GROUP : box->block * AMP_BLOCK;
  const int64_t n = vec ? box->groups * AMP_GRAD_GROUP : box->blocks * AMP_BLOCK;
  return (AmpGradChannels){first, amp_least(all - first, n)};
}

/* What is read of channels c of x and k of dy. With `pairs` elements are pairs of two images. */
AMP_FN void amp_grad_sources(const AmprtRun *run, const AmpConvGrad *a, AmpGradChannels c,
                             AmpGradChannels k, int pairs, AmpSource *x, AmpSource *dy) {
  const int64_t x_size[3] = {a->high.in, a->wide.in, a->few ? a->few : a->c * a->groups};
  const int64_t dy_size[3] = {a->high.out, a->wide.out, a->k * a->groups};
  *x = amp_grad_source(run, &a->x, x_size, a->few ? 0 : c.first, a->few ? a->few : c.n, pairs);
  *dy = amp_grad_source(run, &a->dy, dy_size, k.first, k.n, pairs);
}
AMP_INLINE void amp_grad_box_sources(const AmprtRun *run, const AmpConvGrad *a,
                                     const AmpGradBox *box, AmpSource *x, AmpSource *dy) {
  amp_grad_sources(run, a, amp_grad_channels(a, box, 1), amp_grad_channels(a, box, 0),
                   amp_grad_pairs(a), x, dy);
}

/* The cache lines of the result for channels c of x and k of dy. */
AMP_FN AmpGradLines amp_grad_result_lines(const AmprtRun *run, const AmpConvGrad *a,
                                          AmpGradChannels c, AmpGradChannels k) {
  const int64_t size = amp_size(a->out.dtype), taps = amp_grad_taps(a);
  const int64_t at = k.first * taps * a->c + c.first;
  return amp_grad_lines_begin(
      (AmpGradLines){.at = (const char *)amp_at(run, &a->out) + at * size,
                     .n = {amp_pieces(c.n * size, AMP_LINE), k.n * taps, 1, 1},
                     .step = {AMP_LINE, a->c * size, 0, 0}});
}

/* Sets what this thread prefetches during tile t of `box`: the next tile, or during the last one
 * the place of the result and the first tile of the box `then`. */
AMP_FN void amp_grad_look_ahead(const AmprtRun *run, AmpGradPart *p, int64_t t, int64_t first,
                                int64_t last, const AmpGradBox *box, const AmpGradBox *then) {
  const AmpConvGrad *a = p->a;
  AmpSource x = p->x, dy = p->dy;
  __builtin_memset(p->fetch.of, 0, sizeof p->fetch.of);
  if (t + 1 == last && a->slots == 1)
    p->fetch.of[2] =
        amp_grad_result_lines(run, a, amp_grad_channels(a, box, 1), amp_grad_channels(a, box, 0));
  if (t + 1 == last && !then)
    return;
  if (t + 1 == last)
    amp_grad_box_sources(run, a, then, &x, &dy);
  const AmpGradSpan next = amp_grad_span(a, t + 1 == last ? first : t + 1);
  p->fetch.of[0] = amp_grad_lines(&x, &p->high, &p->wide, &next, a->n);
  p->fetch.of[1] = amp_grad_lines(&dy, &p->one, &p->one, &next, a->n);
}

/* Sets the sums of a part to what tiles first..last-1 give. */
AMP_FN void amp_grad_all_tiles(const AmprtRun *run, AmpGradPart *p, int64_t first, int64_t last,
                               const AmpGradBox *box, const AmpGradBox *then) {
  amp_zero(p->sums, p->blocks * p->groups * amp_grad_each(p->a));
  for (int64_t t = first; t < last; t++) {
    const AmpGradSpan now = amp_grad_span(p->a, t);
    amp_grad_look_ahead(run, p, t, first, last, box, then);
    amp_grad_tile_sums(p, &now);
  }
}

/* Are all sums of a part finite? Those beyond the last channel, which nothing stores, do not count.
 */
AMP_FN int amp_grad_is_finite(const AmpGradPart *p, int64_t last_group) {
  const int64_t outs = amp_grad_outs(p->a), vecs = amp_grad_vecs(p->a);
  const int64_t rows = p->blocks * amp_grad_taps(p->a) * AMP_BLOCK,
                first = last_group + 1 - p->groups;
  const float *sum = p->sums;
  AmpV zeros = amp_v_all(0);
  for (int64_t g = first; g <= last_group; g++)
    for (int64_t i = 0; i < rows; i++, sum += outs)
      zeros = amp_grad_zeros(sum, amp_least(vecs - g * AMP_GRAD_GROUP, AMP_GRAD_GROUP), zeros);
  return !amp_v_any(zeros != 0);
}

/* The sums of some channels over all tiles of a slot. Of few channels products with the padding are
 * added as well, which are 0 unless dy is Inf or NaN. Where a sum is Inf or NaN, all are computed
 * again without such products. */
AMP_FN void amp_grad_part(const AmprtRun *run, const AmpConvGrad *a, int64_t slot,
                          const AmpGradBox *box, const AmpGradBox *then) {
  static const AmpWindow point = {1, 1, 1, 1, 0};
  const int64_t tiles = amp_grad_tile_count(a);
  unsigned char *lane = amp_lane(run, a->lane, a->lane_bytes);
  AmpGradPart p = {.a = a,
                   .pairs = amp_grad_pairs(a),
                   .high = amp_axis_forward(&a->high),
                   .wide = amp_axis_forward(&a->wide),
                   .one = amp_axis_forward(&point),
                   .block = box->block,
                   .blocks = box->blocks,
                   .groups = box->groups,
                   .tap = (AmpGradTap *)(void *)lane,
                   .x_copy = (float *)(void *)(lane + a->x_at),
                   .dy_copy = (float *)(void *)(lane + a->dy_at),
                   .sums = (float *)(void *)(lane + a->sums_at)};
  const int64_t last_group = box->group + box->groups - 1;
  amp_grad_box_sources(run, a, box, &p.x, &p.dy);
  if (a->slots > 1)
    p.sums = (float *)(void *)(run->arena + a->sums + slot * a->sums_bytes);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      p.steps[i][j] = amp_grad_steps(
          i ? amp_in_block(amp_grad_units(a), p.block + p.blocks - 1) : AMP_BLOCK,
          j ? (int)amp_least(amp_grad_vecs(a) - last_group * AMP_GRAD_GROUP, AMP_GRAD_GROUP)
            : AMP_GRAD_GROUP,
          p.pairs);
  const int64_t first = slot * tiles / a->slots, last = (slot + 1) * tiles / a->slots;
  amp_grad_all_tiles(run, &p, first, last, box, then);
  if (a->few && !amp_grad_is_finite(&p, last_group)) {
    p.exact = 1;
    amp_grad_all_tiles(run, &p, first, last, box, then);
  }
  amp_amx_leave();
  if (a->slots > 1)
    return;
  for (int64_t g = 0; g < p.groups; g++)
    for (int64_t b = 0; b < p.blocks; b++)
      amp_grad_store(run, a, p.sums + (g * p.blocks + b) * amp_grad_each(a), 0, box->block + b,
                     box->group + g);
}

/* The filter as down x across parts. */
typedef struct AmpGradLoop {
  const AmpConvGrad *a;
  int64_t down, across;
} AmpGradLoop;

AMP_INLINE AmpGradBox amp_grad_box(const AmpGradLoop *l, int64_t part) {
  const int64_t groups = amp_grad_groups(l->a), blocks = amp_grad_blocks(l->a);
  const int64_t i = part / l->across, j = part % l->across;
  AmpGradBox box = {.block = i * blocks / l->down, .group = j * groups / l->across};
  box.blocks = (i + 1) * blocks / l->down - box.block;
  box.groups = (j + 1) * groups / l->across - box.group;
  return box;
}

/* One part. While it is computed, the part behind it is prefetched, which is mostly the one that
 * this thread computes next. */
AMP_FN void amp_grad_one_part(const AmprtRun *run, const void *args, int64_t part) {
  const AmpGradLoop *l = (const AmpGradLoop *)args;
  const AmpGradBox box = amp_grad_box(l, part), then = amp_grad_box(l, part + 1);
  amp_grad_part(run, l->a, 0, &box, part + 1 < l->down * l->across ? &then : NULL);
}

/* With one slot: threads share out the parts of the filter, which are made smaller where there are
 * many threads. */
AMP_FN void amp_grad_by_part(const AmprtRun *run, const AmpConvGrad *a) {
  const int64_t groups = amp_grad_groups(a), blocks = amp_grad_blocks(a);
  const int64_t want = 2 * (int64_t)run->threads->count();
  int64_t high = a->part_blocks, wide = a->part_groups;
  while (want > 2 && amp_pieces(blocks, high) * amp_pieces(groups, wide) < want && high * wide > 1)
    if (wide > 1 && wide * (AMP_GRAD_GROUP / AMP_BLOCK) >= high)
      wide = amp_pieces(wide, 2);
    else
      high = amp_pieces(high, 2);
  const AmpGradLoop loop = {a, amp_pieces(blocks, high), amp_pieces(groups, wide)};
  amp_parallel(run, loop.down * loop.across, amp_grad_one_part, &loop);
}

AMP_FN void amp_grad_slot(const AmprtRun *run, const void *args, int64_t slot) {
  const AmpConvGrad *a = (const AmpConvGrad *)args;
  const AmpGradBox all = {0, amp_grad_blocks(a), 0, amp_grad_groups(a)};
  amp_grad_part(run, a, slot, &all, NULL);
}

AMP_FN void amp_grad_add_slots(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpConvGrad *a = (const AmpConvGrad *)args;
  const float *sums = (const float *)(const void *)(run->arena + a->sums);
  const int64_t blocks = amp_grad_blocks(a);
  amp_grad_store(run, a, sums + chunk * amp_grad_each(a), a->sums_bytes / 4, chunk % blocks,
                 chunk / blocks);
}

AMP_FN void amp_grad_direct_all(const AmprtRun *run, const AmpConvGrad *a) {
  if (a->slots == 1) {
    amp_grad_by_part(run, a);
    return;
  }
  amp_parallel(run, a->slots, amp_grad_slot, a);
  amp_parallel(run, amp_grad_groups(a) * amp_grad_blocks(a), amp_grad_add_slots, a);
}

#endif
