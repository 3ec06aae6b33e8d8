/* Is every kernel of a form that code can be generated for, and does every kernel read variables as
 * they were at the start of the step? fuse and schedule see to both, but a graph that was read from
 * text may break them. */
#include "passes/kernels/fuse.h"
#include "passes/memory/plan.h"

static bool reads_updated(const Value *value, const int *update, int at) {
  const Node *def = value_storage((Value *)value)->node;
  int by = def->op == OP_VARIABLE ? update[def->order] : 0;
  return by && by < at;
}

/* A read of a variable must come before its update. */
static const char *check_reads(Arena *arena, const Graph *graph) {
  int *update = arena_alloc(arena, ((size_t)graph->n_nodes + 1) * sizeof *update);
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_UPDATE)
      update[graph->node[i]->arg[0]->node->order] = i;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    const Value *read = affine_bias(node);
    bool late = read && reads_updated(read, update, i);
    for (int a = node->op == OP_UPDATE; node_has_code(node) && !late && a < node->n_args; a++)
      late = reads_updated(read = node->arg[a], update, i);
    if (late)
      return arena_printf(arena, "%%%s is read after its update",
                          value_storage((Value *)read)->node->result[0]->name);
  }
  return NULL;
}

/* A sum takes the place of its operand, which nothing else may read, and a kernel runs either for
 * every shard or once. */
static const char *check_sums(Arena *arena, const Graph *graph, const KernelList *list) {
  const Shards *shards = shards_of(arena, graph);
  for (int i = 0; shards && i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_ALL_REDUCE && !sum_may_replace(node))
      return arena_printf(arena, "%%%s cannot take the place of its operand",
                          node->result[0]->name);
  }
  for (int k = 0; shards && k < list->n; k++)
    for (int i = 1; i < list->kernel[k].n_nodes; i++)
      if (shards->late[list->kernel[k].node[i]->order] !=
          shards->late[list->kernel[k].node[0]->order])
        return arena_printf(arena,
                            "kernel %d computes in front of sums over shards and behind them",
                            list->kernel[k].id);
  return NULL;
}

const char *kernels_check(Arena *arena, const Graph *graph, const Target *target) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (node_has_code(graph->node[i]) && kernel_of(graph->node[i]) < 0)
      return arena_printf(arena, "`%s` is in no kernel", op_info[graph->node[i]->op].name);
  KernelList list = kernels_of(arena, graph);
  for (int k = 0; k < list.n; k++)
    if (!form_legal(&list.kernel[k], target))
      return arena_printf(arena, "kernel %d (`%s` ...) is of no form that target %s has",
                          list.kernel[k].id, op_info[list.kernel[k].node[0]->op].name,
                          target->name);
  const char *why = check_reads(arena, graph);
  return why ? why : check_sums(arena, graph, &list);
}

bool kernels_accept(PassContext *context, const Graph *graph) {
  const char *why = kernels_check(context->scratch, graph, context->target);
  if (why)
    diag_error(context->diag, (SrcLoc){0}, DIAG_PLAN, "@%s: %s", graph->name, why);
  return !why;
}
