/* The gradient of a filter of 3 x 3 taps and stride 1, directly or by Winograd's method F(3x3,2x2),
 * with which 2 x 2 results add to all taps by 16 products in the place of 36:
 * dW = G'( sum over tiles of (B' d B) * (E dy E') )G, with the matrices of wino_tile.h and
 *
 *        | 1  0 |
 *   E =  | 1  1 |
 *        | 1 -1 |
 *        | 0 -1 |
 *
 * Threads share out parts of the filter, whose sums stay in the second-level cache; for each part a
 * thread copies and transforms piece after piece, of the part's channels alone, and the register
 * tile of conv_grad_tile.h adds up the products. So each sum has one order, whatever the parts.
 * Where an element of the result is not finite, all are computed directly (see wino.h). */
#ifndef AMP_WINO_GRAD_H
#define AMP_WINO_GRAD_H

#include "codegen/text/cpu/conv_grad.h"
#include "codegen/text/cpu/wino_tile.h"

/* ---- transforms ---- */

/* E of two elements. */
AMP_INLINE void amp_wino_e(const AmpV y[2], AmpV to[4]) {
  to[0] = y[0];
  to[1] = y[0] + y[1];
  to[2] = y[0] - y[1];
  to[3] = -y[1];
}

/* A row of n neighbouring tiles of one block of channels of dy, as amp_wino_row does it. */
AMP_FN void amp_wino_dy_row(const float *y, int64_t row, int64_t n, float *to, int64_t step) {
  for (int64_t t = 0; t < n; t++, y += 2 * AMP_BLOCK, to += AMP_BLOCK)
    for (int l = 0; l < AMP_BLOCK; l += AMP_WIDE) {
      AmpV column[2][4];
      AMP_UNROLL(2)
      for (int j = 0; j < 2; j++) {
        const float *from = y + j * AMP_BLOCK + l;
        const AmpV d[2] = {amp_v_load(from), amp_v_load(from + row)};
        amp_wino_e(d, column[j]);
      }
      AMP_UNROLL(4)
      for (int i = 0; i < 4; i++) {
        const AmpV d[2] = {column[0][i], column[1][i]};
        AmpV z[4];
        amp_wino_e(d, z);
        AMP_UNROLL(4)
        for (int j = 0; j < 4; j++)
          amp_v_store(to + (4 * i + j) * step + l, z[j]);
      }
    }
}

/* G' of four elements. */
AMP_INLINE void amp_wino_gt(const AmpV u[4], AmpV to[3]) {
  const AmpV half = amp_v_all(0.5f), middle = half * (u[1] + u[2]);
  to[0] = u[0] + middle;
  to[1] = half * (u[1] - u[2]);
  to[2] = middle + u[3];
}

/* The nine taps of n sums, a multiple of a vector, of each product; these are `step` floats apart,
 * the taps `tap`. Returns whether one is Inf or NaN. */
AMP_FN int amp_wino_taps(const float *from, int64_t step, int64_t n, float *to, int64_t tap) {
  AmpV wild = amp_v_all(0);
  for (int64_t e = 0; e < n; e += AMP_WIDE) {
    AmpV column[4][3];
    AMP_UNROLL(4)
    for (int j = 0; j < 4; j++) {
      AmpV u[4];
      AMP_UNROLL(4)
      for (int i = 0; i < 4; i++)
        u[i] = amp_v_load(from + (4 * i + j) * step + e);
      amp_wino_gt(u, column[j]);
    }
    AMP_UNROLL(3)
    for (int i = 0; i < 3; i++) {
      const AmpV u[4] = {column[0][i], column[1][i], column[2][i], column[3][i]};
      AmpV t[3];
      amp_wino_gt(u, t);
      AMP_UNROLL(3)
      for (int j = 0; j < 3; j++) {
        amp_v_store(to + (3 * i + j) * tap + e, t[j]);
        wild = amp_v_fma(t[j], amp_v_all(0), wild);
      }
    }
  }
  return amp_v_any(wild != 0);
}

/* ---- a part ---- */

typedef struct AmpWinoGradPart {
  const AmpConvGrad *a;
  AmpGradBox box; /* of one group */
  AmpAxis high, wide, one;
  AmpSource x_source, dy_source;
  float *sums, *x, *dy, *copy;
  int64_t images, down, across, tiles; /* of a piece */
  int64_t x_step, dy_step;             /* from product to product */
} AmpWinoGradPart;

/* Copies and transforms what a piece reads: rows from `row` on of images from `image` on. */
AMP_FN void amp_wino_grad_in(AmpWinoGradPart *p, int64_t image, int64_t row) {
  for (int64_t i = 0; i < p->images; i++) {
    AmpTileCopy t = amp_tile_copy(p->copy, &p->high, &p->wide, 2 * p->down, 2 * p->across);
    amp_copy_tile(&p->x_source, &t, &p->high, &p->wide, image + i, row, 0);
    for (int64_t b = 0; b < amp_blocks(p->x_source.c); b++)
      for (int64_t r = 0; r < p->down; r++)
        amp_wino_row(t.at + b * t.block + 2 * r * t.step[0], t.step[0], p->across,
                     p->x + (b * p->tiles + (i * p->down + r) * p->across) * AMP_BLOCK, p->x_step);
    t = amp_tile_copy(p->copy, &p->one, &p->one, 2 * p->down, 2 * p->across);
    if (p->dy_source.c % AMP_BLOCK) /* for the sums of no channel, which are looked at too */
      amp_zero(p->copy, amp_blocks(p->dy_source.c) * t.block);
    amp_copy_tile(&p->dy_source, &t, &p->one, &p->one, image + i, row, 0);
    for (int64_t b = 0; b < amp_blocks(p->dy_source.c); b++)
      for (int64_t r = 0; r < p->down; r++)
        amp_wino_dy_row(t.at + b * t.block + 2 * r * t.step[0], t.step[0], p->across,
                        p->dy + (b * p->tiles + (i * p->down + r) * p->across) * AMP_BLOCK,
                        p->dy_step);
  }
}

enum { AMP_WINO_SUMS = AMP_BLOCK * AMP_GRAD_GROUP }; /* of a product of a block */

/* Adds what a piece gives to all sums. */
AMP_FN void amp_wino_grad_add(AmpWinoGradPart *p) {
  const AmpGradTile tile = {.images = 1,
                            .rows = 1,
                            .cols = p->tiles,
                            .x_col = AMP_BLOCK,
                            .dy_col = AMP_BLOCK,
                            .dy_block = p->tiles * AMP_BLOCK,
                            .outs = AMP_GRAD_GROUP};
  const AmpGradAhead none = {(const char *)p->sums, 0};
  for (int i = 0; i < AMP_WINO; i++)
    for (int64_t b = 0; b < p->box.blocks; b++) {
      const AmpGradSteps steps =
          amp_grad_steps(amp_in_block(p->x_source.c, b), (int)p->dy_source.c, 0);
      const float *x = p->x + i * p->x_step + b * tile.dy_block;
      const float *dy = p->dy + i * p->dy_step;
      float *sum = p->sums + (i * p->box.blocks + b) * AMP_WINO_SUMS;
      for (int s = 0; s < steps.n; s++) {
        const int in = steps.step[s].in, out = steps.step[s].out;
        steps.step[s].run(&tile, x + in, dy + out / AMP_BLOCK * tile.dy_block + out % AMP_BLOCK,
                          sum + in * AMP_GRAD_GROUP + out, none);
      }
    }
}

/* Transforms the sums back and stores them as K,R,S,C. Returns whether one is Inf or NaN. */
AMP_FN int amp_wino_grad_out(const AmprtRun *run, const AmpWinoGradPart *p) {
  const AmpConvGrad *a = p->a;
  const int64_t k = p->box.group * AMP_GRAD_GROUP;
  float taps[AMP_WINO_TAPS][AMP_WINO_SUMS], *out = (float *)amp_at(run, &a->out);
  int wild = 0;
  for (int64_t b = 0; b < p->box.blocks; b++) {
    const int n = amp_in_block(p->x_source.c, b);
    wild |= amp_wino_taps(p->sums + b * AMP_WINO_SUMS, p->box.blocks * AMP_WINO_SUMS,
                          n * AMP_GRAD_GROUP, taps[0], AMP_WINO_SUMS);
    for (int64_t t = 0; t < AMP_WINO_TAPS; t++)
      amp_grad_turn(out + (k * AMP_WINO_TAPS + t) * a->c + (p->box.block + b) * AMP_BLOCK,
                    AMP_WINO_TAPS * a->c, taps[t], AMP_GRAD_GROUP, n, (int)p->dy_source.c);
  }
  return wild;
}

typedef struct AmpWinoGradLoop {
  const AmpConvGrad *a;
  int64_t down, groups; /* parts */
  int *wild;
} AmpWinoGradLoop;

AMP_FN void amp_wino_grad_part(const AmprtRun *run, const void *args, int64_t part) {
  static const AmpWindow point = {1, 1, 1, 1, 0};
  const AmpWinoGradLoop *l = (const AmpWinoGradLoop *)args;
  const AmpConvGrad *a = l->a;
  const AmpWinoGradLane at = amp_wino_grad_lane(a);
  const int64_t i = part / l->groups, blocks = amp_blocks(a->c);
  float *lane = (float *)(void *)amp_lane(run, a->lane, a->lane_bytes);
  AmpWinoGradPart p = {
      .a = a,
      .box = {.block = i * blocks / l->down, .group = part % l->groups, .groups = 1},
      .high = amp_axis_forward(&a->high),
      .wide = amp_axis_forward(&a->wide),
      .one = amp_axis_forward(&point),
      .sums = lane,
      .x = lane + at.x,
      .dy = lane + at.dy,
      .copy = lane + at.copy,
      .across = amp_pieces(a->wide.out, 2)};
  p.box.blocks = (i + 1) * blocks / l->down - p.box.block;
  amp_grad_sources(run, a, &p.box, &p.x_source, &p.dy_source);
  amp_zero(p.sums, AMP_WINO * p.box.blocks * AMP_WINO_SUMS);
  for (int64_t n = 0; n < a->n; n += a->wino_images)
    for (int64_t r = 0; r < a->high.out; r += a->wino_rows) {
      p.images = amp_least(a->wino_images, a->n - n);
      p.down = amp_pieces(amp_least(a->wino_rows, a->high.out - r), 2);
      p.tiles = p.images * p.down * p.across;
      p.x_step = amp_wino_step(p.tiles * p.box.blocks * AMP_BLOCK);
      p.dy_step = amp_wino_step(p.tiles * AMP_GRAD_GROUP);
      amp_wino_grad_in(&p, n, r);
      amp_wino_grad_add(&p);
    }
  if (amp_wino_grad_out(run, &p))
    __atomic_store_n(l->wild, 1, __ATOMIC_RELAXED);
}

AMP_FN void amp_conv_grad(const AmprtRun *run, const void *args) {
  const AmpConvGrad *a = (const AmpConvGrad *)args;
  const int64_t blocks = amp_blocks(a->c), want = run->threads->count();
  int wild = 0;
  AmpWinoGradLoop loop = {.a = a, .groups = amp_grad_groups(a->k), .wild = &wild};
  if (a->wino_rows) {
    int64_t each = a->wino_blocks;
    while (each > 1 && amp_pieces(blocks, each) * loop.groups < want)
      each = amp_pieces(each, 2);
    loop.down = amp_pieces(blocks, each);
    amp_parallel(run, loop.down * loop.groups, amp_wino_grad_part, &loop);
  }
  if (!a->wino_rows || wild)
    amp_grad_direct_all(run, a);
}

#endif
