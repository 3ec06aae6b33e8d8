/* Edits of the graph before its nodes are grouped:
 *
 *   before   output %c                       // a constant: nobody would write its memory
 *   after    %c.copy = broadcast %c {shape=[..], axes=[]}
 *            output %c.copy
 *
 *   before   %s = all_reduce %g              // the sums will take the place of %g,
 *            %a = mul %g, %e                 // which something else reads
 *   after    %g.copy = cast %g
 *            %s = all_reduce %g.copy
 *
 *   before   %z = affine %x, %s, %t          // in the forward pass
 *            %y = relu %z
 *            %g = relu_grad %dy, %y          // much later: reads %dy, %y, and with the sums %x
 *            %a, %b = bn_grad_stats %g, %x, %m
 *   after    %z.again = affine %x, %s, %t    // same numbers, same rounding: same mask
 *            %g = relu_grad %dy, %z.again    // one tensor less to read, %y may die early
 */
#include "passes/edit.h"
#include "passes/kernels/fuse.h"

#include <string.h>

/* Of what a sum over shards reads: a cast, which a loop may do once its own sums are known. Else a
 * broadcast. */
static Value *copy_of(Graph *graph, Value *value, const Node *reader) {
  bool is_sum = reader->op == OP_ALL_REDUCE;
  Node *node = graph_append(graph, is_sum ? OP_CAST : OP_BROADCAST, reader->loc, 1, &value);
  if (!is_sum) {
    attr_set_ints(graph, node, ATTR_SHAPE, value->type.dim, value->type.rank);
    attr_set_ints(graph, node, ATTR_AXES, NULL, 0);
  }
  Value *copy = node_finish(graph, node, name_with(graph, value->name, "copy"), 1, &value->type);
  copy->layout = value->layout;
  return copy;
}

static bool is_updated(const Value *variable) {
  for (int u = 0; u < variable->n_uses; u++)
    if (variable->use[u].node->op == OP_UPDATE && variable->use[u].arg == 0)
      return true;
  return false;
}

/* Loops have a constant as a literal or a table in their code; library calls and the program want
 * an address. */
static bool wants_memory(const Node *node, int k) {
  GenClass gen = op_info[node->op].gen;
  return node->op == OP_OUTPUT || node_is_main(node) || gen == GEN_REDUCE ||
         (gen == GEN_ROW && k == 0) ||
         (gen == GEN_OPT && type_equal(type_with(node->arg[k]->type, DT_F32), node->arg[0]->type));
}

static bool needs_copy(const Node *node, int k) {
  const Value *storage = value_storage(node->arg[k]);
  const Node *def = storage->node;
  if (node->op == OP_ALL_REDUCE)
    return !sum_may_replace(node);
  if (def->op == OP_CONST)
    return wants_memory(node, k);
  /* The operand may be another variable, which its own update overwrites first; the program reads
   * outputs after the step. Both must get the value of the step's start. */
  if (def->op == OP_VARIABLE)
    return (node->op == OP_UPDATE && k == 1) || (node->op == OP_OUTPUT && is_updated(storage));
  return false;
}

/* Moves the copies for sums, which are among the nodes from `n` on, right behind what they copy, so
 * that they join the loop that makes it. */
static void place_copies(Graph *graph, int n, Arena *scratch) {
  int n_nodes = graph->n_nodes, done = 0;
  int *head =
      arena_alloc(scratch, ((size_t)n + 1) * sizeof *head); /* 1 + a copy, by what it copies */
  int *next = arena_alloc(scratch, ((size_t)n_nodes + 1) * sizeof *next);
  Node **old = arena_alloc(scratch, ((size_t)n_nodes + 1) * sizeof *old);
  memcpy(old, graph->node, (size_t)n_nodes * sizeof *old);
  for (int i = n_nodes - 1; i >= n; i--)
    if (old[i]->op == OP_CAST) {
      int of = old[i]->arg[0]->node->order;
      next[i] = head[of];
      head[of] = i + 1;
    }
  for (int i = 0; i < n_nodes; i++) {
    if (i < n || old[i]->op != OP_CAST)
      graph->node[done++] = old[i];
    for (int c = i < n ? head[i] : 0; c; c = next[c - 1])
      graph->node[done++] = old[c - 1];
  }
}

static bool make_copies(Graph *graph) {
  int n = graph->n_nodes;
  for (int i = 0; i < n; i++) {
    Node *node = graph->node[i];
    for (int k = 0; k < node->n_args; k++)
      if (needs_copy(node, k))
        node->arg[k] = copy_of(graph, node->arg[k], node);
  }
  Arena *scratch = arena_new();
  if (graph->n_nodes > n)
    place_copies(graph, n, scratch);
  arena_free(scratch);
  return graph->n_nodes > n;
}

/* Computes the mask of a relu_grad again from the affine that made it, directly or through a ReLU,
 * if the sums behind the relu_grad read the affine's operand anyway. */
static bool recompute_mask(Graph *graph, const Node *stats, int n_old) {
  Node *grad = stats->op == OP_BN_GRAD_STATS ? stats->arg[0]->node : NULL;
  if (!grad || grad->op != OP_RELU_GRAD)
    return false;
  const Node *affine = grad->arg[1]->node;
  if (affine->op == OP_RELU)
    affine = affine->arg[0]->node;
  if (affine->op != OP_AFFINE || affine->arg[0] != stats->arg[1] || affine->order >= n_old)
    return false;
  const char *name = arena_printf(graph->arena, "%s.again", affine->result[0]->name);
  grad->arg[1] = graph_op(graph, OP_AFFINE, name, affine->loc, affine->n_args, affine->arg);
  grad->arg[1]->layout = affine->result[0]->layout;
  return true;
}

bool fuse_prepare(Graph *graph) {
  graph_sweep(graph);
  bool changed = make_copies(graph);
  int n = graph->n_nodes;
  for (int i = 0; i < n; i++)
    changed |= recompute_mask(graph, graph->node[i], n);
  if (changed) {
    graph_sort(graph);
    graph_sweep(graph);
  }
  return changed;
}
