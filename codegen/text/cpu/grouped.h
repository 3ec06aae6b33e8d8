/* Grouped convolutions and their data gradients: for each row of the results of a tile and a column
 * of channels [copy of the rows that it is the first to read] -> [register tiles] -> [store], and
 * for the tile [loop behind]. As many rows as the window has are kept, in the first-level cache.
 * Tiles are shared out to threads, and where there are few, their columns of channels as well. Each
 * result is one sum in f32, in the order row of the window, tap, channel, or where results share
 * what they read row, channel, tap, whatever tile computes it. */
#ifndef AMP_GROUPED_H
#define AMP_GROUPED_H

#include "codegen/text/cpu/conv_run.h"
#include "codegen/text/cpu/grouped_image.h"

/* What the register tiles of a row of results have in common. */
typedef struct AmpGroupedTile {
  const float *const *row; /* what the rows of the window read for result 0, */
  int64_t rows, taps;      /* how many there are, and taps of one */
  int64_t reads;           /* channels of a tap */
  int64_t pixel, step;     /* floats from tap to tap, from result to result */
} AmpGroupedTile;

/* Computes some neighbouring results, the first of which reads from element x of the rows on, with
 * the packed filter at w. The later half of them has a pointer of its own, as an address has only a
 * few multiples of `step`. */
AMP_INLINE void amp_grouped_tile(const AmpGroupedTile *t, int64_t x, const float *restrict w,
                                 float *restrict y, const int results, const int vectors,
                                 const int spread) {
  const int near = results % 2 ? results : results / 2, each = spread ? AMP_WIDE : 1;
  const int64_t step = t->step, run = t->taps * t->reads;
  AmpV sum[14][2];
  AMP_UNROLL(14)
  for (int p = 0; p < results; p++)
    AMP_UNROLL(2)
  for (int v = 0; v < vectors; v++)
    sum[p][v] = amp_v_all(0);
  for (int64_t r = 0; r < t->rows; r++) {
    const AmpElement *near_x = t->row[r] + x, *far_x = near_x + near * step;
    AMP_UNROLL_BY(AMP_UNROLL_FACTOR)
    for (int64_t i = 0; i < run; i++, near_x += each, far_x += each, w += vectors * AMP_WIDE) {
      AMP_FORGET(near_x, far_x);
      AmpV b[2];
      AMP_UNROLL(2)
      for (int v = 0; v < vectors; v++) {
        b[v] = amp_v_load(w + v * AMP_WIDE);
        AMP_PIN(b[v]);
      }
      AMP_UNROLL(14)
      for (int p = 0; p < results; p++) {
        const AmpElement *at = p < near ? near_x + p * step : far_x + (p - near) * step;
        const AmpV q = spread ? amp_v_load((const float *)at) : amp_v_all(*at);
        AMP_UNROLL(2)
        for (int v = 0; v < vectors; v++)
          sum[p][v] = amp_v_fma(q, b[v], sum[p][v]);
      }
    }
  }
  AMP_UNROLL(14)
  for (int p = 0; p < results; p++)
    AMP_UNROLL(2)
  for (int v = 0; v < vectors; v++)
    amp_v_store(y + (p * vectors + v) * AMP_WIDE, sum[p][v]);
}

/* The same where what is read is spread and results lie as far apart as the taps of a row, of which
 * there are AMP_SHARING: they share what they read. For all products of a row and a channel it
 * loads a vector for each tap of the filter and, of the image, for each result and two more. */
enum { AMP_SHARING = 3 };
AMP_INLINE void amp_grouped_sharing(const AmpGroupedTile *t, int64_t x, const float *restrict w,
                                    float *restrict y, const int results) {
  AmpV sum[14];
  AMP_UNROLL(14)
  for (int p = 0; p < results; p++)
    sum[p] = amp_v_all(0);
  for (int64_t r = 0; r < t->rows; r++) {
    const float *channel = t->row[r] + x;
    for (int64_t j = 0; j < t->reads; j++, channel += AMP_WIDE, w += AMP_SHARING * AMP_WIDE) {
      AmpV b[AMP_SHARING];
      AMP_UNROLL(3)
      for (int i = 0; i < AMP_SHARING; i++) {
        b[i] = amp_v_load(w + i * AMP_WIDE);
        AMP_PIN(b[i]);
      }
      const float *at = channel;
      AMP_UNROLL(16)
      for (int q = 0; q < results + AMP_SHARING - 1; q++, at += t->pixel) {
        AmpV v = amp_v_load(at);
        AMP_PIN(v);
        AMP_UNROLL(3)
        for (int s = 0; s < AMP_SHARING; s++)
          if (q - s >= 0 && q - s < results)
            sum[q - s] = amp_v_fma(v, b[s], sum[q - s]);
      }
    }
  }
  AMP_UNROLL(14)
  for (int p = 0; p < results; p++)
    amp_v_store(y + p * AMP_WIDE, sum[p]);
}

/* How many results the register tiles have, the largest first; behind the last comes one of 0. */
#ifdef __AVX512F__
#define AMP_GROUPED_TILES(T, v, spread)                                                            \
  T(14, v, spread) T(7, v, spread) T(4, v, spread) T(2, v, spread) T(1, v, spread)
#define AMP_GROUPED_SHARING_TILES(T) T(14) T(7) T(4) T(2) T(1)
#else
#define AMP_GROUPED_TILES(T, v, spread)                                                            \
  T(6, v, spread) T(5, v, spread) T(4, v, spread) T(3, v, spread) T(2, v, spread) T(1, v, spread)
#define AMP_GROUPED_SHARING_TILES(T) T(10) T(9) T(8) T(7) T(6) T(5) T(4) T(3) T(2) T(1)
#endif

typedef struct AmpGroupedRow {
  int results;
  void (*run)(const AmpGroupedTile *t, int64_t x, const float *w, float *y);
} AmpGroupedRow;

#define AMP_GROUPED_TILE(p, v, spread)                                                             \
  AMP_FN void amp_grouped_tile_##p##x##v##_##spread(const AmpGroupedTile *t, int64_t x,            \
                                                    const float *w, float *y) {                    \
    amp_grouped_tile(t, x, w, y, p, v, spread);                                                    \
  }
#define AMP_GROUPED_SHARING(p)                                                                     \
  AMP_FN void amp_grouped_sharing_##p(const AmpGroupedTile *t, int64_t x, const float *w,          \
                                      float *y) {                                                  \
    amp_grouped_sharing(t, x, w, y, p);                                                            \
  }
#define AMP_GROUPED_ROW(p, v, spread) {p, amp_grouped_tile_##p##x##v##_##spread},
#define AMP_GROUPED_SHARING_ROW(p)    {p, amp_grouped_sharing_##p},
AMP_GROUPED_TILES(AMP_GROUPED_TILE, 1, 0)
AMP_GROUPED_TILES(AMP_GROUPED_TILE, 2, 0)
AMP_GROUPED_TILES(AMP_GROUPED_TILE, 1, 1)
AMP_GROUPED_SHARING_TILES(AMP_GROUPED_SHARING)
typedef enum AmpGroupedKind {
  AMP_GROUPED_ONE, /* vector */
  AMP_GROUPED_TWO,
  AMP_GROUPED_SPREAD,
  AMP_GROUPED_SHARED
} AmpGroupedKind;
static const AmpGroupedRow amp_grouped_rows[][11] = {
    [AMP_GROUPED_ONE] = {AMP_GROUPED_TILES(AMP_GROUPED_ROW, 1, 0)},
    [AMP_GROUPED_TWO] = {AMP_GROUPED_TILES(AMP_GROUPED_ROW, 2, 0)},
    [AMP_GROUPED_SPREAD] = {AMP_GROUPED_TILES(AMP_GROUPED_ROW, 1, 1)},
    [AMP_GROUPED_SHARED] = {AMP_GROUPED_SHARING_TILES(AMP_GROUPED_SHARING_ROW)}};

/* The first tile for a row of n results: the smallest that holds an equal share of them. */
AMP_INLINE const AmpGroupedRow *amp_grouped_first(AmpGroupedKind kind, int64_t n) {
  const AmpGroupedRow *row = amp_grouped_rows[kind];
  const int64_t share = amp_even(n, row->results);
  while (row[1].results >= share)
    row++;
  return row;
}

/* ---- the filter ---- */

/* The axes of results that leave one pair of remainders (see AmpAxis), and the place of their taps
 * in the packed filter of a column. */
typedef struct AmpGroupedPhase {
  AmpAxis high, wide;
  int64_t first; /* taps of the phases before */
  int shares;    /* do results share what they read (amp_grouped_sharing)? */
} AmpGroupedPhase;

AMP_INLINE int64_t amp_grouped_phases(const AmpGrouped *a) {
  return amp_remainders(&a->high, a->backward) * amp_remainders(&a->wide, a->backward);
}
AMP_FN void amp_grouped_phase(const AmpGrouped *a, const AmpGroups *g, int64_t i,
                              AmpGroupedPhase *phase) {
  const int64_t across = amp_remainders(&a->wide, a->backward);
  phase->first = i ? phase->first + phase->high.taps * phase->wide.taps : 0;
  phase->high = amp_axis(&a->high, a->backward, i / across);
  phase->wide = amp_axis(&a->wide, a->backward, i % across);
  phase->shares = g->spread && phase->wide.taps == AMP_SHARING && phase->wide.step == 1;
}

/* Floats of the packed filter of a column: for each phase, row of the window, tap and channel that
 * is read, as many vectors as the column has; where results share what they read, channels come
 * before taps. What lies beyond the column's last channel is zero. */
AMP_INLINE int64_t amp_grouped_packed(const AmpGrouped *a, const AmpGroups *g) {
  return a->high.taps * a->wide.taps * g->reads * amp_column_width(g, AMP_WIDE);
}

typedef struct AmpGroupedLoop {
  const AmpGrouped *a;
  AmpGroups g;
  AmpAxis high, wide; /* of all phases together */
  AmpTiles tiles;
  int64_t columns, parts;       /* into which the columns of a tile are split */
  int wild;                     /* has the filter Inf or NaN? */
  int reuse;                    /* each thread has one place for the results of its tiles */
  const AmpGroupedBehind *loop; /* the loop behind, or NULL */
} AmpGroupedLoop;

/* Packs one tap of a column of a convolution. The channels that are read lie side by side in the
 * filter; packed, they are `step` floats apart. */
AMP_FN void amp_grouped_pack_reads(const AmpGrouped *a, const AmpColumn *column, float *to,
                                   int64_t step, const void *filter, int64_t tap, int64_t reads) {
  const int64_t at = column->first * a->filter_out + tap * a->filter_tap;
  for (int64_t j = 0; j < reads; j += AMP_BLOCK)
    amp_transpose_read(to + j * step, step, a->filter.dtype, filter, at + j, a->filter_out,
                       (int)column->n, (int)amp_least(reads - j, AMP_BLOCK));
}

/* Packs one tap of a column of a data gradient. In its filter, the channels of the result that
 * belong to one group lie side by side. */
AMP_FN void amp_grouped_pack_makes(const AmpGrouped *a, const AmpColumn *column, float *to,
                                   int64_t step, const void *filter, int64_t tap,
                                   const AmpGroups *g) {
  enum { FEW = 4 }; /* channels of a size that the compiler knows */
  for (int64_t i = 0, n = 0; i < column->n; i += n) {
    const int64_t k = column->first + i, in = k % g->makes;
    int64_t at = k / g->makes * a->filter_group + in + tap * a->filter_tap;
    n = amp_least(g->makes - in, column->n - i);
    for (int64_t j = 0; j < g->reads; j++, at += a->filter_in) {
      float buf[AMP_OUTS], *out = to + j * step + i;
      const float *v = amp_read(a->filter.dtype, filter, at, (int)n, buf);
      int64_t e = 0;
      for (; e + FEW <= n; e += FEW)
        __builtin_memcpy(out + e, v + e, FEW * sizeof *v);
      for (; e < n; e++)
        out[e] = v[e];
    }
  }
}

/* Packs one tap of a column, of a convolution or of a data gradient. In `to`, the channels that are
 * read lie `step` floats apart. */
AMP_FN void amp_grouped_pack_tap(const AmpGroupedLoop *l, const AmpColumn *column, float *to,
                                 int64_t step, const void *filter, int64_t tap) {
  const int64_t width = column->vectors * AMP_WIDE;
  for (int64_t j = 0; j < l->g.reads && column->n < width; j++)
    amp_zero(to + j * step, width);
  if (l->a->backward)
    amp_grouped_pack_makes(l->a, column, to, step, filter, tap, &l->g);
  else
    amp_grouped_pack_reads(l->a, column, to, step, filter, tap, l->g.reads);
}

AMP_FN void amp_grouped_pack(const AmprtRun *run, const void *args, int64_t i) {
  AmpGroupedLoop *l = (AmpGroupedLoop *)(uintptr_t)args;
  const AmpGrouped *a = l->a;
  const AmpColumn column = amp_column(&l->g, i);
  const void *filter = amp_at(run, &a->filter);
  const int64_t all = amp_grouped_packed(a, &l->g), width = column.vectors * AMP_WIDE;
  float *packed = (float *)(void *)(run->arena + a->packed) + i * all, *to = packed;
  AmpGroupedPhase p = {.first = 0};
  for (int64_t phase = 0; phase < amp_grouped_phases(a); phase++) {
    amp_grouped_phase(a, &l->g, phase, &p);
    for (int64_t r = 0; r < p.high.taps; r++, to += p.wide.taps * l->g.reads * width)
      for (int64_t s = 0; s < p.wide.taps; s++)
        amp_grouped_pack_tap(l, &column, to + s * (p.shares ? 1 : l->g.reads) * width,
                             (p.shares ? p.wide.taps : 1) * width, filter,
                             (p.high.filter_first + r * p.high.filter_step) * a->wide.taps +
                                 p.wide.filter_first + s * p.wide.filter_step);
  }
  AmpVBits wild = {0};
  for (const float *x = packed; x < to; x += AMP_WIDE)
    wild |= amp_v_wild(amp_v_load(x));
  if (amp_v_any(wild))
    __atomic_store_n(&l->wild, 1, __ATOMIC_RELAXED);
}

/* ---- tiles ---- */

/* A column of one tile, while it is computed. */
typedef struct AmpGroupedPart {
  const AmpGroupedLoop *l;
  AmpColumn column;
  AmpReach cols_in;    /* of the rows that are copied; */
  int64_t first, next; /* the first of all and the next one to be copied */
  const float **row;   /* what rows of the window read, and */
  float *ring;         /* the rows, each in the place of the one before that is no longer read */
  const float *filter; /* the column's packed filter */
  int64_t image, row0, col, rows, cols;
  void *out;
} AmpGroupedPart;

/* Where row h of the image is copied to. */
AMP_INLINE float *amp_grouped_row(const AmpGroupedPart *p, int64_t h) {
  return p->ring +
         (h - p->first) % p->l->high.taps * amp_grouped_line(&p->l->g, p->cols_in.n, AMP_WIDE);
}

/* Stores n results of a column, from element `to` on and `step` elements apart, and fetches the
 * places `below` bytes further on. */
AMP_INLINE void amp_grouped_store_as(const int dtype, const AmpColumn *column, void *out,
                                     int64_t to, int64_t step, int64_t below, const float *from,
                                     int n) {
  const int width = column->vectors * AMP_WIDE;
  for (; n > 0; n--, to += step, from += width) {
    __builtin_prefetch((const unsigned char *)out + to * amp_size(dtype) + below, 1);
    if (column->n % AMP_WIDE) {
      amp_write(dtype, out, to, (int)column->n, from);
      continue;
    }
    for (int i = 0; i < width; i += AMP_WIDE)
      if (dtype == AMPRT_F32)
        amp_v_store((float *)out + to + i, amp_v_load(from + i));
      else
        amp_v_round(dtype, (uint16_t *)out + to + i, amp_v_load(from + i));
  }
}

/* Stores n results of a phase, from (row, col) of the tile on, and fetches the places below. */
AMP_FN void amp_grouped_store(const AmpGroupedPart *p, const AmpGroupedPhase *phase, int64_t row,
                              int64_t col, const float *from, int n) {
  const AmpGrouped *a = p->l->a;
  const int64_t h = phase->high.out_first + (p->row0 + row) * phase->high.out_step;
  const int64_t w = phase->wide.out_first + (p->col + col) * phase->wide.out_step;
  const int64_t below = phase->high.out_step * a->wide.out * a->k * amp_size(a->out.dtype);
  const int64_t to = ((p->image * a->high.out + h) * a->wide.out + w) * a->k + p->column.first;
  AMP_WITH_TYPE(a->out.dtype, amp_grouped_store_as, &p->column, p->out, to,
                phase->wide.out_step * a->k, below, from, n);
}

/* One result, without the products of padding, which would not be 0 where the filter has Inf or
 * NaN. */
AMP_FN void amp_grouped_exact(const AmpGroupedPart *p, const AmpGroupedPhase *phase,
                              const AmpGroupedTile *tile, int64_t row, int64_t col, int64_t x,
                              const float *w) {
  const AmpGrouped *a = p->l->a;
  const int64_t width = p->column.vectors * AMP_WIDE, reads = tile->reads, run = tile->taps * reads;
  const int spread = p->l->g.spread;
  const int64_t h = (p->row0 + row) * phase->high.step + phase->high.origin;
  const int64_t first = (p->col + col) * phase->wide.step + phase->wide.origin;
  float sum[AMP_OUTS] = {0};
  for (int64_t r = 0; r < tile->rows; r++)
    for (int64_t i = 0; i < run; i++) {
      const int64_t tap = phase->shares ? i % tile->taps : i / reads, at = first + tap;
      const int64_t channel = phase->shares ? i / tile->taps : i % reads;
      if (h + r < 0 || h + r >= a->high.in || at < 0 || at >= a->wide.in)
        continue;
      const float *v = tile->row[r] + x + tap * tile->pixel + channel * (spread ? AMP_WIDE : 1);
      const float *b = w + (r * run + i) * width;
      for (int64_t k = 0; k < width; k += AMP_WIDE)
        amp_v_store(sum + k, amp_v_fma(spread ? amp_v_load(v) : amp_v_all(*v), amp_v_load(b + k),
                                       amp_v_load(sum + k)));
    }
  amp_grouped_store(p, phase, row, col, sum, 1);
}

/* Row i of the results of a phase. */
AMP_FN void amp_grouped_phase_row(const AmpGroupedPart *p, const AmpGroupedPhase *phase,
                                  int64_t i) {
  const AmpGroups *g = &p->l->g;
  const int64_t pixel = amp_column_pixel(g, AMP_WIDE),
                right = phase->wide.origin - p->l->wide.origin;
  const int64_t first = (p->row0 + i) * phase->high.step + phase->high.origin;
  const int64_t cols = amp_least(p->cols, phase->wide.outs - p->col);
  const float *w = p->filter + phase->first * g->reads * p->column.vectors * AMP_WIDE;
  const AmpGroupedTile tile = {.row = p->row,
                               .rows = phase->high.taps,
                               .taps = phase->wide.taps,
                               .reads = g->reads,
                               .pixel = pixel,
                               .step = phase->wide.step * pixel};
  const AmpGroupedKind kind = phase->shares            ? AMP_GROUPED_SHARED
                              : g->spread              ? AMP_GROUPED_SPREAD
                              : p->column.vectors == 2 ? AMP_GROUPED_TWO
                                                       : AMP_GROUPED_ONE;
  float sums[14 * AMP_OUTS];
  for (int64_t r = 0; r < phase->high.taps; r++)
    p->row[r] = amp_grouped_row(p, first + r);
  for (int64_t j = 0; j < cols && p->l->wild; j++)
    amp_grouped_exact(p, phase, &tile, i, j, j * tile.step + right * pixel, w);
  if (cols <= 0 || p->l->wild)
    return;
  const AmpGroupedRow *row = amp_grouped_first(kind, cols);
  for (int64_t j = 0; j < cols; j += row->results) {
    while (row->results > cols - j)
      row++;
    row->run(&tile, j * tile.step + right * pixel, w, sums);
    amp_grouped_store(p, phase, i, j, sums, row->results);
  }
}

/* Computes a column of channels: row after row of its results, as the rows that they read are
 * copied. */
AMP_FN void amp_grouped_column(AmpGroupedPart *p, const AmpImages *images) {
  const AmpGroupedLoop *l = p->l;
  p->first = p->next = p->row0 * l->high.step + l->high.origin;
  for (int64_t i = 0; i < p->rows; i++) {
    const AmpReach reach = amp_reach_of(&l->high, p->row0 + i, 1);
    for (p->next = amp_most(p->next, reach.first); p->next < reach.first + reach.n; p->next++)
      amp_grouped_copy(images, &l->g, &p->column, p->image, p->next, p->cols_in,
                       amp_grouped_row(p, p->next));
    AmpGroupedPhase phase = {.first = 0};
    for (int64_t k = 0; k < amp_grouped_phases(l->a); k++) {
      amp_grouped_phase(l->a, &l->g, k, &phase);
      if (p->row0 + i < phase.high.outs)
        amp_grouped_phase_row(p, &phase, i);
    }
  }
}

/* The tile as a run of elements of the result: the first, and how many. */
AMP_FN void amp_grouped_run(const AmpGroupedPart *p, int64_t *first, int64_t *count) {
  const AmpGrouped *a = p->l->a;
  const int64_t row = p->row0 * amp_grouped_rows_of(a);
  const int64_t rows = amp_least(p->rows * amp_grouped_rows_of(a), a->high.out - row);
  *first = (p->image * a->high.out + row) * a->wide.out * a->k;
  *count = rows * a->wide.out * a->k;
}

AMP_FN AmpGroupedPart amp_grouped_part(const AmpGroupedLoop *l, int64_t tile) {
  AmpGroupedPart p = {.l = l, .image = tile / l->tiles.down};
  p.row0 = tile % l->tiles.down * l->a->rows;
  p.rows = amp_least(l->a->rows, l->high.outs - p.row0);
  return p;
}

/* Computes some columns of channels of one tile, and if these are all, runs the loop behind. */
AMP_FN void amp_grouped_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpGroupedLoop *l = (const AmpGroupedLoop *)args;
  const AmpGrouped *a = l->a;
  const int64_t tile = chunk / l->parts, part = chunk % l->parts;
  const int64_t below = l->high.step * a->wide.in * a->c;
  const AmpImages images = {amp_at(run, &a->in), a->high.in, a->wide.in, a->c, below, a->in.dtype};
  unsigned char *lane = amp_lane(run, a->lane, a->lane_bytes);
  int64_t first = 0, count = 0;
  AmpGroupedPart p = amp_grouped_part(l, tile);
  amp_grouped_run(&p, &first, &count);
  p.out = amp_at(run, &a->out);
  if (l->reuse)
    p.out = (unsigned char *)p.out +
            (run->threads->number() * l->tiles.elements - first) * amp_size(a->out.dtype);
  p.row = (const float **)(void *)lane;
  p.ring = (float *)(void *)(lane + amp_ceil(a->high.taps * (int64_t)sizeof *p.row, AMP_LINE));
  for (p.col = 0; p.col < l->wide.outs; p.col += a->cols) {
    p.cols = amp_least(a->cols, l->wide.outs - p.col);
    p.cols_in = amp_reach_of(&l->wide, p.col, p.cols);
    for (int64_t i = part * l->columns / l->parts; i < (part + 1) * l->columns / l->parts; i++) {
      p.column = amp_column(&l->g, i);
      p.filter =
          (const float *)(const void *)(run->arena + a->packed) + i * amp_grouped_packed(a, &l->g);
      amp_grouped_column(&p, &images);
    }
  }
  if (l->loop && l->parts == 1)
    amp_run_behind(run, l->loop->grid, l->loop->behind, l->loop->args, tile, first, count, p.out);
}

AMP_FN void amp_grouped_behind_chunk(const AmprtRun *run, const void *args, int64_t tile) {
  const AmpGroupedLoop *l = (const AmpGroupedLoop *)args;
  const AmpGroupedPart p = amp_grouped_part(l, tile);
  int64_t first = 0, count = 0;
  amp_grouped_run(&p, &first, &count);
  amp_run_behind(run, l->loop->grid, l->loop->behind, l->loop->args, tile, first, count,
                 amp_at(run, &l->a->out));
}

/* Computes the convolution. The loop behind it, if there is one, runs on each tile as soon as its
 * results are there or, where tiles are too few for the threads, when all results are. */
AMP_FN void amp_grouped_all(const AmprtRun *run, const AmpGrouped *a,
                            const AmpGroupedBehind *loop) {
  enum { CHUNKS = 4 }; /* for each thread, at least */
  const int64_t threads = run->threads->count();
  AmpGroupedLoop l = {.a = a,
                      .g = amp_groups(a->groups, a->c, a->k),
                      .high = amp_axis_span(&a->high, a->backward),
                      .wide = amp_axis_span(&a->wide, a->backward),
                      .tiles = amp_grouped_tiles(a),
                      .loop = loop};
  l.columns = amp_columns(&l.g, AMP_WIDE);
  l.parts = amp_least(l.columns, amp_pieces(CHUNKS * threads, l.tiles.all));
  l.reuse = a->passing && l.parts == 1 && threads <= l.tiles.all;
  amp_parallel(run, l.columns, amp_grouped_pack, &l);
  amp_parallel(run, l.tiles.all * l.parts, amp_grouped_chunk, &l);
  if (loop && l.parts > 1)
    amp_parallel(run, l.tiles.all, amp_grouped_behind_chunk, &l);
}

AMP_LIBRARY_FN(amp_grouped)(const AmprtRun *run, const void *args) {
  amp_grouped_all(run, (const AmpGrouped *)args, NULL);
}

AMP_LIBRARY_FN(amp_grouped_behind)(const AmprtRun *run, const void *args) {
  const AmpGroupedBehind *all = (const AmpGroupedBehind *)args;
  amp_grouped_all(run, all->a, all);
}

#endif
