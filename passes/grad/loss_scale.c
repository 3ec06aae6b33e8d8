/* loss-scale: start the gradients at the loss scale instead of 1, and test them.
 *
 *   before   %l.grad = const {value=1.0} : f32[]
 *   after    %loss_scale = variable {kind="scale", init="constant", init_args=[32768.0]} : f32[]
 *            ... every gradient is now the loss scale times as large ...
 *            %finite = all_finite %w.grad, %b.grad : bool[]
 *            output %finite {name="finite"}
 *            %s, %g = loss_scale_update %loss_scale, %good_steps, %finite {...} : f32[], i32[]
 *            update %loss_scale, %s
 *            update %good_steps, %g
 *
 * A fixed scale has the same test but no good_steps and no update. TensorFlow does not even test a
 * fixed scale, and where the program is to follow it (scale_untested), there is only the variable.
 * Runs after autodiff and before optimizer, which divides by the scale and gates its updates by
 * %finite. Never scales a value that is not a gradient: the output "loss" stays what it is. */
#include "ir/ports.h"
#include "passes/edit.h"
#include "passes/pass.h"

/* The constant 1 that autodiff starts from, or NULL. */
static Value *find_seed(const Graph *graph) {
  const Node *output = graph_output(graph, port_loss);
  if (!output)
    return NULL;
  Value *seed = graph_find(graph, arena_printf(graph->arena, "%s.grad", output->arg[0]->name));
  return seed && seed->node->op == OP_CONST && seed->type.rank == 0 ? seed : NULL;
}

/* The seed's node becomes the scale (cast to the loss's type); the variable moves to the front. */
static Value *seed_scale(Graph *graph, Value *seed, double init) {
  Value *scale =
      graph_variable_add(graph, port_loss_scale, VARIABLE_SCALE, type_scalar(DT_F32), init);
  graph_move_tail(graph, 1, 0);
  if (seed->type.dtype == DT_F32) {
    value_replace(seed, scale);
    return scale;
  }
  seed->node->op = OP_CAST;
  seed->node->n_attrs = 0;
  seed->node->n_args = 1;
  seed->node->arg[0] = scale;
  return scale;
}

/* Tests all gradients at once: one bool decides about every update of the step. NULL if there are
 * no gradients. */
static Value *test_finite(PassContext *context, Graph *graph) {
  ParamGrad *list;
  int n = param_grads(graph, context->scratch, &list);
  Value **grads = arena_alloc(context->scratch, (size_t)(n + 1) * sizeof *grads);
  for (int i = 0; i < n; i++)
    grads[i] = list[i].grad;
  return n ? graph_op(graph, OP_ALL_FINITE, port_finite, (SrcLoc){0}, n, grads) : NULL;
}

static void update_scale(const CompileOptions *options, Graph *graph, Value *scale, Value *finite) {
  Value *good = graph_variable_add(graph, port_good_steps, VARIABLE_SCALE, type_scalar(DT_I32), 0);
  Value *args[] = {scale, good, finite};
  Node *node = graph_append(graph, OP_LOSS_SCALE_UPDATE, (SrcLoc){0}, 3, args);
  attr_set_float(graph, node, ATTR_GROWTH, options->scale_growth);
  attr_set_float(graph, node, ATTR_BACKOFF, options->scale_backoff);
  attr_set_int(graph, node, ATTR_INTERVAL, options->scale_interval);
  attr_set_float(graph, node, ATTR_MIN, options->scale_min);
  attr_set_float(graph, node, ATTR_MAX, options->scale_max);
  node_finish(graph, node, "loss_scale.new", 2, NULL);
  graph_rename(graph, node->result[1], graph_fresh_name(graph, "good_steps.new"));
  graph_update_add(graph, scale, node->result[0], NULL);
  graph_update_add(graph, good, node->result[1], NULL);
}

/* False if the graph has been through this pass, as a variable of kind scale tells, and after an
 * error: in any other graph the names that this pass adds are reserved. */
static bool is_ready(Diag *diag, const Graph *graph) {
  int errors = diag->n_errors;
  const Node *output = graph_output(graph, port_finite);
  for (int p = 0; p < n_ports; p++) {
    const PortInfo *port = &port_info[p];
    bool ours = port->by == BY_LOSS_SCALE && port->what == PORT_VARIABLE;
    const Value *value = ours ? graph_find(graph, port->name) : NULL;
    if (value && variable_kind(value->node) == VARIABLE_SCALE)
      return false;
    if (value)
      diag_error(diag, value->node->loc, DIAG_MODEL_NAME, "the name `%s` is reserved", port->name);
  }
  if (output)
    diag_error(diag, output->loc, DIAG_MODEL_NAME, "the name `%s` is reserved", port_finite);
  return diag->n_errors == errors;
}

bool pass_loss_scale(PassContext *context, Graph *graph) {
  const CompileOptions *options = context->options;
  LossScaleMode mode = options->loss_scale;
  if (mode == LOSS_SCALE_AUTO)
    mode = options->dtype == DT_F16 ? LOSS_SCALE_DYNAMIC : LOSS_SCALE_NONE;
  Value *seed = find_seed(graph);
  if (mode == LOSS_SCALE_NONE || !seed || !is_ready(context->diag, graph))
    return false;
  bool tested = mode == LOSS_SCALE_DYNAMIC || !options->scale_untested;
  Value *finite = tested ? test_finite(context, graph) : NULL;
  if (tested && !finite)
    return false;
  Value *scale = seed_scale(graph, seed, options->scale_init);
  if (tested)
    graph_output_add(graph, finite, port_finite);
  else
    diag_warning(context->diag, (SrcLoc){0}, WARN_LOSS_SCALE,
                 "the fixed loss scale %g has no finite test, as in TensorFlow: gradients that "
                 "overflow spoil the parameters",
                 options->scale_init);
  if (mode == LOSS_SCALE_DYNAMIC)
    update_scale(options, graph, scale, finite);
  return true;
}
