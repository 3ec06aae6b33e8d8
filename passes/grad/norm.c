#include "passes/grad/norm.h"

#include "ir/ports.h"
#include "passes/edit.h"

int64_t norm_count(const Node *norm) {
  TensorType x = norm->arg[0]->type;
  return type_count(x) / x.dim[x.rank - 1];
}

static bool is_stat(const Value *value) {
  return variable_kind(value->node) == VARIABLE_STAT;
}

bool norm_has_stats(const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_BATCH_NORM && (is_stat(node->arg[3]) || is_stat(node->arg[4])))
      return true;
  }
  return false;
}

void norm_infer(Graph *graph, Node *norm) {
  Node *infer = graph_append(graph, OP_BATCH_NORM_INFER, norm->loc, 5, norm->arg);
  attr_set(graph, infer, *attr_find(norm, ATTR_EPSILON));
  Value *y = node_finish(graph, infer, norm->result[0]->name, 1, NULL);
  value_take_over(graph, norm->result[0], y);
  value_replace(norm->result[1], norm->arg[3]);
  value_replace(norm->result[2], norm->arg[4]);
}

/* Operand `stat` is 3, the moving mean, or 4, the moving variance. Bessel's correction M/(M-1)
 * makes the biased variance of a batch of M elements unbiased, which is what TensorFlow and PyTorch
 * keep as moving variance. */
static void renew(Graph *graph, const Node *norm, int stat, Value *momentum, Value *pred) {
  Value *old = norm->arg[stat];
  Value *args[] = {old, norm->result[stat - 2], momentum};
  Node *ema = graph_append(graph, OP_EMA, norm->loc, 3, args);
  if (stat == 4) {
    double m = (double)norm_count(norm);
    attr_set_float(graph, ema, ATTR_CORRECTION, m > 1 ? m / (m - 1) : 1);
  }
  Value *now = node_finish(graph, ema, name_with(graph, old->name, "new"), 1, NULL);
  graph_update_add(graph, old, now, pred);
}

void norm_update_stats(Graph *graph, Value *momentum, Value *pred) {
  Arena *scratch = arena_new();
  int n = graph->n_nodes;
  bool *updated = arena_alloc(scratch, (size_t)n + 1); /* per node: a variable that has an update */
  Value *own = NULL;
  graph_index_uses(graph); /* numbers the nodes anew, as the caller has changed the graph */
  for (int i = 0; i < n; i++)
    if (graph->node[i]->op == OP_UPDATE)
      updated[graph->node[i]->arg[0]->node->order] = true;
  for (int i = 0; i < n; i++) {
    Node *norm = graph->node[i];
    if (norm->op != OP_BATCH_NORM)
      continue;
    double m = attr_float(norm, ATTR_MOMENTUM, 0);
    if (!momentum && (!own || attr_float(own->node, ATTR_VALUE, 0) != m))
      own = graph_const(graph, type_scalar(DT_F32), m, port_bn_momentum, norm->loc);
    for (int stat = 3; stat <= 4; stat++) {
      Value *old = norm->arg[stat];
      if (!is_stat(old) || updated[old->node->order])
        continue;
      updated[old->node->order] = true;
      renew(graph, norm, stat, momentum ? momentum : own, pred);
    }
  }
  arena_free(scratch);
}
