#include "codegen/cpu/wino_bound.h"

#include "codegen/cpu/own_plan.h"

#include <float.h>
#include <math.h>

enum { SIDE = 4, ALL = AMP_WINO };

static double gamma_of(int64_t n) {
  const double u = 0x1p-24;
  return (double)n * u / (1 - (double)n * u);
}

/* ---- magnitudes through the transforms: `x` has `n` x n elements, `to` has `m` x m ---- */

typedef void Magnitudes(const double *x, int64_t step, double *to, int64_t to_step);

static void by_b(const double *x, int64_t step, double *to, int64_t to_step) {
  static const int pair[SIDE][2] = {{0, 2}, {1, 2}, {1, 2}, {1, 3}};
  for (int i = 0; i < SIDE; i++)
    to[i * to_step] = x[pair[i][0] * step] + x[pair[i][1] * step];
}
static void by_g(const double *x, int64_t step, double *to, int64_t to_step) {
  to[0] = x[0];
  to[to_step] = to[2 * to_step] = (x[0] + x[step] + x[2 * step]) / 2;
  to[3 * to_step] = x[2 * step];
}
static void by_e(const double *x, int64_t step, double *to, int64_t to_step) {
  to[0] = x[0];
  to[to_step] = to[2 * to_step] = x[0] + x[step];
  to[3 * to_step] = x[step];
}
static void by_gt(const double *x, int64_t step, double *to, int64_t to_step) {
  to[0] = x[0] + (x[step] + x[2 * step]) / 2;
  to[to_step] = (x[step] + x[2 * step]) / 2;
  to[2 * to_step] = (x[step] + x[2 * step]) / 2 + x[3 * step];
}
static void by_a(const double *x, int64_t step, double *to, int64_t to_step) {
  to[0] = x[0] + x[step] + x[2 * step];
  to[to_step] = x[step] + x[2 * step] + x[3 * step];
}

/* to = T x T' of n x n elements x, for T of m rows. */
static void both_ways(Magnitudes *by, const double *x, int n, double *to, int m) {
  double half[ALL];
  for (int j = 0; j < n; j++)
    by(x + j, n, half + j, n);
  for (int i = 0; i < m; i++)
    by(half + i * n, 1, to + i * m, 1);
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
  b->overflows |= !(x < FLT_MAX / 2);
  return x;
}

/* |G||g||G'| of all channels: [k][c][ALL]. */
static double *transformed_filter(Bounding *b) {
  const AmpConv *a = b->conv;
  double *u = arena_alloc(b->arena, (size_t)(a->k * a->c * ALL) * sizeof *u), g[AMP_WINO_TAPS];
  for (int64_t k = 0; k < a->k; k++)
    for (int64_t c = 0; c < a->c; c++) {
      double *to = u + (k * a->c + c) * ALL;
      for (int64_t t = 0; t < AMP_WINO_TAPS; t++)
        g[a->backward ? AMP_WINO_TAPS - 1 - t : t] =
            fabs(b->filter[k * a->filter_out + t * a->filter_tap + c * a->filter_in]);
      both_ways(by_g, g, 3, to, SIDE);
      for (int p = 0; p < ALL; p++)
        to[p] = seen(b, to[p]) + 0x1p-124; /* gamma(11) of which is more than 2^-148 */
    }
  return u;
}

/* |B'||d||B| of all channels of one tile, whose first element is (h, w): [c][ALL]. */
static void transformed_tile(Bounding *b, int64_t image, int64_t h, int64_t w, double *v) {
  const AmpConv *a = b->conv;
  for (int64_t c = 0; c < a->c; c++) {
    double d[ALL];
    for (int i = 0; i < ALL; i++) {
      int64_t y = h + i / SIDE, x = w + i % SIDE;
      bool inside = y >= 0 && y < a->high.in && x >= 0 && x < a->wide.in;
      d[i] = inside ? fabs(b->in[((image * a->high.in + y) * a->wide.in + x) * a->c + c]) : 0;
    }
    both_ways(by_b, d, SIDE, v + c * ALL, SIDE);
    for (int p = 0; p < ALL; p++)
      seen(b, v[c * ALL + p]);
  }
}

/* The bounds of one tile, whose first result is (h, w), from its transformed operands. */
static void bound_tile(Bounding *b, const double *u, const double *v, int64_t image, int64_t h,
                       int64_t w) {
  const AmpConv *a = b->conv;
  double gamma = gamma_of(a->c + 10);
  for (int64_t k = 0; k < a->k; k++) {
    double m[ALL], y[4];
    for (int p = 0; p < ALL; p++)
      m[p] = 0x1p-123; /* gamma(c + 10) of which is more than c * 2^-150 */
    for (int64_t c = 0; c < a->c; c++)
      for (int p = 0; p < ALL; p++)
        m[p] += u[(k * a->c + c) * ALL + p] * v[c * ALL + p];
    both_ways(by_a, m, SIDE, y, 2);
    for (int i = 0; i < 4; i++)
      if (h + i / 2 < a->high.out && w + i % 2 < a->wide.out)
        b->out[((image * a->high.out + h + i / 2) * a->wide.out + w + i % 2) * a->k + k] =
            gamma * seen(b, y[i]);
  }
}

static AmpAxis axis_of(const AmpWindow *w, bool backward) {
  return backward ? amp_axis_backward(w, 0) : amp_axis_forward(w);
}

static void bound_conv(Bounding *b) {
  const AmpConv *a = b->conv;
  AmpAxis high = axis_of(&a->high, a->backward), wide = axis_of(&a->wide, a->backward);
  const double *u = transformed_filter(b);
  double *v = arena_alloc(b->arena, (size_t)(a->c * ALL) * sizeof *v);
  for (int64_t n = 0; n < a->n; n++)
    for (int64_t h = 0; h < a->high.out; h += 2)
      for (int64_t w = 0; w < a->wide.out; w += 2) {
        transformed_tile(b, n, h + high.origin, w + wide.origin, v);
        bound_tile(b, u, v, n, h, w);
      }
}

/* ---- filters' gradients ---- */

/* The magnitudes of size x size elements from (h, w) on of each channel, transformed:
 * [channel][ALL]. */
static void transformed_square(Bounding *b, const double *from, const int64_t dim[4], int64_t image,
                               int64_t h, int64_t w, int size, Magnitudes *by, double *to) {
  for (int64_t c = 0; c < dim[3]; c++, to += ALL) {
    double d[ALL];
    for (int i = 0; i < size * size; i++) {
      int64_t y = h + i / size, x = w + i % size;
      bool inside = y >= 0 && y < dim[1] && x >= 0 && x < dim[2];
      d[i] = inside ? fabs(from[((image * dim[1] + y) * dim[2] + x) * dim[3] + c]) : 0;
    }
    both_ways(by, d, size, to, SIDE);
    for (int p = 0; p < ALL; p++)
      seen(b, to[p]);
  }
}

static void bound_grad(Bounding *b) {
  const AmpConvGrad *a = b->grad;
  const int64_t in[4] = {a->n, a->high.in, a->wide.in, a->c};
  const int64_t out[4] = {a->n, a->high.out, a->wide.out, a->k};
  int64_t down = amp_pieces(a->wino_rows, 2), across = amp_pieces(a->wide.out, 2);
  int64_t pieces = amp_pieces(amp_wino_grad_pieces(a), a->wino_slots);
  double gamma = gamma_of(a->wino_images * down * across + pieces + a->wino_slots + 7);
  double *x = arena_alloc(b->arena, (size_t)(a->c * ALL) * sizeof *x);
  double *dy = arena_alloc(b->arena, (size_t)(a->k * ALL) * sizeof *dy);
  double *sum = arena_alloc(b->arena, (size_t)(a->k * a->c * ALL) * sizeof *sum);
  for (int64_t n = 0; n < a->n; n++)
    for (int64_t h = 0; h < a->high.out; h += 2)
      for (int64_t w = 0; w < a->wide.out; w += 2) {
        transformed_square(b, b->in, in, n, h - a->high.pad, w - a->wide.pad, SIDE, by_b, x);
        transformed_square(b, b->filter, out, n, h, w, 2, by_e, dy);
        for (int64_t i = 0; i < a->k * a->c; i++)
          for (int p = 0; p < ALL; p++)
            sum[i * ALL + p] += dy[i / a->c * ALL + p] * x[i % a->c * ALL + p];
      }
  for (int64_t k = 0; k < a->k; k++)
    for (int64_t c = 0; c < a->c; c++) {
      double m[ALL], taps[AMP_WINO_TAPS];
      for (int p = 0; p < ALL; p++)
        m[p] = seen(b, sum[(k * a->c + c) * ALL + p]) + 0x1p-123;
      both_ways(by_gt, m, SIDE, taps, 3);
      for (int64_t t = 0; t < AMP_WINO_TAPS; t++)
        b->out[(k * AMP_WINO_TAPS + t) * a->c + c] = gamma * seen(b, taps[t]);
    }
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
  int64_t terms = AMP_WINO_TAPS * plan.conv.c;
  if (plan.is_grad) {
    bound_grad(&b);
    terms = plan.grad.n * plan.grad.high.out * plan.grad.wide.out;
  } else {
    bound_conv(&b);
  }
  if (b.overflows || node->arg[0]->type.dtype == DT_BF16)
    allow_direct(arena, node, args, terms, out);
  return out;
}
