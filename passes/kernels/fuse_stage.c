/* A stage is what lies between two batch-wide reductions: a main op with the pointwise ops in front
 * of it (prologue) and behind it (epilogue), or a run of ops without a main op. The target says
 * which of these become one kernel; the others stay kernels of their own. */
#include "passes/kernels/fuse.h"

void stage_join_mains(Fusion *fusion) {
  const Target *target = fusion->target;
  int n = fusion->depend->n;
  Node **alone = arena_alloc(fusion->arena, ((size_t)n + 1) * sizeof *alone);
  for (int i = 0; target->kernel_around && i < n; i++) {
    if (!node_is_main(fusion_node(fusion, i)))
      continue;
    int n_alone = 0; /* nodes that no earlier main op has taken */
    for (int k = 0; k < n; k++)
      if (fusion->group[fusion->group_of[k]].n == 1)
        alone[n_alone++] = fusion_node(fusion, k);
    Node *around[MAX_AROUND];
    int index[MAX_AROUND];
    int n_around = target->kernel_around(target, fusion_node(fusion, i), alone, n_alone, around);
    for (int k = 0; k < n_around; k++)
      index[k] = fusion_index(fusion, around[k]);
    if (n_around > 1)
      fusion_merge_all(fusion, index, n_around);
  }
}

void stage_join_loops(Fusion *fusion) {
  const Depend *depend = fusion->depend;
  for (int i = 0; fusion->target->takes_loop && i < depend->n; i++) {
    if (!node_is_main(fusion_node(fusion, i)))
      continue;
    for (int e = depend->succ_begin[i]; e < depend->succ_begin[i + 1]; e++) {
      int main = fusion->group_of[i], loop = fusion->group_of[depend->succ[e]];
      if (fusion->group[main].n == 1 && form_follows(fusion, main, loop))
        fusion_merge(fusion, main, loop);
    }
  }
}

/* ---- numbering ---- */

/* For each node, how many batch-wide reductions lie on the longest path to it. */
static int *levels(const Fusion *fusion) {
  const Depend *depend = fusion->depend;
  int *level = arena_alloc(fusion->arena, ((size_t)depend->n + 1) * sizeof *level);
  for (int i = 0; i < depend->n; i++) {
    GenClass gen = op_info[fusion_node(fusion, i)->op].gen;
    int after = level[i] + (gen == GEN_CHANNEL || gen == GEN_REDUCE);
    for (int e = depend->succ_begin[i]; e < depend->succ_begin[i + 1]; e++)
      if (level[depend->succ[e]] < after)
        level[depend->succ[e]] = after;
  }
  return level;
}

/* The main op of a group; -1 if it has none. */
static int group_main(const Fusion *fusion, int group) {
  for (int i = 0; i < fusion->group[group].n; i++)
    if (node_is_main(fusion_node(fusion, fusion->group[group].node[i])))
      return fusion->group[group].node[i];
  return -1;
}

/* The main op whose result the group reads with no reduction in between; the last of several, -1 if
 * there is none. */
static int main_before(const Fusion *fusion, int group, const int *level) {
  int best = -1;
  for (int i = 0; i < fusion->group[group].n; i++) {
    int index = fusion->group[group].node[i];
    const Node *node = fusion_node(fusion, index);
    GenClass gen = op_info[node->op].gen;
    if (gen != GEN_POINT && gen != GEN_CHANNEL)
      continue;
    for (int k = 0; k < node->n_args; k++) {
      int def = fusion_index(fusion, node->arg[k]->node);
      if (def >= 0 && node_is_main(node->arg[k]->node) && level[def] == level[index] &&
          (best < 0 ||
           fusion->group[fusion->group_of[def]].rank > fusion->group[fusion->group_of[best]].rank))
        best = def;
    }
  }
  return best;
}

/* The first main op that reads what the group makes; -1 if there is none. */
static int main_behind(const Fusion *fusion, int group) {
  const Depend *depend = fusion->depend;
  int best = -1;
  for (int i = 0; i < fusion->group[group].n; i++) {
    int index = fusion->group[group].node[i];
    if (op_info[fusion_node(fusion, index)->op].gen != GEN_POINT)
      continue;
    for (int e = depend->succ_begin[index]; e < depend->succ_begin[index + 1]; e++)
      if (node_is_main(fusion_node(fusion, depend->succ[e])) &&
          (best < 0 || fusion->group[fusion->group_of[depend->succ[e]]].rank <
                           fusion->group[fusion->group_of[best]].rank))
        best = depend->succ[e];
  }
  return best;
}

/* A group without a main op belongs to the stage of the main op whose result it reads, or else of
 * the first that reads its own. A group with a main op has a stage of its own, and so has a group
 * that touches none. Stages are numbered in the order of the groups. */
void stage_number(Fusion *fusion) {
  const Depend *depend = fusion->depend;
  int *level = levels(fusion), n_stages = 0;
  int *stage_of = arena_alloc(fusion->arena, ((size_t)depend->n + 1) * sizeof *stage_of);
  int *partner = arena_alloc(fusion->arena, ((size_t)depend->n + 1) * sizeof *partner);
  for (int r = 0; r < depend->n; r++) {
    int group = fusion->by_rank[r];
    if (group < 0)
      continue;
    int main = group_main(fusion, group);
    int before = main < 0 ? main_before(fusion, group, level) : -1;
    int behind = main < 0 && before < 0 ? main_behind(fusion, group) : -1;
    partner[group] = before >= 0 ? before : behind;
    stage_of[group] = partner[group] < 0 ? n_stages++ : -1;
  }
  for (int r = 0; r < depend->n; r++) {
    int group = fusion->by_rank[r];
    if (group < 0)
      continue;
    const Group *g = &fusion->group[group];
    int main = group_main(fusion, group);
    int with = partner[group] < 0 ? group : fusion->group_of[partner[group]];
    for (int i = 0; i < g->n; i++) {
      Node *node = fusion_node(fusion, g->node[i]);
      attr_set_int(fusion->graph, node, ATTR_STAGE, stage_of[with]);
      if (main >= 0)
        attr_set_str(fusion->graph, node, ATTR_ROLE,
                     g->node[i] == main                                 ? "main"
                     : g->node[i] < main && !fusion->target->takes_loop ? "prologue"
                                                                        : "epilogue");
      else if (with != group)
        attr_set_str(fusion->graph, node, ATTR_ROLE,
                     fusion->group[with].rank > r ? "prologue" : "epilogue");
    }
  }
}
