/* The arguments of the CPU's own kernels for convolutions and matrix products. A tensor of images
 * is N,H,W,C, a filter K,R,S,C. */
#ifndef AMP_CONV_ARGS_H
#define AMP_CONV_ARGS_H

#include "codegen/text/common/args.h"

/* Channels that are read are cut into blocks of AMP_BLOCK. Channels of the result are cut into
 * groups: of two vectors in a convolution, at most AMP_GROUP, and of AMP_GRAD_GROUP in a filter's
 * gradient. Workspace is planned for AMP_TEAM threads; a program that runs more allocates memory
 * for the others when it starts (amp_more_lanes). */
enum { AMP_BLOCK = 16, AMP_GROUP = 32, AMP_GRAD_GROUP = 64, AMP_TEAM = 4 };
enum { AMP_LINE = 64 }; /* bytes of a cache line */

/* Bytes that are left free between what two threads write again and again: in their own memory, and
 * in large sums. Where it lies side by side, threads that share no cache are slower, probably
 * because a CPU fetches ahead, in steps from block to block, what the other thread writes. The
 * figures are in codegen/README.md. */
enum { AMP_APART = 64 << 10, AMP_FAR_APART = 1 << 20 };

static inline int64_t amp_least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t amp_most(int64_t a, int64_t b) {
  return a > b ? a : b;
}
/* The least multiple of `unit` that holds n. */
static inline int64_t amp_ceil(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}
/* amp_pieces: how many pieces of at most `each` n is cut into. amp_even: the size of the largest
 * where that many pieces are as equal as can be. */
static inline int64_t amp_pieces(int64_t n, int64_t each) {
  return (n + each - 1) / each;
}
static inline int64_t amp_even(int64_t n, int64_t each) {
  return amp_pieces(n, amp_pieces(n, each));
}

/* The distance of neighbours, of so many floats each, whose same places are read together: an odd
 * number of cache lines, so that these do not all fall into the same sets of the cache. */
static inline int64_t amp_odd_lines(int64_t floats) {
  const int64_t line = AMP_LINE / (int64_t)sizeof(float);
  return (amp_pieces(floats, line) | 1) * line;
}

/* How a filter and an image meet along one axis. */
typedef struct AmpWindow {
  int64_t in, out; /* size of what is read, and of the result */
  int64_t taps, stride, pad;
} AmpWindow;

/* Does a window of a convolution reach beyond the image? In its data gradient (`backward`) the
 * image is the result. */
static inline int amp_leaves(const AmpWindow *w, int backward) {
  const int64_t image = backward ? w->out : w->in, windows = backward ? w->in : w->out;
  return w->taps > 1 || w->pad || (windows - 1) * w->stride + w->taps > image;
}

/* One axis of results that have the same taps: of all results or, in a data gradient, of those
 * whose positions leave the same remainder when they are divided by the stride. Tap t of result i
 * reads element i * step + t + origin. */
typedef struct AmpAxis {
  int64_t outs, out_first, out_step; /* result i lies at out_first + i * out_step */
  int64_t taps, step, origin;
  int64_t filter_first, filter_step; /* tap t is this row of the filter: first + t * step */
} AmpAxis;

static inline AmpAxis amp_axis_forward(const AmpWindow *w) {
  return (AmpAxis){w->out, 0, 1, w->taps, w->stride, -w->pad, 0, 1};
}

/* Result h of a data gradient is a sum over the rows r of the filter for which h + pad - r is a
 * multiple of the stride. */
static inline AmpAxis amp_axis_backward(const AmpWindow *w, int64_t phase) {
  const int64_t s = w->stride, first = (phase + w->pad) % s;
  AmpAxis a = {amp_pieces(w->out - phase, s), phase, s, 0, 1, 0, 0, -s};
  if (first < w->taps)
    a.taps = (w->taps - first - 1) / s + 1;
  a.origin = (phase + w->pad - first) / s - a.taps + 1;
  a.filter_first = first + s * (a.taps - 1);
  return a;
}

/* One axis for the results of all remainders together: it reads whatever any of them reads. */
static inline AmpAxis amp_axis_span(const AmpWindow *w, int backward) {
  if (!backward)
    return amp_axis_forward(w);
  const int64_t reach = w->pad - w->taps + 1, up = reach < 0 ? 0 : w->stride - 1;
  AmpAxis a = amp_axis_backward(w, 0);
  a.origin = (reach + up) / w->stride;
  a.taps = (w->pad + w->stride - 1) / w->stride - a.origin + 1;
  return a;
}

/* What an axis reads is sorted by the remainder of its position divided by `step`. amp_phases: how
 * many remainders there are. amp_reach: how many elements of each `n` neighbouring results read. */
static inline int64_t amp_phases(const AmpAxis *a) {
  return a->taps < a->step ? a->taps : a->step;
}
static inline int64_t amp_reach(const AmpAxis *a, int64_t n) {
  return a->taps ? n + (a->taps - 1) / a->step : 0;
}

/* A convolution, its data gradient (`backward`: `in` is dy, `out` is dx), or the product of two
 * matrices, which is a convolution of one image of one row, whose pixels are the rows of the
 * matrix. */
typedef struct AmpConv {
  AmpRef in, filter, out;
  AmpWindow high, wide;
  int64_t n, c, k;              /* images, channels that are read, channels of the result */
  int64_t in_pixel, in_channel; /* elements from one pixel or channel to the next */
  /* elements of the filter from one channel of the result, tap or channel read to the next */
  int64_t filter_out, filter_tap, filter_in;
  int64_t images, rows, cols; /* a tile is at most images x rows x cols results of each channel */
  int64_t packed;             /* offset in the arena of the filter as the kernels read it */
  int64_t lane, lane_bytes;   /* offset of the threads' memory, and bytes of each thread's */
  int32_t backward;
  int32_t copy;       /* are tiles of the image copied, or read where they lie? */
  int32_t copy_pairs; /* the same where the CPU multiplies pairs of bf16 */
  /* only the loop behind (see amp_conv_with) reads the results: they may lie anywhere in `out` */
  int32_t passing;
  /* not 0: by Winograd's method (wino.h) in this form (AmpWinoForm), unless the CPU multiplies
   * pairs of bf16; what is called a tile here is then cut into blocks of at most wino_rows rows of
   * wino_images images */
  int32_t winograd;
  int32_t over_pairs; /* is that faster than products of pairs of bf16, but for those of AMX? */
  int32_t wino_images, wino_rows;
  /* not 0: the images are computed in waves of so many (wino.h), whose transformed tiles lie at
   * `packed`; a block is then wino_images whole images */
  int32_t wino_wave;
  /* so many convolutions are computed one after the other, each of the next c and k channels and
   * with the filter behind the one before */
  int32_t groups;
} AmpConv;

/* Elements from one pixel of the result to the next. */
static inline int64_t amp_out_pixel(const AmpConv *a) {
  return a->k * a->groups;
}

/* The tiles that the results of a convolution are cut into. Where a loop follows, each tile is a
 * run of neighbouring elements of the result. */
typedef struct AmpTiles {
  int64_t down, across; /* tiles of an image, from top to bottom and from left to right */
  int64_t all;          /* tiles of all images */
  int64_t elements;     /* of the result in the largest tile */
} AmpTiles;

static inline AmpTiles amp_tiles(const AmpConv *a) {
  const int64_t high = amp_axis_span(&a->high, a->backward).outs;
  const int64_t wide = amp_axis_span(&a->wide, a->backward).outs;
  AmpTiles t = {amp_pieces(high, a->rows), amp_pieces(wide, a->cols), 0, 0};
  t.all = amp_pieces(a->n, a->images) * t.down * t.across;
  t.elements = a->images * a->rows * a->cols * amp_out_pixel(a) *
               (a->backward ? a->high.stride * a->wide.stride : 1);
  return t;
}

/* ---- Winograd's method ---- */

/* For windows of 3 x 3. A tile is `side` results along each axis. The forms are named by how many
 * products these take there, for each channel that is read and each channel of the result, in the
 * place of 3 * side: 4 for 2 results of stride 1, 6 for 4 results of stride 1, 9 for 4 results of
 * stride 2. In a data gradient of stride 2, where each pixel of dy gives two of dx along an axis, a
 * result is such a pair. */
typedef enum AmpWinoForm {
  AMP_WINO_SMALL = 4,
  AMP_WINO_LARGE = 6,
  AMP_WINO_STRIDED = 9
} AmpWinoForm;
enum { AMP_WINO_EDGE = AMP_WINO_STRIDED }; /* the most products along an axis */
enum { AMP_WINO_TAPS = 9 };

/* The points at which the transforms evaluate (wino_tile.h): P and Q for 4 results of stride 1, A
 * and B for stride 2. */
#define AMP_WINO_P 0.625
#define AMP_WINO_Q 1.5
#define AMP_WINO_A 0.75
#define AMP_WINO_B 2.0

static inline int amp_wino_side(int form) {
  return form == AMP_WINO_SMALL ? 2 : 4;
}
/* How many tiles so many results of an axis are cut into. */
static inline int64_t amp_wino_along(int form, int64_t results) {
  return amp_pieces(results, amp_wino_side(form));
}
/* How many products a tile takes. */
static inline int64_t amp_wino_all(int form) {
  return form * form;
}

/* With stride 2 the taps 0 and 2 of an axis meet its even elements, as a window of 2 taps, which
 * has 5 products for 4 results: the first four and the last one. Tap 1 meets the odd elements: the
 * four products before the last are plain ones, all with that tap. amp_wino_filters: how many
 * transformed taps an axis has. amp_wino_filter: which of them product i along an axis takes. */
static inline int amp_wino_filters(int form) {
  return form == AMP_WINO_STRIDED ? 6 : form;
}
static inline int amp_wino_filter(int form, int i) {
  return form != AMP_WINO_STRIDED || i < 4 ? i : i < 8 ? 4 : 5;
}
/* How many transformed taps the filter of two channels has, and which of them product i of a tile
 * takes. */
static inline int64_t amp_wino_all_filters(int form) {
  return amp_wino_filters(form) * amp_wino_filters(form);
}
static inline int amp_wino_filter_of(int form, int i) {
  return amp_wino_filter(form, i / form) * amp_wino_filters(form) + amp_wino_filter(form, i % form);
}

/* How the results of one axis are cut into tiles: the last `less` ones have side - 1 results. They
 * read as much as the others, but do not need the last of their products, amp_wino_spared, which
 * give only the last result of a tile. So 14 results are 4 + 4 + 3 + 3, and with stride 1 take 22
 * products instead of 24. If the results are not `all` of the axis, every tile has `side`: some may
 * lie beyond the last result. */
typedef struct AmpWinoCut {
  int64_t tiles, less;
} AmpWinoCut;

static inline int amp_wino_spared(int form) {
  return form == AMP_WINO_STRIDED ? 2 : 1;
}
static inline AmpWinoCut amp_wino_cut(int64_t results, int form, int all) {
  const int64_t tiles = amp_wino_along(form, results), room = tiles * amp_wino_side(form);
  return (AmpWinoCut){tiles, all ? amp_least(tiles, room - results) : 0};
}
/* How many tiles have `side` results: those before the others. */
static inline int64_t amp_wino_whole(const AmpWinoCut *c) {
  return c->tiles - c->less;
}
/* The first result of tile t. */
static inline int64_t amp_wino_first(const AmpWinoCut *c, int form, int64_t t) {
  return t * amp_wino_side(form) - amp_most(0, t - amp_wino_whole(c));
}

/* The tiles of some images, in this order: those with all results, those with fewer rows, with
 * fewer columns, and with fewer of both. Tiles with fewer rows lack the last rows of products,
 * those with fewer columns the last columns. So the tiles that have one of the products lie side by
 * side once those that lack it are left out. */
typedef struct AmpWinoTiles {
  int form;
  int64_t images;
  AmpWinoCut high, wide;
  int64_t all;
} AmpWinoTiles;

/* Of rows that have so many results each. */
static inline AmpWinoTiles amp_wino_tiles_of(int form, int64_t images, AmpWinoCut high,
                                             int64_t results) {
  const AmpWinoCut wide = amp_wino_cut(results, form, 1);
  return (AmpWinoTiles){form, images, high, wide, images * high.tiles * wide.tiles};
}
/* How many tiles there are with fewer rows, or not, and with fewer columns, or not. */
static inline int64_t amp_wino_kind(const AmpWinoTiles *t, int less_high, int less_wide) {
  return t->images * (less_high ? t->high.less : amp_wino_whole(&t->high)) *
         (less_wide ? t->wide.less : amp_wino_whole(&t->wide));
}
/* Is product i of the last columns (1), of the last rows (2), of both (3), or of neither (0), which
 * tiles with fewer results lack? */
enum { AMP_WINO_LASTS = 4 };
static inline int amp_wino_lasts(int form, int i) {
  const int last = form - amp_wino_spared(form);
  return (i / form >= last) * 2 + (i % form >= last);
}
/* How many tiles have the products for which amp_wino_lasts is so. */
static inline int64_t amp_wino_having(const AmpWinoTiles *t, int lasts) {
  return t->images * (lasts & 2 ? amp_wino_whole(&t->high) : t->high.tiles) *
         (lasts & 1 ? amp_wino_whole(&t->wide) : t->wide.tiles);
}

/* Neighbouring tiles of one row that all have fewer columns, or all not. */
typedef struct AmpWinoStrip {
  int64_t tiles;
  int64_t image, row, col; /* of the first result of the first tile */
  int64_t at;              /* the number of the first tile in the order of AmpWinoTiles; */
  int64_t last;            /* what is added to it for products of the last rows */
  int less_high, less_wide;
} AmpWinoStrip;

/* How many strips a row of tiles has, 1 or 2. */
static inline int amp_wino_strips(const AmpWinoTiles *t) {
  return t->wide.less ? 2 : 1;
}
/* Strip 0 or 1 of a row of tiles, of which each image has t->high.tiles. */
static inline AmpWinoStrip amp_wino_strip(const AmpWinoTiles *t, int64_t row, int less_wide) {
  const int64_t image = row / t->high.tiles, down = row % t->high.tiles;
  const int64_t high = amp_wino_whole(&t->high), wide = amp_wino_whole(&t->wide);
  AmpWinoStrip s = {.tiles = less_wide ? t->wide.less : wide,
                    .image = image,
                    .row = amp_wino_first(&t->high, t->form, down),
                    .col = less_wide ? wide * amp_wino_side(t->form) : 0,
                    .less_high = down >= high,
                    .less_wide = less_wide};
  s.at = (s.less_high ? image * t->high.less + down - high : image * high + down) * s.tiles;
  if (s.less_high || less_wide)
    s.at += amp_wino_kind(t, 0, 0);
  if (less_wide) {
    s.at += amp_wino_kind(t, 1, 0) + (s.less_high ? amp_wino_kind(t, 0, 1) : 0);
    s.last = s.less_high ? 0 : -amp_wino_kind(t, 1, 0);
  }
  return s;
}

/* How many results an axis has, where those of a data gradient of stride 2 are pairs. */
static inline int64_t amp_wino_results(const AmpConv *a, const AmpWindow *axis) {
  return amp_axis_span(axis, a->backward).outs;
}

/* How many tiles a block has. Register tiles may compute products for up to
 * AMP_WINO_MORE tiles behind the last one. */
static inline int64_t amp_wino_tiles(const AmpConv *a) {
  return a->wino_images * amp_wino_along(a->winograd, a->wino_rows) *
         amp_wino_along(a->winograd, amp_wino_results(a, &a->wide));
}
enum { AMP_WINO_MORE = 15 };

/* So many channels are read at a time: what a register tile reads of the filter for them, 16 KB at
 * most, stays in the first-level cache. With half as many, sums would be loaded and stored twice as
 * often: a step of ResNet-50 would be 0.98 times as fast with AVX-512 (f32, batch 8, Zen 5), and
 * such convolutions 0.97 times with AVX2 (tests/bench/cpu_layers, Zen 3). */
enum { AMP_WINO_CHANNELS = 128 };

/* Transformed data is stored product by product, in amp_wino_all arrays, and the filter in
 * amp_wino_all_filters. amp_wino_in_step: floats from one array of so many tiles to the next.
 * amp_wino_part_step: floats from one array to the next of the filter of one group of channels of
 * the result and the channels that are read at a time. */
static inline int64_t amp_wino_in_step(const AmpConv *a, int64_t tiles) {
  return amp_odd_lines(tiles * amp_ceil(a->c, AMP_BLOCK) + AMP_WINO_MORE * AMP_BLOCK);
}
static inline int64_t amp_wino_part_step(const AmpConv *a) {
  return amp_odd_lines(amp_least(amp_ceil(a->c, AMP_BLOCK), AMP_WINO_CHANNELS) * AMP_GROUP);
}

/* Is the transformed filter so large that it would come from memory for each block? */
static inline int amp_wino_is_large(const AmpConv *a) {
  enum { LARGE = 8 << 20 };
  return a->c * a->k * amp_wino_all_filters(a->winograd) * (int64_t)sizeof(float) >= LARGE;
}

/* Floats of the transformed tiles of a block. */
static inline int64_t amp_wino_in_floats(const AmpConv *a) {
  return amp_wino_all(a->winograd) * amp_wino_in_step(a, amp_wino_tiles(a));
}

/* May products take the place of the transformed elements that they are made of, so that twice as
 * many tiles fit a cache? They may if one block holds all channels that are read, and one group all
 * of the result, because several groups all read the elements. How many channels a group has
 * depends on the CPU (AMP_OUTS), so kernels look at that as well. */
static inline int amp_wino_in_place(const AmpConv *a) {
  return a->c <= AMP_BLOCK && a->k <= AMP_BLOCK && !a->wino_wave;
}

/* The memory of a thread, in bytes from its start: the list of taps, a copy of what a block reads
 * of one image, the transformed tiles or, where those are in memory, a part of the filter, and the
 * products of a group of channels. Where a result is not finite, the copy is made, and the place of
 * the products holds the packed filter of that group. While tiles are transformed, that place holds
 * copies of rows (amp_wino_rows). */
typedef struct AmpWinoLane {
  int64_t copy, in, products, bytes;
} AmpWinoLane;

static inline AmpWinoLane amp_wino_lane(const AmpConv *a) {
  const int64_t f32 = sizeof(float), all = amp_wino_all(a->winograd);
  const int64_t channels = amp_ceil(a->c, AMP_BLOCK);
  const int64_t tiles = amp_wino_tiles(a), filter = AMP_WINO_TAPS * channels * AMP_GROUP;
  const int64_t products = all * amp_odd_lines((tiles + AMP_WINO_MORE) * AMP_GROUP);
  const AmpAxis high = amp_axis_span(&a->high, a->backward);
  const AmpAxis wide = amp_axis_span(&a->wide, a->backward);
  const int64_t rows = amp_phases(&high) * amp_reach(&high, a->wino_rows);
  const int64_t cols = amp_phases(&wide) * amp_reach(&wide, wide.outs);
  AmpWinoLane l = {.copy = 256};
  l.in = l.copy + rows * cols * channels * f32;
  l.products = l.in + (a->wino_wave ? amp_wino_all_filters(a->winograd) * amp_wino_part_step(a)
                                    : all * amp_wino_in_step(a, tiles)) *
                          f32;
  l.bytes = l.products + amp_most(products, filter) * f32;
  return l;
}

/* The filter's gradient, from x and dy. Each of its elements belongs to a tap, a channel of x and a
 * channel of dy, and is a sum of products over all results of the convolution. A register tile
 * multiplies vectors of neighbouring channels of one of the two tensors with single channels of the
 * other one, which are called units here: each is broadcast to all elements of a vector. The
 * results are cut into tiles of at most rows x cols results of `images` images. */
typedef struct AmpConvGrad {
  AmpRef x, dy, out;
  AmpWindow high, wide;
  int64_t n, c, k;
  /* not 0: x has so few channels, `few`, that a row of the filter counts as one tap of
   * few * (taps of the row) = c channels */
  int64_t few;
  int32_t vec_x;  /* vectors are of channels of x and units of dy; else the other way round */
  int32_t groups; /* as in AmpConv */
  int64_t images, rows, cols;
  /* the sums that a thread computes at a time are of at most so many blocks of units and groups of
   * vectors */
  int64_t part_blocks, part_groups;
  int32_t copy_x, copy_dy; /* are tiles of them copied, or read where they lie? */
  /* how many partial sums there are, each over a fixed range of tiles; 1: a thread computes the
   * sums of a part over all tiles */
  int64_t slots;
  int64_t sums, sums_bytes; /* where the slots lie in the arena, and bytes of one */
  /* each thread's memory: a list of taps, and at the offsets below the copies of a tile and the
   * sums of a part */
  int64_t lane, lane_bytes;
  int64_t x_at, dy_at, sums_at;
  /* not 0: by Winograd's method in this form, of stride 1. A piece is wino_rows rows of
   * wino_images images, a part is at most wino_blocks blocks of channels of dy and one group of
   * channels of x, and all pieces are shared out to wino_slots slots. */
  int32_t winograd;
  int32_t over_pairs; /* is that faster than products of pairs of bf16, but for those of AMX? */
  int32_t wino_images, wino_rows, wino_blocks, wino_slots;
  /* not 0: several parts read the same channels, so all threads transform x and dy as a whole
   * before any part is computed, to where the slots would lie; there is one piece and one slot */
  int32_t wino_shared;
} AmpConvGrad;

/* Floats from the sums of one channel of dy to those of the next: one for each channel of x of a
 * group. */
static inline int64_t amp_wino_grad_ins(const AmpConvGrad *a) {
  return amp_least(amp_ceil(a->c, AMP_BLOCK), AMP_GRAD_GROUP);
}
/* Floats that the sums of a block of channels of dy and a group of channels of x take. */
static inline int64_t amp_wino_grad_each(const AmpConvGrad *a) {
  return amp_wino_all(a->winograd) * amp_odd_lines(AMP_BLOCK * amp_wino_grad_ins(a));
}
/* Floats that all sums of a slot take. */
static inline int64_t amp_wino_grad_sums(const AmpConvGrad *a) {
  return amp_pieces(a->c, AMP_GRAD_GROUP) * amp_pieces(a->k, AMP_BLOCK) * amp_wino_grad_each(a);
}
/* Floats from the sums of a slot to those of the next. 512 KB and more lie AMP_FAR_APART. */
static inline int64_t amp_wino_grad_slot(const AmpConvGrad *a) {
  enum { LARGE = 1 << 17 }; /* floats */
  const int64_t sums = amp_wino_grad_sums(a);
  return sums < LARGE ? sums : sums + AMP_FAR_APART / (int64_t)sizeof(float);
}
static inline int64_t amp_wino_grad_pieces(const AmpConvGrad *a) {
  return amp_pieces(a->n, a->wino_images) * amp_pieces(a->high.out, a->wino_rows);
}

/* How the transformed tiles of a piece are stored, in floats: product by product, one group of
 * channels of x in `x` floats, and in `dy` floats all blocks of channels of dy of a part or, where
 * the tiles are shared, one block. x_step and dy_step lead from one product to the next, dy_block
 * from one block to the next. */
typedef struct AmpWinoGradTiles {
  int64_t x_step, dy_step, dy_block, x, dy;
} AmpWinoGradTiles;

/* Of so many tiles, and for parts of so many blocks. */
static inline AmpWinoGradTiles amp_wino_grad_tiles(const AmpConvGrad *a, int64_t tiles,
                                                   int64_t blocks) {
  const int64_t all = amp_wino_all(a->winograd), block = tiles * AMP_BLOCK;
  AmpWinoGradTiles t = {.x_step = amp_odd_lines(tiles * amp_wino_grad_ins(a)),
                        .dy_step = amp_odd_lines(a->wino_shared ? block : blocks * block)};
  t.x = all * t.x_step;
  t.dy = all * t.dy_step;
  t.dy_block = a->wino_shared ? t.dy : block;
  return t;
}
/* The same of the largest piece and part. */
static inline AmpWinoGradTiles amp_wino_grad_most(const AmpConvGrad *a) {
  const int64_t down = amp_wino_along(a->winograd, a->wino_rows);
  const int64_t tiles = a->wino_images * down * amp_wino_along(a->winograd, a->wide.out);
  return amp_wino_grad_tiles(a, tiles, a->wino_blocks);
}

/* The memory of a thread that computes a part of a filter's gradient by Winograd's method, in
 * floats from its start: the sums, if there is one slot, the transformed tiles of x and of dy,
 * unless they are shared, and copies of rows (amp_wino_rows). */
typedef struct AmpWinoGradLane {
  int64_t x, dy, copy, all;
} AmpWinoGradLane;

static inline AmpWinoGradLane amp_wino_grad_lane(const AmpConvGrad *a) {
  const AmpWinoGradTiles tiles = amp_wino_grad_most(a);
  AmpWinoGradLane l = {.x = a->wino_slots > 1 ? 0 : a->wino_blocks * amp_wino_grad_each(a)};
  l.dy = l.x + (a->wino_shared ? 0 : tiles.x);
  l.copy = l.dy + (a->wino_shared ? 0 : tiles.dy);
  l.all = l.copy + a->winograd * amp_most(a->wide.in, a->wide.out) * AMP_BLOCK;
  return l;
}

static inline int64_t amp_grad_taps(const AmpConvGrad *a) {
  return a->high.taps * (a->few ? 1 : a->wide.taps);
}
static inline int64_t amp_grad_units(const AmpConvGrad *a) {
  return a->vec_x ? a->k : a->c;
}
static inline int64_t amp_grad_vecs(const AmpConvGrad *a) {
  return a->vec_x ? a->c : a->k;
}
static inline int64_t amp_grad_blocks(const AmpConvGrad *a) {
  return amp_pieces(amp_grad_units(a), AMP_BLOCK);
}
static inline int64_t amp_grad_groups(const AmpConvGrad *a) {
  return amp_pieces(amp_grad_vecs(a), AMP_GRAD_GROUP);
}
/* Floats from the sums of one unit to those of the next: one for each channel of a group of
 * vectors. */
static inline int64_t amp_grad_outs(const AmpConvGrad *a) {
  return amp_least(amp_ceil(amp_grad_vecs(a), AMP_BLOCK), AMP_GRAD_GROUP);
}
/* How many results a register tile adds up before that is added to the sums: as many as fit the
 * first-level cache with all that is read for them of one group of vectors and one block of
 * units. */
static inline int64_t amp_grad_piece(const AmpConvGrad *a) {
  enum { FLOATS = 8320 };
  const int64_t in = a->few ? a->few * a->wide.stride : amp_grad_units(a);
  return FLOATS / (amp_grad_outs(a) + amp_least(in, AMP_BLOCK));
}
/* Floats of a row of the copy of few channels, with room for a vector that is stored behind the
 * last one. */
static inline int64_t amp_grad_row(const AmpConvGrad *a, int64_t cols) {
  const int64_t n = ((cols - 1) * a->wide.stride + a->wide.taps) * a->few;
  return amp_ceil(n, AMP_BLOCK) + AMP_BLOCK;
}

/* Which results a register tile sums, and the distances between the units and vectors that it
 * reads, in floats. */
typedef struct AmpGradTile {
  int64_t images, rows, cols;
  int64_t unit_image, unit_row, unit_col;
  int64_t vec_image, vec_row, vec_col, vec_block;
  int64_t outs; /* from the sums of one unit to the next */
} AmpGradTile;
typedef struct AmpGradTap { /* what one tap sums, and the first unit and vector that it reads */
  AmpGradTile tile;
  int64_t unit, vec;
} AmpGradTap;

#endif
