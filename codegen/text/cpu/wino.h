/* Convolutions and their data gradients by Winograd's method: for each block of tiles [transform]
 * -> for each group of channels of the result [products of the block and the transformed filter]
 * -> [transform back, store]. The rows of a block and its images follow from shapes alone. Rows and
 * columns are those of results, of which a data gradient of stride 2 has pairs (AmpWinoForm).
 *
 * A filter that is large beside the images is not transformed as a whole, as it would come from
 * memory for each block: where the plan says so, the tiles of some images, which are called a wave,
 * are transformed first, by all threads; then for each group of channels and each block a thread
 * transforms the filter of that group, some channels at a time, which stay in its cache, and
 * multiplies.
 *
 * An element that is Inf or NaN makes every result of the tiles that read it Inf or NaN, and an
 * overflow inside a transform does so too. So where all results of a block and group are finite,
 * all was finite on the way; where one is not, they are computed again as conv.h does. */
#ifndef AMP_WINO_H
#define AMP_WINO_H

#include "codegen/text/cpu/wino_tile.h"

/* A block: some rows of some images of a tile of the result, which one thread computes at a time
 * for some groups of channels. */
typedef struct AmpWinoBlock {
  const AmpConv *a;
  AmpAxis high, wide;               /* of all results (amp_axis_span) */
  int64_t image, images, row, rows; /* of the results */
  AmpWinoTiles tiles;
  int64_t first, last; /* groups */
  float *copy, *in, *products;
  float *spare;  /* the thread's place for products, which is free while `products` is `in` */
  float *filter; /* room for a part of the transformed filter, where there is no whole one */
  void *out;     /* as if all results were stored one behind the other */
  int64_t in_step, products_step; /* from product to product */
  const char *next;               /* what the next block reads */
  const AmpConvPart *part;        /* the tile of the result that this is a block of */
} AmpWinoBlock;

/* ---- the filter ---- */

/* Vectors of a group of m channels. */
AMP_INLINE int amp_wino_vectors(int m) {
  return m <= AMP_WIDE ? 1 : 2;
}

/* Packs one group and block of the filter as conv_filter.h has it. */
AMP_FN void amp_wino_pack(const AmpConv *a, const void *filter, float *to, int64_t group,
                          int64_t block, int outs) {
  const int64_t k = group * AMP_OUTS, size = amp_size(a->filter.dtype);
  const int m = amp_in_group(a->k, group), n = amp_in_block(a->c, block);
  const int dtype = a->filter.dtype;
  float buf[AMP_OUTS];
  for (int64_t t = 0; t < AMP_WINO_TAPS; t++) {
    const int64_t from = k * a->filter_out + t * a->filter_tap + block * AMP_BLOCK * a->filter_in;
    const char *bytes = (const char *)filter + from * size;
    float *tap = to + amp_packed_tap(a, t) * n * outs;
    if (m < outs)
      amp_zero(tap, n * outs);
    if (a->filter_out == 1) {
      amp_fetch_rows(bytes + AMP_OUTS * size, a->filter_in * size, n, AMP_OUTS * size);
      for (int i = 0; i < n; i++) {
        const float *row = amp_read(dtype, filter, from + i * a->filter_in, m, buf);
        if (m == AMP_OUTS) /* a size that the compiler knows */
          __builtin_memcpy(tap + i * outs, row, AMP_OUTS * sizeof *to);
        else
          __builtin_memcpy(tap + i * outs, row, (size_t)m * sizeof *to);
      }
      continue;
    }
    amp_fetch_rows(bytes + AMP_BLOCK * size, a->filter_out * size, m, AMP_BLOCK * size);
    amp_transpose_read(tap, outs, dtype, filter, from, a->filter_out, m, n);
  }
}

AMP_INLINE int64_t amp_wino_filter_step(const AmpConv *a, int outs) {
  return amp_odd_lines(amp_blocks(a->c) * AMP_BLOCK * outs);
}
AMP_INLINE float *amp_wino_filter_at(const AmprtRun *run, const AmpConv *a, int64_t group) {
  return (float *)(void *)(run->arena + a->packed) +
         group * amp_wino_all_filters(a->winograd) * amp_wino_filter_step(a, AMP_OUTS);
}

/* Transforms one group and block of the filter: for each of the transformed taps, which lie `step`
 * floats apart, and each channel that is read, a vector over the group. */
AMP_FN void amp_wino_filter_block(const AmprtRun *run, const AmpConv *a, int64_t group,
                                  int64_t block, float *to, int64_t step) {
  const int outs = amp_wino_vectors(amp_in_group(a->k, group)) * AMP_WIDE;
  const int64_t n = amp_in_block(a->c, block) * outs;
  float taps[AMP_WINO_TAPS * AMP_BLOCK * AMP_OUTS];
  amp_wino_pack(a, amp_at(run, &a->filter), taps, group, block, outs);
  AMP_WINO_OF(a->winograd, amp_wino_filter)(taps, n, n, to, step);
}

/* The same for the whole filter, in chunks that follow one another as the filter lies in memory. */
AMP_FN void amp_wino_filter_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpConv *a = (const AmpConv *)args;
  const int64_t blocks = amp_blocks(a->c), groups = amp_pieces(a->k, AMP_OUTS);
  const int64_t group = a->filter_out == 1 ? chunk % groups : chunk / blocks;
  const int64_t block = a->filter_out == 1 ? chunk / groups : chunk % blocks;
  const int outs = amp_wino_vectors(amp_in_group(a->k, group)) * AMP_WIDE;
  amp_wino_filter_block(run, a, group, block,
                        amp_wino_filter_at(run, a, group) + block * AMP_BLOCK * outs,
                        amp_wino_filter_step(a, outs));
}

AMP_FN void amp_wino_whole_filter(const AmprtRun *run, const AmpConv *a) {
  amp_parallel(run, amp_pieces(a->k, AMP_OUTS) * amp_blocks(a->c), amp_wino_filter_chunk, a);
}

/* ---- a block ---- */

/* Transforms what rows first..last-1 of the block's tiles read: for each product and block of
 * channels all tiles. */
AMP_FN void amp_wino_in(const AmprtRun *run, const AmpWinoBlock *p, int64_t first, int64_t last) {
  const AmpSource source = amp_conv_source(run, p->a);
  const int form = p->a->winograd, backward = p->a->backward;
  AmpWinoRowFn *row = amp_wino_row(form, backward);
  for (int64_t i = first; i < last; i++) {
    const AmpWinoStrip strip[2] = {amp_wino_strip(&p->tiles, i, 0),
                                   amp_wino_strip(&p->tiles, i, 1)};
    for (int64_t b = 0; b < amp_blocks(p->a->c); b++) {
      AmpWinoRows rows;
      amp_wino_rows(&rows, &source, p->spare, b, p->image + strip->image,
                    (p->row + strip->row) * p->high.step + p->high.origin,
                    amp_wino_reads(form, backward));
      for (int less = 0; less < amp_wino_strips(&p->tiles); less++)
        row(&rows, &strip[less], strip[less].col * p->wide.step + p->wide.origin,
            p->in + b * p->tiles.all * AMP_BLOCK, AMP_BLOCK, p->in_step);
    }
  }
}

/* What products fetch while their register tiles multiply: so many bytes each, in lines that are
 * `step` bytes apart. Lines are fetched one at a time, because the CPU drops prefetches that come
 * in a burst. */
typedef struct AmpWinoFetch {
  int64_t bytes, step;
} AmpWinoFetch;
/* Where tiles are in memory, products fetch what the next ones read of them (`ahead`); of a large
 * filter what these read of it. Else the first half of all products of a block fetches what the
 * loop behind reads of other tensors, or where it reads none, the places of the block's results,
 * and the second half what the next block reads. */
typedef struct AmpWinoFetches {
  int large;
  int64_t parts; /* products of each half */
  AmpWinoFetch ahead, behind, next;
  int64_t each;    /* bytes of the block's results, and of each tensor read for them */
  int64_t before;  /* bytes of the results of the part that come before the block */
  const char *own; /* where the results of the part begin */
} AmpWinoFetches;

/* What products fetch whose register tiles read so many channels together, `steps`. */
AMP_FN AmpWinoFetches amp_wino_fetches(const AmpWinoBlock *p, int64_t steps) {
  const AmpConv *a = p->a;
  const int64_t f32 = sizeof(float), all = amp_wino_all(a->winograd);
  AmpWinoFetches f = {.large = amp_wino_is_large(a), .parts = (p->last - p->first) * (all / 2)};
  if (a->wino_wave) {
    const int64_t channels = amp_least(amp_ceil(a->c, AMP_BLOCK), AMP_WINO_CHANNELS);
    f.ahead.bytes = p->tiles.all * channels * f32;
  } else if (f.large) {
    f.ahead.bytes = amp_wino_filter_step(a, AMP_OUTS) * f32;
  } else {
    const int64_t rows = p->images * p->rows;
    const int64_t row = p->high.out_step * a->wide.out * a->k * amp_size(a->out.dtype);
    const int64_t first = p->part->image * p->high.outs + p->part->row;
    f.own = (const char *)p->out + first * row;
    f.before = (p->image * p->high.outs + p->row - first) * row;
    f.each = rows * row;
    f.behind.bytes = amp_most(1, p->part->fetch.n) * f.each / f.parts;
    f.next.bytes = rows * p->high.step * a->wide.in * a->c * amp_size(a->in.dtype) / f.parts;
    if (a->groups > 1) /* results and what is read do not lie side by side */
      f.behind.bytes = f.next.bytes = 0;
  }
  f.ahead.step = amp_pieces(AMP_WINO_FETCH * f.ahead.bytes, steps);
  f.behind.step = amp_pieces(AMP_WINO_FETCH * f.behind.bytes, steps);
  f.next.step = amp_pieces(AMP_WINO_FETCH * f.next.bytes, steps);
  return f;
}

/* Says what the products number i of group g fetch. */
AMP_INLINE void amp_wino_fetch(const AmpWinoBlock *p, const AmpWinoFetches *f, AmpWinoRun *run,
                               int i, int64_t g) {
  const AmpConv *a = p->a;
  const int64_t part = (g - p->first) * amp_wino_all(a->winograd) + i;
  run->next_step = f->ahead.step;
  if (a->wino_wave) {
    run->next = (const char *)(run->x + p->in_step);
  } else if (f->large) {
    run->next = (const char *)run->w + f->ahead.bytes;
  } else if (part < f->parts) {
    const AmpFetch *behind = &p->part->fetch;
    const char *const *to = behind->n ? behind->at : &f->own;
    int64_t at = part * f->behind.bytes;
    for (; at >= f->each; to++)
      at -= f->each;
    run->next = *to + f->before + at;
    run->next_step = f->behind.step;
  } else {
    run->next = p->next + (part - f->parts) * f->next.bytes;
    run->next_step = f->next.step;
  }
}

/* How many register tiles compute the products of a block: `whole` ones, which take as many of its
 * tiles as they can, and `fewer` ones, which take one tile less each. Together they compute `past`
 * tiles that the block does not have, behind its last one. */
typedef struct AmpWinoRuns {
  int64_t whole, fewer, past;
} AmpWinoRuns;

AMP_INLINE AmpWinoRuns amp_wino_runs(int64_t tiles, int vectors) {
  const int64_t side = vectors == 1 ? 2 * AMP_WINO_SIDE : AMP_WINO_SIDE;
  const int64_t runs = amp_pieces(tiles, side), past = runs * side - tiles;
  const int64_t fewer = vectors > 1 || AMP_WINO_THIN_FEWER ? amp_least(runs, past) : 0;
  return (AmpWinoRuns){.whole = runs - fewer, .fewer = fewer, .past = past - fewer};
}

/* All products of one group of m channels, over channels first..last-1 that are read: w is the
 * filter from there on, and goes `w_step` floats from one of its transformed taps to the next. */
AMP_FN void amp_wino_channels(const AmpWinoBlock *p, const float *w, int64_t w_step, int64_t g,
                              int m, int64_t first, int64_t last) {
  const AmpConv *a = p->a;
  const int vectors = amp_wino_vectors(m), outs = vectors * AMP_WIDE;
  AmpWinoRuns runs[AMP_WINO_LASTS];
  for (int lasts = 0; lasts < AMP_WINO_LASTS; lasts++)
    runs[lasts] = amp_wino_runs(amp_wino_having(&p->tiles, lasts), vectors);
  const AmpWinoFetches fetches =
      amp_wino_fetches(p, (runs[0].whole + runs[0].fewer) * (last - first));
  AmpWinoRun run = {.block = p->tiles.all * AMP_BLOCK};
  for (int i = 0; i < amp_wino_all(a->winograd); i++) {
    const AmpWinoRuns *tiles = &runs[amp_wino_lasts(a->winograd, i)];
    const float *taps = w + amp_wino_filter_of(a->winograd, i) * w_step;
    run.w = taps;
    run.x = p->in + i * p->in_step + first * p->tiles.all;
    amp_wino_fetch(p, &fetches, &run, i, g);
    for (int64_t c = first; c < last; c += AMP_WINO_CHANNELS) {
      run.x = p->in + i * p->in_step + c * p->tiles.all;
      run.w = taps + (c - first) * outs;
      run.y = p->products + i * p->products_step;
      run.channels = amp_least(AMP_WINO_CHANNELS, last - c);
      run.goes_on = c > 0;
      if (vectors == 1) {
        amp_wino_thin(&run, tiles->whole);
        if (AMP_WINO_THIN_FEWER)
          amp_wino_thin_fewer(&run, tiles->fewer);
      } else {
        amp_wino_many(&run, tiles->whole);
        amp_wino_fewer(&run, tiles->fewer);
      }
    }
  }
}

/* All products of one group of m channels. */
AMP_FN void amp_wino_multiply(const AmprtRun *run, const AmpWinoBlock *p, int64_t g, int m) {
  const AmpConv *a = p->a;
  const int outs = amp_wino_vectors(m) * AMP_WIDE;
  if (!a->wino_wave) {
    amp_wino_channels(p, amp_wino_filter_at(run, a, g), amp_wino_filter_step(a, outs), g, m, 0,
                      a->c);
    return;
  }
  const int64_t step = amp_wino_part_step(a);
  for (int64_t c = 0; c < a->c; c += AMP_WINO_CHANNELS) {
    const int64_t last = amp_least(c + AMP_WINO_CHANNELS, a->c);
    for (int64_t b = c / AMP_BLOCK; b * AMP_BLOCK < last; b++)
      amp_wino_filter_block(run, a, g, b, p->filter + (b * AMP_BLOCK - c) * outs, step);
    amp_wino_channels(p, p->filter, step, g, m, c, last);
  }
}

/* Where the results of a tile are stored: of m channels, from element `to` on, rows x cols of
 * them. */
typedef struct AmpWinoPlace {
  const AmpRef *ref;
  void *out;
  int64_t to, row, col, rows, cols;
  int m;
} AmpWinoPlace;

/* Stores the results of a tile, whose rows are n vectors at y, one after the other. */
AMP_FN void amp_wino_store_each(const AmpV *y, int n, const AmpWinoPlace *p) {
  const int dtype = p->ref->dtype;
  for (int i = 0; i < p->rows; i++, y += n)
    for (int j = 0; j < p->cols; j++) {
      const int64_t at = p->to + i * p->row + j * p->col;
      if (p->m < AMP_WIDE) {
        float buf[AMP_WIDE];
        amp_v_store(buf, y[j]);
        amp_write(dtype, p->out, at, p->m, buf);
      } else if (dtype == AMPRT_F32) {
        amp_v_store((float *)p->out + at, y[j]);
      } else {
        amp_v_round(dtype, (uint16_t *)p->out + at, y[j]);
      }
    }
}

/* Stores side x side results. Vectors of floats are stored without branches: a result beyond the
 * edge of the image is stored in the last row or column, and is then overwritten by the one that
 * belongs there. */
AMP_INLINE void amp_wino_store(const int side, AmpV y[4][4], const AmpWinoPlace *p) {
  if (p->ref->dtype != AMPRT_F32 || p->m < AMP_WIDE) {
    amp_wino_store_each(y[0], 4, p);
    return;
  }
  AMP_UNROLL(4)
  for (int i = side - 1; i >= 0; i--) {
    float *at = (float *)p->out + p->to + amp_least(i, p->rows - 1) * p->row;
    AMP_UNROLL(4)
    for (int j = side - 1; j >= 0; j--)
      amp_v_store(at + amp_least(j, p->cols - 1) * p->col, y[i][j]);
  }
}

/* Transforms the products of one tile back and stores its results. `wild` stays 0 while they are
 * finite. It is four sums, as all products in a single one would wait for each other. */
AMP_INLINE void amp_wino_out_tile(const int form, const int backward, const float *from,
                                  int64_t step, int64_t last, int less_wide, const AmpWinoPlace *to,
                                  AmpV wild[4]) {
  if (form == AMP_WINO_STRIDED) {
    AmpV y[AMP_WINO_GIVES][AMP_WINO_GIVES];
    amp_wino_back_strided(backward, from, step, last, less_wide, y);
    amp_wino_store_each(y[0], AMP_WINO_GIVES, to);
    for (int i = 0; i < to->rows; i++)
      for (int j = 0; j < to->cols; j++)
        wild[j % 4] = amp_v_fma(y[i][j], amp_v_all(0), wild[j % 4]);
    return;
  }
  const int side = amp_wino_side(form);
  AmpV y[4][4];
  amp_wino_back(amp_wino_a, form, side, from, step, last, less_wide, y);
  amp_wino_store(side, y, to);
  AMP_UNROLL(16)
  for (int i = 0; i < side * side; i++)
    wild[i / side] = amp_v_fma(y[i / side][i % side], amp_v_all(0), wild[i / side]);
}

/* The same of all tiles of a strip and of m channels, from k on. */
AMP_INLINE void amp_wino_out_strip(const int form, const int backward, const AmpWinoBlock *p,
                                   const AmpWinoStrip *s, int64_t k, int m, AmpV wild[4]) {
  const AmpConv *a = p->a;
  const int side = amp_wino_side(form);
  const int each = amp_wino_gives(form, backward) / side; /* pixels of a result along an axis */
  const int64_t col = amp_out_pixel(a), row = a->wide.out * col;
  const int64_t width = amp_wino_vectors(m) * AMP_WIDE, apart = (side - s->less_wide) * each;
  const int64_t h = (p->row + s->row) * each, w = s->col * each;
  const int64_t first = ((p->image + s->image) * a->high.out + h) * row + w * col + k;
  AmpWinoPlace to = {.ref = &a->out,
                     .out = p->out,
                     .row = row,
                     .col = col,
                     .rows = amp_least(a->high.out - h, (side - s->less_high) * each)};
  /* A tile with fewer rows has no last rows of products. Those before them are read in their place:
   * what comes of it is not stored, but has to be finite. */
  const int64_t last =
      s->less_high ? -amp_wino_spared(form) * form * p->products_step : s->last * width;
  const float *from = p->products + s->at * width;
  for (int64_t c = 0; c < s->tiles; c++, from += width)
    for (int v = 0; v < m; v += AMP_WIDE) {
      to.to = first + c * apart * col + v;
      to.cols = amp_least(a->wide.out - w - apart * c, apart);
      to.m = m - v;
      amp_wino_out_tile(form, backward, from + v, p->products_step, last, s->less_wide, &to, wild);
    }
}

/* The same of all tiles of a block. Returns whether a result is Inf or NaN. */
AMP_INLINE int amp_wino_out_as(const int form, const AmpWinoBlock *p, int64_t k, int m) {
  const int backward = form == AMP_WINO_STRIDED && p->a->backward;
  AmpV wild[4] = {amp_v_all(0), amp_v_all(0), amp_v_all(0), amp_v_all(0)};
  for (int64_t r = 0; r < p->images * p->tiles.high.tiles; r++)
    for (int less = 0; less < amp_wino_strips(&p->tiles); less++) {
      const AmpWinoStrip strip = amp_wino_strip(&p->tiles, r, less);
      amp_wino_out_strip(form, backward, p, &strip, k, m, wild);
    }
  return amp_v_any((wild[0] + wild[1]) + (wild[2] + wild[3]) != 0);
}

#define AMP_WINO_OUT(name, form)                                                                   \
  AMP_FN int name(const AmpWinoBlock *p, int64_t k, int m) {                                       \
    return amp_wino_out_as(form, p, k, m);                                                         \
  }
AMP_WINO_OUT(amp_wino_out_small, AMP_WINO_SMALL)
AMP_WINO_OUT(amp_wino_out_large, AMP_WINO_LARGE)
AMP_WINO_OUT(amp_wino_out_strided, AMP_WINO_STRIDED)

/* Computes one group of channels as conv.h does. */
AMP_RARELY void amp_wino_direct(const AmprtRun *run, AmpWinoBlock *p, const AmpCuts *cuts,
                                int64_t group) {
  const int m = amp_in_group(p->a->k, group);
  const AmpCut *cut = amp_cut_for(cuts, m);
  const AmpConv *a = p->a;
  const AmpSource source = amp_conv_source(run, a);
  const int leaves = amp_leaves(&a->high, a->backward) || amp_leaves(&a->wide, a->backward);
  const int64_t remainders =
      amp_remainders(&a->high, a->backward) * amp_remainders(&a->wide, a->backward);
  float *w = p->spare;
  AmpConvPart part = {.a = a,
                      .high_span = p->high,
                      .wide_span = p->wide,
                      .row = p->row,
                      .copy =
                          amp_tile_copy(p->copy, a->c, &p->high, &p->wide, p->rows, p->wide.outs),
                      .tap = (AmpTap *)(void *)amp_lane(run, a->lane, a->lane_bytes),
                      .out = p->out};
  for (int64_t b = 0; b < amp_blocks(a->c); b++)
    amp_wino_pack(a, amp_at(run, &a->filter), w + amp_filter_at(a, 0, b), group, b, AMP_OUTS);
  const int bad = leaves && amp_any_wild(w, AMP_WINO_TAPS * a->c * AMP_OUTS);
  for (int64_t i = 0; i < p->images; i++) {
    part.image = p->image + i;
    amp_copy_tile(&source, &part.copy, &p->high, &p->wide, part.image, p->row, 0);
    amp_conv_set_tile(&part);
    for (int64_t r = 0; r < remainders; r++) {
      amp_conv_remainder(&part, r);
      part.rows = amp_least(p->rows, part.high.outs - p->row); /* a block may be several tiles */
      if (bad)
        amp_conv_exact(&part, amp_cut_next(cut, 0, 1), w, group * AMP_OUTS, m);
      else
        amp_conv_group(&part, cut, w, group * AMP_OUTS, m);
    }
  }
}

/* Some groups, of AMP_GROUP channels together whatever the width of vectors: all of them are
 * computed again where one is not finite, so that the bits do not depend on that width. */
AMP_FN void amp_wino_groups(const AmprtRun *run, AmpWinoBlock *p, const AmpCuts *cuts,
                            int64_t first, int64_t last) {
  const AmpConv *a = p->a;
  int wild = 0;
  for (int64_t g = first; g < last; g++) {
    const int m = amp_in_group(a->k, g);
    amp_wino_multiply(run, p, g, m);
    wild |= AMP_WINO_OF(a->winograd, amp_wino_out)(p, g * AMP_OUTS, m);
  }
  for (int64_t g = first; g < last && wild; g++)
    amp_wino_direct(run, p, cuts, g);
}

/* What all blocks have in common that a thread computes. `tiles` is where their transformed tiles
 * lie, or NULL: in the thread's memory. */
AMP_FN AmpWinoBlock amp_wino_begin(const AmprtRun *run, const AmpConv *a, float *tiles) {
  const AmpWinoLane at = amp_wino_lane(a);
  unsigned char *lane = amp_lane(run, a->lane, a->lane_bytes);
  float *in = (float *)(void *)(lane + at.in), *spare = (float *)(void *)(lane + at.products);
  return (AmpWinoBlock){.a = a,
                        .high = amp_axis_span(&a->high, a->backward),
                        .wide = amp_axis_span(&a->wide, a->backward),
                        .copy = (float *)(void *)(lane + at.copy),
                        .in = tiles ? tiles : in,
                        .filter = tiles ? in : NULL,
                        .products = amp_wino_in_place(a) && a->k <= AMP_OUTS ? in : spare,
                        .spare = spare};
}

/* Sets the sizes that follow from the rows and images of a block. */
AMP_FN void amp_wino_size(AmpWinoBlock *p) {
  const AmpConv *a = p->a;
  const AmpWinoCut high = amp_wino_cut(p->rows, a->winograd, p->rows == p->high.outs);
  p->tiles = amp_wino_tiles_of(a->winograd, p->images, high, p->wide.outs);
  p->in_step = amp_wino_in_step(a, p->tiles.all);
  p->products_step =
      p->products == p->in ? p->in_step : amp_odd_lines((p->tiles.all + AMP_WINO_MORE) * AMP_OUTS);
}

/* Zeros what register tiles read behind the last tile of a block whose products take the place of
 * its elements. Otherwise products of what lies there would be the elements there in the next
 * block, and so on, until they are subnormal numbers, with which a CPU computes slowly. */
AMP_FN void amp_wino_zero_past(const AmpWinoBlock *p) {
  for (int i = 0; i < amp_wino_all(p->a->winograd); i++) {
    const int64_t tiles = amp_wino_having(&p->tiles, amp_wino_lasts(p->a->winograd, i));
    const int64_t past = amp_wino_runs(tiles, amp_wino_vectors((int)p->a->k)).past;
    amp_zero(p->in + i * p->in_step + tiles * AMP_BLOCK, past * AMP_BLOCK);
  }
}

/* Groups first..last-1, of AMP_GROUP channels each, of the results of a block. */
AMP_FN void amp_wino_block(const AmprtRun *run, AmpWinoBlock *p, const AmpCuts *cuts, int64_t first,
                           int64_t last) {
  const AmpConv *a = p->a;
  amp_wino_size(p);
  const int64_t read =
      a->wino_rows < p->high.outs ? (p->row + p->rows) * p->high.step + 1 : p->images * a->high.in;
  p->next = (const char *)amp_at(run, &a->in) +
            (p->image * a->high.in + read) * a->wide.in * a->in_pixel * amp_size(a->in.dtype);
  amp_wino_in(run, p, 0, p->images * p->tiles.high.tiles);
  if (p->products == p->in)
    amp_wino_zero_past(p);
  const int64_t each = AMP_GROUP / AMP_OUTS, groups = amp_pieces(a->k, AMP_OUTS);
  p->first = first * each;
  p->last = amp_least(last * each, groups);
  for (int64_t g = p->first; g < p->last; g += each)
    amp_wino_groups(run, p, cuts, g, amp_least(g + each, p->last));
}

/* The same of a tile of the result, which is cut into blocks. */
AMP_FN void amp_wino_tile(const AmprtRun *run, const AmpConvLoop *l, AmpConvPart *at, int64_t first,
                          int64_t last) {
  const AmpConv *a = l->a;
  const int64_t image_end = amp_least(at->image + a->images, a->n);
  AmpWinoBlock b = amp_wino_begin(run, a, NULL);
  const int64_t row_end = amp_least(at->row + a->rows, b.high.outs);
  b.out = at->out;
  b.part = at;
  for (b.image = at->image; b.image < image_end; b.image += a->wino_images)
    for (b.row = at->row; b.row < row_end; b.row += a->wino_rows) {
      b.images = amp_least(a->wino_images, image_end - b.image);
      b.rows = amp_least(a->wino_rows, row_end - b.row);
      amp_wino_block(run, &b, &l->cuts, first, last);
    }
}

/* ---- large filters: waves of images, by groups of channels of the result ---- */

/* Images whose transformed tiles are in memory together, and the blocks that they are cut into, of
 * a->wino_images images each. */
typedef struct AmpWinoWave {
  const AmpConvLoop *l;
  int64_t image, images, blocks; /* the first image, and how many images and blocks there are */
} AmpWinoWave;

/* The block number `block` of a wave, as the calling thread computes it. */
AMP_FN AmpWinoBlock amp_wino_wave_block(const AmprtRun *run, const AmpWinoWave *wave,
                                        int64_t block) {
  const AmpConv *a = wave->l->a;
  const int64_t first = block * a->wino_images;
  float *tiles = (float *)(void *)(run->arena + a->packed);
  AmpWinoBlock b = amp_wino_begin(run, a, tiles + block * amp_wino_in_floats(a));
  b.image = wave->image + first;
  b.images = amp_least(a->wino_images, wave->images - first);
  b.rows = b.high.outs;
  b.out = amp_at(run, &a->out);
  amp_wino_size(&b);
  return b;
}

/* Rows of tiles of an image. */
AMP_INLINE int64_t amp_wino_down(const AmpConv *a) {
  return amp_wino_along(a->winograd, amp_wino_results(a, &a->high));
}

/* Transforms the elements that one row of a wave's tiles reads. */
AMP_FN void amp_wino_in_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpWinoWave *wave = (const AmpWinoWave *)args;
  const AmpConv *a = wave->l->a;
  const int64_t each = a->wino_images * amp_wino_down(a);
  const AmpWinoBlock b = amp_wino_wave_block(run, wave, chunk / each);
  amp_wino_in(run, &b, chunk % each, chunk % each + 1);
}

/* Computes one group of the results of one block. */
AMP_FN void amp_wino_group_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpWinoWave *wave = (const AmpWinoWave *)args;
  const AmpConv *a = wave->l->a;
  const int64_t each = AMP_GROUP / AMP_OUTS, group = chunk / wave->blocks * each;
  AmpWinoBlock b = amp_wino_wave_block(run, wave, chunk % wave->blocks);
  amp_wino_groups(run, &b, &wave->l->cuts, group,
                  amp_least(group + each, amp_pieces(a->k, AMP_OUTS)));
}

/* All results. */
AMP_FN void amp_wino_waves(const AmprtRun *run, const AmpConvLoop *l) {
  const AmpConv *a = l->a;
  const int64_t down = amp_wino_down(a);
  AmpWinoWave wave = {.l = l};
  for (; wave.image < a->n; wave.image += wave.images) {
    wave.images = amp_least(a->wino_wave, a->n - wave.image);
    wave.blocks = amp_pieces(wave.images, a->wino_images);
    amp_parallel(run, wave.images * down, amp_wino_in_chunk, &wave);
    amp_parallel(run, amp_pieces(a->k, AMP_GROUP) * wave.blocks, amp_wino_group_chunk, &wave);
  }
}

#endif
