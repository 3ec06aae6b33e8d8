/* The gradient of a filter of 3 x 3 taps and stride 1, directly or by Winograd's method F(3x3,2x2)
 * or F(3x3,4x4), with which side x side results add to all taps by (side + 2)^2 products in the
 * place of 9 * side^2: dW = G'( sum over tiles of (B' d B) * (A dy A') )G, with the matrices of
 * wino_tile.h.
 *
 * A piece is some rows of some images, and a part some blocks of channels of dy and one group of
 * channels of x: for each of its pieces a thread transforms what they read, where it lies, and the
 * register tile of conv_grad_tile.h adds up the products, with vectors of channels of x, which are
 * neighbours in the filter too. The sums stay in the second-level cache. Of small filters there are
 * several slots, each of a fixed range of pieces, whose sums are added up in their order. So each
 * sum has one order, whatever the parts. If there are several parts, each transforms channels that
 * others transform as well. Where the plan says so, the parts share the transformed tiles instead:
 * all images are one piece, and all threads transform it, to memory, before the first part.
 * Where an element of the result is not finite, all are computed directly (see wino.h). */
#ifndef AMP_WINO_GRAD_H
#define AMP_WINO_GRAD_H

#include "codegen/text/cpu/conv_grad.h"
#include "codegen/text/cpu/wino_tile.h"

/* ---- transforms ---- */

/* A dy A' of the tiles of a strip of dy, of one block of channels: they are `tile` floats apart,
 * beginning at `to`, and their transformed elements `step`. What is beyond a tile with fewer
 * results belongs to the next one, and counts as zeros. */
AMP_INLINE void amp_wino_in_dy(const int form, const AmpWinoRows *r, const AmpWinoStrip *s,
                               float *to, int64_t tile, int64_t step) {
  const int side = amp_wino_side(form);
  int64_t from = s->col;
  for (int64_t t = 0; t < s->tiles; t++, from += side - s->less_wide)
    for (int l = 0; l < AMP_BLOCK; l += AMP_WIDE) {
      float *at = to + (s->at + t) * tile + l;
      AmpV column[4][AMP_WINO_LARGE];
      AMP_UNROLL(4)
      for (int j = 0; j < side; j++) {
        AmpV d[4];
        amp_wino_take(r, j == side - 1 && s->less_wide ? -1 : from + j, l, d, side);
        if (s->less_high)
          d[side - 1] = amp_v_all(0);
        amp_wino_e(form, d, column[j]);
      }
      AMP_UNROLL(6)
      for (int i = 0; i < form; i++) {
        AmpV d[4], z[AMP_WINO_LARGE];
        if (i == form - 1 && s->less_high)
          break;
        AMP_UNROLL(4)
        for (int j = 0; j < side; j++)
          d[j] = column[j][i];
        amp_wino_e(form, d, z);
        amp_wino_put(at + form * i * step + (i == form - 1 ? s->last * tile : 0), step, z, form);
      }
    }
}
AMP_FN void amp_wino_dy_small(const AmpWinoRows *r, const AmpWinoStrip *s, float *to, int64_t tile,
                              int64_t step) {
  amp_wino_in_dy(AMP_WINO_SMALL, r, s, to, tile, step);
}
AMP_FN void amp_wino_dy_large(const AmpWinoRows *r, const AmpWinoStrip *s, float *to, int64_t tile,
                              int64_t step) {
  amp_wino_in_dy(AMP_WINO_LARGE, r, s, to, tile, step);
}

/* The nine taps, from the sums of each product. */
AMP_FN void amp_wino_taps_small(const float *sums, int64_t step, AmpV taps[4][4]) {
  amp_wino_back(amp_wino_gt, AMP_WINO_SMALL, 3, sums, step, 0, 0, taps);
}
AMP_FN void amp_wino_taps_large(const float *sums, int64_t step, AmpV taps[4][4]) {
  amp_wino_back(amp_wino_gt, AMP_WINO_LARGE, 3, sums, step, 0, 0, taps);
}

/* ---- a part ---- */

typedef struct AmpWinoGradPart {
  const AmpConvGrad *a;
  AmpAxis high, wide, one; /* how x is read, and `one`: dy, both ways */
  AmpSource x_source, dy_source;
  AmpGradChannels c, k;         /* of x, of dy */
  int64_t block, blocks, group; /* of dy, of x */
  int64_t first, last;          /* pieces */
  float *sums, *x, *dy, *copy;
  AmpWinoTiles tiles;    /* of a piece, */
  AmpWinoGradTiles at;   /* and how they are stored */
  AmpGradSteps steps[2]; /* of any block, of the last */
  AmpGradFetch fetch;
} AmpWinoGradPart;

typedef struct AmpWinoGradLoop {
  const AmpConvGrad *a;
  int64_t down, groups; /* parts: down x groups */
  int *wild;            /* set where a result is Inf or NaN */
} AmpWinoGradLoop;

AMP_INLINE AmpGradSpan amp_wino_grad_span(const AmpConvGrad *a, int64_t piece) {
  const int64_t down = amp_pieces(a->high.out, a->wino_rows);
  AmpGradSpan t = {.image = piece / down * a->wino_images,
                   .row = piece % down * a->wino_rows,
                   .cols = a->wide.out};
  t.images = amp_least(a->wino_images, a->n - t.image);
  t.rows = amp_least(a->wino_rows, a->high.out - t.row);
  return t;
}

/* Cuts a piece into tiles. */
AMP_FN void amp_wino_grad_cut(AmpWinoGradPart *p, const AmpGradSpan *t) {
  const AmpConvGrad *a = p->a;
  const AmpWinoCut high = amp_wino_cut(t->rows, a->winograd, t->rows == a->high.out);
  p->tiles = amp_wino_tiles_of(a->winograd, t->images, high, a->wide.out);
  p->at = amp_wino_grad_tiles(a, p->tiles.all, p->blocks);
}

/* Transforms what rows first..last-1 of a piece's tiles read. */
AMP_FN void amp_wino_grad_in(AmpWinoGradPart *p, const AmpGradSpan *t, int64_t first,
                             int64_t last) {
  const int form = p->a->winograd, side = amp_wino_side(form);
  for (int64_t i = first; i < last; i++) {
    const AmpWinoStrip strip[2] = {amp_wino_strip(&p->tiles, i, 0),
                                   amp_wino_strip(&p->tiles, i, 1)};
    const int64_t image = t->image + strip->image, h = t->row + strip->row;
    for (int64_t b = 0; b < amp_blocks(p->x_source.c); b++) {
      AmpWinoRows r;
      amp_wino_rows(&r, &p->x_source, p->copy, b, image, h + p->high.origin, form);
      for (int less = 0; less < amp_wino_strips(&p->tiles); less++)
        amp_wino_row(form, 0)(&r, &strip[less], strip[less].col + p->wide.origin,
                              p->x + b * AMP_BLOCK, amp_wino_grad_ins(p->a), p->at.x_step);
    }
    for (int64_t b = 0; b < p->blocks; b++) {
      AmpWinoRows r;
      amp_wino_rows(&r, &p->dy_source, p->copy, b, image, h, side);
      for (int less = 0; less < amp_wino_strips(&p->tiles); less++)
        (form == AMP_WINO_SMALL ? amp_wino_dy_small : amp_wino_dy_large)(
            &r, &strip[less], p->dy + b * p->at.dy_block, AMP_BLOCK, p->at.dy_step);
    }
  }
}

/* Sets what is prefetched during product i of shared tiles: what the next product reads of them. */
AMP_FN void amp_wino_grad_fetch(AmpWinoGradPart *p, int i) {
  const int64_t f32 = sizeof(float);
  p->fetch.of[0] =
      amp_grad_lines_begin((AmpGradLines){.at = (const char *)(p->x + (i + 1) * p->at.x_step),
                                          .n = {p->at.x_step * f32 / AMP_LINE, 1, 1, 1}});
  p->fetch.of[1] =
      amp_grad_lines_begin((AmpGradLines){.at = (const char *)(p->dy + (i + 1) * p->at.dy_step),
                                          .n = {p->at.dy_step * f32 / AMP_LINE, p->blocks, 1, 1},
                                          .step = {AMP_LINE, p->at.dy_block * f32, 0, 0}});
  amp_grad_share(&p->fetch, p->blocks * p->steps[0].n);
}

/* Adds what a piece gives to all sums. */
AMP_FN void amp_wino_grad_add(AmpWinoGradPart *p) {
  const int64_t ins = amp_wino_grad_ins(p->a), step = amp_odd_lines(AMP_BLOCK * ins);
  const int64_t all = amp_wino_all(p->a->winograd);
  AmpGradTile tile = {.images = 1,
                      .rows = 1,
                      .unit_col = AMP_BLOCK,
                      .vec_col = ins,
                      .vec_block = AMP_BLOCK,
                      .outs = ins};
  if (!p->a->wino_shared)
    amp_grad_share(&p->fetch, all * p->blocks * p->steps[0].n);
  for (int i = 0; i < all; i++) {
    tile.cols = amp_wino_having(&p->tiles, amp_wino_lasts(p->a->winograd, i));
    if (p->a->wino_shared && i + 1 < all)
      amp_wino_grad_fetch(p, i);
    for (int64_t b = 0; b < p->blocks && tile.cols > 0; b++) {
      const AmpGradSteps *steps = &p->steps[b + 1 == p->blocks];
      const float *x = p->x + i * p->at.x_step;
      const float *dy = p->dy + i * p->at.dy_step + b * p->at.dy_block;
      float *sum = p->sums + (b * all + i) * step;
      for (int s = 0; s < steps->n; s++) {
        const int out = steps->step[s].unit, in = steps->step[s].vec, tiles = steps->step[s].tiles;
        steps->step[s].run(&tile, dy + out, x + in, sum + out * ins + in,
                           amp_grad_ahead(&p->fetch, tiles * tile.cols, steps->step[s].fetches, x),
                           tiles);
      }
    }
  }
}

/* Transforms the sums of one block and group back and stores them as K,R,S,C. Returns whether one
 * is Inf or NaN. */
AMP_FN int amp_wino_grad_out(const AmprtRun *run, const AmpConvGrad *a, const float *sums,
                             int64_t block, int64_t group) {
  const int64_t ins = amp_wino_grad_ins(a), step = amp_odd_lines(AMP_BLOCK * ins);
  const int64_t c = group * AMP_GRAD_GROUP, n = amp_least(a->c - c, AMP_GRAD_GROUP);
  const int outs = amp_in_block(a->k, block);
  const int64_t first = block * AMP_BLOCK * AMP_WINO_TAPS * a->c + c;
  const int dtype = a->out.dtype;
  void *out = amp_at(run, &a->out);
  float other[AMP_WINO_TAPS][AMP_WIDE]; /* what is no whole vector of floats */
  AmpV wild = amp_v_all(0);
  for (int k = 0; k < outs; k++, sums += ins)
    for (int64_t e = 0; e < n; e += AMP_WIDE) {
      const int64_t to = first + k * AMP_WINO_TAPS * a->c + e;
      const int whole = n - e >= AMP_WIDE && dtype == AMPRT_F32;
      float *at = whole ? (float *)out + to : other[0];
      AmpV taps[4][4];
      (a->winograd == AMP_WINO_SMALL ? amp_wino_taps_small : amp_wino_taps_large)(sums + e, step,
                                                                                  taps);
      AMP_UNROLL(9)
      for (int t = 0; t < AMP_WINO_TAPS; t++, at += whole ? a->c : AMP_WIDE) {
        amp_v_store(at, taps[t / 3][t % 3]);
        wild = amp_v_fma(taps[t / 3][t % 3], amp_v_all(0), wild);
      }
      for (int t = 0; t < AMP_WINO_TAPS && !whole; t++)
        amp_write(dtype, out, to + t * a->c, (int)amp_least(n - e, AMP_WIDE), other[t]);
    }
  return amp_v_any(wild != 0);
}

/* The part of the gradient for one group of channels of x and one range of blocks of channels of
 * dy, summed over the pieces of one slot. The blocks are cut into l->down ranges. */
AMP_FN AmpWinoGradPart amp_wino_grad_at(const AmprtRun *run, const AmpWinoGradLoop *l, int64_t slot,
                                        int64_t range, int64_t group) {
  static const AmpWindow point = {1, 1, 1, 1, 0};
  const AmpConvGrad *a = l->a;
  const AmpWinoGradLane at = amp_wino_grad_lane(a);
  const int64_t blocks = amp_blocks(a->k);
  float *lane = (float *)(void *)amp_lane(run, a->lane, a->lane_bytes);
  AmpWinoGradPart p = {.a = a,
                       .high = amp_axis_forward(&a->high),
                       .wide = amp_axis_forward(&a->wide),
                       .one = amp_axis_forward(&point),
                       .block = range * blocks / l->down,
                       .group = group,
                       .sums = lane,
                       .x = lane + at.x,
                       .dy = lane + at.dy,
                       .copy = lane + at.copy};
  p.blocks = (range + 1) * blocks / l->down - p.block;
  if (a->wino_shared) {
    const AmpWinoGradTiles most = amp_wino_grad_most(a);
    p.x = (float *)(void *)(run->arena + a->sums) + group * most.x;
    p.dy = (float *)(void *)(run->arena + a->sums) + l->groups * most.x + p.block * most.dy;
  }
  const int64_t pieces = amp_wino_grad_pieces(a);
  p.first = slot * pieces / a->wino_slots;
  p.last = (slot + 1) * pieces / a->wino_slots;
  if (a->wino_slots > 1)
    p.sums = (float *)(void *)(run->arena + a->sums) + slot * amp_wino_grad_slot(a) +
             (p.group * blocks + p.block) * amp_wino_grad_each(a);
  const int64_t c = p.group * AMP_GRAD_GROUP, k = p.block * AMP_BLOCK;
  p.c = (AmpGradChannels){c, amp_least(a->c - c, AMP_GRAD_GROUP)};
  p.k = (AmpGradChannels){k, amp_least(a->k - k, p.blocks * AMP_BLOCK)};
  amp_grad_sources(run, a, p.c, p.k, 0, &p.x_source, &p.dy_source);
  return p;
}

/* Sets what this thread prefetches during piece t: the next piece, or during the last one the place
 * of the result and the first piece of the part `then`. */
AMP_FN void amp_wino_grad_look_ahead(const AmprtRun *run, AmpWinoGradPart *p, int64_t t,
                                     const AmpWinoGradPart *then) {
  const AmpConvGrad *a = p->a;
  const AmpWinoGradPart *next = t + 1 < p->last ? p : then;
  __builtin_memset(p->fetch.of, 0, sizeof p->fetch.of);
  if (t + 1 == p->last && a->wino_slots == 1)
    p->fetch.of[2] = amp_grad_result_lines(run, a, p->c, p->k);
  if (!next)
    return;
  const AmpGradSpan span = amp_wino_grad_span(a, next == p ? t + 1 : next->first);
  p->fetch.of[0] = amp_grad_lines(&next->x_source, &p->high, &p->wide, &span, a->n);
  p->fetch.of[1] = amp_grad_lines(&next->dy_source, &p->one, &p->one, &span, a->n);
}

/* The same for part number `part`. All parts of slot 0 come first, then those of slot 1, and so
 * on; those of a slot are in the order of their ranges, and those of a range of their groups. */
AMP_FN AmpWinoGradPart amp_wino_grad_part_at(const AmprtRun *run, const AmpWinoGradLoop *l,
                                             int64_t part) {
  return amp_wino_grad_at(run, l, part / l->groups / l->down, part / l->groups % l->down,
                          part % l->groups);
}

/* How many rows of tiles an image has. */
AMP_INLINE int64_t amp_wino_grad_down(const AmpConvGrad *a) {
  return amp_wino_along(a->winograd, a->high.out);
}

/* Where tiles are shared: transforms one row of them, for group number i of the channels of x and
 * for range number i of the blocks of dy. As there may be more groups than ranges, or fewer, one of
 * the two may be missing. */
AMP_FN void amp_wino_grad_in_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpWinoGradLoop *l = (const AmpWinoGradLoop *)args;
  const int64_t rows = l->a->n * amp_wino_grad_down(l->a), row = chunk % rows, i = chunk / rows;
  const AmpGradSpan all = amp_wino_grad_span(l->a, 0);
  AmpWinoGradPart p =
      amp_wino_grad_at(run, l, 0, amp_least(i, l->down - 1), amp_least(i, l->groups - 1));
  if (i >= l->down)
    p.blocks = 0;
  if (i >= l->groups)
    p.x_source.c = 0;
  amp_wino_grad_cut(&p, &all);
  amp_wino_grad_in(&p, &all, row, row + 1);
}

/* One part. While it is computed, the part behind it is prefetched, which is mostly the one that
 * this thread computes next. */
AMP_FN void amp_wino_grad_part(const AmprtRun *run, const void *args, int64_t part) {
  const AmpWinoGradLoop *l = (const AmpWinoGradLoop *)args;
  const AmpConvGrad *a = l->a;
  const int64_t each = amp_wino_grad_each(a), parts = a->wino_slots * l->down * l->groups;
  AmpWinoGradPart p = amp_wino_grad_part_at(run, l, part);
  const AmpWinoGradPart then = amp_wino_grad_part_at(run, l, part + 1 < parts ? part + 1 : part);
  int wild = 0;
  for (int i = 0; i < 2; i++)
    p.steps[i] = amp_grad_steps(i ? amp_in_block(p.k.n, p.blocks - 1) : AMP_BLOCK, (int)p.c.n, 0);
  amp_zero(p.sums, p.blocks * each);
  for (int64_t t = p.first; t < p.last; t++) {
    const AmpGradSpan now = amp_wino_grad_span(a, t);
    amp_wino_grad_cut(&p, &now);
    if (!a->wino_shared) {
      amp_wino_grad_look_ahead(run, &p, t, part + 1 < parts ? &then : NULL);
      amp_wino_grad_in(&p, &now, 0, now.images * p.tiles.high.tiles);
    }
    amp_wino_grad_add(&p);
  }
  if (a->wino_slots > 1)
    return;
  for (int64_t b = 0; b < p.blocks; b++)
    wild |= amp_wino_grad_out(run, a, p.sums + b * each, p.block + b, p.group);
  if (wild)
    __atomic_store_n(l->wild, 1, __ATOMIC_RELAXED);
}

AMP_FN void amp_wino_grad_add_slots(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpWinoGradLoop *l = (const AmpWinoGradLoop *)args;
  const AmpConvGrad *a = l->a;
  const int64_t blocks = amp_blocks(a->k), each = amp_wino_grad_each(a);
  float *sums = (float *)(void *)(run->arena + a->sums) + chunk * each;
  for (int64_t slot = 1; slot < a->wino_slots; slot++) {
    const float *other = sums + slot * amp_wino_grad_slot(a);
    for (int64_t i = 0; i < each; i += AMP_WIDE)
      amp_v_store(sums + i, amp_v_load(sums + i) + amp_v_load(other + i));
  }
  if (amp_wino_grad_out(run, a, sums, chunk % blocks, chunk / blocks))
    __atomic_store_n(l->wild, 1, __ATOMIC_RELAXED);
}

/* The gradient of the filter of one group. */
AMP_FN void amp_conv_grad_one(const AmprtRun *run, const AmpConvGrad *a) {
  const int64_t blocks = amp_blocks(a->k), want = run->threads->count();
  int wild = 0;
  AmpWinoGradLoop loop = {.a = a, .groups = amp_pieces(a->c, AMP_GRAD_GROUP), .wild = &wild};
  const int winograd = a->winograd && !amp_grad_pairs(a);
  if (winograd) {
    int64_t each = a->wino_blocks;
    while (each > 1 && a->wino_slots * amp_pieces(blocks, each) * loop.groups < want)
      each = amp_pieces(each, 2);
    loop.down = amp_pieces(blocks, each);
    if (a->wino_shared)
      amp_parallel(run, amp_most(loop.down, loop.groups) * a->n * amp_wino_grad_down(a),
                   amp_wino_grad_in_chunk, &loop);
    amp_parallel(run, a->wino_slots * loop.down * loop.groups, amp_wino_grad_part, &loop);
    if (a->wino_slots > 1)
      amp_parallel(run, blocks * loop.groups, amp_wino_grad_add_slots, &loop);
  }
  if (!winograd || wild)
    amp_grad_direct_all(run, a);
}

AMP_LIBRARY_FN(amp_conv_grad)(const AmprtRun *run, const void *args) {
  AmpConvGrad one = *(const AmpConvGrad *)args;
  const int64_t filter = one.k * amp_grad_taps(&one) * one.c;
  for (int64_t g = 0; g < one.groups; g++) {
    amp_conv_grad_one(run, &one);
    one.x.at += one.c * amp_size(one.x.dtype);
    one.dy.at += one.k * amp_size(one.dy.dtype);
    one.out.at += filter * amp_size(one.out.dtype);
  }
}

#endif
