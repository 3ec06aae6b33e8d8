/* What can be made again, and from what: pointwise ops, back to values that are stored anyway. A
 * convolution, product, pooling or sum is never done twice. */
#include "passes/memory/recompute.h"

/* A variable is read before its update. */
static void note_variable(const Recompute *r, Remake *remake, const Value *variable) {
  for (int u = 0; u < variable->n_uses; u++) {
    const Node *node = variable->use[u].node;
    int kernel = r->storages->kernel[node->order];
    if (node->op == OP_UPDATE && variable->use[u].arg == 0 && kernel < remake->until)
      remake->until = kernel;
  }
  remake->moved += type_bytes(variable->type);
}

static void note_leaf(const Recompute *r, Remake *remake, int index) {
  for (int i = 0; i < remake->leaf.n; i++)
    if (remake->leaf.v[i] == index)
      return;
  arena_push(r->arena, remake->leaf.v, remake->leaf.n, remake->leaf.cap, index);
  remake->moved += r->storages->storage[index].bytes;
}

static bool has_node(const Remake *remake, const Node *node) {
  for (int i = 0; i < remake->n; i++)
    if (remake->node[i] == node)
      return true;
  return false;
}

/* What a library rounds once at the end can only be of ops that are as good in f32. */
static bool may_repeat(const Remake *remake, const Node *node) {
  bool plain = node->op == OP_AFFINE || node->op == OP_ADD || node->op == OP_RELU;
  return op_info[node->op].gen == GEN_POINT && (plain || !remake->wide);
}

/* The node and what it needs of its kernel. A view would show the first copy: those are left be. */
static bool collect(const Recompute *r, Remake *remake, const Node *root, const Node *node) {
  if (has_node(remake, node))
    return true;
  if (!may_repeat(remake, node) || !space_equal(node_space(node), node_space(root)))
    return false;
  for (int k = 0; k < node->n_args; k++) {
    Value *value = value_storage(node->arg[k]);
    int index = storage_index(r->storages, value);
    if (value->node->op == OP_VARIABLE)
      note_variable(r, remake, value);
    else if (value->node->op == OP_CONST)
      continue;
    else if (value != node->arg[k])
      return false;
    else if (index >= 0)
      note_leaf(r, remake, index);
    else if (!collect(r, remake, root, value->node))
      return false;
  }
  if (remake->n == MAX_GROUP)
    return false;
  remake->node[remake->n++] = node;
  return true;
}

static Remake *remake_of(const Recompute *r, const Storage *storage) {
  const Node *node = storage->value->node;
  if (storage->maker < 0 || storage->output || op_info[node->op].gen != GEN_POINT)
    return NULL;
  Remake *remake = arena_new_of(r->arena, Remake);
  remake->until = r->storages->kernels.n;
  remake->moved = storage->bytes;
  const Node *main = kernel_main(&r->storages->kernels.kernel[storage->maker]);
  remake->wide =
      main && op_info[main->op].gen == GEN_CONV && dtype_info[storage->value->type.dtype].low;
  bool good = collect(r, remake, node, node) && remake->n + remake->leaf.n < MAX_GROUP;
  return good ? remake : NULL;
}

void recompute_find_remakes(Recompute *r) {
  for (int i = 0; i < r->storages->n; i++)
    r->remake[i] = remake_of(r, &r->storages->storage[i]);
  for (int i = 0; i < r->graph->n_nodes; i++) {
    const Node *node = r->graph->node[i];
    int shown = op_info[node->op].gen == GEN_VIEW ? storage_index(r->storages, node->arg[0]) : -1;
    if (shown >= 0)
      r->remake[shown] = NULL;
  }
}
