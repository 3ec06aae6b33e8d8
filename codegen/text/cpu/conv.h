/* Convolutions, their data gradients, and matrix products: [copy of a tile of an image] ->
 * [register tiles] -> [store] -> [loop behind]. Tiles are shared out to threads, and where there
 * are few, groups of channels as well. */
#ifndef AMP_CONV_H
#define AMP_CONV_H

#include "codegen/text/cpu/conv_amx.h"
#include "codegen/text/cpu/conv_fetch.h"
#include "codegen/text/cpu/conv_four.h"

/* One tile of the results of one image: rows x cols from (row, col) on, of the axes high and wide.
 */
typedef struct AmpConvPart {
  const AmpConv *a;
  AmpAxis high, wide;           /* of the results of one remainder (see AmpAxis) */
  AmpAxis high_span, wide_span; /* of those of all remainders */
  int64_t image, row, col, rows, cols;
  AmpTap *tap;
  AmpTileCopy copy;              /* or where the image lies */
  int is_dense;                  /* it lies there without gaps */
  const unsigned char *next;     /* what is to be prefetched for the next tile: where, */
  int64_t next_bytes, next_step; /* how many bytes, and how many with each element that is read */
  const unsigned char *filter;   /* of the next group, to be prefetched; or NULL */
  int64_t filter_step;           /* bytes of it with each element */
  int64_t turn;                  /* calls of register tiles that could prefetch the filter */
  AmpFetch fetch;
  int64_t elements; /* that a register tile reads for each of its results */
  AmpConvTile tile;
  AmpFourTap four[AMP_FOUR_ELEMENTS];
  int buffers;    /* is the tile stored by amp_conv_store, or by itself */
  int64_t y_step; /* from result to result */
  void *out;      /* as if all results were stored one behind the other */
} AmpConvPart;

/* How runs of results are cut into register tiles: in groups of channels that need two vectors, in
 * those that need one, in two groups together, where wide.row is not NULL, and in four remainders
 * together, where four.row is not NULL. */
typedef struct AmpCuts {
  AmpCut whole, thin, wide, four;
} AmpCuts;

AMP_INLINE const AmpCut *amp_cut_for(const AmpCuts *cuts, int m) {
  return m > AMP_OUTS ? &cuts->wide : m <= AMP_WIDE ? &cuts->thin : &cuts->whole;
}

/* Sets what the register tiles have in common: images lie as p->copy says. With a single tap the
 * blocks of a pixel lie side by side, and in the packed filter, too. */
AMP_INLINE void amp_conv_set_tile(AmpConvPart *p) {
  const int64_t taps = amp_filter_taps(p->a), channels = amp_elements(p->a);
  p->tile = (AmpConvTile){.tap = p->tap,
                          .filter_taps = taps,
                          .channels = channels,
                          .run = taps == 1 && p->copy.block == AMP_BLOCK ? channels : AMP_BLOCK,
                          .step = p->copy.step[1],
                          .block = p->copy.block,
                          .group = amp_filter_at(p->a, 1, 0)};
}

/* Where channel 0 of the result in a row and column of the tile lies, in elements. */
AMP_INLINE int64_t amp_result_at(const AmpConvPart *p, int64_t row, int64_t col) {
  const int64_t h = p->high.out_first + (p->row + row) * p->high.out_step;
  const int64_t w = p->wide.out_first + (p->col + col) * p->wide.out_step;
  return ((p->image * p->a->high.out + h) * p->a->wide.out + w) * amp_out_pixel(p->a);
}

/* Lists the taps, in the order of the packed filter. With `trim` it leaves out those that read
 * padding for the result at `row` and `col`. */
AMP_FN void amp_list_taps(AmpConvPart *p, int trim, int64_t row, int64_t col) {
  const AmpConv *a = p->a;
  const int64_t down = p->high.origin - p->high_span.origin;
  const int64_t across = p->wide.origin - p->wide_span.origin, channels = p->tile.channels;
  const int64_t width = p->copy.flat ? channels : channels % AMP_BLOCK == 0 ? AMP_BLOCK : 0;
  p->tile.taps = 0;
  for (int64_t r = 0; r < p->high.taps; r++)
    for (int64_t s = 0; s < p->wide.taps; s++) {
      const int64_t h = (p->row + row) * p->high.step + r + p->high.origin;
      const int64_t w = (p->col + col) * p->wide.step + s + p->wide.origin;
      if (trim && (h < 0 || h >= a->high.in || w < 0 || w >= a->wide.in))
        continue;
      const int64_t x = amp_tap_at(&p->copy, 0, &p->high, r + down) +
                        amp_tap_at(&p->copy, 1, &p->wide, s + across);
      const int64_t filter = (p->high.filter_first + r * p->high.filter_step) * a->wide.taps +
                             p->wide.filter_first + s * p->wide.filter_step;
      AmpTap *last = &p->tap[p->tile.taps - 1], tap = {x, amp_packed_tap(a, filter), 1};
      if (p->tile.taps && tap.filter == last->filter + last->run &&
          tap.x == last->x + last->run * width)
        last->run++;
      else
        p->tap[p->tile.taps++] = tap;
    }
}

/* Stores n results, a number that the compiler knows, as 16-bit floats. */
AMP_INLINE void amp_conv_round(int dtype, uint16_t *to, const float *from, const int n) {
  AMP_UNROLL(8)
  for (int i = 0; i < n; i += AMP_WIDE)
    amp_v_round(dtype, to + i, amp_v_load(from + i));
}

/* Where a tile is copied, its register tiles prefetch what the next tile reads, which lies behind
 * it in memory: little by little, as the CPU drops prefetches that come in a burst. */
AMP_FN void amp_conv_fetches(AmpConvPart *p, const AmpSource *s, int64_t groups) {
  enum { FEWEST = 8 }; /* elements of a pixel that are worth it */
  /* Results of a register tile, and elements of each channel that it reads for one of them. */
  const int64_t largest = p->tile.four ? AMP_FOUR_PIXELS : 16;
  const int64_t reads = p->tile.four ? AMP_FOUR_ELEMENTS : amp_filter_taps(p->a);
  const AmpConv *a = p->a;
  const AmpAxis *high = &p->high_span, *wide = &p->wide_span;
  const int64_t rows = amp_least(a->rows, high->outs - p->row);
  const int64_t line = s->w * s->pixel * amp_size(s->dtype);
  const int64_t tiles = groups * amp_pieces(rows * wide->outs, largest);
  if (a->cols < wide->outs || p->tile.channels < FEWEST || a->groups > 1)
    return;
  p->next =
      (const unsigned char *)s->data + (p->image * s->h + (p->row + rows) * high->step) * line;
  p->next_bytes = rows * high->step * line;
  p->next_step = amp_pieces(p->next_bytes, tiles * p->tile.channels * reads);
}

/* The second-level cache does not hold a large filter, so each group of it would come from the
 * third-level cache just when it is needed. Therefore the register tiles of a group, which compute
 * so many results, prefetch the filter of the next `together` groups, which lies at `next`. Of
 * every AMP_FILTER_TURNS calls that compute register tiles, all but one do so. */
enum { AMP_FILTER_TURNS = 4 };
AMP_INLINE void amp_conv_fetch_filter(AmpConvPart *p, const float *next, int64_t results,
                                      int64_t together) {
  enum { LARGE = 1 << 20, LEAST = 48 << 10 }; /* bytes: of all groups, of one */
  enum { RESULTS = 8 };                       /* of a register tile */
  const int64_t taps = p->tile.filter_taps, channels = p->tile.channels;
  const int64_t outs = together * AMP_OUTS;
  const int64_t bytes = taps * amp_ceil(channels, AMP_BLOCK) * outs * (int64_t)sizeof *next;
  p->filter = NULL;
  if (bytes < LEAST || bytes * amp_pieces(p->a->k, outs) < LARGE)
    return;
  const int64_t read =
      results * taps * channels / RESULTS * (AMP_FILTER_TURNS - 1) / AMP_FILTER_TURNS;
  p->filter = (const unsigned char *)next;
  p->filter_step = amp_least(amp_pieces(bytes, amp_most(1, read)), AMP_LINE);
}

/* Says what the register tiles of one call prefetch. Each has n results, and the first one reads
 * from x on. Calls take turns: they prefetch for the loop behind, the filter, or where tiles of the
 * image are copied, the next of these. Where nothing of all that is left to prefetch, and the image
 * is read where it lies, each register tile prefetches what the one behind it reads. */
AMP_INLINE void amp_conv_fetch(AmpConvPart *p, const AmpElement *x, int n, int64_t tiles) {
  p->tile.next = p->is_dense ? x + n * p->tile.step : x;
  p->tile.next_step = p->is_dense ? n * (int64_t)sizeof *x : 0;
  const int64_t elements = tiles * p->elements;
  if (amp_fetch_next(&p->fetch, elements, &p->tile))
    return;
  if (p->filter && p->turn++ % AMP_FILTER_TURNS) {
    p->tile.next = p->filter;
    p->tile.next_step = p->filter_step;
    p->filter += elements * p->filter_step;
    return;
  }
  if (p->next_bytes <= 0)
    return;
  const int64_t bytes = elements * p->next_step;
  p->tile.next = p->next;
  p->tile.next_step = p->next_step;
  p->next += bytes;
  p->next_bytes -= bytes;
}

/* Prepares for the register tiles of one remainder and group, which store m channels. */
AMP_FN void amp_conv_begin(AmpConvPart *p, int m) {
  const int dtype = p->a->out.dtype, pairs = dtype == AMPRT_BF16 && amp_in_pairs(p->a);
  p->y_step = amp_out_pixel(p->a) * p->wide.out_step;
  p->buffers = (dtype != AMPRT_F32 && !pairs) || m % AMP_WIDE;
  p->tile.narrow = pairs && !p->buffers;
  p->tile.y_step = p->buffers ? amp_ceil(m, AMP_OUTS) : p->y_step;
  p->elements = (p->tile.four ? AMP_FOUR_ELEMENTS : p->high.taps * p->wide.taps) * p->tile.channels;
  if (p->fetch.left)
    p->fetch.step = amp_least(amp_pieces(p->fetch.each, p->elements), AMP_FETCH_LINES * AMP_LINE);
}

/* Stores m channels of the n results of a register tile, which lie at `from`, in the result's type:
 * the first from element y on, the later half y_far elements behind it. */
AMP_FN void amp_conv_store(const AmpConvPart *p, const float *from, int n, int m, int64_t y,
                           int64_t y_far) {
  const int near = n % 2 ? n : n / 2, dtype = p->a->out.dtype;
  for (int i = 0; i < n; i++, from += p->tile.y_step) {
    const int64_t to = i < near ? y + i * p->y_step : y + y_far + (i - near) * p->y_step;
    if (dtype != AMPRT_F32 && m == 2 * AMP_OUTS)
      amp_conv_round(dtype, (uint16_t *)p->out + to, from, 2 * AMP_OUTS);
    else if (dtype != AMPRT_F32 && m == AMP_OUTS)
      amp_conv_round(dtype, (uint16_t *)p->out + to, from, AMP_OUTS);
    else if (dtype != AMPRT_F32 && m == AMP_WIDE)
      amp_conv_round(dtype, (uint16_t *)p->out + to, from, AMP_WIDE);
    else
      amp_write(dtype, p->out, to, m, from);
  }
}

/* Computes so many register tiles, each some columns wide and one behind the other, and stores m
 * channels of their results. The first result reads from x on and lies at element y; the first one
 * of the later half of a tile is `far` and y_far elements away. */
AMP_INLINE void amp_conv_pieces(AmpConvPart *p, const AmpConvTileRow *row, int64_t tiles,
                                int64_t cols, const float *w, int m, const float *x, int64_t far,
                                int64_t y, int64_t y_far) {
  const int64_t size = amp_size(p->a->out.dtype);
  const int n = row->pixels;
  p->tile.far = far;
  amp_conv_fetch(p, x, n, tiles);
  if (!p->buffers) {
    p->tile.x_tile = cols * p->tile.step;
    p->tile.y_tile = cols * p->y_step * size;
    p->tile.y_far = y_far;
    row->run(&p->tile, x, w, (unsigned char *)p->out + y * size, tiles);
    return;
  }
  float buf[AMP_CUT_MOST * AMP_OUTS];
  p->tile.y_far = n / 2 * p->tile.y_step;
  for (; tiles > 0; tiles--, x += cols * p->tile.step, y += cols * p->y_step) {
    row->run(&p->tile, x, w, buf, 1);
    amp_conv_store(p, buf, n, m, y, y_far);
  }
}

/* All results of one group of channels or two together, of which there are m from k on. */
AMP_FN void amp_conv_group(AmpConvPart *p, const AmpCut *cut, const float *w, int64_t k, int m) {
  enum { MOST = 8 }; /* register tiles of one call, which all prefetch the same thing */
  amp_conv_begin(p, m);
  const int64_t step = p->tile.step, y_step = p->y_step;
  const int64_t y_line = p->high.out_step * p->a->wide.out * amp_out_pixel(p->a);
  for (int64_t i = 0; i < p->rows;) {
    const int two = i + 2 <= p->rows && amp_cut_two(cut, p->cols);
    const float *x = p->copy.at + i * p->copy.step[0];
    int64_t y = amp_result_at(p, i, 0) + k, left = p->cols;
    while (left > 0) {
      const AmpConvTileRow *row = amp_cut_next(cut, two, left);
      const int64_t half = row->pixels / 2, cols = two ? half : row->pixels;
      int64_t tiles = 0, all = 0;
      do {
        tiles++;
        all += cols;
      } while (tiles < MOST && all < left && amp_cut_next(cut, two, left - all) == row);
      amp_conv_pieces(p, row, tiles, cols, w, m, x, two ? p->copy.step[0] : half * step, y,
                      two ? y_line : half * y_step);
      x += all * step;
      y += all * y_step;
      left -= all;
    }
    i += 1 + two;
  }
}

/* The same, one result at a time and without the products of padding, which would not be 0 where
 * the filter has Inf or NaN. */
AMP_RARELY void amp_conv_exact(AmpConvPart *p, const AmpConvTileRow *one, const float *w, int64_t k,
                               int m) {
  amp_conv_begin(p, m);
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t j = 0; j < p->cols; j++) {
      amp_list_taps(p, 1, i, j);
      amp_conv_pieces(p, one, 1, 1, w, m, p->copy.at + i * p->copy.step[0] + j * p->copy.step[1], 0,
                      amp_result_at(p, i, j) + k, 0);
    }
}

/* Stores the results of groups first..last-1 of one remainder where no tap reads anything: they are
 * 0. */
AMP_FN void amp_conv_zero(AmpConvPart *p, int64_t first, int64_t last) {
  const int64_t size = amp_size(p->a->out.dtype), k = first * AMP_OUTS;
  const int64_t n = amp_least(last * AMP_OUTS, p->a->k) - k;
  const int64_t step = p->wide.out_step * amp_out_pixel(p->a) * size;
  for (int64_t i = 0; i < p->rows; i++) {
    unsigned char *to = (unsigned char *)p->out + (amp_result_at(p, i, 0) + k) * size;
    for (int64_t j = 0; j < p->cols; j++, to += step)
      __builtin_memset(to, 0, (size_t)(n * size));
  }
}

/* How many remainders the positions of results have, and the axis of one of them. */
AMP_INLINE int64_t amp_remainders(const AmpWindow *w, int backward) {
  return backward ? amp_least(w->stride, w->out) : 1;
}
AMP_INLINE AmpAxis amp_axis(const AmpWindow *w, int backward, int64_t remainder) {
  return backward ? amp_axis_backward(w, remainder) : amp_axis_forward(w);
}

/* Sets the axes of remainder i of both axes together, and lists its taps. */
AMP_FN void amp_conv_remainder(AmpConvPart *p, int64_t i) {
  const AmpConv *a = p->a;
  const int64_t across = amp_remainders(&a->wide, a->backward);
  p->high = amp_axis(&a->high, a->backward, i / across);
  p->wide = amp_axis(&a->wide, a->backward, i % across);
  p->rows = amp_most(0, amp_least(a->rows, p->high.outs - p->row));
  p->cols = amp_most(0, amp_least(a->cols, p->wide.outs - p->col));
  amp_list_taps(p, 0, 0, 0);
}

/* Lists what the tiles of all four remainders together read, for which p->high and p->wide are the
 * axes of the first one. Along an axis with an even padding the even positions have two taps. */
AMP_FN void amp_conv_list_four(AmpConvPart *p) {
  const AmpConv *a = p->a;
  const AmpAxis high[2] = {amp_axis_backward(&a->high, !(a->high.pad % 2)),
                           amp_axis_backward(&a->high, a->high.pad % 2)};
  const AmpAxis wide[2] = {amp_axis_backward(&a->wide, !(a->wide.pad % 2)),
                           amp_axis_backward(&a->wide, a->wide.pad % 2)};
  amp_conv_remainder(p, 0);
  for (int64_t i = 0; i < AMP_FOUR_ELEMENTS; i++) {
    AmpFourTap *tap = &p->four[i];
    const int64_t h = high[1].origin + i / 2, w = wide[1].origin + i % 2;
    *tap = (AmpFourTap){.x = amp_tap_at(&p->copy, 0, &p->high, h - p->high_span.origin) +
                             amp_tap_at(&p->copy, 1, &p->wide, w - p->wide_span.origin)};
    for (int64_t r = 0; r < 4; r++) {
      const AmpAxis *down = &high[r / 2], *across = &wide[r % 2];
      const int64_t row = h - down->origin, col = w - across->origin;
      const int64_t at = (down->filter_first + row * down->filter_step) * a->wide.taps +
                         across->filter_first + col * across->filter_step;
      p->tile.four_y[r] = (down->out_first * a->wide.out + across->out_first) * amp_out_pixel(a);
      if (row < 0 || row >= down->taps || col < 0 || col >= across->taps)
        continue;
      tap->filter[r] = amp_packed_tap(a, at);
      tap->readers |= 1 << r;
    }
  }
}

/* How many groups of channels the same register tiles compute, 1 or 2: group g, or g and g + 1 if
 * both come before `last`. */
AMP_INLINE int64_t amp_conv_together(const AmpConv *a, const AmpCuts *cuts, int64_t g, int64_t last,
                                     int bad) {
  const int are_whole = g + 2 <= last && (g + 2) * AMP_OUTS <= a->k;
  return cuts->wide.row && are_whole && !bad ? 2 : 1;
}

/* So many groups, from g on, of the results of one remainder, with the filter at w. */
AMP_FN void amp_conv_group_of(AmpConvPart *p, const AmpCuts *cuts, const float *w, int64_t g,
                              int64_t together, int bad) {
  const int m = (int)amp_least(together * AMP_OUTS, p->a->k - g * AMP_OUTS);
  const AmpCut *cut = amp_cut_for(cuts, m);
  if (!bad)
    amp_conv_group(p, cut, w, g * AMP_OUTS, m);
  else
    amp_conv_exact(p, amp_cut_next(cut, 0, 1), w, g * AMP_OUTS, m);
}

/* The images as the kernels read them. */
AMP_FN AmpSource amp_conv_source(const AmprtRun *run, const AmpConv *a) {
  AmpSource s = {.data = amp_at(run, &a->in),
                 .h = a->high.in,
                 .w = a->wide.in,
                 .c = amp_elements(a),
                 .pixel = a->in_pixel,
                 .channel = a->in_channel,
                 .dtype = a->in.dtype};
  if (amp_in_pairs(a) && a->in_channel == 1 && a->c % 2 == 0) {
    s.pixel /= 2;
    s.dtype = AMPRT_F32;
  } else if (amp_in_pairs(a)) {
    s.channel = 2 * a->in_channel;
    s.pair = a->in_channel;
    s.odd = a->c % 2;
  }
  return s;
}

/* The results of a tile as a run of elements, those of all groups: the first, and how many. */
AMP_FN void amp_conv_run(const AmpConv *a, const AmpConvPart *p, int64_t *first, int64_t *count) {
  const int64_t down = a->backward ? a->high.stride : 1, across = a->backward ? a->wide.stride : 1;
  const int64_t row = p->row * down, col = p->col * across;
  const int64_t rows = amp_least(a->rows * down, a->high.out - row);
  const int64_t cols = amp_least(a->cols * across, a->wide.out - col);
  const int64_t images = amp_least(a->images, a->n - p->image);
  *first = ((p->image * a->high.out + row) * a->wide.out + col) * amp_out_pixel(a);
  *count = images * rows * cols * amp_out_pixel(a);
}

/* Zeros all results of a tile, which are a run of elements. Where no tap reads anything for some of
 * them, these are to be 0. They lie among others, which are computed later, and to zero all at once
 * takes less time than to pick them out. */
AMP_FN void amp_conv_zero_run(AmpConvPart *p) {
  const int64_t size = amp_size(p->a->out.dtype);
  int64_t first = 0, count = 0;
  amp_conv_run(p->a, p, &first, &count);
  __builtin_memset((unsigned char *)p->out + first * size, 0, (size_t)(count * size));
}

/* Groups first..last-1 of all results of one tile. */
AMP_FN void amp_conv_part(const AmprtRun *run, AmpConvPart *p, const AmpCuts *cuts, int64_t first,
                          int64_t last, int bad) {
  const AmpConv *a = p->a;
  const AmpSource source = amp_conv_source(run, a);
  const AmpAxis high = p->high_span, wide = p->wide_span;
  unsigned char *lane = amp_lane(run, a->lane, a->lane_bytes);
  const int64_t list = amp_ceil(amp_filter_taps(a) * (int64_t)sizeof(AmpTap), AMP_LINE);
  p->tap = (AmpTap *)(void *)lane;
  const int copy = amp_in_pairs(a) ? a->copy_pairs : a->copy;
  const int64_t rows = amp_least(a->rows, high.outs - p->row);
  const int64_t cols = amp_least(a->cols, wide.outs - p->col);
  if (copy) {
    float *to = (float *)(void *)(lane + list);
    p->copy = amp_can_be_flat(&source, &wide)
                  ? amp_tile_flat(to, source.c, &high, &wide, rows, cols)
                  : amp_tile_copy(to, source.c, &high, &wide, rows, cols);
    amp_copy_tile(&source, &p->copy, &high, &wide, p->image, p->row, p->col);
  } else {
    p->copy = amp_tile_direct(&source, &high, &wide, p->image, p->row, p->col);
  }
  amp_conv_set_tile(p);
  p->tile.four = cuts->four.row && !bad ? p->four : NULL;
  p->is_dense = !copy && p->tile.step == p->tile.channels;
  if (copy)
    amp_conv_fetches(p, &source, last - first);
  const float *filter = (const float *)(void *)(run->arena + a->packed);
  if (p->tile.four) {
    amp_conv_list_four(p);
    amp_conv_group(p, &cuts->four, filter, 0, (int)a->k);
    return;
  }
  const int64_t remainders =
      amp_remainders(&a->high, a->backward) * amp_remainders(&a->wide, a->backward);
  const int all = first == 0 && last * AMP_OUTS >= a->k && a->groups == 1;
  const int whole = all && a->cols >= wide.outs;
  for (int64_t i = 0; i < remainders; i++) {
    amp_conv_remainder(p, i);
    if (p->tile.taps)
      continue;
    if (whole) {
      amp_conv_zero_run(p);
      break;
    }
    amp_conv_zero(p, first, last);
  }
  for (int64_t g = first, n = 0; g < last; g += n) {
    n = amp_conv_together(a, cuts, g, last, bad);
    if (g + n < last)
      amp_conv_fetch_filter(p, filter + amp_filter_at(a, g + n, 0), rows * cols, n);
    else
      p->filter = NULL;
    for (int64_t i = 0; i < remainders; i++) {
      if (remainders > 1)
        amp_conv_remainder(p, i);
      if (p->high.taps * p->wide.taps > 0)
        amp_conv_group_of(p, cuts, filter + amp_filter_at(a, g, 0), g, n, bad);
    }
  }
}

/* Are two groups faster together than one after the other? Their register tiles make fewer loads
 * for each product, but have fewer results, and so read the packed filter more than twice as often:
 * this pays only while it comes from a near cache. */
AMP_INLINE int amp_conv_takes_two(const AmpConv *a) {
  enum { MOST = 288 << 10, MOST_OF_ALL = 4 << 20 }; /* bytes: of two groups, of all */
  const int64_t two = 2 * amp_filter_at(a, 1, 0) * (int64_t)sizeof(float);
  return a->k >= 2 * AMP_OUTS && two <= MOST && two * amp_pieces(a->k, 2 * AMP_OUTS) <= MOST_OF_ALL;
}

/* Are all four remainders computed together (conv_four.h)? */
AMP_INLINE int amp_conv_takes_four(const AmpConv *a) {
  const int strided = a->high.stride == 2 && a->wide.stride == 2;
  const int windows = a->high.taps == 3 && a->wide.taps == 3;
  const int even = a->high.out % 2 == 0 && a->wide.out % 2 == 0;
  return a->backward && strided && windows && even && a->k == AMP_WIDE && a->groups == 1 &&
         a->out.dtype == AMPRT_F32;
}

AMP_FN AmpCuts amp_conv_cuts(const AmpConv *a) {
#ifdef __AVX512BF16__
  const int amx = amp_amx && amp_elements(a) >= AMP_BLOCK;
  if (amp_in_pairs(a))
    return (AmpCuts){
        .whole = amp_cut(amx ? amp_conv_amx_tiles : amp_conv_pair_tiles, 2, AMP_CUT_PAIR_SUMS),
        .thin = amp_cut(amp_conv_thin_pair_tiles, 1, AMP_CUT_PAIR_SUMS)};
#endif
  AmpCuts cuts = {.whole = amp_cut(amp_conv_tiles, 2, AMP_CUT_SUMS),
                  .thin = amp_cut(amp_conv_thin_tiles, 1, AMP_CUT_SUMS)};
#ifdef AMP_CONV_WIDE_TILES
  if (amp_conv_takes_two(a))
    cuts.wide = amp_cut(amp_conv_wide_tiles, 4, AMP_CUT_WIDE_SUMS);
  if (amp_conv_takes_four(a))
    cuts.four = amp_cut(amp_four_tiles, 4, AMP_CUT_WIDE_SUMS);
#endif
  (void)a;
  return cuts;
}

typedef struct AmpConvLoop AmpConvLoop;
/* Computes groups first..last-1 of the results of a tile: directly, or by Winograd's method. */
typedef void AmpConvFn(const AmprtRun *run, const AmpConvLoop *l, AmpConvPart *p, int64_t first,
                       int64_t last);
struct AmpConvLoop {
  const AmpConv *a;
  AmpConvFn *compute;
  AmpCuts cuts;
  AmpAxis high, wide;
  AmpTiles tiles;
  int64_t groups;      /* of channels */
  int64_t parts;       /* into which the groups of a tile are split */
  int bad;             /* of the direct method: see amp_pack_filter */
  int reuse;           /* each thread has one place for the results of its tiles */
  const AmpGrid *grid; /* how the loop behind is cut, */
  AmpLoopFn *behind;   /* its function, or NULL if there is none, */
  const void *args;    /* its args, */
  const AmpRef *reads; /* the tensors that it reads, */
  uint64_t each;       /* and a bit for each that says whether it has the result's shape */
};

AMP_INLINE AmpConvPart amp_conv_tile_at(const AmpConvLoop *l, int64_t tile) {
  return (AmpConvPart){.a = l->a,
                       .high_span = l->high,
                       .wide_span = l->wide,
                       .image = tile / l->tiles.across / l->tiles.down * l->a->images,
                       .row = tile / l->tiles.across % l->tiles.down * l->a->rows,
                       .col = tile % l->tiles.across * l->a->cols};
}

/* Runs the loop `behind` on the results of a tile, which lie at `made` as if it held all. */
AMP_FN void amp_run_behind(const AmprtRun *run, const AmpGrid *grid, AmpLoopFn *behind,
                           const void *args, int64_t tile, int64_t first, int64_t count,
                           const void *made) {
  for (int32_t panel = 0; panel < grid->panels; panel++) {
    AmpChunk at = amp_chunk_of(grid, first, count, panel);
    at.group = tile;
    at.made = made;
    behind(run, args, &at);
  }
}

/* Sets what is prefetched for the loop behind: what it reads of other tensors for a tile, `count`
 * elements from `first` on. */
AMP_FN void amp_conv_look_ahead(const AmprtRun *run, const AmpConvLoop *l, int64_t first,
                                int64_t count, AmpFetch *f) {
  const int64_t each = l->cuts.four.row ? 4 * AMP_FOUR_PIXELS : 14; /* results of a tile */
  const AmpConv *a = l->a;
  const int copy = amp_in_pairs(a) ? a->copy_pairs : a->copy;
  const int64_t results = count / amp_out_pixel(a), size = amp_size(a->out.dtype);
  /* How often the image is prefetched between what the loop reads: a copied one once, one that is
   * read where it lies for every group. Tiles that fetch two lines leave that one to the end, which
   * makes data gradients with an addition behind 1.04 times as fast (ResNet-50, batch 8, Zen 5). */
  const int64_t times = copy ? 1 : AMP_FETCH_LINES > 1 ? 0 : l->groups;
  f->bytes = count * size;
  for (int i = 0; l->parts == 1 && l->each >> i; i++)
    if (l->each >> i & 1 && l->reads[i].dtype == a->out.dtype && f->n < AMP_FETCHES)
      f->at[f->n++] = (const char *)amp_at(run, &l->reads[i]) + first * size;
  amp_fetch_share(f, results * l->groups / each, results * a->c * amp_size(a->in.dtype) * times);
}

AMP_FN void amp_conv_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpConvLoop *l = (const AmpConvLoop *)args;
  const int64_t tile = chunk / l->parts, part = chunk % l->parts;
  const int64_t bytes = amp_size(l->a->out.dtype);
  int64_t first = 0, count = 0;
  AmpConvPart p = amp_conv_tile_at(l, tile);
  p.out = amp_at(run, &l->a->out);
  amp_conv_run(l->a, &p, &first, &count);
  if (l->reuse)
    p.out = (unsigned char *)p.out + (run->threads->number() * l->tiles.elements - first) * bytes;
  amp_conv_look_ahead(run, l, first, count, &p.fetch);
  l->compute(run, l, &p, part * l->groups / l->parts, (part + 1) * l->groups / l->parts);
  amp_amx_leave();
  if (l->behind && l->parts == 1)
    amp_run_behind(run, l->grid, l->behind, l->args, tile, first, count, p.out);
}

AMP_FN void amp_conv_behind_chunk(const AmprtRun *run, const void *args, int64_t tile) {
  const AmpConvLoop *l = (const AmpConvLoop *)args;
  const AmpConvPart p = amp_conv_tile_at(l, tile);
  int64_t first = 0, count = 0;
  amp_conv_run(l->a, &p, &first, &count);
  amp_run_behind(run, l->grid, l->behind, l->args, tile, first, count, amp_at(run, &l->a->out));
}

#endif
