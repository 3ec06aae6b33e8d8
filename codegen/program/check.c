#include "codegen/codegen.h"

/* Convolutions and matrix products are calls of libraries, which take only f32, f16 and bf16. */
static bool node_check(const Node *node, Diag *diag) {
  for (int i = 0; i < node->n_results; i++)
    if (node->result[i]->type.dtype == DT_F64) {
      diag_error(diag, node->loc, DIAG_TARGET,
                 "`%s` is f64, which is for the evaluator; the cpu target computes in f32",
                 op_info[node->op].name);
      return false;
    }
  return true;
}

bool codegen_check(const Module *module, Diag *diag) {
  bool good = true;
  for (int g = 0; g < module->n_graphs; g++)
    for (int i = 0; i < module->graph[g]->n_nodes; i++)
      good &= node_check(module->graph[g]->node[i], diag);
  return good;
}
