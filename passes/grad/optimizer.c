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
 * update clips. Runs after loss-scale. Weight decay spares what the recipe or the variable's own
 * `decay` says; what it spares gets plain momentum where the recipe says LARS. Never lets a skipped
 * step change anything: with loss scaling every update here is gated. */
#include "ir/base/list.h"
#include "ir/recipe.h"
#include "passes/edit.h"
#include "passes/grad/norm.h"
#include "passes/pass.h"

#include <string.h>

enum { MAX_SLOTS = 2 };
static const int64_t schedule_size = 64; /* see lr_schedule in ir/README.md */

typedef struct Rule {
  const char *name; /* as in the recipe */
  OpKind op;
  const char *slot[MAX_SLOTS];
  bool nesterov, decoupled, wants_step;
} Rule;

static const Rule rules[] = {
    {.name = "sgd", .op = OP_OPT_SGD},
    {.name = "momentum", .op = OP_OPT_MOMENTUM, .slot = {"momentum"}},
    {.name = "nesterov", .op = OP_OPT_MOMENTUM, .slot = {"momentum"}, .nesterov = true},
    {.name = "lars", .op = OP_OPT_LARS, .slot = {"momentum"}},
    {.name = "adam", .op = OP_OPT_ADAM, .slot = {"m", "v"}, .wants_step = true},
    {.name = "adamw", .op = OP_OPT_ADAM, .slot = {"m", "v"}, .wants_step = true, .decoupled = true},
};

typedef struct Optimizer {
  Graph *graph;
  const Recipe *recipe;
  Value *rate, *inverse, *step;
  Value *finite; /* gates every update; NULL without loss scaling */
  bool *spared;  /* per node: a variable that weight decay spares for what it is used for */
} Optimizer;

static const Rule *rule_find(const char *name) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (strcmp(rules[i].name, name) == 0)
      return &rules[i];
  return NULL;
}

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

static double decay_of(const Optimizer *o, const Node *param) {
  return o->spared[param->order] ? 0 : attr_float(param, ATTR_DECAY, o->recipe->weight_decay);
}

static bool is_spared(const Optimizer *o, const Node *param) {
  return o->spared[param->order] || attr_float(param, ATTR_DECAY, 1) == 0;
}

/* Sets those of the recipe's numbers that the op knows. */
static void set_attrs(const Optimizer *o, const Rule *rule, Node *node, double decay) {
  const Recipe *recipe = o->recipe;
  const struct {
    AttrKey key;
    double value;
  } number[] = {{ATTR_DECAY, decay},         {ATTR_MOMENTUM, recipe->momentum},
                {ATTR_TRUST, recipe->trust}, {ATTR_EPSILON, recipe->epsilon},
                {ATTR_BETA1, recipe->beta1}, {ATTR_BETA2, recipe->beta2}};
  for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
    if (op_info[node->op].attrs >> number[i].key & 1)
      attr_set_float(o->graph, node, number[i].key, number[i].value);
  if (recipe->clip_value > 0)
    attr_set_float(o->graph, node, ATTR_CLIP, recipe->clip_value);
  if (rule->nesterov)
    attr_set_int(o->graph, node, ATTR_NESTEROV, 1);
  if (rule->decoupled)
    attr_set_int(o->graph, node, ATTR_DECOUPLED, 1);
}

static Value *add_slot(Graph *graph, Value *param, const char *suffix) {
  Value *slot =
      graph_variable_add(graph, name_with(graph, param->name, suffix), "slot", param->type, 0);
  attr_set_str(graph, slot->node, ATTR_OF, param->name);
  return slot;
}

static void update_param(const Optimizer *o, const Rule *rule, Value *param, Value *grad) {
  Graph *graph = o->graph;
  Value *args[1 + MAX_SLOTS + 4] = {param}, *state[1 + MAX_SLOTS] = {param};
  int n_state = 1, n = 1;
  for (; n_state <= MAX_SLOTS && rule->slot[n_state - 1]; n_state++)
    args[n++] = state[n_state] = add_slot(graph, param, rule->slot[n_state - 1]);
  args[n++] = grad;
  args[n++] = o->rate;
  args[n++] = o->inverse;
  if (rule->wants_step)
    args[n++] = o->step;
  Node *node = graph_append(graph, rule->op, param->node->loc, n, args);
  set_attrs(o, rule, node, decay_of(o, param->node));
  node_finish(graph, node, name_with(graph, param->name, "new"), n_state, NULL);
  for (int s = 0; s < n_state; s++) {
    const char *name = name_with(graph, state[s]->name, "new");
    if (s)
      graph_rename(graph, node->result[s], graph_fresh_name(graph, name));
    graph_update_add(graph, state[s], node->result[s], o->finite);
  }
}

/* 1 / loss scale. It stands beside the variable, before the update that ends the old scale. */
static Value *add_inverse(Graph *graph) {
  Value *scale = graph_find(graph, "loss_scale");
  Value *one = graph_const(graph, type_scalar(DT_F32), 1, "one", (SrcLoc){0});
  if (!scale || scale->node->op != OP_VARIABLE || !type_equal(scale->type, one->type))
    return one;
  int before = scale->node->order + 1;
  Value *inverse =
      graph_op(graph, OP_DIV, "loss_scale.inv", (SrcLoc){0}, 2, (Value *[]){one, scale});
  graph_move_tail(graph, 2, before);
  return inverse;
}

/* The inverse scale, made smaller where the gradients together are too long: no pass over them of
 * its own. */
static Value *add_clip_norm(const Optimizer *o, const ParamGrad *grads, int n, Arena *scratch) {
  Value **args = arena_alloc(scratch, (size_t)(n + 1) * sizeof *args);
  args[0] = o->inverse;
  for (int i = 0; i < n; i++)
    args[i + 1] = grads[i].grad;
  Node *node = graph_append(o->graph, OP_CLIP_NORM, (SrcLoc){0}, n + 1, args);
  attr_set_float(o->graph, node, ATTR_CLIP, o->recipe->clip_norm);
  node_finish(o->graph, node, "clip.inv", 2, NULL);
  graph_rename(o->graph, node->result[1], graph_fresh_name(o->graph, "gradient_norm"));
  graph_output_add(o->graph, node->result[1], "gradient_norm");
  return node->result[0];
}

static void add_rate(Optimizer *o) {
  Graph *graph = o->graph;
  TensorType type = type_of(DT_F32, 1, &schedule_size);
  Node *input = graph_append(graph, OP_INPUT, (SrcLoc){0}, 0, NULL);
  attr_set_str(graph, input, ATTR_NAME, "schedule");
  Value *schedule = node_finish(graph, input, "schedule", 1, &type);
  o->step = graph_variable_add(graph, "global_step", "counter", type_scalar(DT_I64), 0);
  o->rate = graph_op(graph, OP_LR_SCHEDULE, "learning_rate", (SrcLoc){0}, 2,
                     (Value *[]){o->step, schedule});
  graph_output_add(graph, o->rate, "learning_rate");
}

static void update_params(const Optimizer *o, const Rule *rule, const ParamGrad *grads, int n) {
  const Rule *plain = rule->op == OP_OPT_LARS ? rule_find("momentum") : rule;
  for (int i = 0; i < n; i++) {
    Value *param = grads[i].param;
    update_param(o, is_spared(o, param->node) ? plain : rule, param, grads[i].grad);
  }
}

/* The updates have the gradients now; as outputs they are no longer wanted. */
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

/* What a model may get wrong: low parameters, names that are ours. */
static bool check_model(Diag *diag, const Graph *graph) {
  int errors = diag->n_errors;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node_is_param(node) && node->result[0]->type.dtype != DT_F32)
      diag_error(diag, node->loc, DIAG_SHAPE, "parameter %%%s is %s: it must be f32",
                 node->result[0]->name, dtype_info[node->result[0]->type.dtype].name);
    const char *name = attr_str(node, ATTR_NAME, "");
    if (strcmp(name, "schedule") == 0 || strcmp(name, "learning_rate") == 0 ||
        strcmp(name, "gradient_norm") == 0)
      diag_error(diag, node->loc, DIAG_MODEL_NAME, "the name `%s` is reserved", name);
  }
  if (graph_find(graph, "global_step"))
    diag_error(diag, graph_find(graph, "global_step")->node->loc, DIAG_MODEL_NAME,
               "the name `global_step` is reserved");
  return diag->n_errors == errors;
}

bool pass_optimizer(PassContext *context, Graph *graph) {
  Optimizer o = {.graph = graph, .recipe = context->module->recipe};
  const Rule *rule = rule_find(o.recipe->optimizer);
  ParamGrad *grads;
  int n = param_grads(graph, context->scratch, &grads);
  if (!n || has_updates(graph) || !check_model(context->diag, graph))
    return false;
  if (!rule) {
    diag_error(context->diag, (SrcLoc){0}, DIAG_RECIPE, "unknown optimizer `%s`",
               o.recipe->optimizer);
    return false;
  }
  Node *finite = graph_output(graph, "finite");
  o.finite = finite && finite->arg[0]->node->op == OP_ALL_FINITE ? finite->arg[0] : NULL;
  add_rate(&o);
  o.inverse = add_inverse(graph);
  if (o.recipe->clip_norm > 0)
    o.inverse = add_clip_norm(&o, grads, n, context->scratch);
  find_spared(&o, context->scratch);
  update_params(&o, rule, grads, n);
  drop_outputs(graph, grads, n);
  norm_update_stats(graph, NULL, o.finite);
  Value *next = graph_op(graph, OP_INCREMENT, "global_step.new", (SrcLoc){0}, 1, &o.step);
  graph_update_add(graph, o.step, next, o.finite);
  return true;
}
