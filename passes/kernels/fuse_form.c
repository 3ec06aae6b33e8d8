/* The forms of kernels:
 *
 *   a loop           what ir/space.h lets one loop be
 *   a main op with   where the target takes it: the loop reads the result of the main op element
 *   a loop behind    by element
 *   an optimizer     one OPT and the updates of its results
 *   a node alone     an op over rows, another reduction, an update whose operand no loop makes
 */
#include "passes/kernels/fuse.h"

#include <string.h>

/* May the n nodes, makers before readers, be one kernel? Fills the parts of a loop. */
static bool draft_legal(Node *const *node, int n, LoopPart *part) {
  if (op_info[node[0]->op].gen != GEN_OPT)
    return loop_parts(node, n, part);
  for (int i = 1; i < n; i++)
    if (node[i]->op != OP_UPDATE || node[i]->arg[1]->node != node[0])
      return false;
  return true;
}

bool form_allows(const Fusion *fusion, int a, int b) {
  const Group *ga = &fusion->group[a], *gb = &fusion->group[b];
  Node *node[MAX_GROUP];
  LoopPart part[MAX_GROUP];
  int n = ga->n + gb->n;
  if (n > MAX_GROUP)
    return false;
  for (int i = 0, j = 0; i + j < n;) { /* merges two ascending lists */
    bool from_a = j == gb->n || (i < ga->n && ga->node[i] < gb->node[j]);
    node[i + j] = fusion_node(fusion, from_a ? ga->node[i] : gb->node[j]);
    i += from_a;
    j += !from_a;
  }
  return draft_legal(node, n, part);
}

/* The order of a loop's nodes within each part stays. */
static void order_loop(Kernel *kernel) {
  Node *node[MAX_GROUP];
  LoopPart part[MAX_GROUP];
  int n = kernel->n_nodes, done = 0;
  memcpy(node, kernel->node, (size_t)n * sizeof *node);
  CHECK(loop_parts(node, n, part), "kernel of %s has no form", op_info[node[0]->op].name);
  for (LoopPart p = PART_BODY; p <= PART_UPDATE; p++)
    for (int i = 0; i < n; i++)
      if (part[i] == p)
        kernel->node[done++] = node[i];
}

bool form_follows(const Fusion *fusion, int main, int loop) {
  const Group *group = &fusion->group[loop];
  const Node *node = fusion_node(fusion, fusion->group[main].node[0]);
  Node *list[MAX_GROUP];
  if (!fusion->target->takes_loop || group->n >= MAX_GROUP)
    return false;
  for (int i = 0; i < group->n; i++)
    list[i] = fusion_node(fusion, group->node[i]);
  Kernel behind = {0, group->n, list};
  if (!loop_follows(&behind, node))
    return false;
  order_loop(&behind);
  return fusion->target->takes_loop(fusion->target, node, &behind);
}

static bool reads(const Node *node, const Node *maker) {
  for (int k = 0; k < node->n_args; k++)
    if (value_storage(node->arg[k])->node == maker)
      return true;
  return false;
}

/* A main op with a loop behind it comes first. Other kernels with a main op are in order. */
void form_order(Kernel *kernel, const Target *target) {
  Node *main = kernel_main(kernel);
  Kernel loop = *kernel;
  if (kernel->n_nodes == 1 || kernel->n_nodes > MAX_GROUP ||
      (main ? !target->takes_loop : !node_is_loop(kernel->node[0])))
    return;
  for (int i = kernel->n_nodes - 1, to = i; main && i >= 0; i--) {
    CHECK(!reads(main, kernel->node[i]), "a main op reads what its own kernel makes");
    if (kernel->node[i] != main)
      kernel->node[to--] = kernel->node[i];
  }
  if (main) {
    kernel->node[0] = main;
    loop = loop_behind(kernel);
  }
  order_loop(&loop);
}

bool form_legal(const Kernel *kernel, const Target *target) {
  LoopPart part[MAX_GROUP];
  Node *around[MAX_AROUND];
  int n = kernel->n_nodes;
  if (n == 1)
    return true;
  if (n > MAX_GROUP)
    return false;
  if (kernel_main(kernel) && target->takes_loop) {
    Kernel loop = loop_behind(kernel);
    return node_is_main(kernel->node[0]) && loop_follows(&loop, kernel->node[0]) &&
           form_legal(&loop, target) && target->takes_loop(target, kernel->node[0], &loop);
  }
  if (kernel_main(kernel)) /* the target takes all of it or nothing */
    return target->kernel_around &&
           target->kernel_around(target, kernel_main(kernel), kernel->node, n, around) == n;
  if (!draft_legal(kernel->node, n, part))
    return false;
  for (int i = 1; i < n && node_is_loop(kernel->node[0]); i++)
    if (part[i - 1] > part[i])
      return false;
  return true;
}
