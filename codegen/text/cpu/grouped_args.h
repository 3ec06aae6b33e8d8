/* The arguments of the kernels for grouped convolutions, depthwise ones among them: channels that
 * are read and channels of the result are cut into as many groups, and a channel of the result
 * reads those of its group alone. A tensor of images is N,H,W,C, a filter K,R,S,C/groups. */
#ifndef AMP_GROUPED_ARGS_H
#define AMP_GROUPED_ARGS_H

#include "codegen/text/cpu/conv_args.h"

/* The channels of the result are cut into columns, which become vectors. Where a group makes
 * AMP_BLOCK channels or more, a column is up to two vectors of one group, and each element that is
 * read is broadcast to a vector. Where it makes fewer, a column is one vector of neighbouring
 * channels, and what is read for them is copied `spread`: for each channel of a group that is read
 * a vector, which has in each element what the group of that element's channel reads. */
typedef struct AmpGroups {
  int64_t groups, reads, makes; /* channels that one group reads, and that it makes */
  int32_t spread;
} AmpGroups;

static inline AmpGroups amp_groups(int64_t groups, int64_t c, int64_t k) {
  return (AmpGroups){groups, c / groups, k / groups, k / groups < AMP_BLOCK};
}

/* Columns for vectors of so many floats. */
static inline int64_t amp_columns_of_group(const AmpGroups *g, int64_t wide) {
  return amp_pieces(g->makes, 2 * wide);
}
static inline int64_t amp_columns(const AmpGroups *g, int64_t wide) {
  return g->spread ? amp_pieces(g->groups * g->makes, wide)
                   : g->groups * amp_columns_of_group(g, wide);
}
/* Floats that one element of a column's channels takes, at most. */
static inline int64_t amp_column_width(const AmpGroups *g, int64_t wide) {
  return g->spread ? wide : 2 * wide;
}
/* Floats of a pixel as it is copied for a column. */
static inline int64_t amp_column_pixel(const AmpGroups *g, int64_t wide) {
  return g->spread ? g->reads * wide : g->reads;
}

/* The part of an image that some results read, along one axis: it begins at `first`, perhaps before
 * the image, and has n elements. */
typedef struct AmpReach {
  int64_t first, n;
} AmpReach;

static inline AmpReach amp_reach_of(const AmpAxis *a, int64_t result, int64_t results) {
  return (AmpReach){result * a->step + a->origin,
                    a->taps > 0 ? (results - 1) * a->step + a->taps : 0};
}

/* Floats of a row of so many pixels as it is copied for a column. */
static inline int64_t amp_grouped_line(const AmpGroups *g, int64_t pixels, int64_t wide) {
  return amp_odd_lines(pixels * amp_column_pixel(g, wide));
}

/* A grouped convolution, or its data gradient (`backward`: `in` is dy, `out` is dx). */
typedef struct AmpGrouped {
  AmpRef in, filter, out;
  AmpWindow high, wide;
  int64_t n, c, k, groups; /* images, channels that are read, channels of the result */
  /* elements of the filter from a group, a channel of the result, a tap or a channel that is read
   * to the next */
  int64_t filter_group, filter_out, filter_tap, filter_in;
  /* a tile is at most so many rows of the results of an image (amp_axis_span), of which `cols` at a
   * time are computed, row after row, while the rows that these read are copied */
  int64_t rows, cols;
  int64_t packed;           /* offset in the arena of the filter as the kernels read it */
  int64_t lane, lane_bytes; /* offset of the threads' memory, and bytes of each thread's */
  int32_t backward;
  /* only the loop behind (see amp_grouped_with) reads the results: they may lie anywhere in
   * `out` */
  int32_t passing;
} AmpGrouped;

/* How many rows of the result a row of a tile stands for: all remainders of a data gradient. */
static inline int64_t amp_grouped_rows_of(const AmpGrouped *a) {
  return a->backward ? a->high.stride : 1;
}

/* The tiles, each of which is a run of neighbouring elements of the result. */
static inline AmpTiles amp_grouped_tiles(const AmpGrouped *a) {
  AmpTiles t = {amp_pieces(amp_axis_span(&a->high, a->backward).outs, a->rows), 1, 0, 0};
  t.all = a->n * t.down;
  t.elements = a->rows * amp_grouped_rows_of(a) * a->wide.out * a->k;
  return t;
}

/* The filter's gradient, from x and dy. */
typedef struct AmpGroupedGrad {
  AmpRef x, dy, out;
  AmpWindow high, wide;
  int64_t n, c, k, groups;
  int64_t rows, cols; /* a tile is at most rows x cols results of an image */
  /* How many partial sums there are, each over a range of tiles; bytes of one; where they lie in
   * the arena. */
  int64_t slots, sums_bytes, sums;
  /* each thread's memory: a copy of a tile of x, and at the offset below one of dy */
  int64_t lane, lane_bytes, dy_at;
} AmpGroupedGrad;

#endif
