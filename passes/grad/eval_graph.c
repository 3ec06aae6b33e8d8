/* eval-graph: derive @eval and @stats from @train.
 *
 *   before   graph @train stage model {
 *              %y, %mean, %var = batch_norm %x, %gamma, %beta, %mm, %mv {...} : ...
 *              output %loss {name="loss"}
 *              output %each {name="loss_each"}
 *   after    graph @train stage model {      // per-example outputs are gone
 *            graph @eval stage train {       // moving statistics; per-example outputs only
 *              %y = batch_norm_infer %x, %gamma, %beta, %mm, %mv {...} : ...
 *              output %each {name="loss_each"}
 *            graph @stats stage train {      // no outputs: renews the moving statistics
 *              %mm.new = ema %mm, %mean, %bn_momentum : f32[C]
 *              update %mm, %mm.new
 *
 * Runs before autodiff, on the forward graph. Without per-example outputs there is no @eval,
 * without batch normalisation no @stats. Never touches what @train computes. */
#include "ir/ports.h"
#include "passes/edit.h"
#include "passes/grad/norm.h"
#include "passes/pass.h"

#include <string.h>

static const char *const per_example[] = {port_loss_each, port_hit_each, port_hit5_each};

static bool is_per_example(const Node *output) {
  for (size_t i = 0; i < sizeof per_example / sizeof per_example[0]; i++)
    if (strcmp(attr_str(output, ATTR_NAME, ""), per_example[i]) == 0)
      return true;
  return false;
}

/* Keeps only the per-example outputs, or only the others. One walk for all, since graph_drop_node
 * for each would be quadratic. */
static bool keep_outputs(Graph *graph, bool wants_per_example) {
  int kept = 0, n = graph->n_nodes;
  for (int i = 0; i < n; i++)
    if (graph->node[i]->op != OP_OUTPUT || is_per_example(graph->node[i]) == wants_per_example)
      graph->node[kept++] = graph->node[i];
  graph->n_nodes = kept;
  return kept != n;
}

static void drop_outputs(Graph *graph) {
  int kept = 0;
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op != OP_OUTPUT)
      graph->node[kept++] = graph->node[i];
  graph->n_nodes = kept;
}

static bool infer_norm(void *user, Graph *graph, Node *node) {
  (void)user;
  if (node->op != OP_BATCH_NORM)
    return false;
  norm_infer(graph, node);
  return true;
}

static void add_eval(Module *module, const Graph *train) {
  Graph *eval = graph_clone(module, train, "eval");
  keep_outputs(eval, true);
  graph_rewrite(eval, infer_norm, NULL);
  eval->stage = STAGE_TRAIN;
}

static void add_stats(Module *module, const Graph *train) {
  Graph *stats = graph_clone(module, train, "stats");
  drop_outputs(stats);
  Value *momentum = graph_input_add(stats, port_bn_momentum, type_scalar(DT_F32));
  norm_update_stats(stats, momentum, NULL);
  stats->stage = STAGE_TRAIN;
}

static bool has_per_example(const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_OUTPUT && is_per_example(graph->node[i]))
      return true;
  return false;
}

bool pass_eval_graph(PassContext *context, Graph *graph) {
  Module *module = context->module;
  bool eval = has_per_example(graph) && !module_find(module, "eval");
  bool stats = norm_has_stats(graph) && !module_find(module, "stats");
  int room = MAX_GRAPHS - module->n_graphs;
  if (room < eval + stats) {
    diag_error(context->diag, (SrcLoc){0}, DIAG_TOO_LARGE, "more than %d graphs", MAX_GRAPHS);
    return false;
  }
  if (eval)
    add_eval(module, graph);
  if (stats)
    add_stats(module, graph);
  bool trimmed = graph_output(graph, port_loss) && keep_outputs(graph, false);
  return eval || stats || trimmed;
}
