#include "passes/precision/amp.h"

static AmpPort port(const char *letters, int i) {
  for (; i > 0 && letters[1] != '*'; i--)
    letters++;
  return (AmpPort)letters[0];
}

AmpPort amp_operand(OpKind op, int i) {
  return port(op_info[op].operands, i);
}

AmpPort amp_result(OpKind op, int i) {
  return port(op_info[op].results, i);
}

DType amp_type(const Node *node) {
  for (int r = 0; r < node->n_results; r++)
    if (amp_result(node->op, r) == AMP_PORT_T)
      return node->result[r]->type.dtype;
  return DT_COUNT;
}

bool amp_is_t(const Node *node, int a) {
  AmpPort letter = amp_operand(node->op, a);
  return letter == AMP_PORT_T ||
         (letter == AMP_PORT_SCALAR && value_resolve(node->arg[a])->type.rank > 0);
}
