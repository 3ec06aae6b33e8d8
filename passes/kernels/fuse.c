/* fuse: group nodes into kernels, and kernels into stages.
 *
 *   before   %z = affine %x, %scale, %shift : f32[8,4,4,16]
 *            %s = add %z, %skip : f32[8,4,4,16]
 *            %y = relu %s : f32[8,4,4,16]
 *   after    %z = affine %x, %scale, %shift {stage=2, role="prologue", kernel=5} : f32[8,4,4,16]
 *            %s = add %z, %skip {stage=2, role="prologue", kernel=5} : f32[8,4,4,16]
 *            %y = relu %s {stage=2, role="prologue", kernel=5} : f32[8,4,4,16]
 *
 * The aim is the fewest passes over memory. A loop takes in the loops that make its operands, then
 * others that read the same tensors; sums are results of the loop that makes their operand; an
 * update stores straight from the loop that makes the new state. Where the target takes it, the
 * loop that reads the result of a main op becomes one kernel with that op. Every node keeps its
 * own rounding, so no value changes. Never makes a cycle, never moves a read of a variable behind
 * its update. The graph goes from stage lowered to fused. Tests: tests/passes/kernels/fuse.amp */
#include "passes/kernels/fuse.h"

enum {
  MAX_READERS = 32, /* so many readers of one value are tried, which keeps the pass linear */
  MAX_SPAN = 512,   /* groups further apart than this are not merged: this too keeps the pass
                       linear, and a merge across the graph would lengthen live ranges */
};

static bool try_merge(Fusion *fusion, int a, int b) {
  int ga = fusion->group_of[a], gb = fusion->group_of[b];
  return ga != gb && form_allows(fusion, ga, gb) && fusion_merge(fusion, ga, gb);
}

static bool try_near(Fusion *fusion, int a, int b) {
  int span = fusion->group[fusion->group_of[a]].rank - fusion->group[fusion->group_of[b]].rank;
  return -MAX_SPAN < span && span < MAX_SPAN && try_merge(fusion, a, b);
}

/* Runs before other loops are joined. Otherwise an `ema` might join an early loop while its update
 * must wait for the finite test, which would make the update a copy of its own. */
static void join_updates(Fusion *fusion) {
  for (int i = 0; i < fusion->depend->n; i++) {
    const Node *node = fusion_node(fusion, i);
    int maker = node->op == OP_UPDATE ? fusion_index(fusion, node->arg[1]->node) : -1;
    if (maker >= 0)
      try_merge(fusion, maker, i);
  }
}

static bool reads_elementwise(const Node *node, const Value *value) {
  for (int k = 0; k < node->n_args; k++)
    if (node->arg[k] == value && arg_is_elementwise(node, k))
      return true;
  return false;
}

/* Joins a loop with earlier ones that read the same tensor: the joint loop reads it once. */
static void join_readers(Fusion *fusion, int index) {
  const Depend *depend = fusion->depend;
  const Node *node = fusion_node(fusion, index);
  for (int k = 0; k < node->n_args; k++) {
    int def = fusion_index(fusion, node->arg[k]->node);
    if (def < 0 || !arg_is_elementwise(node, k) || type_count(node->arg[k]->type) == 1)
      continue;
    int from = depend->succ_begin[def], to = depend->succ_begin[def + 1];
    for (int e = from; e < to && e < from + MAX_READERS; e++) {
      const Node *other = fusion_node(fusion, depend->succ[e]);
      if (depend->succ[e] < index && node_is_loop(other) && reads_elementwise(other, node->arg[k]))
        try_near(fusion, depend->succ[e], index);
    }
  }
}

/* First each loop with the makers of its operands, then with other readers of the same tensors. */
static void join_loops(Fusion *fusion) {
  for (int i = 0; i < fusion->depend->n; i++) {
    const Node *node = fusion_node(fusion, i);
    for (int k = 0; node_is_loop(node) && k < node->n_args; k++) {
      int maker = fusion_index(fusion, node->arg[k]->node);
      if (maker >= 0)
        try_near(fusion, maker, i);
    }
  }
  for (int i = 0; i < fusion->depend->n; i++)
    if (node_is_loop(fusion_node(fusion, i)))
      join_readers(fusion, i);
}

/* The groups as kernels, in an order that data flow allows. */
static int kernels_make(Fusion *fusion, Kernel *kernel) {
  int n = 0;
  for (int r = 0; r < fusion->depend->n; r++) {
    if (fusion->by_rank[r] < 0)
      continue;
    const Group *group = &fusion->group[fusion->by_rank[r]];
    Kernel *k = &kernel[n++];
    k->n_nodes = group->n;
    k->node = arena_alloc(fusion->arena, (size_t)group->n * sizeof *k->node);
    for (int i = 0; i < group->n; i++)
      k->node[i] = fusion_node(fusion, group->node[i]);
    form_order(k, fusion->target);
  }
  return n;
}

bool pass_fuse(PassContext *context, Graph *graph) {
  fuse_prepare(graph);
  Fusion *fusion = fusion_new(context->scratch, graph, context->target);
  join_updates(fusion);
  if (!context->options->unfused) {
    if (context->options->fuse_level >= FUSE_MAINS)
      stage_join_mains(fusion);
    join_loops(fusion);
    if (context->options->fuse_level >= FUSE_MAINS)
      stage_join_loops(fusion);
  }
  stage_number(fusion);
  size_t n = (size_t)fusion->depend->n + 1;
  Kernel *kernel = arena_alloc(context->scratch, n * sizeof *kernel);
  graph_order_kernels(context->scratch, graph, kernel, kernels_make(fusion, kernel));
  graph->stage = STAGE_FUSED;
  return true;
}
