/* optimizer: update parameters, slots, moving statistics and the step, as the recipe says.
 *
 *   before   output %w.grad {name="w.grad"}
 *   after    %learning_rate = lr_schedule %global_step, %schedule : f32[]
 *            %loss_scale.inv = div %one, %loss_scale : f32[]       // or a constant 1
 *            %w.momentum = variable {kind="slot", of="w", init="zeros"} : f32[4]
 *            %w.new, %w.momentum.new = opt_momentum %w, %w.momentum, %w.grad, %learning_rate,
 *                                      %loss_scale.inv {...} : f32[4], f32[4]
 *            update %w, %w.new, %finite                            // %finite: with loss scaling
 *            update %w.momentum, %w.momentum.new, %finite
 *            ... moving statistics likewise (norm.h), then %global_step
 *
 * With clip_norm a clip_norm node stands between the inverse and the updates; with clip_value each
 * update clips. Runs after loss-scale. A parameter that weight decay spares, because the recipe or
 * its own attribute `decay` says so, gets the optimizer that the row of ir/recipe/opt.def names for
 * such parameters. Never lets a skipped step change anything: with loss scaling every update here
 * is gated. */
#include "ir/base/list.h"
#include "ir/ports.h"
#include "ir/recipe/opt.h"
#include "passes/edit.h"
#include "passes/grad/norm.h"
#include "passes/pass.h"

typedef struct Optimizer {
  Graph *graph;
  const Recipe *recipe;
  Value *rate, *inverse, *step;
  Value *finite; /* gates every update; NULL without loss scaling */
  bool *spared;  /* per node: a variable that weight decay spares because of who reads it */
} Optimizer;

static void find_spared(Optimizer *o, Arena *scratch) {
  bool norm = list_has(o->recipe->decay_spares, "batch_norm");
  bool bias = list_has(o->recipe->decay_spares, "bias");
  o->spared = arena_alloc(scratch, (size_t)o->graph->n_nodes + 1);
  for (int i = 0; i < o->graph->n_nodes; i++) {
    const Node *node = o->graph->node[i];
    if (norm && node->op == OP_BATCH_NORM)
      o->spared[node->arg[1]->node->order] = o->spared[node->arg[2]->node->order] = true;
    if (bias && node->op == OP_BIAS_ADD)
      o->spared[node->arg[1]->node->order] = true;
  }
}

static void set_attrs(const Optimizer *o, const OptRule *rule, Node *node, double decay) {
  attr_set_float(o->graph, node, ATTR_DECAY, decay);
  if (o->recipe->clip_value > 0)
    attr_set_float(o->graph, node, ATTR_CLIP, o->recipe->clip_value);
  for (const OptNumber *number = rule->number; number->key != ATTR_END; number++)
    if (number->is_flag)
      attr_set_int(o->graph, node, number->key, 1);
    else
      attr_set_float(o->graph, node, number->key, opt_number(o->recipe, number));
}

static Value *add_slot(Graph *graph, Value *param, const OptSlot *slot) {
  Value *value = graph_variable_add(graph, name_with(graph, param->name, slot->suffix),
                                    VARIABLE_SLOT, param->type, 0);
  attr_set_str(graph, value->node, ATTR_OF, param->name);
  attr_set_str(graph, value->node, ATTR_INIT, slot->init);
  return value;
}

static void update_param(const Optimizer *o, const OptRule *rule, Value *param, Value *grad) {
  Graph *graph = o->graph;
  double decay = attr_float(param->node, ATTR_DECAY, o->recipe->weight_decay);
  if (o->spared[param->node->order] || attr_float(param->node, ATTR_DECAY, 1) == 0) {
    rule = opt_find(rule->spared);
    decay = 0;
  }
  const OptOp *op = opt_op(rule->op);
  Value *args[1 + OPT_MAX_SLOTS + 4] = {param}, *state[1 + OPT_MAX_SLOTS] = {param};
  int n = 1;
  for (; op->slot[n - 1].suffix; n++)
    args[n] = state[n] = add_slot(graph, param, &op->slot[n - 1]);
  int n_state = n;
  args[n++] = grad;
  args[n++] = o->rate;
  args[n++] = o->inverse;
  if (op->needs == OPT_STEPS)
    args[n++] = o->step;
  Node *node = graph_append(graph, rule->op, param->node->loc, n, args);
  set_attrs(o, rule, node, decay);
  node_finish(graph, node, name_with(graph, param->name, "new"), n_state, NULL);
  for (int s = 0; s < n_state; s++) {
    const char *name = name_with(graph, state[s]->name, "new");
    if (s)
      graph_rename(graph, node->result[s], graph_fresh_name(graph, name));
    graph_update_add(graph, state[s], node->result[s], o->finite);
  }
}

/* 1 / loss scale. The division stands right behind the variable, in front of the update that
 * replaces the scale of this step. */
static Value *add_inverse(Graph *graph) {
  Value *scale = graph_find(graph, port_loss_scale);
  const Module *module = graph->module;
  double share = module_find(module, "accumulate") ? 1 / (double)module->recipe->accumulate : 1;
  Value *one =
      graph_const(graph, type_scalar(DT_F32), share, share == 1 ? "one" : "share", (SrcLoc){0});
  if (!scale || scale->node->op != OP_VARIABLE || !type_equal(scale->type, one->type))
    return one;
  int before = scale->node->order + 1;
  Value *inverse =
      graph_op(graph, OP_DIV, "loss_scale.inv", (SrcLoc){0}, 2, (Value *[]){one, scale});
  graph_move_tail(graph, 2, before);
  return inverse;
}

/* Clips by the global norm: makes the inverse scale smaller where the norm of all gradients
 * together is too large. Every update multiplies by it anyway, so clipping needs no pass over the
 * gradients of its own. */
static Value *add_clip_norm(const Optimizer *o, const ParamGrad *grads, int n, Arena *scratch) {
  Value **args = arena_alloc(scratch, (size_t)(n + 1) * sizeof *args);
  args[0] = o->inverse;
  for (int i = 0; i < n; i++)
    args[i + 1] = grads[i].grad;
  Node *node = graph_append(o->graph, OP_CLIP_NORM, (SrcLoc){0}, n + 1, args);
  attr_set_float(o->graph, node, ATTR_CLIP, o->recipe->clip_norm);
  node_finish(o->graph, node, "clip.inv", 2, NULL);
  graph_rename(o->graph, node->result[1], graph_fresh_name(o->graph, port_gradient_norm));
  graph_output_add(o->graph, node->result[1], port_gradient_norm);
  return node->result[0];
}

static void add_rate(Optimizer *o) {
  Graph *graph = o->graph;
  TensorType type = type_of(DT_F32, 1, &(int64_t){SCHEDULE_SIZE});
  Value *schedule = graph_input_add(graph, port_schedule, type);
  o->step = graph_variable_add(graph, port_global_step, VARIABLE_COUNTER, type_scalar(DT_I64), 0);
  o->rate = graph_op(graph, OP_LR_SCHEDULE, port_learning_rate, (SrcLoc){0}, 2,
                     (Value *[]){o->step, schedule});
  graph_output_add(graph, o->rate, port_learning_rate);
}

/* The optimizer's nodes read the gradients now, so these need not be outputs any longer. */
static void drop_outputs(Graph *graph, const ParamGrad *grads, int n) {
  int kept = 0, next = 0; /* grads are in graph order */
  for (int i = 0; i < graph->n_nodes; i++)
    if (next < n && graph->node[i] == grads[next].output)
      next++;
    else
      graph->node[kept++] = graph->node[i];
  graph->n_nodes = kept;
}

/* Is a parameter updated already? */
static bool has_updates(const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_UPDATE && node_is_param(graph->node[i]->arg[0]->node))
      return true;
  return false;
}

/* Reports parameters that are not f32 and names that are reserved for what this pass adds. */
static bool check_model(Diag *diag, const Graph *graph) {
  int errors = diag->n_errors;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node_is_param(node) && node->result[0]->type.dtype != DT_F32)
      diag_error(diag, node->loc, DIAG_SHAPE, "parameter %%%s is %s: it must be f32",
                 node->result[0]->name, dtype_info[node->result[0]->type.dtype].name);
  }
  ports_are_free(diag, graph, BY_OPTIMIZER);
  const Value *step = graph_find(graph, port_global_step);
  if (step)
    diag_error(diag, step->node->loc, DIAG_MODEL_NAME, "the name `%s` is reserved", step->name);
  return diag->n_errors == errors;
}

bool pass_optimizer(PassContext *context, Graph *graph) {
  Optimizer o = {.graph = graph, .recipe = context->module->recipe};
  const OptRule *rule = opt_find(o.recipe->optimizer);
  ParamGrad *grads;
  int n = param_grads(graph, context->scratch, &grads);
  if (!n || has_updates(graph) || !check_model(context->diag, graph))
    return false;
  if (!rule) {
    diag_error(context->diag, (SrcLoc){0}, DIAG_RECIPE, "unknown optimizer `%s`",
               o.recipe->optimizer);
    return false;
  }
  Node *finite = graph_output(graph, port_finite);
  o.finite = finite && finite->arg[0]->node->op == OP_ALL_FINITE ? finite->arg[0] : NULL;
  add_rate(&o);
  o.inverse = add_inverse(graph);
  if (o.recipe->clip_norm > 0)
    o.inverse = add_clip_norm(&o, grads, n, context->scratch);
  find_spared(&o, context->scratch);
  for (int i = 0; i < n; i++)
    update_param(&o, rule, grads[i].param, grads[i].grad);
  drop_outputs(graph, grads, n);
  norm_update_stats(graph, NULL, o.finite);
  Value *next = graph_op(graph, OP_INCREMENT, "global_step.new", (SrcLoc){0}, 1, &o.step);
  graph_update_add(graph, o.step, next, o.finite);
  return true;
}
