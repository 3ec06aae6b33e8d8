#include "codegen/cpu/own_plan.h"

#include "codegen/cpu/own_grouped.h"
#include "codegen/cpu/wino_plan.h"
#include "codegen/loop/loop.h"

/* A thread's copy of a tile stays in its second-level cache, beside the filter that it meets. */
enum { TILE_BYTES = 256 << 10, ALIGN = 64 };
/* The same where a loop follows, together with the results. */
enum { STAGE_BYTES = 384 << 10 };
/* The sums of a filter's gradient that a thread computes at a time; filters that are no larger have
 * slots. */
enum { PART_BYTES = 288 << 10, SLOTS = 8, SLOTS_BYTES = 2 << 20 };
enum { F32 = sizeof(float) };

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
  bool flat;    /* few channels that are read, without gaps between elements */
  bool whole;   /* all blocks of a pixel lie side by side in the copy */
} Tiles;

static int64_t tile_bytes(const Tiles *t, int64_t rows, int64_t cols) {
  int64_t read = reach(&t->high, t->backward, rows) * reach(&t->wide, t->backward, cols);
  /* the last register tile may read up to a group's width */
  int64_t k = t->k > 2 * AMP_BLOCK ? amp_ceil(t->k, AMP_GRAD_GROUP) : amp_ceil(t->k, 2 * AMP_BLOCK);
  int64_t c = t->flat ? t->c : t->whole ? amp_odd_lines(t->c) : amp_ceil(t->c, AMP_BLOCK);
  return amp_ceil((read * c + (t->k ? rows * cols * k : 0)) * F32, ALIGN);
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
  *rows = amp_even(high, *rows);
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

/* Where the elements that neighbouring results read lie a multiple of so many elements apart, they
 * fall into so few sets of the first-level cache that they evict one another. */
enum { FAR = 1024 };

static Tiles conv_tiles(const AmpConv *a) {
  AmpAxis wide = amp_axis_span(&a->wide, a->backward);
  Tiles tiles = {.high = a->high, .wide = a->wide, .backward = a->backward, .c = a->c};
  tiles.whole = a->high.taps * a->wide.taps == 1;
  tiles.flat = a->c <= AMP_BLOCK && a->in_channel == 1 && wide.taps >= wide.step;
  return tiles;
}

static void choose_conv_tile(AmpConv *a, bool has_loop) {
  enum { STEP = 28 }; /* register tiles divide it */
  Tiles tiles = conv_tiles(a);
  if (has_loop) /* which finds the results in the same cache */
    tiles.k = a->k * (a->backward ? a->high.stride * a->wide.stride : 1);
  choose_tile(&tiles, has_loop ? STAGE_BYTES : TILE_BYTES, STEP, &a->rows, &a->cols);
  a->images = 1;
}

/* The memory of the direct kernel. */
static void finish_conv(OwnPlan *plan, bool low) {
  AmpConv *a = &plan->conv;
  int64_t taps = a->high.taps * a->wide.taps;
  Tiles tiles = conv_tiles(a);
  bool leaves = amp_leaves(&a->high, a->backward) || amp_leaves(&a->wide, a->backward);
  a->copy = low || a->in_channel != 1 || a->in_pixel % FAR == 0 || leaves;
  a->copy_pairs = a->in_channel != 1 || a->c % 2 || a->in_pixel % (2 * FAR) == 0 || leaves;
  a->packed = 0;
  a->lane = amp_ceil(amp_ceil(a->k, AMP_GROUP) * amp_ceil(a->c, AMP_BLOCK) * taps * F32, ALIGN);
  a->lane_bytes = amp_ceil(taps * 3 * (int64_t)sizeof(int64_t), ALIGN) +
                  (a->copy || (low && a->copy_pairs) ? tile_bytes(&tiles, a->rows, a->cols) : 0);
  plan->workspace = a->lane + AMP_TEAM * a->lane_bytes;
}

/* Cuts the channels into parts, of which each copies what it reads. */
static void choose_parts(AmpConvGrad *a, int64_t each) {
  int64_t blocks = amp_grad_blocks(a), groups = amp_grad_groups(a);
  int64_t g = amp_grad_taps(a) == 1 ? amp_least(groups, 4) : 1;
  int64_t b = amp_least(blocks, amp_most(1, PART_BYTES / (each * g)));
  a->part_blocks = amp_even(blocks, b);
  a->part_groups =
      amp_even(groups, amp_least(groups, amp_most(1, PART_BYTES / (each * a->part_blocks))));
}

/* Small images together give enough results to be added up in registers. */
static void choose_grad_tile(AmpConvGrad *a, const Tiles *tiles) {
  int64_t image = a->high.out * a->wide.out, piece = amp_grad_piece(a);
  a->images = 1;
  if (2 * image <= piece) {
    a->rows = a->high.out;
    a->cols = a->wide.out;
    a->images = amp_least(a->n, piece / image);
    return;
  }
  choose_tile(tiles, TILE_BYTES, piece, &a->rows, &a->cols);
  a->cols = amp_even(a->wide.out, a->cols);
}

static int64_t few_bytes(const AmpConvGrad *a) {
  AmpAxis high = amp_axis_forward(&a->high);
  int64_t rows = amp_phases(&high) * amp_reach(&high, a->rows);
  return amp_ceil(rows * amp_grad_row(a, a->cols) * F32, ALIGN);
}

/* Of NEAR channels and fewer, the elements of neighbouring pixels do not evict one another from the
 * first-level cache, so they are read where they lie. Units of windows of one element and stride 1,
 * of which a register tile reads a part of a cache line in each pixel, may come from the
 * second-level cache: NEAR_UNITS of them. If it were 512, the filter's gradient of ResNet-50's
 * convolution of 1 x 1 from 1024 to 512 channels, with 14 x 14 pixels, would take 1.12 times as
 * long, and that from 2048 to 512, with 7 x 7 pixels, 1.13 times (Zen 3, 2 threads, batch 8,
 * tests/bench/cpu_layers). */
enum { NEAR = 64, NEAR_UNITS = 256 };

/* Vectors of channels of x lie in the result as in the sums. But with few channels on one side,
 * vectors of the others make fewer loads; and the larger side as units needs no copy. */
static bool x_makes_vectors(const AmpConvGrad *a) {
  if (a->few)
    return false;
  if (a->c < AMP_GRAD_GROUP || a->k < AMP_GRAD_GROUP)
    return a->c >= a->k;
  return a->c <= a->k || a->c > NEAR_UNITS;
}

static void finish_grad(OwnPlan *plan, bool low) {
  AmpConvGrad *a = &plan->grad;
  a->vec_x = x_makes_vectors(a);
  int64_t taps = amp_grad_taps(a), each = AMP_BLOCK * amp_grad_outs(a) * taps * F32;
  a->sums_bytes = each * amp_grad_blocks(a) * amp_grad_groups(a);
  choose_parts(a, each);
  int64_t units = amp_least(amp_grad_units(a), a->part_blocks * AMP_BLOCK);
  int64_t vecs = amp_least(amp_grad_vecs(a), a->part_groups * AMP_GRAD_GROUP);
  Tiles x = {.high = a->high, .wide = a->wide, .c = a->few ? a->few : a->vec_x ? vecs : units};
  Tiles dy = {.high = a->high, .wide = a->wide, .k = a->vec_x ? units : vecs};
  Tiles both = x;
  both.k = dy.k;
  choose_grad_tile(a, &both);
  bool plain = taps == 1 && a->high.stride * a->wide.stride == 1;
  bool copy_units = amp_grad_units(a) > (plain ? NEAR_UNITS : NEAR);
  bool copy_vecs = amp_grad_vecs(a) > NEAR || amp_grad_vecs(a) % AMP_BLOCK != 0;
  a->copy_x = low || a->few || (a->vec_x ? copy_vecs : copy_units);
  a->copy_dy = low || (a->vec_x ? copy_units : copy_vecs);
  int64_t n = amp_pieces(a->n, a->images) * amp_pieces(a->high.out, a->rows) *
              amp_pieces(a->wide.out, a->cols);
  a->slots = 1;
  if (a->sums_bytes <= PART_BYTES)
    a->slots = amp_least(n, amp_most(SLOTS, SLOTS_BYTES / a->sums_bytes / 4));
  int64_t x_bytes = a->few ? few_bytes(a) : tile_bytes(&x, a->rows, a->cols);
  a->x_at = amp_ceil(taps * (int64_t)sizeof(AmpGradTap), ALIGN);
  a->dy_at = a->x_at + (a->copy_x ? a->images * x_bytes : 0);
  a->sums_at = a->dy_at + (a->copy_dy ? a->images * tile_bytes(&dy, a->rows, a->cols) : 0);
  a->lane_bytes = a->sums_at + (a->slots > 1 ? 0 : each * a->part_blocks * a->part_groups);
  a->sums = 0;
  a->lane = a->slots > 1 ? a->slots * a->sums_bytes : 0;
  plan->workspace = a->lane + AMP_TEAM * a->lane_bytes;
}

AmpWindow own_window(const Node *node, int axis, int64_t in, int64_t out, int64_t taps) {
  const int64_t *stride = attr_ints(node, ATTR_STRIDE, 2), *pad = attr_ints(node, ATTR_PAD, 4);
  return (AmpWindow){in, out, taps, stride[axis], pad[2 * axis]};
}

static void plan_matmul(const Node *node, OwnPlan *plan) {
  bool ta = attr_int(node, ATTR_TRANS_A, 0) != 0, tb = attr_int(node, ATTR_TRANS_B, 0) != 0;
  const int64_t *a = node->arg[0]->type.dim, *out = node->result[0]->type.dim;
  int64_t rows = out[0], k = out[1], c = a[ta ? 0 : 1];
  plan->conv = (AmpConv){.high = {1, 1, 1, 1, 0},
                         .wide = {rows, rows, 1, 1, 0},
                         .n = 1,
                         .c = c,
                         .k = k,
                         .in_pixel = ta ? 1 : c,
                         .in_channel = ta ? rows : 1,
                         .groups = 1,
                         .filter_out = tb ? c : 1,
                         .filter_in = tb ? 1 : k};
}

static void plan_conv(const Node *node, OwnPlan *plan) {
  bool backward = node->op == OP_CONV2D_DGRAD;
  const int64_t *in = node->arg[0]->type.dim, *out = node->result[0]->type.dim;
  const int64_t *w = node->arg[1]->type.dim;
  int64_t taps = w[1] * w[2], groups = attr_int(node, ATTR_GROUPS, 1);
  plan->conv = (AmpConv){.high = own_window(node, 0, in[1], out[1], w[1]),
                         .wide = own_window(node, 1, in[2], out[2], w[2]),
                         .n = in[0],
                         .c = in[3] / groups,
                         .k = out[3] / groups,
                         .in_pixel = in[3],
                         .in_channel = 1,
                         .groups = (int32_t)groups,
                         .filter_out = backward ? 1 : taps * w[3],
                         .filter_tap = w[3],
                         .filter_in = backward ? taps * w[3] : 1,
                         .backward = backward};
  flatten(&plan->conv.n, &plan->conv.high, &plan->conv.wide);
}

/* All taps and channels of a row of a filter as channels, if they are few. */
static void join_row(AmpConvGrad *a) {
  enum { FEW = 8, ROW = 64 };
  if (a->c >= FEW || a->wide.taps == 1 || a->c * a->wide.taps > ROW)
    return;
  a->few = a->c;
  a->c *= a->wide.taps;
}

/* A pair of bf16 is of two images. Where flatten has made one row of all images, its halves take
 * their place. */
static void halve(AmpConvGrad *a) {
  bool row = a->n == 1 && a->high.in == 1 && a->high.taps == 1 && a->high.out == 1;
  if (!row || amp_leaves(&a->wide, 0) || a->wide.in != a->wide.out || a->wide.in % 2)
    return;
  a->n = 2;
  a->wide.in = a->wide.out = a->wide.in / 2;
}

static void plan_grad(const Node *node, OwnPlan *plan) {
  const int64_t *x = node->arg[0]->type.dim, *dy = node->arg[1]->type.dim;
  const int64_t *w = node->result[0]->type.dim, groups = attr_int(node, ATTR_GROUPS, 1);
  plan->kind = OWN_GRAD;
  plan->grad = (AmpConvGrad){.high = own_window(node, 0, x[1], dy[1], w[1]),
                             .wide = own_window(node, 1, x[2], dy[2], w[2]),
                             .n = x[0],
                             .c = x[3] / groups,
                             .k = dy[3] / groups,
                             .groups = (int32_t)groups};
  flatten(&plan->grad.n, &plan->grad.high, &plan->grad.wide);
  if (node->arg[0]->type.dtype == DT_BF16)
    halve(&plan->grad);
  join_row(&plan->grad);
}

/* Does only the loop read the main op's result? Then no memory is planned for it. */
static bool is_passing(const Node *main, const Kernel *loop) {
  const Value *made = main->result[0];
  for (int u = 0; u < made->n_uses; u++) {
    bool inside = false;
    for (int i = 0; i < loop->n_nodes; i++)
      inside |= loop->node[i] == made->use[u].node;
    if (!inside)
      return false;
  }
  return true;
}

/* Adds what a loop behind the main op needs: the result, if nothing else reads it and so it has no
 * place of its own, and sums for each tile. */
static void add_loop(OwnPlan *plan, const Node *main, const Kernel *loop) {
  bool grouped = plan->kind == OWN_GROUPED, passing = is_passing(main, loop);
  AmpTiles cut = grouped ? amp_grouped_tiles(&plan->grouped) : amp_tiles(&plan->conv);
  TensorType made = main->result[0]->type;
  int64_t sums = 0;
  for (int i = 0; i < loop->n_nodes; i++)
    sums += loop_sums_of(loop->node[i]);
  *(grouped ? &plan->grouped.passing : &plan->conv.passing) = passing;
  plan->tiles = cut.all;
  plan->made = plan->workspace;
  if (passing)
    plan->workspace += amp_ceil(cut.all * cut.elements * dtype_info[made.dtype].bytes, ALIGN);
  plan->sums = plan->workspace;
  plan->workspace += sums * plan->tiles * made.dim[made.rank - 1] * (int64_t)sizeof(double);
}

/* Where CPUs that multiply bf16 compute directly and others by Winograd's method, both use the same
 * tiles. This makes their rows a multiple of the side of that method's tiles, which become smaller
 * ones where there are too few. Returns the form, and 0 where tiles are not whole rows or single
 * ones. */
static int even_tiles(AmpConv *a, int form) {
  if (a->cols < amp_wino_results(a, &a->wide))
    return 0;
  if (a->rows >= amp_wino_results(a, &a->high))
    return form;
  if (form == AMP_WINO_LARGE && a->rows < amp_wino_side(form))
    form = AMP_WINO_SMALL;
  if (a->rows < amp_wino_side(form))
    return 0;
  a->rows -= a->rows % amp_wino_side(form);
  return form;
}

static OwnPlan plan_main(const Node *node, bool has_loop, Winograd winograd) {
  if (is_grouped(node))
    return grouped_plan(node);
  OwnPlan plan = {.kind = OWN_CONV};
  bool low = dtype_info[node->arg[0]->type.dtype].low, pairs = node->arg[0]->type.dtype == DT_BF16;
  switch (node->op) {
  case OP_CONV2D_WGRAD:
    plan_grad(node, &plan);
    finish_grad(&plan, low);
    plan.grad.winograd = wino_takes_grad(&plan.grad, winograd);
    plan.grad.over_pairs = pairs && wino_beats_pairs_grad(&plan.grad, winograd);
    plan.winograd = plan.grad.winograd;
    if (plan.winograd)
      plan.workspace = wino_plan_grad(&plan.grad, winograd);
    return plan;
  case OP_MATMUL:
    plan_matmul(node, &plan);
    break;
  case OP_CONV2D:
  case OP_CONV2D_DGRAD:
    plan_conv(node, &plan);
    break;
  default:
    BUG("`%s` is no library kernel", op_info[node->op].name);
  }
  AmpConv *a = &plan.conv;
  a->winograd = wino_takes(a, winograd);
  a->over_pairs = pairs && wino_beats_pairs(a, winograd);
  if (!a->winograd || (pairs && !a->over_pairs)) {
    choose_conv_tile(a, has_loop);
    if (a->winograd)
      a->winograd = even_tiles(a, a->winograd);
    if (a->winograd)
      wino_cut(a);
  } else {
    wino_choose_tile(a);
  }
  if (!a->winograd || pairs)
    finish_conv(&plan, low);
  if (a->winograd)
    plan.workspace = wino_finish(a, winograd);
  plan.winograd = a->winograd != 0;
  return plan;
}

OwnPlan own_plan(const Kernel *kernel, Winograd winograd) {
  const Node *main = kernel_main(kernel);
  OwnPlan plan = plan_main(main, kernel->n_nodes > 1, winograd);
  if (kernel->n_nodes > 1) {
    Kernel loop = loop_behind(kernel);
    add_loop(&plan, main, &loop);
  }
  return plan;
}

/* Only if each tile is whole rows, so that its results lie side by side. */
bool own_takes_loop(const Node *main) {
  if (main->op != OP_CONV2D && main->op != OP_CONV2D_DGRAD && main->op != OP_MATMUL)
    return false;
  OwnPlan plan = plan_main(main, true, WINOGRAD_OFF);
  return plan.kind == OWN_GROUPED || plan.conv.high.out == 1 || amp_tiles(&plan.conv).across == 1;
}
