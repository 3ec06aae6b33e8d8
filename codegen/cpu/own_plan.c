#include "codegen/cpu/own_plan.h"

/* A thread's copy of a tile stays in its second-level cache, beside the filter that it meets. */
enum { TILE_BYTES = 256 << 10, ALIGN = 64 };
/* Sums of a filter's gradient up to this size are kept once for each slot; larger ones once, and
 * threads share them out. */
enum { SLOT_BYTES = 640 << 10, SLOTS = 8, SLOTS_BYTES = 2 << 20, TOGETHER_BYTES = 24 << 20 };
enum { F32 = sizeof(float) };

static int64_t ceil_to(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}
static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* ---- copies of tiles ---- */

/* How many elements along the axis are copied for n neighbouring results. */
static int64_t reach(const AmpWindow *w, bool backward, int64_t n) {
  AmpAxis span = amp_axis_span(w, backward);
  return amp_phases(&span) * amp_reach(&span, n);
}

typedef struct Tiles { /* what decides how large a tile may be */
  AmpWindow high, wide;
  bool backward;
  int64_t c, k; /* channels that are copied for each element read, for each result; or 0 */
} Tiles;

static int64_t tile_bytes(const Tiles *t, int64_t rows, int64_t cols) {
  int64_t read = reach(&t->high, t->backward, rows) * reach(&t->wide, t->backward, cols);
  /* the last register tile may read up to a group's width */
  int64_t k = t->k > 2 * AMP_BLOCK ? ceil_to(t->k, AMP_GRAD_GROUP) : ceil_to(t->k, 2 * AMP_BLOCK);
  return ceil_to((read * ceil_to(t->c, AMP_BLOCK) + (t->k ? rows * cols * k : 0)) * F32, ALIGN);
}

/* Whole rows where one fits, else a part of one, of some `step` columns. */
static void choose_tile(const Tiles *t, int64_t bytes, int64_t step, int64_t *rows, int64_t *cols) {
  int64_t high = amp_axis_span(&t->high, t->backward).outs;
  *cols = amp_axis_span(&t->wide, t->backward).outs;
  *rows = 1;
  if (tile_bytes(t, 1, *cols) > bytes && *cols > step) {
    int64_t n = (*cols - 1) / step;
    while (n > 1 && tile_bytes(t, 1, n * step) > bytes)
      n--;
    *cols = n * step;
    return;
  }
  while (*rows < high && tile_bytes(t, *rows + 1, *cols) <= bytes)
    ++*rows;
  int64_t pieces = (high + *rows - 1) / *rows;
  *rows = (high + pieces - 1) / pieces;
}

/* A convolution of single elements has no rows and no images: all become one row. */
static void flatten(int64_t *n, AmpWindow *high, AmpWindow *wide) {
  bool plain = high->taps * wide->taps == 1 && high->stride * wide->stride == 1;
  if (!plain || high->pad || wide->pad || high->in != high->out || wide->in != wide->out)
    return;
  wide->in *= high->in * *n;
  wide->out *= high->out * *n;
  high->in = high->out = *n = 1;
}

/* ---- ops ---- */

/* Neighbours among the results whose elements lie a multiple of this apart share so few places of
 * the first-level cache that they drive each other out. */
enum { FAR = 1024 };

static void finish_conv(OwnPlan *plan, bool low) {
  enum { STEP = 28 }; /* register tiles divide it */
  AmpConv *a = &plan->conv;
  int64_t taps = a->high.taps * a->wide.taps;
  Tiles tiles = {.high = a->high, .wide = a->wide, .backward = a->backward, .c = a->c};
  choose_tile(&tiles, TILE_BYTES, STEP, &a->rows, &a->cols);
  bool leaves = amp_leaves(&a->high, a->backward) || amp_leaves(&a->wide, a->backward);
  a->copy = low || a->in_channel != 1 || a->c % FAR == 0 || leaves;
  a->copy_pairs = a->in_channel != 1 || a->c % 2 || a->c % (2 * FAR) == 0 || leaves;
  a->packed = 0;
  a->lane = ceil_to(ceil_to(a->k, AMP_GROUP) * ceil_to(a->c, AMP_BLOCK) * taps * F32, ALIGN);
  a->lane_bytes = ceil_to(taps * 2 * (int64_t)sizeof(int64_t), ALIGN) +
                  (a->copy || (low && a->copy_pairs) ? tile_bytes(&tiles, a->rows, a->cols) : 0);
  plan->workspace = a->lane + AMP_TEAM * a->lane_bytes;
}

/* Do the vectors of the widest register tile end with the last channel? */
static bool fills_vectors(int64_t k) {
  return k % AMP_BLOCK == 0 && k % AMP_GRAD_GROUP <= 2 * AMP_BLOCK;
}

static void finish_grad(OwnPlan *plan, bool low) {
  enum { STEP = 104 };
  AmpConvGrad *a = &plan->grad;
  int64_t taps = a->high.taps * a->wide.taps;
  Tiles tiles = {.high = a->high, .wide = a->wide, .c = a->c, .k = a->k};
  a->sums_bytes = ceil_to(a->k, AMP_GRAD_GROUP) * ceil_to(a->c, AMP_BLOCK) * taps * F32;
  bool large = a->sums_bytes > SLOT_BYTES;
  a->copy_x = low || (large && taps == 1);
  a->copy_dy = low || large || !fills_vectors(a->k);
  choose_tile(&tiles, large ? 2 * TILE_BYTES : TILE_BYTES, STEP, &a->rows, &a->cols);
  tiles.c = a->copy_x ? a->c : 0;
  tiles.k = a->copy_dy ? a->k : 0;
  a->lane_bytes = tile_bytes(&tiles, a->rows, a->cols);
  int64_t down = (a->high.out + a->rows - 1) / a->rows;
  int64_t across = (a->wide.out + a->cols - 1) / a->cols, n = a->n * down * across;
  a->slots = large ? 1 : least(n, most(SLOTS, SLOTS_BYTES / a->sums_bytes / 4));
  if (large)
    a->together = a->lane_bytes ? least(n, most(1, TOGETHER_BYTES / a->lane_bytes)) : n;
  a->sums = 0;
  a->lane = a->slots * a->sums_bytes;
  plan->workspace = a->lane + (a->together ? a->together : AMP_TEAM) * a->lane_bytes;
}

static AmpWindow window(int64_t in, int64_t out, int64_t taps, int64_t stride, int64_t pad) {
  return (AmpWindow){in, out, taps, stride, pad};
}

static void plan_matmul(const Node *node, OwnPlan *plan) {
  bool ta = attr_int(node, ATTR_TRANS_A, 0) != 0, tb = attr_int(node, ATTR_TRANS_B, 0) != 0;
  const int64_t *a = node->arg[0]->type.dim, *out = node->result[0]->type.dim;
  int64_t rows = out[0], k = out[1], c = a[ta ? 0 : 1];
  plan->conv = (AmpConv){.high = window(1, 1, 1, 1, 0),
                         .wide = window(rows, rows, 1, 1, 0),
                         .n = 1,
                         .c = c,
                         .k = k,
                         .in_pixel = ta ? 1 : c,
                         .in_channel = ta ? rows : 1,
                         .filter_out = tb ? c : 1,
                         .filter_in = tb ? 1 : k};
}

static void plan_conv(const Node *node, OwnPlan *plan) {
  bool backward = node->op == OP_CONV2D_DGRAD;
  const int64_t *in = node->arg[0]->type.dim, *out = node->result[0]->type.dim;
  const int64_t *w = node->arg[1]->type.dim;
  const int64_t *stride = attr_ints(node, ATTR_STRIDE, 2), *pad = attr_ints(node, ATTR_PAD, 4);
  int64_t taps = w[1] * w[2], c = in[3];
  plan->conv = (AmpConv){.high = window(in[1], out[1], w[1], stride[0], pad[0]),
                         .wide = window(in[2], out[2], w[2], stride[1], pad[2]),
                         .n = in[0],
                         .c = c,
                         .k = out[3],
                         .in_pixel = c,
                         .in_channel = 1,
                         .filter_out = backward ? 1 : taps * w[3],
                         .filter_tap = w[3],
                         .filter_in = backward ? taps * w[3] : 1,
                         .backward = backward};
  flatten(&plan->conv.n, &plan->conv.high, &plan->conv.wide);
}

static void plan_grad(const Node *node, OwnPlan *plan) {
  const int64_t *x = node->arg[0]->type.dim, *dy = node->arg[1]->type.dim;
  const int64_t *w = node->result[0]->type.dim;
  const int64_t *stride = attr_ints(node, ATTR_STRIDE, 2), *pad = attr_ints(node, ATTR_PAD, 4);
  plan->is_grad = true;
  plan->grad = (AmpConvGrad){.high = window(x[1], dy[1], w[1], stride[0], pad[0]),
                             .wide = window(x[2], dy[2], w[2], stride[1], pad[2]),
                             .n = x[0],
                             .c = x[3],
                             .k = dy[3]};
  flatten(&plan->grad.n, &plan->grad.high, &plan->grad.wide);
}

OwnPlan own_plan(const Node *node) {
  OwnPlan plan = {0};
  bool low = dtype_info[node->arg[0]->type.dtype].low;
  if (node->op == OP_CONV2D_WGRAD) {
    plan_grad(node, &plan);
    finish_grad(&plan, low);
    return plan;
  }
  CHECK(node->op == OP_MATMUL || node->op == OP_CONV2D || node->op == OP_CONV2D_DGRAD,
        "`%s` is no library kernel", op_info[node->op].name);
  if (node->op == OP_MATMUL)
    plan_matmul(node, &plan);
  else
    plan_conv(node, &plan);
  finish_conv(&plan, low);
  return plan;
}
