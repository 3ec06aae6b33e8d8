/* What the precision passes decided and left, for -v and --print-precision. */
#include "passes/amp.h"
#include "passes/edit.h"

#include <string.h>

/* Is the cast alone in its kernel? Kernels are runs of neighbours. */
static bool is_alone(const Graph *graph, int i) {
  int64_t kernel = attr_int(graph->node[i], ATTR_KERNEL, -1);
  for (int j = i - 1; kernel >= 0 && j >= 0; j--)
    if (attr_int(graph->node[j], ATTR_KERNEL, kernel) != kernel)
      break;
    else if (attr_find(graph->node[j], ATTR_KERNEL) && graph->node[j]->op != OP_CAST)
      return false;
  for (int j = i + 1; kernel >= 0 && j < graph->n_nodes; j++)
    if (attr_int(graph->node[j], ATTR_KERNEL, kernel) != kernel)
      break;
    else if (attr_find(graph->node[j], ATTR_KERNEL) && graph->node[j]->op != OP_CAST)
      return false;
  return true;
}

int cast_count(const Graph *graph, bool weights_only) {
  int count = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_CAST && is_alone(graph, i))
      count += !weights_only || node_is_param(value_resolve(node->arg[0])->node);
  }
  return count;
}

static void report_node(const Node *node, FILE *out) {
  const char *why = attr_str(node, ATTR_WHY, NULL), *layer = node->loc.name;
  if (why && node->n_results)
    fprintf(out, "%-5s %-18s %-28s %s\n", dtype_info[node->result[0]->type.dtype].name,
            op_info[node->op].name, layer ? layer : node->result[0]->name, why);
}

void precision_report(const Module *module, FILE *out) {
  const Graph *train = module_find(module, "train");
  for (int i = 0; train && i < train->n_nodes; i++)
    report_node(train->node[i], out);
  for (int g = 0; g < module->n_graphs; g++)
    fprintf(out, "@%s: %d casts of their own, %d of weights\n", module->graph[g]->name,
            cast_count(module->graph[g], false), cast_count(module->graph[g], true));
}
