/* average: keep an exponential moving average beside each parameter, and evaluate with it.
 *
 *   before   recipe {ema_decay=0.75}
 *            graph @train stage train {
 *              update %w, %w.new, %finite
 *            graph @eval stage train {
 *              ... reads %w
 *   after    graph @train stage train {
 *              update %w, %w.new, %finite
 *              %w.ema = variable {kind="average", of="w"} : f32[4]
 *              %w.ema.ahead = sub %w.ema, %w.new {compute="f32"} : f32[4]
 *              %w.ema.step = mul %w.ema.ahead, %ema.rest {compute="f32"} : f32[4]   // 1 - decay
 *              %w.ema.new = sub %w.ema, %w.ema.step {compute="f32"} : f32[4]
 *              update %w.ema, %w.ema.new, %finite
 *            graph @eval stage train {
 *              ... reads %w.ema
 *
 * That is TensorFlow's ExponentialMovingAverage, which loses less in f32 than decay * old plus
 * (1 - decay) * new. With ema_num_updates the decay is min(decay, (1 + t) / (10 + t)) after t
 * updates: 1 - decay is then max(1 - decay, 9 / (10 + t)).
 *
 * Runs after optimizer, whose updates it follows, and before amp, which must not touch the average.
 * Every graph but those of the step reads the averages: @stats must see what @eval does. Never
 * averages moving statistics, which are averages already. */
#include "ir/ports.h"
#include "ir/recipe/recipe.h"
#include "passes/edit.h"
#include "passes/pass.h"

#include <string.h>

static Value *f32_op(Graph *graph, OpKind op, const char *name, Value *a, Value *b) {
  Node *node = graph_append(graph, op, a->node->loc, b ? 2 : 1, (Value *[]){a, b});
  attr_set_str(graph, node, ATTR_COMPUTE, "f32");
  return node_finish(graph, node, name, 1, NULL);
}

static Value *scalar(Graph *graph, double value, const char *name) {
  return graph_const(graph, type_scalar(DT_F32), value, name, (SrcLoc){0});
}

/* 1 - decay, as max(a, b) = relu(b - a) + a where the decay begins smaller. */
static Value *add_rest(Graph *graph, const Recipe *recipe) {
  Value *rest = scalar(graph, 1 - recipe->ema_decay, "ema.rest");
  Value *step = graph_find(graph, port_global_step);
  TensorType type = type_scalar(DT_F32);
  if (!recipe->ema_num_updates || !step)
    return rest;
  Node *cast = graph_append(graph, OP_CAST, (SrcLoc){0}, 1, &step);
  Value *updates = node_finish(graph, cast, "ema.updates", 1, &type);
  Value *ten = scalar(graph, 10, "ten"), *nine = scalar(graph, 9, "nine");
  Value *past = f32_op(graph, OP_ADD, "ema.past", updates, ten);
  Value *early = f32_op(graph, OP_DIV, "ema.early", nine, past);
  Value *more = f32_op(graph, OP_SUB, "ema.more", early, rest);
  return f32_op(graph, OP_ADD, "ema.rest.now", f32_op(graph, OP_RELU, "ema.most", more, NULL),
                rest);
}

static Value *add_variable(Graph *graph, const char *name, const Value *param) {
  Value *taken = graph_find(graph, name);
  if (taken)
    graph_rename(graph, taken, graph_fresh_name(graph, name_with(graph, name, "value")));
  Node *node = graph_append(graph, OP_VARIABLE, param->node->loc, 0, NULL);
  variable_set_kind(graph, node, VARIABLE_AVERAGE);
  attr_set_str(graph, node, ATTR_OF, param->name);
  return node_finish(graph, node, name, 1, &param->type);
}

/* Adds the average of the parameter that this update changes, and lets the other graphs read it. */
static void follow(Graph *train, const Node *update, Value *rest) {
  Value *param = update->arg[0];
  const char *name = graph_fresh_name(train, name_with(train, param->name, "ema"));
  Value *average = add_variable(train, name, param);
  Value *ahead = f32_op(train, OP_SUB, name_with(train, name, "ahead"), average, update->arg[1]);
  Value *step = f32_op(train, OP_MUL, name_with(train, name, "step"), ahead, rest);
  Value *now = f32_op(train, OP_SUB, name_with(train, name, "new"), average, step);
  graph_update_add(train, average, now, update->n_args > 2 ? update->arg[2] : NULL);
  for (int g = 0; g < train->module->n_graphs; g++) {
    Graph *graph = train->module->graph[g];
    Value *read = graph_find(graph, param->name);
    if (graph == train || !strcmp(graph->name, "accumulate") || !read || !read->n_uses)
      continue;
    Value *instead = add_variable(graph, name, read);
    graph_move_tail(graph, 1, 0);
    value_replace(read, instead);
  }
}

bool pass_average(PassContext *context, Graph *graph) {
  const Recipe *recipe = context->module->recipe;
  Node **update = NULL;
  int n = graph->n_nodes, n_updates = 0, cap = 0;
  for (int i = 0; recipe->ema_decay > 0 && i < n; i++) {
    Node *node = graph->node[i];
    if (variable_kind(node) == VARIABLE_AVERAGE)
      return false;
    if (node->op == OP_UPDATE && node_is_param(node->arg[0]->node))
      arena_push(context->scratch, update, n_updates, cap, node);
  }
  if (!n_updates)
    return false;
  int first = update[0]->order;
  Value *rest = add_rest(graph, recipe);
  graph_move_tail(graph, graph->n_nodes - n, first); /* where the step has not been renewed yet */
  for (int i = 0; i < n_updates; i++)
    follow(graph, update[i], rest);
  return true;
}
