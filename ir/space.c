#include "ir/space.h"

/* Sums, ops over rows, optimizers and updates iterate over their first operand, other ops over
 * their result. */
Space node_space(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  bool by_operand = gen == GEN_CHANNEL || gen == GEN_ROW || gen == GEN_OPT || !node->n_results;
  TensorType type = by_operand ? node->arg[0]->type : node->result[0]->type;
  return (Space){type_count(type), type.rank ? type.dim[type.rank - 1] : 1};
}

bool space_equal(Space a, Space b) {
  return a.count == b.count && a.channels == b.channels;
}

bool arg_is_elementwise(const Node *node, int k) {
  const char *space = op_info[node->op].space;
  for (int i = 0; i < k && space[1]; i++)
    space++;
  return *space == 'E' && type_count(node->arg[k]->type) == node_space(node).count;
}

bool node_is_loop(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  return gen == GEN_POINT || gen == GEN_VECTOR || gen == GEN_CHANNEL;
}

/* Sets *parts to the parts of the loop whose results the last of n nodes reads, as a bit set. False
 * if it reads one of them in a way that is impossible inside one loop: at another element, or
 * through a view, which needs an address that a value inside a loop does not have. */
static bool parts_read(Node *const *node, int n, const LoopPart *part, unsigned *parts) {
  const Node *reader = node[n - 1];
  bool update = reader->op == OP_UPDATE;
  *parts = 0;
  for (int k = update; k < reader->n_args; k++) {
    const Value *storage = value_storage(reader->arg[k]);
    for (int i = 0; i < n - 1; i++) {
      if (node[i] != storage->node)
        continue;
      if (storage != reader->arg[k] || (update ? k != 1 : !arg_is_elementwise(reader, k)))
        return false;
      *parts |= 1u << part[i];
    }
  }
  return true;
}

bool loop_parts(Node *const *node, int n, LoopPart part[MAX_LOOP]) {
  Space space = node_space(node[0]);
  bool has_sums = false;
  if (n > MAX_LOOP)
    return false;
  for (int i = n - 1; i >= 0; i--) {
    if (!node_is_loop(node[i]) && node[i]->op != OP_UPDATE)
      return false;
    if (op_info[node[i]->op].gen == GEN_CHANNEL) {
      has_sums = true;
      space = node_space(node[i]);
    }
  }
  for (int i = 0; i < n; i++) {
    GenClass gen = op_info[node[i]->op].gen;
    Space own = node_space(node[i]);
    unsigned reads;
    if (!parts_read(node, i + 1, part, &reads))
      return false;
    bool reads_sums = reads & (1u << PART_SUM | 1u << PART_TAIL);
    bool in_body = space_equal(own, space) && !reads_sums && !(gen == GEN_VECTOR && has_sums);
    if (node[i]->op == OP_UPDATE) {
      part[i] = PART_UPDATE;
      if (!reads && n > 1)
        return false;
    } else if (gen == GEN_CHANNEL) {
      part[i] = PART_SUM;
      if (!in_body)
        return false;
    } else if (in_body) {
      part[i] = PART_BODY;
    } else {
      part[i] = PART_TAIL;
      bool over_channels = own.count == space.channels && own.channels == space.channels;
      if (!has_sums || !over_channels || (gen != GEN_VECTOR && node[i]->op != OP_CAST) ||
          reads & 1u << PART_BODY)
        return false;
    }
  }
  return true;
}

LoopPart loop_part(const Node *node, const Kernel *kernel) {
  LoopPart part[MAX_LOOP];
  CHECK(loop_parts(kernel->node, kernel->n_nodes, part), "kernel %d is no loop", kernel->id);
  for (int i = 0; i < kernel->n_nodes; i++)
    if (kernel->node[i] == node)
      return part[i];
  BUG("`%s` is not in kernel %d", op_info[node->op].name, kernel->id);
}

Kernel loop_behind(const Kernel *kernel) {
  return (Kernel){kernel->id, kernel->n_nodes - 1, kernel->node + 1};
}

bool loop_follows(const Kernel *loop, const Node *main) {
  LoopPart part[MAX_LOOP];
  const Value *made = main->result[0];
  Space space = {type_count(made->type), made->type.dim[made->type.rank - 1]};
  bool reads = false;
  if (!loop_parts(loop->node, loop->n_nodes, part))
    return false;
  for (int i = 0; i < loop->n_nodes; i++) {
    const Node *node = loop->node[i];
    bool in_body = part[i] == PART_BODY || part[i] == PART_SUM;
    for (int k = node->op == OP_UPDATE; k < node->n_args; k++) {
      if (value_storage(node->arg[k]) != made)
        continue;
      if (node->arg[k] != made || !in_body || !arg_is_elementwise(node, k) ||
          !space_equal(node_space(node), space))
        return false;
      reads = true;
    }
  }
  return reads;
}

bool loop_hands_over(const Node *maker, const Use *use) {
  Node *const pair[] = {(Node *)maker, use->node};
  LoopPart part[MAX_LOOP];
  return use->node->op != OP_OUTPUT && loop_parts(pair, 2, part) && part[1] == PART_BODY &&
         arg_is_elementwise(use->node, use->arg);
}
