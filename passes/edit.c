#include "passes/edit.h"

#include <string.h>

bool graph_rewrite(Graph *graph, RewriteFn *rule, void *user) {
  Node **old = graph->node;
  int n = graph->n_nodes;
  bool changed = false;
  graph->node = NULL;
  graph->n_nodes = graph->cap_nodes = 0;
  for (int i = 0; i < n; i++) {
    changed |= rule(user, graph, old[i]);
    old[i]->order = graph->n_nodes;
    arena_push(graph->arena, graph->node, graph->n_nodes, graph->cap_nodes, old[i]);
  }
  return changed;
}

void value_take_over(Graph *graph, Value *old, Value *with) {
  const char *name = old->name;
  graph_rename(graph, old, graph_fresh_name(graph, name_with(graph, name, "old")));
  graph_rename(graph, with, name);
  with->layout = old->layout;
  value_replace(old, with);
}

const char *name_with(Graph *graph, const char *name, const char *suffix) {
  return arena_printf(graph->arena, "%s.%s", name, suffix);
}

Node *graph_output(const Graph *graph, const char *name) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_OUTPUT &&
        strcmp(attr_str(graph->node[i], ATTR_NAME, ""), name) == 0)
      return graph->node[i];
  return NULL;
}

Value *graph_input(const Graph *graph, const char *name) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_INPUT && !strcmp(attr_str(graph->node[i], ATTR_NAME, ""), name))
      return graph->node[i]->result[0];
  return NULL;
}

Value *graph_input_add(Graph *graph, const char *name, TensorType type) {
  Node *input = graph_append(graph, OP_INPUT, (SrcLoc){0}, 0, NULL);
  attr_set_str(graph, input, ATTR_NAME, name);
  return node_finish(graph, input, name, 1, &type);
}

bool ports_are_free(Diag *diag, const Graph *graph, PortBy by) {
  int errors = diag->n_errors;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    const PortInfo *port = port_find(attr_str(node, ATTR_NAME, ""));
    if (port && port->by == by && port->what != PORT_VARIABLE)
      diag_error(diag, node->loc, DIAG_MODEL_NAME, "the name `%s` is reserved", port->name);
  }
  return diag->n_errors == errors;
}

Value *graph_output_add(Graph *graph, Value *value, const char *name) {
  Node *node = graph_append(graph, OP_OUTPUT, value->node->loc, 1, &value);
  attr_set_str(graph, node, ATTR_NAME, name);
  node_finish(graph, node, name, 0, NULL);
  return value;
}

void graph_update_add(Graph *graph, Value *variable, Value *now, Value *pred) {
  Value *args[] = {variable, now, pred};
  Node *node = graph_append(graph, OP_UPDATE, variable->node->loc, pred ? 3 : 2, args);
  node_finish(graph, node, variable->name, 0, NULL);
}

Value *graph_variable_add(Graph *graph, const char *name, VariableKind kind, TensorType type,
                          double value) {
  Node *node = graph_append(graph, OP_VARIABLE, (SrcLoc){0}, 0, NULL);
  variable_set_kind(graph, node, kind);
  attr_set_str(graph, node, ATTR_INIT, value == 0 ? "zeros" : "constant");
  if (value != 0)
    attr_set_floats(graph, node, ATTR_INIT_ARGS, &value, 1);
  return node_finish(graph, node, name, 1, &type);
}

bool node_is_param(const Node *node) {
  return variable_kind(node) == VARIABLE_PARAM && dtype_info[node->result[0]->type.dtype].is_float;
}

/* The parameter that an output is the gradient of, or NULL. */
static Value *param_of_output(const Graph *graph, const Node *output) {
  static const char suffix[] = ".grad";
  const char *name = attr_str(output, ATTR_NAME, "");
  size_t len = strlen(name), cut = sizeof suffix - 1;
  if (len <= cut || strcmp(name + len - cut, suffix) != 0)
    return NULL;
  Value *param = graph_find(graph, arena_strdup(graph->arena, name, len - cut));
  TensorType type = value_resolve(output->arg[0])->type;
  bool fits = param && node_is_param(param->node) && dtype_info[type.dtype].is_float &&
              type_equal(type_with(type, param->type.dtype), param->type);
  return fits ? param : NULL;
}

int param_grads(const Graph *graph, Arena *arena, ParamGrad **out) {
  int n = 0, cap = 0;
  *out = NULL;
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *output = graph->node[i];
    Value *param = output->op == OP_OUTPUT ? param_of_output(graph, output) : NULL;
    if (param) {
      ParamGrad found = {param, value_resolve(output->arg[0]), output};
      arena_push(arena, *out, n, cap, found);
    }
  }
  return n;
}

bool node_is_float_cast(const Node *node) {
  return node->op == OP_CAST && dtype_info[node->result[0]->type.dtype].is_float &&
         dtype_info[value_resolve(node->arg[0])->type.dtype].is_float;
}

const char *node_name(const Node *node) {
  return node->n_results ? node->result[0]->name : op_info[node->op].name;
}

Value *graph_op_f32(Graph *graph, OpKind op, const char *name, int n, Value *const *args) {
  Node *node = graph_append(graph, op, args[n - 1]->node->loc, n, args);
  attr_set_str(graph, node, ATTR_COMPUTE, "f32");
  return node_finish(graph, node, name, 1, NULL);
}

Value *graph_widen(Graph *graph, Value *value) {
  return value->type.dtype == DT_F32
             ? value
             : graph_cast(graph, value, DT_F32, name_with(graph, value->name, "f32"));
}

int reported_means(const Graph *graph, Node *out[MAX_REPORTED]) {
  static const char *const name[MAX_REPORTED] = {port_loss, port_accuracy, port_accuracy_top_5};
  int n = 0;
  for (int i = 0; i < MAX_REPORTED; i++)
    if ((out[n] = graph_output(graph, name[i])))
      n++;
  return n;
}
