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
 * other than by an opt_* node keeps its casts. Tests: tests/passes/weight_copies.amp */
#include "passes/precision/amp.h"
#include "passes/edit.h"
#include "passes/pass.h"

#include <string.h>

static bool is_cast_of_param(const Node *node) {
  return node->op == OP_CAST && dtype_info[node->result[0]->type.dtype].low &&
         node_is_param(value_resolve(node->arg[0])->node);
}

/* Notes with every variable where its update is: mark = position + 1. */
static void mark_updates(const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++)
    graph->node[i]->mark = 0;
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_UPDATE)
      value_resolve(graph->node[i]->arg[0])->node->mark = i + 1;
}

/* The `update` of the variable of that name; NULL if the graph has none. */
static Node *update_of(const Graph *graph, const char *name) {
  const Value *value = graph_find(graph, name);
  bool any = value && value->node->op == OP_VARIABLE && value->node->mark;
  return any ? graph->node[value->node->mark - 1] : NULL;
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

/* Is the name free for a copy, in every graph? Only variables are known by name elsewhere. */
static bool name_is_free(const Module *module, const char *copy, const char *param) {
  for (int g = 0; g < module->n_graphs; g++) {
    const Value *value = graph_find(module->graph[g], copy);
    if (value && value->node->op == OP_VARIABLE &&
        strcmp(attr_str(value->node, ATTR_OF, ""), param) != 0)
      return false;
  }
  return true;
}

/* Every graph that changes the parameter changes the copy with it, or this one can be made to. */
static bool is_kept(const Graph *graph, const char *copy, const char *param) {
  const Module *module = graph->module;
  for (int g = 0; g < module->n_graphs; g++) {
    const Node *update = update_of(module->graph[g], param);
    if (update && !update_of(module->graph[g], copy) &&
        (module->graph[g] != graph || !optimizer_of(update)))
      return false;
  }
  return true;
}

/* The opt_* node again, with the copy as one more result; the old results' names go over. */
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

static Value *copy_of(Graph *graph, const Value *param, TensorType type, const char *name) {
  Value *old = graph_find(graph, name);
  if (old && old->node->op == OP_VARIABLE)
    return old;
  if (old)
    graph_rename(graph, old, graph_fresh_name(graph, name_with(graph, name, "cast")));
  Node *node = graph_append(graph, OP_VARIABLE, param->node->loc, 0, NULL);
  attr_set_str(graph, node, ATTR_KIND, "copy");
  attr_set_str(graph, node, ATTR_OF, param->name);
  return node_finish(graph, node, name, 1, &type);
}

static bool replace_cast(Graph *graph, Node *cast) {
  Value *param = value_resolve(cast->arg[0]);
  TensorType type = cast->result[0]->type;
  const char *name = name_with(graph, param->name, dtype_info[type.dtype].name);
  if (!name_is_free(graph->module, name, param->name) || !is_kept(graph, name, param->name))
    return false;
  Value *copy = copy_of(graph, param, type, name);
  value_replace(cast->result[0], copy);
  Node *update = update_of(graph, param->name);
  if (update && !update_of(graph, name)) {
    graph_update_add(graph, copy, write_copy(graph, optimizer_of(update), name, type),
                     update->n_args == 3 ? update->arg[2] : NULL);
    copy->node->mark = graph->n_nodes;
  }
  return true;
}

bool pass_weight_copies(PassContext *context, Graph *graph) {
  int n = graph->n_nodes;
  bool changed = false;
  for (int g = 0; g < context->module->n_graphs; g++)
    mark_updates(context->module->graph[g]);
  for (int i = 0; i < n; i++)
    if (is_cast_of_param(graph->node[i]))
      changed |= replace_cast(graph, graph->node[i]);
  if (changed)
    graph_sort(graph);
  return changed;
}
