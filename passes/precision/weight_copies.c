/* weight-copies: keep low-precision copies of parameters, written by the optimizer.
 *
 *   before   %w.f16 = cast %w : f16[10,64]
 *            ..
 *            %w.new = opt_sgd %w, %w.grad, %lr, %inv : f32[10,64]
 *            update %w, %w.new, %finite
 *   after    %w.f16 = variable {kind="copy", of="w"} : f16[10,64]
 *            ..
 *            %w.new, %w.f16.new = opt_sgd %w, %w.grad, %lr, %inv : f32[10,64], f16[10,64]
 *            update %w, %w.new, %finite
 *            update %w.f16, %w.f16.new, %finite
 *
 * Runs after optimizer and fold-casts; then no weight is cast in a step. A parameter that changes
 * other than by an opt_* node keeps its casts. Tests: tests/passes/precision/weight_copies.amp */
#include "passes/edit.h"
#include "passes/pass.h"
#include "passes/precision/amp.h"

#include <string.h>

typedef struct Copies {
  Graph *graph;
  Value **made; /* per variable (its order) and dtype: the copy that this run made, or NULL */
} Copies;

/* The `update` that the variable of that name had when the pass began; NULL if it had none. */
static Node *update_of(const Graph *graph, const char *name) {
  const Value *value = graph_find(graph, name);
  for (int u = 0; value && u < value->n_uses; u++)
    if (value->use[u].node->op == OP_UPDATE && value->use[u].arg == 0)
      return value->use[u].node;
  return NULL;
}

/* The opt_* node whose first result the update stores, if it can write the copy too. */
static Node *optimizer_of(const Node *update) {
  Value *now = value_resolve(update->arg[1]);
  const OpInfo *info = &op_info[now->node->op];
  return info->gen == GEN_OPT && now->index == 0 && now->node->n_results < info->max_results &&
                 value_resolve(now->node->arg[0]) == value_resolve(update->arg[0])
             ? now->node
             : NULL;
}

/* May the parameter have a copy of that name? In no graph may another variable have the name;
 * values that are no variables can be renamed. And every graph that updates the parameter must
 * update the copy as well, or have an optimizer that can be made to, if this graph is one of these.
 */
static bool can_keep(const Graph *graph, const char *copy, const char *param) {
  const Module *module = graph->module;
  bool ours = update_of(graph, param) != NULL;
  for (int g = 0; g < module->n_graphs; g++) {
    const Value *value = graph_find(module->graph[g], copy);
    if (value && value->node->op == OP_VARIABLE &&
        strcmp(attr_str(value->node, ATTR_OF, ""), param) != 0)
      return false;
    const Node *update = update_of(module->graph[g], param);
    if (update && !update_of(module->graph[g], copy) && (!ours || !optimizer_of(update)))
      return false;
  }
  return true;
}

/* Replaces the opt_* node by one with the copy as one more result, which takes over the names of
 * the old results. Returns the new result. */
static Value *write_copy(Graph *graph, Node *opt, const char *copy, TensorType type) {
  Node *node = graph_append(graph, opt->op, opt->loc, opt->n_args, opt->arg);
  for (int i = 0; i < opt->n_attrs; i++)
    attr_set(graph, node, opt->attr[i]);
  node_finish(graph, node, name_with(graph, copy, "all"), opt->n_results + 1, &type);
  for (int r = 0; r < opt->n_results; r++)
    value_take_over(graph, opt->result[r], node->result[r]);
  Value *made = node->result[opt->n_results];
  graph_rename(graph, made, graph_fresh_name(graph, name_with(graph, copy, "new")));
  return made;
}

/* Makes the copy a variable, with an update beside that of the parameter. A variable of that name
 * is the copy already; another value of that name is renamed. */
static Value *make_copy(Graph *graph, const Value *param, TensorType type, const char *name) {
  Value *copy = graph_find(graph, name);
  if (!copy || copy->node->op != OP_VARIABLE) {
    if (copy)
      graph_rename(graph, copy, graph_fresh_name(graph, name_with(graph, name, "cast")));
    Node *node = graph_append(graph, OP_VARIABLE, param->node->loc, 0, NULL);
    variable_set_kind(graph, node, VARIABLE_COPY);
    attr_set_str(graph, node, ATTR_OF, param->name);
    copy = node_finish(graph, node, name, 1, &type);
  }
  const Node *update = update_of(graph, param->name);
  if (update && !update_of(graph, name))
    graph_update_add(graph, copy, write_copy(graph, optimizer_of(update), name, type),
                     update->n_args == 3 ? update->arg[2] : NULL);
  return copy;
}

/* Every graph that updates the parameter keeps the copy in step. */
static void keep_elsewhere(const Graph *graph, const Value *param, TensorType type,
                           const char *name) {
  const Module *module = graph->module;
  for (int g = 0; g < module->n_graphs; g++)
    if (module->graph[g] != graph && update_of(module->graph[g], param->name) &&
        !update_of(module->graph[g], name))
      make_copy(module->graph[g], graph_find(module->graph[g], param->name), type, name);
}

static bool replace_cast(const Copies *copies, Node *cast) {
  Graph *graph = copies->graph;
  Value *param = value_resolve(cast->arg[0]);
  TensorType type = cast->result[0]->type;
  if (!dtype_info[type.dtype].low || !node_is_param(param->node))
    return false;
  Value **made = &copies->made[param->node->order * DT_COUNT + (int)type.dtype];
  const char *name = name_with(graph, param->name, dtype_info[type.dtype].name);
  if (!*made) {
    if (!can_keep(graph, name, param->name))
      return false;
    *made = make_copy(graph, param, type, name);
    keep_elsewhere(graph, param, type, name);
  }
  value_replace(cast->result[0], *made);
  return true;
}

bool pass_weight_copies(PassContext *context, Graph *graph) {
  int n = graph->n_nodes;
  size_t slots = ((size_t)n + 1) * DT_COUNT;
  Copies copies = {graph, arena_alloc(context->scratch, slots * sizeof *copies.made)};
  bool changed = false;
  for (int g = 0; g < context->module->n_graphs; g++)
    graph_index_uses(context->module->graph[g]); /* this pass may have changed one before */
  for (int i = 0; i < n; i++)
    if (graph->node[i]->op == OP_CAST)
      changed |= replace_cast(&copies, graph->node[i]);
  for (int g = 0; changed && g < context->module->n_graphs; g++)
    graph_sort(context->module->graph[g]);
  return changed;
}
