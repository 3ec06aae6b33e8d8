/* How the threads of a loop kernel share its elements. */
#include "codegen/cuda/loop_text.h"

enum {
  THREADS = 256,
  WARP = 32,          /* AMP_THREADS, AMP_WARP of prelude.h */
  TAIL_CHANNELS = 8,  /* AMP_COLUMNS of text/cuda/sum.h */
  MANY_BLOCKS = 1024, /* some for each multiprocessor of the largest device */
  LONG = 4            /* elements, or rows, that a thread goes through where there are many */
};

/* The widest load that the types allow, so long as it divides what it must. Vectors over the
 * channels are few elements and much code. */
static int vector_of(const Kernel *kernel, int64_t total, int64_t channels) {
  int vector = 4;
  for (int i = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    if (op_info[node->op].gen == GEN_VECTOR && loop_part(node, kernel) == PART_BODY)
      return 1;
    for (int k = 0; k < node->n_args; k++)
      if (dtype_info[node->arg[k]->type.dtype].low)
        vector = 8;
    for (int r = 0; r < node->n_results; r++)
      if (dtype_info[node->result[r]->type.dtype].low)
        vector = 8;
  }
  bool by_channel = loop_has_channels(kernel);
  while (total % vector || (by_channel && channels % vector))
    vector /= 2;
  return vector;
}

static int64_t ceiling(int64_t n, int64_t by) {
  return (n + by - 1) / by;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* A thread goes on by all threads of the launch; vectors over the channels are loaded once, so that
 * must be whole rows, unless there is nothing to go on to. */
static int64_t line_blocks(const Kernel *kernel, int64_t total, int64_t channels, int vector) {
  int64_t all = ceiling(total, (int64_t)THREADS * vector), blocks = ceiling(all, LONG);
  if (blocks < MANY_BLOCKS)
    blocks = all < MANY_BLOCKS ? all : MANY_BLOCKS;
  if (loop_has_channels(kernel)) {
    int64_t row = channels / vector, step = row / common_divisor(row, THREADS);
    blocks = ceiling(blocks, step) * step;
  }
  return blocks < all ? blocks : all;
}

static int64_t row_groups(int64_t rows, int64_t columns, int64_t panels) {
  int64_t tall = THREADS / (columns < WARP ? columns : WARP);
  int64_t groups = rows / (tall * LONG), most = MANY_BLOCKS / panels;
  groups = groups < most ? groups : most;
  return groups > 1 ? groups : 1;
}

/* bn_stats leaves a shift beside its two sums. */
static int partials_of(const Node *node) {
  return node->op == OP_BN_STATS ? 3 : loop_sums_of(node);
}

LoopShape loop_shape(const Kernel *kernel) {
  Space space = node_space(kernel->node[0]);
  int64_t total = space.count, channels = space.channels;
  LoopShape s = {.vector = vector_of(kernel, total, channels),
                 .wide = total > INT32_MAX,
                 .space = {total, total / channels, (int32_t)channels, 1}};
  for (int i = 0; i < kernel->n_nodes; i++)
    s.partials += partials_of(kernel->node[i]);
  s.sums = s.partials > 0;
  if (!s.sums) {
    s.blocks = line_blocks(kernel, total, channels, s.vector);
    return s;
  }
  int64_t columns = channels / s.vector;
  s.panels = ceiling(columns, columns < WARP ? columns : WARP);
  s.space.groups = (int32_t)row_groups(s.space.rows, columns, s.panels);
  return s;
}

int64_t loop_tail_blocks(const LoopShape *shape) {
  return ceiling(shape->space.channels, TAIL_CHANNELS);
}

int64_t loop_scratch(const LoopShape *shape) {
  const AmpSpace *space = &shape->space;
  return (int64_t)sizeof(float) * shape->partials * space->groups * space->channels;
}
