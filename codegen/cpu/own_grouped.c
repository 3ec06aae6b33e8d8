#include "codegen/cpu/own_grouped.h"

#include <math.h>

enum { ALIGN = 64, F32 = sizeof(float) };

static bool is_const(const Value *value) {
  return value_storage((Value *)(uintptr_t)value)->node->op == OP_CONST;
}

/* Groups of so many channels are faster one after the other, each as a convolution of its own: on a
 * model 207, batch 8 (cpu_layers), 3x3 with 64 channels of each group at 32x32 has 1.7 to 2.2 times
 * the speed so, by Winograd's method, and with 32 at 7x7 0.9 to 1.3 times with one thread, but 0.8
 * with two, as little is computed between their meetings. */
static bool are_wide(const Node *node, int64_t groups) {
  enum { WIDE = 64 };
  int64_t c = node->arg[0]->type.dim[3] / groups, k = node->result[0]->type.dim[3] / groups;
  if (node->op == OP_CONV2D_WGRAD)
    k = node->arg[1]->type.dim[3] / groups;
  return c >= WIDE && k >= WIDE && !is_const(node->arg[0]) && !is_const(node->arg[1]);
}

bool is_grouped(const Node *node) {
  int64_t groups = attr_int(node, ATTR_GROUPS, 1);
  return op_info[node->op].gen == GEN_CONV && groups > 1 && !are_wide(node, groups);
}

/* Floats that one element of the channels of all columns takes. Narrower vectors take no more. */
static int64_t columns_floats(const AmpGroups *g) {
  return amp_columns(g, AMP_BLOCK) * amp_column_width(g, AMP_BLOCK);
}

/* Bytes of so many rows of the copy of what `cols` results read, for one column. */
static int64_t copy_bytes(const AmpGroups *g, int64_t rows, const AmpAxis *wide, int64_t cols) {
  return rows * amp_grouped_line(g, amp_reach_of(wide, 0, cols).n, AMP_BLOCK) * F32;
}

/* How many results of a row are computed together: as many as leave the rows that a window reads in
 * the first-level cache, in equal parts. */
static int64_t choose_cols(const AmpGroups *g, int64_t rows, const AmpAxis *wide) {
  enum { NEAR_BYTES = 28 << 10, LEAST = 14 };
  int64_t cols = wide->outs;
  for (int64_t n = 2; cols > LEAST && copy_bytes(g, rows, wide, cols) > NEAR_BYTES; n++)
    cols = amp_pieces(wide->outs, n);
  return cols;
}

/* Rows of a tile: as many as leave what the tile reads and its results in the second-level cache,
 * while column after column of the channels is computed. */
static int64_t choose_rows(const AmpGrouped *a, const AmpAxis *high) {
  enum { TILE_BYTES = 256 << 10, LEAST = 4 };
  int64_t in = a->wide.in * a->c * high->step;
  int64_t out = a->wide.out * a->k * amp_grouped_rows_of(a);
  int64_t rows = amp_most(LEAST, TILE_BYTES / F32 / (in + out));
  return amp_even(high->outs, amp_least(rows, high->outs));
}

/* The tile of a filter's gradient: what it reads of x stays in the first-level cache, and of those
 * the one that copies the least for each result. */
static void choose_grad_tile(const AmpGroups *g, const AmpAxis *high, const AmpAxis *wide,
                             int64_t *rows, int64_t *cols) {
  enum { NEAR_BYTES = 28 << 10 };
  double least = INFINITY;
  for (int64_t n = 1, c = wide->outs; c >= 1;
       n++, c = amp_least(c - 1, amp_pieces(wide->outs, n))) {
    int64_t r = 1;
    while (r < high->outs && copy_bytes(g, amp_reach_of(high, 0, r + 1).n, wide, c) <= NEAR_BYTES)
      r++;
    bool fits = copy_bytes(g, amp_reach_of(high, 0, r).n, wide, c) <= NEAR_BYTES;
    double cost =
        (double)(amp_reach_of(high, 0, r).n * amp_reach_of(wide, 0, c).n) / (double)(r * c);
    if (cost < least && (fits || c == 1)) {
      least = cost;
      *rows = amp_even(high->outs, r);
      *cols = c;
    }
  }
}

static OwnPlan plan_conv(const Node *node) {
  bool backward = node->op == OP_CONV2D_DGRAD;
  const int64_t *in = node->arg[0]->type.dim, *w = node->arg[1]->type.dim;
  const int64_t *out = node->result[0]->type.dim, taps = w[1] * w[2];
  AmpGrouped a = {.high = own_window(node, 0, in[1], out[1], w[1]),
                  .wide = own_window(node, 1, in[2], out[2], w[2]),
                  .n = in[0],
                  .c = in[3],
                  .k = out[3],
                  .groups = attr_int(node, ATTR_GROUPS, 1),
                  .filter_out = backward ? 1 : taps * w[3],
                  .filter_tap = w[3],
                  .filter_in = backward ? taps * w[3] : 1,
                  .backward = backward};
  a.filter_group = w[0] / a.groups * taps * w[3];
  AmpGroups g = amp_groups(a.groups, a.c, a.k);
  AmpAxis high = amp_axis_span(&a.high, backward), wide = amp_axis_span(&a.wide, backward);
  a.cols = choose_cols(&g, high.taps, &wide);
  a.rows = choose_rows(&a, &high);
  a.lane = amp_ceil(columns_floats(&g) * taps * g.reads * F32, ALIGN);
  a.lane_bytes = amp_ceil(w[1] * (int64_t)sizeof(float *), ALIGN) +
                 amp_ceil(copy_bytes(&g, high.taps, &wide, a.cols), ALIGN);
  return (OwnPlan){
      .kind = OWN_GROUPED, .grouped = a, .workspace = a.lane + AMP_TEAM * a.lane_bytes};
}

/* Slots for many threads, where those are small. */
static int64_t choose_slots(int64_t tiles, int64_t bytes) {
  enum { SLOTS = 16, SLOTS_BYTES = 4 << 20 };
  return amp_most(1, amp_least(amp_least(SLOTS, tiles), SLOTS_BYTES / bytes));
}

static OwnPlan plan_grad(const Node *node) {
  const int64_t *x = node->arg[0]->type.dim, *dy = node->arg[1]->type.dim;
  const int64_t *w = node->result[0]->type.dim;
  AmpGroupedGrad a = {.high = own_window(node, 0, x[1], dy[1], w[1]),
                      .wide = own_window(node, 1, x[2], dy[2], w[2]),
                      .n = x[0],
                      .c = x[3],
                      .k = dy[3],
                      .groups = attr_int(node, ATTR_GROUPS, 1)};
  AmpGroups g = amp_groups(a.groups, a.c, a.k);
  AmpAxis high = amp_axis_forward(&a.high), wide = amp_axis_forward(&a.wide);
  choose_grad_tile(&g, &high, &wide, &a.rows, &a.cols);
  int64_t tiles = a.n * amp_pieces(high.outs, a.rows) * amp_pieces(wide.outs, a.cols);
  int64_t element = w[1] * w[2] * g.reads, width = amp_column_width(&g, AMP_BLOCK);
  a.sums_bytes = amp_ceil(columns_floats(&g) * element * F32, ALIGN);
  a.slots = choose_slots(tiles, a.sums_bytes);
  a.lane = a.slots * a.sums_bytes;
  a.dy_at = amp_ceil(copy_bytes(&g, amp_reach_of(&high, 0, a.rows).n, &wide, a.cols), ALIGN);
  a.lane_bytes = a.dy_at + amp_ceil(a.rows * a.cols * width * F32, ALIGN);
  return (OwnPlan){
      .kind = OWN_GROUPED_GRAD, .grouped_grad = a, .workspace = a.lane + AMP_TEAM * a.lane_bytes};
}

OwnPlan grouped_plan(const Node *node) {
  return node->op == OP_CONV2D_WGRAD ? plan_grad(node) : plan_conv(node);
}
