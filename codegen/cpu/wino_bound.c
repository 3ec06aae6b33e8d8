#include "codegen/cpu/wino_bound.h"

#include "codegen/cpu/own_plan.h"

#include <float.h>
#include <math.h>

/* The most products of a tile, and the most transformed taps of a filter. */
enum { EDGE = AMP_WINO_EDGE, ALL = EDGE * EDGE, TAPS = AMP_WINO_LARGE * AMP_WINO_LARGE };

static double gamma_of(int64_t n) {
  const double u = 0x1p-24;
  return (double)n * u / (1 - (double)n * u);
}

/* ---- magnitudes through the transforms ---- */

/* The magnitudes of a transform's factors. */
typedef struct Factors {
  int rows, cols;
  double at[EDGE][EDGE];
} Factors;

/* The transforms of wino_tile.h, and the roundings of convolutions and of filters' gradients beside
 * those of the sums of products. */
typedef struct Method {
  Factors b, g, gt, a, e; /* B', G, G', A', A */
  int conv_roundings, grad_roundings;
} Method;

static const Method small = {
    .b = {4, 4, {{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}}},
    .g = {4, 3, {{1, 0, 0}, {.5, .5, .5}, {.5, .5, .5}, {0, 0, 1}}},
    .gt = {3, 4, {{1, .5, .5, 0}, {0, .5, .5, 0}, {0, .5, .5, 1}}},
    .a = {2, 4, {{1, 1, 1, 0}, {0, 1, 1, 1}}},
    .e = {4, 2, {{1, 0}, {1, 1}, {1, 1}, {0, 1}}},
    .conv_roundings = 10,
    .grad_roundings = 7,
};

#define P   AMP_WINO_P
#define Q   AMP_WINO_Q
#define Z   (1 / (P * P * Q * Q))
#define F_P (1 / (2 * P * P * (Q * Q - P * P)))
#define F_Q (1 / (2 * Q * Q * (Q * Q - P * P)))
static const Method large = {
    .b = {6,
          6,
          {{P * P * Q * Q, 0, P *P + Q *Q, 0, 1, 0},
           {0, P *Q *Q, Q *Q, P, 1, 0},
           {0, P *Q *Q, Q *Q, P, 1, 0},
           {0, Q *P *P, P *P, Q, 1, 0},
           {0, Q *P *P, P *P, Q, 1, 0},
           {0, P *P *Q *Q, 0, P *P + Q *Q, 0, 1}}},
    .g = {6,
          3,
          {{Z, 0, 0},
           {F_P, P *F_P, P *P *F_P},
           {F_P, P *F_P, P *P *F_P},
           {F_Q, Q *F_Q, Q *Q *F_Q},
           {F_Q, Q *F_Q, Q *Q *F_Q},
           {0, 0, 1}}},
    .gt = {3,
           6,
           {{Z, F_P, F_P, F_Q, F_Q, 0},
            {0, P *F_P, P *F_P, Q *F_Q, Q *F_Q, 0},
            {0, P *P *F_P, P *P *F_P, Q *Q *F_Q, Q *Q *F_Q, 1}}},
    .a = {4,
          6,
          {{1, 1, 1, 1, 1, 0},
           {0, P, P, Q, Q, 0},
           {0, P *P, P *P, Q *Q, Q *Q, 0},
           {0, P *P *P, P *P *P, Q *Q *Q, Q *Q *Q, 1}}},
    .e = {6,
          4,
          {{1, 0, 0, 0},
           {1, P, P *P, P *P *P},
           {1, P, P *P, P *P *P},
           {1, Q, Q *Q, Q *Q *Q},
           {1, Q, Q *Q, Q *Q *Q},
           {0, 0, 0, 1}}},
    .conv_roundings = 24,
    .grad_roundings = 26,
};

#define A   AMP_WINO_A
#define B   AMP_WINO_B
#define G_0 (1 / (A * A * B))
#define G_1 (1 / (2 * A * A * (B - A)))
#define G_2 (1 / (2 * A * A * (B + A)))
#define G_3 (1 / (B * (B * B - A * A)))
#define STRIDED_G                                                                                  \
  {                                                                                                \
    6, 3, {                                                                                        \
      {G_0, 0, 0}, {G_1, 0, A * G_1}, {G_2, 0, A * G_2}, {G_3, 0, B * G_3}, {0, 1, 0}, {           \
        0, 0, 1                                                                                    \
      }                                                                                            \
    }                                                                                              \
  }
static const Method strided = {
    .b = {9,
          9,
          {{A * A * B, 0, A *A, 0, B, 0, 1},
           {0, 0, A *B, 0, A + B, 0, 1},
           {0, 0, A *B, 0, A + B, 0, 1},
           {0, 0, A *A, 0, 0, 0, 1},
           {0, 1},
           {0, 0, 0, 1},
           {0, 0, 0, 0, 0, 1},
           {0, 0, 0, 0, 0, 0, 0, 1},
           {0, 0, A *A *B, 0, A *A, 0, B, 0, 1}}},
    .g = STRIDED_G,
    .a = {4,
          9,
          {{1, 1, 1, 1, 1},
           {0, A, A, B, 0, 1},
           {0, A *A, A *A, B *B, 0, 0, 1},
           {0, A *A *A, A *A *A, B *B *B, 0, 0, 0, 1, 1}}},
    .conv_roundings = 18,
};
/* For data gradients of stride 2. */
static const Method strided_back = {
    .b = {9,
          5,
          {{A * A * B, A *A, B, 1},
           {0, A *B, A + B, 1},
           {0, A *B, A + B, 1},
           {0, A *A, 0, 1},
           {1},
           {0, 1},
           {0, 0, 1},
           {0, 0, 0, 1},
           {0, A *A *B, A *A, B, 1}}},
    .g = STRIDED_G,
    .a = {8,
          9,
          {{0, 0, 0, 0, 1},
           {1, 1, 1, 1},
           {0, 0, 0, 0, 0, 1},
           {0, A, A, B},
           {0, 0, 0, 0, 0, 0, 1},
           {0, A *A, A *A, B *B},
           {0, 0, 0, 0, 0, 0, 0, 1},
           {0, A *A *A, A *A *A, B *B *B, 0, 0, 0, 0, 1}}},
    .conv_roundings = 18,
};

static const Method *method_of(int form, bool backward) {
  return form == AMP_WINO_SMALL   ? &small
         : form == AMP_WINO_LARGE ? &large
         : backward               ? &strided_back
                                  : &strided;
}

/* to = T x T' for x, f->cols in square; `to` is f->rows in square. */
static void both_ways(const Factors *f, const double *x, double *to) {
  double half[EDGE][EDGE] = {{0}};
  for (int i = 0; i < f->rows; i++)
    for (int j = 0; j < f->cols; j++)
      for (int k = 0; k < f->cols; k++)
        half[i][j] += f->at[i][k] * x[k * f->cols + j];
  for (int i = 0; i < f->rows; i++)
    for (int j = 0; j < f->rows; j++) {
      double sum = 0;
      for (int k = 0; k < f->cols; k++)
        sum += half[i][k] * f->at[j][k];
      to[i * f->rows + j] = sum;
    }
}

/* ---- convolutions and their data gradients ---- */

typedef struct Bounding {
  Arena *arena;
  const AmpConv *conv;
  const AmpConvGrad *grad;
  const double *in, *filter; /* of a filter's gradient: dy */
  double *out;
  bool overflows; /* may a number on the way be too large for f32? */
} Bounding;

static double seen(Bounding *b, double x) {
  b->overflows |= !(x < FLT_MAX / 16);
  return x;
}

/* Transforms the magnitudes of n numbers. Products that are subnormal are off by 2^-150 each, which
 * together are less than gamma(11) or, for the larger tiles' more products, gamma(19) of 2^-124. */
static void transformed(Bounding *b, const Factors *by, const double *x, double *to) {
  both_ways(by, x, to);
  for (int p = 0; p < by->rows * by->rows; p++)
    to[p] = seen(b, to[p]) + 0x1p-124;
}

/* Some rows and columns of an image: what a tile reads, or its results. */
typedef struct Square {
  int64_t image, h, w, rows, cols;
} Square;

/* The results of tile i of all images, one behind the other. Those of a data gradient of stride 2
 * are pairs. */
static Square tile_at(const AmpWinoTiles *t, int64_t i) {
  int64_t wide = i % t->wide.tiles, high = i / t->wide.tiles % t->high.tiles;
  return (Square){.image = i / t->wide.tiles / t->high.tiles,
                  .h = amp_wino_first(&t->high, t->form, high),
                  .w = amp_wino_first(&t->wide, t->form, wide),
                  .rows = amp_wino_side(t->form) - (high >= amp_wino_whole(&t->high)),
                  .cols = amp_wino_side(t->form) - (wide >= amp_wino_whole(&t->wide))};
}

/* What a tile reads. */
static Square read_by(Square tile, const AmpAxis *high, const AmpAxis *wide) {
  return (Square){tile.image, tile.h * high->step + high->origin,
                  tile.w * wide->step + wide->origin, EDGE, EDGE};
}

/* Transforms the magnitudes of a square's elements, channel by channel: [channel][ALL]. Images have
 * the dimensions `dim`, and their pixels lie `pixel` elements apart. What is beyond an image or the
 * square counts as 0. */
static void transformed_square(Bounding *b, const double *from, const int64_t dim[4], int64_t pixel,
                               Square at, const Factors *by, double *to) {
  for (int64_t c = 0; c < dim[3]; c++, to += ALL) {
    double d[ALL];
    for (int i = 0; i < by->cols * by->cols; i++) {
      int64_t y = at.h + i / by->cols, x = at.w + i % by->cols;
      bool inside = y >= 0 && y < amp_least(dim[1], at.h + at.rows) && x >= 0 &&
                    x < amp_least(dim[2], at.w + at.cols);
      d[i] = inside ? fabs(from[((at.image * dim[1] + y) * dim[2] + x) * pixel + c]) : 0;
    }
    transformed(b, by, d, to);
  }
}

/* |G||g||G'| of all channels: [k][c][TAPS]. */
static double *transformed_filter(Bounding *b, const Method *method) {
  const AmpConv *a = b->conv;
  double *u = arena_alloc(b->arena, (size_t)(a->k * a->c * TAPS) * sizeof *u), g[AMP_WINO_TAPS];
  for (int64_t k = 0; k < a->k; k++)
    for (int64_t c = 0; c < a->c; c++) {
      for (int64_t t = 0; t < AMP_WINO_TAPS; t++)
        g[a->backward ? AMP_WINO_TAPS - 1 - t : t] =
            fabs(b->filter[k * a->filter_out + t * a->filter_tap + c * a->filter_in]);
      transformed(b, &method->g, g, u + (k * a->c + c) * TAPS);
    }
  return u;
}

/* The bounds of one tile, from its transformed operands. */
static void bound_tile(Bounding *b, const double *u, const double *v, Square at) {
  const AmpConv *a = b->conv;
  const Method *method = method_of(a->winograd, a->backward);
  int gives = method->a.rows, each = gives / amp_wino_side(a->winograd);
  int64_t h = at.h * each, w = at.w * each;
  double gamma = gamma_of(a->c + method->conv_roundings);
  for (int64_t k = 0; k < a->k; k++) {
    double m[ALL], y[ALL];
    for (int p = 0; p < ALL; p++)
      m[p] = 0x1p-123; /* gamma(c + 10) of which is more than c * 2^-150 */
    for (int64_t c = 0; c < a->c; c++)
      for (int p = 0; p < amp_wino_all(a->winograd); p++)
        m[p] += u[(k * a->c + c) * TAPS + amp_wino_filter_of(a->winograd, p)] * v[c * ALL + p];
    transformed(b, &method->a, m, y);
    for (int i = 0; i < gives * gives; i++) {
      int64_t row = i / gives, col = i % gives;
      if (row < amp_least(at.rows * each, a->high.out - h) &&
          col < amp_least(at.cols * each, a->wide.out - w))
        b->out[((at.image * a->high.out + h + row) * a->wide.out + w + col) * amp_out_pixel(a) +
               k] = gamma * y[i];
    }
  }
}

static void bound_conv(Bounding *b) {
  const AmpConv *a = b->conv;
  const Method *method = method_of(a->winograd, a->backward);
  const int64_t in[4] = {a->n, a->high.in, a->wide.in, a->c};
  AmpAxis high = amp_axis_span(&a->high, a->backward);
  AmpAxis wide = amp_axis_span(&a->wide, a->backward);
  const double *u = transformed_filter(b, method);
  double *v = arena_alloc(b->arena, (size_t)(a->c * ALL) * sizeof *v);
  AmpWinoCut down = amp_wino_cut(high.outs, a->winograd, a->wino_rows >= high.outs);
  AmpWinoTiles tiles = amp_wino_tiles_of(a->winograd, a->n, down, wide.outs);
  for (int64_t i = 0; i < tiles.all; i++) {
    const Square tile = tile_at(&tiles, i);
    transformed_square(b, b->in, in, a->in_pixel, read_by(tile, &high, &wide), &method->b, v);
    bound_tile(b, u, v, tile);
  }
}

/* ---- filters' gradients ---- */

static void bound_grad(Bounding *b) {
  const AmpConvGrad *a = b->grad;
  const Method *method = method_of(a->winograd, false);
  const AmpAxis high_axis = amp_axis_forward(&a->high), wide_axis = amp_axis_forward(&a->wide);
  const int64_t in[4] = {a->n, a->high.in, a->wide.in, a->c};
  const int64_t out[4] = {a->n, a->high.out, a->wide.out, a->k};
  int64_t all = amp_wino_all(a->winograd);
  int64_t down = amp_pieces(a->wino_rows, amp_wino_side(a->winograd));
  AmpWinoCut high = amp_wino_cut(a->high.out, a->winograd, a->wino_rows >= a->high.out);
  AmpWinoTiles tiles = amp_wino_tiles_of(a->winograd, a->n, high, a->wide.out);
  int64_t pieces = amp_pieces(amp_wino_grad_pieces(a), a->wino_slots);
  double gamma = gamma_of(a->wino_images * down * tiles.wide.tiles + pieces + a->wino_slots +
                          method->grad_roundings);
  double *x = arena_alloc(b->arena, (size_t)(a->c * ALL) * sizeof *x);
  double *dy = arena_alloc(b->arena, (size_t)(a->k * ALL) * sizeof *dy);
  double *sum = arena_alloc(b->arena, (size_t)(a->k * a->c * TAPS) * sizeof *sum);
  for (int64_t t = 0; t < tiles.all; t++) {
    const Square tile = tile_at(&tiles, t);
    transformed_square(b, b->in, in, a->c * a->groups, read_by(tile, &high_axis, &wide_axis),
                       &method->b, x);
    transformed_square(b, b->filter, out, a->k * a->groups, tile, &method->e, dy);
    for (int64_t i = 0; i < a->k * a->c; i++)
      for (int p = 0; p < all; p++)
        sum[i * TAPS + p] += dy[i / a->c * ALL + p] * x[i % a->c * ALL + p];
  }
  for (int64_t k = 0; k < a->k; k++)
    for (int64_t c = 0; c < a->c; c++) {
      double m[TAPS], taps[TAPS];
      for (int p = 0; p < all; p++)
        m[p] = seen(b, sum[(k * a->c + c) * TAPS + p]) + 0x1p-123;
      transformed(b, &method->gt, m, taps);
      for (int64_t t = 0; t < AMP_WINO_TAPS; t++)
        b->out[(k * AMP_WINO_TAPS + t) * a->c + c] = gamma * taps[t];
    }
}

/* Of one group of channels. */
static void bound_group(Bounding *all, bool is_grad, int64_t g) {
  Bounding b = *all;
  int64_t c = is_grad ? b.grad->c : b.conv->c, k = is_grad ? b.grad->k : b.conv->k;
  int64_t filter = g * k * AMP_WINO_TAPS * c;
  b.in += g * c;
  b.filter += is_grad ? g * k : filter;
  b.out += is_grad ? filter : g * k;
  (is_grad ? bound_grad : bound_conv)(&b);
  all->overflows |= b.overflows;
}

/* ---- the bound of the direct kernel ---- */

/* The sum of the magnitudes of all terms of each result; with `tiny` 0 or 1, of those whose operand
 * of that number is below 2^-126. */
static const double *magnitudes(Arena *arena, const Node *node, const EvalTensor *args, int tiny) {
  EvalTensor bare[2], sum[MAX_RESULTS];
  for (int i = 0; i < 2; i++) {
    bare[i] = eval_tensor_new(arena, args[i].type);
    for (int64_t j = 0; j < type_count(args[i].type); j++)
      bare[i].v[j] = i == tiny && fabs(args[i].v[j]) >= 0x1p-126 ? 0 : fabs(args[i].v[j]);
  }
  eval_node(node, bare, sum, arena);
  return sum[0].v;
}

/* Where CPUs multiply bf16, they take and give 0 below 2^-126. */
static void allow_direct(Arena *arena, const Node *node, const EvalTensor *args, int64_t terms,
                         double *out) {
  bool flushes = node->arg[0]->type.dtype == DT_BF16;
  const double *sum = magnitudes(arena, node, args, -1);
  const double *lost[2] = {flushes ? magnitudes(arena, node, args, 0) : NULL,
                           flushes ? magnitudes(arena, node, args, 1) : NULL};
  for (int64_t i = 0; i < type_count(node->result[0]->type); i++) {
    double direct = gamma_of(terms) * (sum[i] + 0x1p-123);
    if (flushes)
      direct += lost[0][i] + lost[1][i] + (double)terms * 0x1p-125;
    out[i] = out[i] < INFINITY ? fmax(out[i], direct) : direct;
  }
}

const double *wino_bound(Arena *arena, const Node *node, Winograd winograd,
                         const EvalTensor *args) {
  GenClass gen = op_info[node->op].gen;
  if (gen != GEN_CONV)
    return NULL;
  Node *main = (Node *)(uintptr_t)node;
  OwnPlan plan = own_plan(&(Kernel){0, 1, &main}, winograd);
  if (!plan.winograd)
    return NULL;
  int64_t n = type_count(node->result[0]->type);
  double *out = arena_alloc(arena, (size_t)n * sizeof *out);
  Bounding b = {.arena = arena,
                .conv = &plan.conv,
                .grad = &plan.grad,
                .in = args[0].v,
                .filter = args[1].v,
                .out = out};
  bool is_grad = plan.kind == OWN_GRAD;
  int64_t terms = AMP_WINO_TAPS * plan.conv.c;
  if (is_grad)
    terms = plan.grad.n * plan.grad.high.out * plan.grad.wide.out;
  for (int64_t g = 0; g < attr_int(node, ATTR_GROUPS, 1); g++)
    bound_group(&b, is_grad, g);
  if (b.overflows || node->arg[0]->type.dtype == DT_BF16)
    allow_direct(arena, node, args, terms, out);
  return out;
}
