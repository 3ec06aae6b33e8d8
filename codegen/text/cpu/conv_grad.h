/* The gradient of a convolution's filter. The results of all images are cut into tiles, each of
 * which is copied as conv_image.h describes; sums are bound to tiles, tiles to slots and slots are
 * added up in their order, so that the number of threads does not change them. */
#ifndef AMP_CONV_GRAD_H
#define AMP_CONV_GRAD_H

#include "codegen/text/cpu/conv.h"
#include "codegen/text/cpu/conv_grad_tile.h"

/* Floats: the sums that a thread adds to at a time stay in its second-level cache. */
enum { AMP_GRAD_SUMS = 16384 };
/* About so many results are added up in registers before they are added to the sums. Such a piece
 * of dy stays in the first-level cache. */
enum { AMP_GRAD_PIECE = 104 };

typedef struct AmpGradPart { /* a tile: results of one image, copied with what they read */
  const AmpConvGrad *a;
  AmpAxis high, wide;
  int64_t image, row, col, rows, cols;
  AmpTileCopy x, dy;
} AmpGradPart;

AMP_INLINE int64_t amp_grad_across(const AmpConvGrad *a) {
  return amp_pieces(a->wide.out, a->cols);
}
AMP_INLINE int64_t amp_grad_down(const AmpConvGrad *a) {
  return amp_pieces(a->high.out, a->rows);
}

/* Tile number `tile`. What of it is copied goes to `at`, and is copied now if `copy`. */
AMP_FN AmpGradPart amp_grad_part(const AmprtRun *run, const AmpConvGrad *a, int64_t tile, float *at,
                                 int copy) {
  static const AmpWindow point = {1, 1, 1, 1, 0};
  const int64_t across = amp_grad_across(a), down = amp_grad_down(a);
  const AmpAxis one = amp_axis_forward(&point);
  const AmpSource x = {amp_at(run, &a->x), a->high.in, a->wide.in, a->c, a->c, 1, a->x.dtype, 0, 0};
  const AmpSource dy = {
      amp_at(run, &a->dy), a->high.out, a->wide.out, a->k, a->k, 1, a->dy.dtype, 0, 0};
  AmpGradPart p = {.a = a,
                   .high = amp_axis_forward(&a->high),
                   .wide = amp_axis_forward(&a->wide),
                   .image = tile / across / down,
                   .row = tile / across % down * a->rows,
                   .col = tile % across * a->cols};
  p.rows = amp_least(a->rows, a->high.out - p.row);
  p.cols = amp_least(a->cols, a->wide.out - p.col);
  p.x = amp_tile_direct(&x, &p.high, &p.wide, p.image, p.row, p.col);
  p.dy = amp_tile_direct(&dy, &one, &one, p.image, p.row, p.col);
  if (a->copy_x) {
    p.x = amp_tile_copy(at, &p.high, &p.wide, p.rows, p.cols);
    at += amp_blocks(a->c) * p.x.block;
  }
  if (a->copy_dy)
    p.dy = amp_tile_copy(at, &one, &one, p.rows, p.cols);
  if (copy && a->copy_x)
    amp_copy_tile(&x, &p.x, &p.high, &p.wide, p.image, p.row, p.col);
  if (copy && a->copy_dy)
    amp_copy_tile(&dy, &p.dy, &one, &one, p.image, p.row, p.col);
  return p;
}

/* Of results first..last-1 of an axis, those whose tap t reads no padding. */
AMP_INLINE void amp_trim(const AmpAxis *axis, int64_t in, int64_t t, int64_t *first,
                         int64_t *last) {
  const int64_t before = -axis->origin - t, after = in - axis->origin - t; /* below i * step */
  const int64_t from = before > 0 ? (before + axis->step - 1) / axis->step : 0;
  const int64_t to = after > 0 ? (after + axis->step - 1) / axis->step : 0;
  *first = *first > from ? *first : from;
  *last = amp_least(*last, to);
}

/* Adds what rows r0..r1-1 and columns c0..c1-1 of the tile give to the sums of one tap, group and
 * block: n channels of x, m of dy. */
AMP_FN void amp_grad_tap(const AmpGradPart *p, int64_t r, int64_t s, const int64_t rows[2],
                         const int64_t cols[2], const float *x, const float *dy, int n, int m,
                         float *sum) {
  int64_t r0 = p->row + rows[0], r1 = p->row + rows[1];
  int64_t c0 = p->col + cols[0], c1 = p->col + cols[1];
  amp_trim(&p->high, p->a->high.in, r, &r0, &r1);
  amp_trim(&p->wide, p->a->wide.in, s, &c0, &c1);
  if (r0 >= r1 || c0 >= c1)
    return;
  const AmpGradTile tile = {r1 - r0,       c1 - c0,       p->x.step[0], p->x.step[1],
                            p->dy.step[0], p->dy.step[1], p->dy.block};
  const int64_t row = r0 - p->row, col = c0 - p->col;
  x += amp_tap_at(&p->x, 0, &p->high, r) + amp_tap_at(&p->x, 1, &p->wide, s) + row * p->x.step[0] +
       col * p->x.step[1];
  dy += row * p->dy.step[0] + col * p->dy.step[1];
  for (int i = 0; i < n;) {
    const AmpGradTileRow *t = amp_grad_tile_for(n - i, m);
    t->run(&tile, x + i, dy, sum + i * AMP_GRAD_OUTS);
    i += t->ins;
  }
}

/* The size of the pieces when n is cut into equal ones of at most `most`. */
AMP_INLINE int64_t amp_even(int64_t n, int64_t most) {
  return amp_pieces(n, amp_pieces(n, most));
}

/* Adds what one tile gives to the sums of blocks first..last-1 of one group. */
AMP_FN void amp_grad_group(const AmpGradPart *p, float *sums, int64_t group, int64_t first,
                           int64_t last) {
  const AmpConvGrad *a = p->a;
  const int64_t taps = a->high.taps * a->wide.taps, left = a->k - group * AMP_GRAD_OUTS;
  const int64_t blocks = amp_blocks(a->c), cols = amp_even(p->cols, AMP_GRAD_PIECE);
  const int64_t rows = amp_even(p->rows, (AMP_GRAD_PIECE + cols / 2) / cols);
  const int m = left < AMP_GRAD_OUTS ? (int)left : AMP_GRAD_OUTS;
  const float *dy = p->dy.at + group * AMP_GRAD_OUTS / AMP_BLOCK * p->dy.block +
                    group * AMP_GRAD_OUTS % AMP_BLOCK;
  for (int64_t r = 0; r < p->rows; r += rows)
    for (int64_t c = 0; c < p->cols; c += cols) {
      const int64_t down[2] = {r, amp_least(r + rows, p->rows)};
      const int64_t across[2] = {c, amp_least(c + cols, p->cols)};
      for (int64_t b = first; b < last; b++)
        for (int64_t t = 0; t < taps; t++)
          amp_grad_tap(p, t / a->wide.taps, t % a->wide.taps, down, across,
                       p->x.at + b * p->x.block, dy, amp_in_block(a->c, b), m,
                       sums + ((group * blocks + b) * taps + t) * AMP_BLOCK * AMP_GRAD_OUTS);
    }
}

AMP_INLINE int64_t amp_grad_groups(const AmpConvGrad *a) {
  return amp_pieces(a->k, AMP_GRAD_OUTS);
}
AMP_INLINE float *amp_grad_sums(const AmprtRun *run, const AmpConvGrad *a, int64_t slot) {
  return (float *)(void *)(run->arena + a->sums + slot * a->sums_bytes);
}
AMP_INLINE int64_t amp_grad_size(const AmpConvGrad *a) {
  return amp_grad_groups(a) * amp_blocks(a->c) * a->high.taps * a->wide.taps * AMP_BLOCK *
         AMP_GRAD_OUTS;
}

/* Each slot on one thread, tile by tile. */
AMP_FN void amp_grad_by_slot(const AmprtRun *run, const AmpConvGrad *a) {
  const int64_t tiles = a->n * amp_grad_down(a) * amp_grad_across(a);
#pragma omp parallel for schedule(dynamic) if (a->slots > 1)
  for (int64_t slot = 0; slot < a->slots; slot++) {
    float *sums = amp_grad_sums(run, a, slot);
    float *lane = (float *)(void *)amp_lane(run, a->lane, a->lane_bytes);
    amp_zero(sums, amp_grad_size(a));
    for (int64_t t = slot * tiles / a->slots; t < (slot + 1) * tiles / a->slots; t++) {
      const AmpGradPart p = amp_grad_part(run, a, t, lane, 1);
      for (int64_t g = 0; g < amp_grad_groups(a); g++)
        amp_grad_group(&p, sums, g, 0, amp_blocks(a->c));
    }
  }
}

/* Adds up the slots of one group and block, and stores them as K,R,S,C. */
AMP_FN void amp_grad_store(const AmprtRun *run, const AmpConvGrad *a, int64_t chunk) {
  const int64_t taps = a->high.taps * a->wide.taps, blocks = amp_blocks(a->c);
  const int64_t group = chunk / blocks, block = chunk % blocks, left = a->k - group * AMP_GRAD_OUTS;
  const int m = left < AMP_GRAD_OUTS ? (int)left : AMP_GRAD_OUTS, n = amp_in_block(a->c, block);
  enum { EACH = AMP_BLOCK * AMP_GRAD_OUTS };
  float turned[AMP_GRAD_OUTS][AMP_BLOCK];
  for (int64_t t = 0; t < taps; t++) {
    float *sum = amp_grad_sums(run, a, 0) + (chunk * taps + t) * EACH;
    for (int64_t slot = 1; slot < a->slots; slot++) {
      const float *other = amp_grad_sums(run, a, slot) + (chunk * taps + t) * EACH;
      AMP_SIMD
      for (int i = 0; i < n * AMP_GRAD_OUTS; i++)
        sum[i] += other[i];
    }
    amp_turn(turned[0], AMP_BLOCK, sum, AMP_GRAD_OUTS, n, m);
    for (int k = 0; k < m; k++)
      amp_write(a->out.dtype, amp_at(run, &a->out),
                ((group * AMP_GRAD_OUTS + k) * taps + t) * a->c + block * AMP_BLOCK, n, turned[k]);
  }
}

/* Some tiles at a time are copied by all threads, which then share out groups and runs of blocks.
 */
AMP_FN void amp_grad_by_block(const AmprtRun *run, const AmpConvGrad *a) {
  const int64_t tiles = a->n * amp_grad_down(a) * amp_grad_across(a), blocks = amp_blocks(a->c);
  const int64_t groups = amp_grad_groups(a), each = amp_grad_size(a) / (groups * blocks);
  const int64_t fit = amp_pieces(blocks * each, AMP_GRAD_SUMS);
  const int64_t want = amp_pieces(8 * (int64_t)omp_get_max_threads(), groups);
  const int64_t parts = amp_least(fit > want ? fit : want, blocks), chunks = groups * parts;
  unsigned char *lane = run->arena + a->lane;
  float *sums = amp_grad_sums(run, a, 0);
  for (int64_t from = 0; from < tiles; from += a->together) {
    const int64_t n = amp_least(a->together, tiles - from);
    if (a->copy_x || a->copy_dy) {
      AMP_PARALLEL(n)
      for (int64_t t = 0; t < n; t++)
        amp_grad_part(run, a, from + t, (float *)(void *)(lane + t * a->lane_bytes), 1);
    }
#pragma omp parallel for schedule(dynamic) if (chunks > 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
      const int64_t group = chunk / parts, part = chunk % parts;
      const int64_t first = part * blocks / parts, last = (part + 1) * blocks / parts;
      if (from == 0)
        amp_zero(sums + (group * blocks + first) * each, (last - first) * each);
      for (int64_t t = 0; t < n; t++) {
        const AmpGradPart p =
            amp_grad_part(run, a, from + t, (float *)(void *)(lane + t * a->lane_bytes), 0);
        amp_grad_group(&p, sums, group, first, last);
      }
      for (int64_t b = first; b < last && from + n == tiles; b++)
        amp_grad_store(run, a, group * blocks + b);
    }
  }
}

AMP_FN void amp_conv_grad(const AmprtRun *run, const void *args) {
  const AmpConvGrad *a = (const AmpConvGrad *)args;
  const int64_t chunks = amp_grad_groups(a) * amp_blocks(a->c);
  if (a->together) {
    amp_grad_by_block(run, a);
    return;
  }
  amp_grad_by_slot(run, a);
  AMP_PARALLEL(chunks)
  for (int64_t chunk = 0; chunk < chunks; chunk++)
    amp_grad_store(run, a, chunk);
}

#endif
