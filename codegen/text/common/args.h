/* The arguments of generated kernels. ampcc, which fills them, CPU programs, CUDA kernels and the
 * tables of a CUDA part on the host all read this text, so it is C that is also C++, and every
 * struct has the same layout for each of them. */
#ifndef AMP_ARGS_H
#define AMP_ARGS_H

#include "amprt.h"

#ifndef __CUDACC_RTC__
#define AMP_INF (__builtin_inff())
#define AMP_NAN (__builtin_nanf(""))
#endif

/* The args of a kernel. Compilers align large tables to 32 bytes or more unless they are told. */
#define AMP_ARGS static const __attribute__((aligned(8)))

/* The blocks of memory that operands lie in; numbered as in CudaBlock. */
enum { AMP_ARENA, AMP_STATE, AMP_CONST, AMP_NOWHERE };

/* Programs hold some ten thousand of these, so they are small. */
typedef struct AmpRef {
  int64_t at : 48; /* offset in its block in bytes; CPU, AMP_CONST: the constant's number */
  uint64_t where : 8, dtype : 8; /* AMP_..., AmprtDType */
} AmpRef;

/* The axes of a broadcast's or reverse's result, the innermost last. The stride is the operand's: 0
 * along the axes that the operand lacks, negative along those that run backwards. The result's
 * first element is the operand's element `first`. */
typedef struct AmpIndex {
  int32_t rank;
  int64_t dim[AMPRT_MAX_RANK], stride[AMPRT_MAX_RANK], first;
} AmpIndex;

/* CPU: how a tensor of `total` elements with C channels is cut. A block is `stride` elements: as
 * many rows of C as fit into AMP_WIDTH, or a single longer row, which is cut into `panels` of
 * `width` elements. A chunk is a range of blocks in one panel; there are `groups` ranges. */
typedef struct AmpGrid {
  int64_t total, blocks, groups;
  int32_t stride, width, panels, channels;
} AmpGrid;

/* CUDA: the same tensor as `rows` of `channels`. Sums per channel are made for `groups` of rows. */
typedef struct AmpSpace {
  int64_t total, rows;
  int32_t channels, groups;
} AmpSpace;

/* Softmax, losses, top-k: `rows` of K classes. */
typedef struct AmpRow {
  AmpRef x, other, label, dloss, out; /* other: softmax_grad's y */
  int64_t rows, K, chunks, top;
  double smoothing;
} AmpRow;

/* A sum over axes. The axes of x are split into those that are kept, those that are summed over
 * (`gone`), and the innermost: element (k, g, i) of x lies at index(kept, k) + index(gone, g) + i.
 * With inner_gone the innermost axes are summed over too, and there is one result for each k;
 * otherwise there are `inner` results for each k. */
typedef struct AmpReduce {
  AmpRef x, out;
  AmpIndex kept, gone;
  int64_t n_kept, n_gone, inner, chunks;
  double divide;
  int32_t inner_gone;
} AmpReduce;

/* CUDA: converts images that have arrived as bytes to the port `out`. The runtime sets the two
 * pointers. */
typedef struct AmpPixels {
  const uint8_t *pixel;  /* one per element */
  const double *scaling; /* [images, channels, 2]: AmprtScaling */
  AmpRef out;
  int64_t each; /* elements of an image, which are the work of `parts` blocks */
  int32_t parts, channels;
} AmpPixels;

/* CUDA: a bucket that is summed over ranks. The runtime sets it for each bucket. */
typedef struct AmpTree {
  float *slice, *rest;     /* what this rank adds up: its own numbers, which the sums replace */
  const float *arrived;    /* [ranks, n_slice + n_rest]: what others sent; row `rank` is not read */
  int64_t n_slice, n_rest; /* multiples of 16 */
  int32_t rank, ranks;
} AmpTree;

/* ---- kernels over many tensors ---- */

typedef struct AmpTensor {
  AmpRef x;
  int64_t count;
} AmpTensor;

/* CUDA: the piece of a tensor that one block works on: AMP_CHUNK elements, or fewer at the end,
 * from element chunk * AMP_CHUNK on. */
typedef struct AmpPiece {
  int32_t tensor, chunk;
} AmpPiece;
enum { AMP_CHUNK = 8192 };

typedef struct AmpMany {
  AmpRef list;     /* of AmpTensor, or AmpOpt */
  AmpRef piece;    /* CUDA: of AmpPiece */
  int64_t scratch; /* CUDA: one result per piece, offset in the arena */
  int32_t n, pieces;
} AmpMany;

typedef struct AmpFinite {
  AmpMany of; /* AmpTensor */
  AmpRef out;
} AmpFinite;

typedef struct AmpClipNorm {
  AmpMany of;         /* AmpTensor */
  AmpRef inv, out[2]; /* results: the new inv, and the norm; nowhere if nobody reads it */
  double clip;
} AmpClipNorm;

enum { AMP_MAX_SLOTS = 2, AMP_MAX_OPT_OUT = 4 };

typedef struct AmpOpt {
  AmpRef w, slot[AMP_MAX_SLOTS], g, lr, inv, step, go;
  AmpRef out[AMP_MAX_OPT_OUT]; /* results in the arena: w, slots, copy; nowhere if not read there */
  AmpRef var[AMP_MAX_OPT_OUT]; /* the variables that the same results are stored to */
  int64_t n, chunks, scratch;  /* scratch: offset in the arena, for norms: two doubles per chunk */
  double decay, momentum, trust, epsilon, beta1, beta2, clip; /* clip 0: none */
  int32_t nesterov, decoupled, has_copy, unused;
} AmpOpt;

/* ---- pooling: x is [N,H,W,C], y is [N,P,Q,C] ---- */

typedef struct AmpPool {
  AmpRef in, index, out;
  AmpRef scale, shift; /* of amp_max_pool_scaled */
  int64_t N, H, W, C, P, Q, chunks;
  int32_t window[2], stride[2], pad[2]; /* pad: top, left */
  int32_t include_pad;
} AmpPool;

#endif
