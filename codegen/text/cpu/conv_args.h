/* The arguments of the CPU's own kernels for convolutions and matrix products. A tensor of images
 * is N,H,W,C, a filter K,R,S,C. */
#ifndef AMP_CONV_ARGS_H
#define AMP_CONV_ARGS_H

#include "codegen/text/common/args.h"

/* Channels go in blocks of AMP_BLOCK, those of the result in groups of at most AMP_GROUP (of a
 * filter's gradient: AMP_GRAD_GROUP); the width of vectors says how many make a group. Workspace is
 * planned for AMP_TEAM threads: a program that runs more has one more buffer. */
enum { AMP_BLOCK = 16, AMP_GROUP = 32, AMP_GRAD_GROUP = 64, AMP_TEAM = 4 };

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

/* A convolution, its data gradient (`backward`: `in` is dy, `out` is dx), or the product of two
 * matrices, which is a convolution of one image of one row, whose pixels are the rows of the
 * matrix. */
typedef struct AmpConv {
  AmpRef in, filter, out;
  AmpWindow high, wide;
  int64_t n, c, k;              /* images, channels that are read, channels of the result */
  int64_t in_pixel, in_channel; /* elements from one to the next */
  int64_t filter_out, filter_tap, filter_in;
  int64_t rows, cols;     /* at most so many results of a channel are computed from one tile */
  int64_t packed;         /* offset in the arena: the filter as the kernels read it, */
  int64_t lane;           /* and each thread's memory, */
  int64_t lane_bytes;     /* which are so many */
  int32_t backward, copy; /* copy: or the image is read where it lies */
} AmpConv;

/* The filter's gradient, from x and dy. Its sum over all results is cut into tiles of at most rows
 * x cols results of one image. */
typedef struct AmpConvGrad {
  AmpRef x, dy, out;
  AmpWindow high, wide;
  int64_t n, c, k;
  int64_t rows, cols;
  int32_t copy_x, copy_dy; /* or they are read where they lie */
  int64_t slots;    /* partial sums, each over a fixed range of tiles; added up in their order */
  int64_t together; /* 0: each slot's tiles are copied one by one, by the slot's thread. Else there
                       is one slot, so many tiles are copied at a time, and threads share the parts
                       of the filter. */
  int64_t sums, sums_bytes; /* offset in the arena, and bytes of a slot */
  int64_t lane, lane_bytes; /* the copy of a tile: of each thread, or of each tile together */
} AmpConvGrad;

#endif
