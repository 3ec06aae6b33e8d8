/* zero-gamma: the last batch normalisation of each residual block begins with gamma 0.
 *
 *   before   recipe {zero_gamma=1}
 *            %g = variable {kind="param", init="ones"} : f32[8]
 *            %y, %m, %v = batch_norm %x, %g, %b, %mm, %mv {...} : ...
 *            %s = add %y, %shortcut : f32[4,8]
 *   after    %g = variable {kind="param", init="zeros"} : f32[8]
 *            ... the rest as it was
 *
 * So each block begins as its shortcut. A block is an add with an operand that a batch_norm makes;
 * where both are (a projection), it is the one with more normalisations in front of it. Runs
 * before freeze and eval-graph, on the forward graph as imported. Blocks of the second version,
 * whose adds follow convolutions, have no such normalisation: E206 if a model has none at all. */
#include "ir/recipe/recipe.h"
#include "passes/edit.h"
#include "passes/pass.h"

/* The most batch normalisations on a way to each node, its own included. */
static int *depths(const Graph *graph, Arena *scratch) {
  int *depth = arena_alloc(scratch, ((size_t)graph->n_nodes + 1) * sizeof *depth);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    int most = 0;
    for (int a = 0; a < node->n_args; a++)
      most = depth[node->arg[a]->node->order] > most ? depth[node->arg[a]->node->order] : most;
    depth[i] = most + (node->op == OP_BATCH_NORM);
  }
  return depth;
}

bool pass_zero_gamma(PassContext *context, Graph *graph) {
  const int *depth = depths(graph, context->scratch);
  int blocks = 0;
  if (!context->module->recipe->zero_gamma)
    return false;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *add = graph->node[i], *last = NULL;
    for (int a = 0; add->op == OP_ADD && a < add->n_args; a++) {
      const Node *norm = add->arg[a]->node;
      if (norm->op == OP_BATCH_NORM && (!last || depth[norm->order] > depth[last->order]))
        last = norm;
    }
    if (!last || !node_is_param(last->arg[1]->node))
      continue;
    Node *gamma = last->arg[1]->node;
    attr_remove(gamma, ATTR_INIT_ARGS);
    attr_remove(gamma, ATTR_DATA);
    attr_set_str(graph, gamma, ATTR_INIT, "zeros");
    blocks++;
  }
  if (!blocks)
    diag_error(context->diag, graph->n_nodes ? graph->node[0]->loc : (SrcLoc){0}, DIAG_RECIPE,
               "zero_gamma: no residual block of this model ends in a batch normalisation");
  return blocks > 0;
}
