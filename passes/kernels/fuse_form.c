/* The forms of kernels without a main op:
 *
 *   loop     body* sums* tail* update*   POINT over one space; CHANNEL sums over it; VECTOR ops on
 * them row      ROW ops on the same rows, none reading another's result opt      one OPT and its
 * updates alone    a REDUCE, or an update of what no loop makes
 */
#include "passes/kernels/fuse.h"

#include <stdlib.h>
#include <string.h>

typedef enum Part { PART_BODY, PART_SUM, PART_TAIL, PART_UPDATE } Part;

/* A kernel in the making. */
typedef struct Draft {
  int n;
  Node *node[2 * MAX_GROUP]; /* makers before readers */
  Part part[2 * MAX_GROUP];
  Space space;
} Draft;

bool node_is_loop(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  return gen == GEN_POINT || gen == GEN_VECTOR || gen == GEN_CHANNEL;
}

static Space space_of(TensorType type) {
  return (Space){type_count(type), type.rank ? type.dim[type.rank - 1] : 1};
}

Space node_space(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  bool by_operand = gen == GEN_CHANNEL || gen == GEN_ROW || gen == GEN_OPT || !node->n_results;
  return space_of(by_operand ? node->arg[0]->type : node->result[0]->type);
}

bool space_equal(Space a, Space b) {
  return a.count == b.count && a.channels == b.channels;
}

/* Operands that are one number or one per channel, whatever their size happens to be. */
static bool arg_is_vector(OpKind op, int k) {
  switch (op) {
  case OP_AFFINE:
  case OP_BIAS_ADD:
    return k >= 1;
  case OP_AFFINE2:
  case OP_BN_GRAD_STATS:
    return k >= 2;
  case OP_SELECT:
    return k == 0;
  case OP_BROADCAST:
    return true;
  default:
    return false;
  }
}

bool arg_is_elementwise(const Node *node, int k) {
  return !arg_is_vector(node->op, k) && type_count(node->arg[k]->type) == node_space(node).count;
}

static int draft_find(const Draft *draft, const Node *node) {
  for (int i = 0; i < draft->n; i++)
    if (draft->node[i] == node)
      return i;
  return -1;
}

/* What parts of the draft node i reads, as a bit set; false if it reads one in a way no kernel can.
 */
static bool parts_read(const Draft *draft, int i, unsigned *parts) {
  const Node *node = draft->node[i];
  *parts = 0;
  for (int k = node->op == OP_UPDATE; k < node->n_args; k++) {
    const Value *storage = value_storage(node->arg[k]);
    int def = draft_find(draft, storage->node);
    if (def < 0)
      continue;
    /* A view has an address, which a value inside a kernel has not. */
    if (storage != node->arg[k] || (node->op == OP_UPDATE && k != 1))
      return false;
    if (node->op != OP_UPDATE && !arg_is_elementwise(node, k))
      return false;
    *parts |= 1u << draft->part[def];
  }
  return true;
}

enum { READS_BODY = 1 << PART_BODY, READS_SUMS = 1 << PART_SUM | 1 << PART_TAIL };

/* The part of a loop kernel that node i can be; false if it fits none. */
static bool loop_part(const Draft *draft, int i, bool has_sums, Part *part) {
  const Node *node = draft->node[i];
  GenClass gen = op_info[node->op].gen;
  Space space = node_space(node);
  unsigned parts;
  if (!parts_read(draft, i, &parts))
    return false;
  if (node->op == OP_UPDATE) {
    *part = PART_UPDATE;
    return parts != 0;
  }
  bool in_body = space_equal(space, draft->space) && !(parts & READS_SUMS);
  if (gen == GEN_CHANNEL || in_body) {
    *part = gen == GEN_CHANNEL ? PART_SUM : PART_BODY;
    return in_body;
  }
  *part = PART_TAIL;
  return (gen == GEN_VECTOR || node->op == OP_CAST) && has_sums &&
         space.count == draft->space.channels && !(parts & READS_BODY);
}

static bool loop_parts(Draft *draft) {
  bool has_sums = false;
  draft->space = node_space(draft->node[0]);
  for (int i = 0; i < draft->n && !has_sums; i++)
    if (op_info[draft->node[i]->op].gen == GEN_CHANNEL) {
      has_sums = true;
      draft->space = node_space(draft->node[i]);
    }
  for (int i = 0; i < draft->n; i++)
    if (!loop_part(draft, i, has_sums, &draft->part[i]))
      return false;
  return true;
}

/* The first node with results, then nothing but updates of these results. */
static bool opt_parts(const Draft *draft) {
  for (int i = 1; i < draft->n; i++)
    if (draft->node[i]->op != OP_UPDATE || draft->node[i]->arg[1]->node != draft->node[0])
      return false;
  return true;
}

static bool row_parts(const Draft *draft) {
  for (int i = 0; i < draft->n; i++) {
    const Node *node = draft->node[i];
    if (op_info[node->op].gen != GEN_ROW ||
        !type_equal(node->arg[0]->type, draft->node[0]->arg[0]->type))
      return false;
    for (int k = 0; k < node->n_args; k++)
      if (draft_find(draft, value_storage(node->arg[k])->node) >= 0)
        return false;
  }
  return true;
}

static bool draft_legal(Draft *draft) {
  const Node *first = draft->node[0];
  if (op_info[first->op].gen == GEN_OPT)
    return opt_parts(draft);
  if (op_info[first->op].gen == GEN_ROW)
    return row_parts(draft);
  for (int i = 0; i < draft->n; i++)
    if (!node_is_loop(draft->node[i]) && draft->node[i]->op != OP_UPDATE)
      return false;
  return node_is_loop(first) && loop_parts(draft);
}

/* Asks about every pair of one node of `a` and one of `b`, in the kernel's order. */
static bool target_allows(const Fusion *fusion, const Draft *draft, int a) {
  for (int i = 0; i < draft->n; i++)
    for (int j = i + 1; j < draft->n; j++) {
      bool swap = draft->part[i] > draft->part[j];
      const Node *first = draft->node[swap ? j : i], *second = draft->node[swap ? i : j];
      if ((fusion->group_of[first->mark] == a) == (fusion->group_of[second->mark] == a))
        continue; /* were asked about before */
      if (!fusion->target->fuses(first, second))
        return false;
    }
  return true;
}

bool form_allows(const Fusion *fusion, int a, int b) {
  const Group *ga = &fusion->group[a], *gb = &fusion->group[b];
  Draft draft = {0};
  if (ga->n + gb->n > MAX_GROUP)
    return false;
  for (int i = 0, j = 0; draft.n < ga->n + gb->n;) {
    bool from_a = j == gb->n || (i < ga->n && ga->node[i] < gb->node[j]);
    draft.node[draft.n++] = fusion_node(fusion, from_a ? ga->node[i++] : gb->node[j++]);
  }
  return draft_legal(&draft) && target_allows(fusion, &draft, a);
}

/* Loops only: other kernels are in order already. Stable within each part. */
void form_order(Kernel *kernel) {
  Draft draft = {.n = kernel->n_nodes};
  if (kernel->n_nodes > MAX_GROUP || !node_is_loop(kernel->node[0]) || kernel_main(kernel))
    return;
  memcpy(draft.node, kernel->node, (size_t)draft.n * sizeof *draft.node);
  CHECK(draft.n == 1 || draft_legal(&draft), "kernel of %s has no form",
        op_info[draft.node[0]->op].name);
  int n = 0;
  for (Part part = PART_BODY; draft.n > 1 && part <= PART_UPDATE; part++)
    for (int i = 0; i < draft.n; i++)
      if (draft.part[i] == part)
        kernel->node[n++] = draft.node[i];
}

/* The target takes all of it or nothing. */
static bool main_legal(const Kernel *kernel, const Target *target) {
  Node *around[MAX_AROUND];
  return target->kernel_around && target->kernel_around(target, kernel_main(kernel), kernel->node,
                                                        kernel->n_nodes, around) == kernel->n_nodes;
}

bool form_legal(const Kernel *kernel, const Target *target) {
  Draft draft = {.n = kernel->n_nodes};
  if (kernel->n_nodes == 1)
    return true;
  if (kernel->n_nodes > MAX_GROUP)
    return false;
  if (kernel_main(kernel))
    return main_legal(kernel, target);
  memcpy(draft.node, kernel->node, (size_t)draft.n * sizeof *draft.node);
  if (!draft_legal(&draft))
    return false;
  for (int i = 0; i < draft.n; i++)
    for (int j = i + 1; j < draft.n; j++)
      if (draft.part[i] > draft.part[j] || !target->fuses(draft.node[i], draft.node[j]))
        return false;
  return true;
}
