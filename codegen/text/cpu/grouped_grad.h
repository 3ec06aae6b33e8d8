/* The filter's gradient of grouped convolutions. All its elements of a column are sums over all
 * results of a batch, tile by tile: a register tile adds up some elements of a row of the window
 * over the results of a tile, and then to the sums in memory. */
#ifndef AMP_GROUPED_GRAD_H
#define AMP_GROUPED_GRAD_H

#include "codegen/text/cpu/grouped.h"

/* A tile of a column: x and dy as they were copied, and the sums. */
typedef struct AmpGroupedSum {
  const float *x, *dy;
  float *sums;            /* of a row of the window after another, each `run` elements */
  int64_t rows, cols;     /* results */
  int64_t row_step, step; /* floats of the copy of x from result to result, down and across */
  int64_t tap_step, run;  /* the same from row to row of the window; elements of a row */
} AmpGroupedSum;

/* Adds up `each` elements, from element i of rows r..r+taps-1 of the window on. */
AMP_INLINE void amp_grouped_add(const AmpGroupedSum *s, int64_t r, int64_t i, const int taps,
                                const int each, const int vectors, const int spread) {
  const int wide = spread ? AMP_WIDE : 1;
  AmpV sum[3][12][2];
  AMP_UNROLL(3)
  for (int t = 0; t < taps; t++)
    AMP_UNROLL(12)
  for (int e = 0; e < each; e++)
    AMP_UNROLL(2)
  for (int v = 0; v < vectors; v++)
    sum[t][e][v] = amp_v_all(0);
  const float *dy = s->dy;
  for (int64_t h = 0; h < s->rows; h++) {
    const float *x = s->x + h * s->row_step + r * s->tap_step + i * wide;
    AMP_UNROLL_BY(AMP_UNROLL_FACTOR)
    for (int64_t w = 0; w < s->cols; w++, x += s->step, dy += vectors * AMP_WIDE) {
      AmpV b[2];
      AMP_UNROLL(2)
      for (int v = 0; v < vectors; v++) {
        b[v] = amp_v_load(dy + v * AMP_WIDE);
        AMP_PIN(b[v]);
      }
      AMP_UNROLL(3)
      for (int t = 0; t < taps; t++)
        AMP_UNROLL(12)
      for (int e = 0; e < each; e++) {
        const float *at = x + t * s->tap_step + e * wide;
        const AmpV q = spread ? amp_v_load(at) : amp_v_all(*at);
        AMP_UNROLL(2)
        for (int v = 0; v < vectors; v++)
          sum[t][e][v] = amp_v_fma(q, b[v], sum[t][e][v]);
      }
    }
  }
  AMP_UNROLL(3)
  for (int t = 0; t < taps; t++)
    AMP_UNROLL(12)
  for (int e = 0; e < each; e++)
    AMP_UNROLL(2)
  for (int v = 0; v < vectors; v++) {
    float *to = s->sums + (((r + t) * s->run + i + e) * vectors + v) * AMP_WIDE;
    amp_v_store(to, amp_v_load(to) + sum[t][e][v]);
  }
}

/* The register tiles: rows of the window, and elements of each, the most first. */
typedef struct AmpGroupedAdd {
  int taps, each;
  void (*run)(const AmpGroupedSum *s, int64_t r, int64_t i);
} AmpGroupedAdd;

#define AMP_GROUPED_ADDS(T, v, spread) T(1, 12, v, spread) T(1, 6, v, spread)
#ifdef __AVX512F__
#define AMP_GROUPED_TWOS(T) AMP_GROUPED_ADDS(T, 2, 0)
#else /* 16 registers do not hold 12 sums of two vectors */
#define AMP_GROUPED_TWOS(T) T(1, 6, 2, 0)
#endif
#define AMP_GROUPED_FEW(T, v, spread) T(1, 3, v, spread) T(1, 1, v, spread)
#define AMP_GROUPED_ADD(t, e, v, spread)                                                           \
  AMP_FN void amp_grouped_add_##t##x##e##x##v##_##spread(const AmpGroupedSum *s, int64_t r,        \
                                                         int64_t i) {                              \
    amp_grouped_add(s, r, i, t, e, v, spread);                                                     \
  }
#define AMP_GROUPED_ADD_ROW(t, e, v, spread) {t, e, amp_grouped_add_##t##x##e##x##v##_##spread},
AMP_GROUPED_ADDS(AMP_GROUPED_ADD, 1, 0)
AMP_GROUPED_TWOS(AMP_GROUPED_ADD)
AMP_GROUPED_ADDS(AMP_GROUPED_ADD, 1, 1)
AMP_GROUPED_FEW(AMP_GROUPED_ADD, 1, 0)
AMP_GROUPED_FEW(AMP_GROUPED_ADD, 2, 0)
AMP_GROUPED_FEW(AMP_GROUPED_ADD, 1, 1)
AMP_GROUPED_ADD(3, 3, 1, 1)
/* A depthwise 3x3 has all nine sums at once: three would wait for one another. */
static const AmpGroupedAdd amp_grouped_adds[3][8] = {
    {AMP_GROUPED_ADDS(AMP_GROUPED_ADD_ROW, 1, 0) AMP_GROUPED_FEW(AMP_GROUPED_ADD_ROW, 1, 0)},
    {AMP_GROUPED_TWOS(AMP_GROUPED_ADD_ROW) AMP_GROUPED_FEW(AMP_GROUPED_ADD_ROW, 2, 0)},
    {AMP_GROUPED_ADDS(AMP_GROUPED_ADD_ROW, 1, 1) AMP_GROUPED_ADD_ROW(3, 3, 1, 1)
         AMP_GROUPED_FEW(AMP_GROUPED_ADD_ROW, 1, 1)}};

AMP_FN void amp_grouped_add_all(const AmpGroupedSum *s, const AmpGroupedAdd *kind, int64_t rows) {
  const AmpGroupedAdd *add = kind;
  for (int64_t r = 0; r < rows; r += add->taps)
    for (int64_t i = 0; i < s->run; i += add->each) {
      for (add = kind; add->each > s->run - i || add->taps > rows - r ||
                       (add->taps > 1 && s->run != add->each);)
        add++;
      add->run(s, r, i);
    }
}

/* ---- columns ---- */

typedef struct AmpGroupedGradLoop {
  const AmpGroupedGrad *a;
  AmpGroups g;
  AmpAxis high, wide;
  int64_t columns, down, across;
  int64_t parts; /* that the columns of a slot are cut into */
} AmpGroupedGradLoop;

/* Floats of the sums of a column. */
AMP_INLINE int64_t amp_grouped_sums(const AmpGroupedGradLoop *l) {
  return l->a->high.taps * l->a->wide.taps * l->g.reads * amp_column_width(&l->g, AMP_WIDE);
}

/* Copies dy of a tile, as vectors. Returns whether any is Inf or NaN. */
AMP_INLINE int amp_grouped_dy_as(const int dtype, const AmpGroupedGrad *a, const void *dy,
                                 const AmpColumn *column, int64_t first, const AmpGroupedSum *s,
                                 float *to) {
  const int64_t width = column->vectors * AMP_WIDE, below = a->rows * a->wide.out * a->k;
  AmpVBits wild = {0};
  for (int64_t h = 0; h < s->rows; h++)
    for (int64_t w = 0; w < s->cols; w++)
      for (int64_t v = 0; v < width; v += AMP_WIDE, to += AMP_WIDE) {
        const int64_t at = (first + h * a->wide.out + w) * a->k + column->first + v;
        const AmpV y = amp_v_read_some(dtype, dy, at, column->n - v);
        __builtin_prefetch((const unsigned char *)dy + (at + below) * amp_size(dtype));
        wild |= amp_v_wild(y);
        amp_v_store(to, y);
      }
  return amp_v_any(wild);
}
AMP_FN int amp_grouped_copy_dy(const AmprtRun *run, const AmpGroupedGradLoop *l,
                               const AmpColumn *column, int64_t first, const AmpGroupedSum *s,
                               float *to) {
  const AmpGroupedGrad *a = l->a;
  return AMP_WITH_TYPE(a->dy.dtype, amp_grouped_dy_as, a, amp_at(run, &a->dy), column, first, s,
                       to);
}

/* Adds up a tile without the products of padding, which would not be 0 where dy has Inf or NaN. The
 * sums have the order of amp_grouped_add. */
AMP_FN void amp_grouped_add_exact(const AmpGroupedGradLoop *l, const AmpColumn *column,
                                  const AmpGroupedSum *s, AmpReach rows, AmpReach cols) {
  const AmpGroupedGrad *a = l->a;
  const int64_t width = column->vectors * AMP_WIDE;
  for (int64_t r = 0; r < a->high.taps; r++)
    for (int64_t i = 0; i < s->run; i++) {
      float sum[AMP_OUTS] = {0};
      for (int64_t h = 0; h < s->rows; h++)
        for (int64_t w = 0; w < s->cols; w++) {
          const int64_t down = rows.first + h * l->high.step + r;
          const int64_t right = cols.first + w * l->wide.step + i / l->g.reads;
          if (down < 0 || down >= a->high.in || right < 0 || right >= a->wide.in)
            continue;
          const float *x = s->x + h * s->row_step + r * s->tap_step + w * s->step +
                           i * (l->g.spread ? AMP_WIDE : 1);
          for (int64_t v = 0; v < width; v += AMP_WIDE)
            amp_v_store(sum + v, amp_v_fma(l->g.spread ? amp_v_load(x) : amp_v_all(*x),
                                           amp_v_load(s->dy + (h * s->cols + w) * width + v),
                                           amp_v_load(sum + v)));
        }
      float *to = s->sums + (r * s->run + i) * width;
      for (int64_t v = 0; v < width; v += AMP_WIDE)
        amp_v_store(to + v, amp_v_load(to + v) + amp_v_load(sum + v));
    }
}

AMP_FN void amp_grouped_grad_tile(const AmprtRun *run, const AmpGroupedGradLoop *l,
                                  const AmpColumn *column, int64_t tile, float *sums) {
  const AmpGroupedGrad *a = l->a;
  const int64_t below = a->rows * l->high.step * a->wide.in * a->c;
  const AmpImages images = {amp_at(run, &a->x), a->high.in, a->wide.in, a->c, below, a->x.dtype};
  unsigned char *lane = amp_lane(run, a->lane, a->lane_bytes);
  float *x = (float *)(void *)lane, *dy = (float *)(void *)(lane + a->dy_at);
  const int64_t image = tile / l->across / l->down, pixel = amp_column_pixel(&l->g, AMP_WIDE);
  const int64_t row = tile / l->across % l->down * a->rows, col = tile % l->across * a->cols;
  AmpGroupedSum s = {.x = x,
                     .dy = dy,
                     .sums = sums,
                     .rows = amp_least(a->rows, a->high.out - row),
                     .cols = amp_least(a->cols, a->wide.out - col),
                     .step = l->wide.step * pixel,
                     .run = a->wide.taps * l->g.reads};
  const AmpReach rows = amp_reach_of(&l->high, row, s.rows);
  const AmpReach cols = amp_reach_of(&l->wide, col, s.cols);
  s.tap_step = amp_grouped_line(&l->g, cols.n, AMP_WIDE);
  s.row_step = l->high.step * s.tap_step;
  for (int64_t i = 0; i < rows.n; i++)
    amp_grouped_copy(&images, &l->g, column, image, rows.first + i, cols, x + i * s.tap_step);
  if (amp_grouped_copy_dy(run, l, column, (image * a->high.out + row) * a->wide.out + col, &s, dy))
    amp_grouped_add_exact(l, column, &s, rows, cols);
  else
    amp_grouped_add_all(&s, amp_grouped_adds[l->g.spread ? 2 : column->vectors - 1], a->high.taps);
}

/* Stores the filter's gradient of a column, whose sums have `width` floats for each element. */
AMP_FN void amp_grouped_grad_store(const AmprtRun *run, const AmpGroupedGradLoop *l,
                                   const AmpColumn *column, const float *sums) {
  const AmpGroupedGrad *a = l->a;
  const int64_t width = column->vectors * AMP_WIDE;
  const int64_t n = a->high.taps * a->wide.taps * l->g.reads;
  void *out = amp_at(run, &a->out);
  for (int64_t k = 0; k < column->n; k++)
    for (int64_t i = 0; i < n; i += AMP_WIDTH) {
      float buf[AMP_BUFFER];
      const int m = (int)amp_least(AMP_WIDTH, n - i);
      for (int j = 0; j < m; j++)
        buf[j] = sums[(i + j) * width + k];
      amp_write(a->out.dtype, out, (column->first + k) * n + i, m, buf);
    }
}

/* Adds up some columns of channels over all tiles of one slot. */
AMP_FN void amp_grouped_grad_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpGroupedGradLoop *l = (const AmpGroupedGradLoop *)args;
  const AmpGroupedGrad *a = l->a;
  const int64_t part = chunk % l->parts, slot = chunk / l->parts, each = amp_grouped_sums(l);
  const int64_t tiles = a->n * l->down * l->across;
  const int64_t first = part * l->columns / l->parts, last = (part + 1) * l->columns / l->parts;
  float *sums = (float *)(void *)(run->arena + a->sums + slot * a->sums_bytes);
  amp_zero(sums + first * each, (last - first) * each);
  for (int64_t t = slot * tiles / a->slots; t < (slot + 1) * tiles / a->slots; t++)
    for (int64_t i = first; i < last; i++) {
      const AmpColumn column = amp_column(&l->g, i);
      amp_grouped_grad_tile(run, l, &column, t, sums + i * each);
    }
}

/* Adds up the slots of a column, in their order. */
AMP_FN void amp_grouped_grad_slots(const AmprtRun *run, const void *args, int64_t i) {
  const AmpGroupedGradLoop *l = (const AmpGroupedGradLoop *)args;
  const AmpGroupedGrad *a = l->a;
  const int64_t each = amp_grouped_sums(l);
  const AmpColumn column = amp_column(&l->g, i);
  float *sums = (float *)(void *)(run->arena + a->sums) + i * each;
  for (int64_t slot = 1; slot < a->slots; slot++)
    for (int64_t j = 0; j < each; j += AMP_WIDE) {
      const float *other = sums + slot * a->sums_bytes / (int64_t)sizeof *sums;
      amp_v_store(sums + j, amp_v_load(sums + j) + amp_v_load(other + j));
    }
  amp_grouped_grad_store(run, l, &column, sums);
}

AMP_LIBRARY_FN(amp_grouped_grad)(const AmprtRun *run, const void *args) {
  enum { CHUNKS = 4 }; /* for each thread, at least */
  const AmpGroupedGrad *a = (const AmpGroupedGrad *)args;
  AmpGroupedGradLoop l = {.a = a,
                          .g = amp_groups(a->groups, a->c, a->k),
                          .high = amp_axis_forward(&a->high),
                          .wide = amp_axis_forward(&a->wide),
                          .down = amp_pieces(a->high.out, a->rows),
                          .across = amp_pieces(a->wide.out, a->cols)};
  l.columns = amp_columns(&l.g, AMP_WIDE);
  l.parts = amp_least(l.columns, amp_pieces(CHUNKS * (int64_t)run->threads->count(), a->slots));
  amp_parallel(run, a->slots * l.parts, amp_grouped_grad_chunk, &l);
  amp_parallel(run, l.columns, amp_grouped_grad_slots, &l);
}

#endif
