/* Stages: what lies between two batch-wide reductions. A stage is a main op with the pointwise
 * ops in front of it (prologue) and behind it (epilogue), or a run of ops without a main op. Which
 * of these become one kernel the target says; what it lacks stays a kernel of its own. */
#include "passes/kernels/fuse.h"

static bool is_pro_or_epilogue(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  return gen == GEN_POINT || gen == GEN_CHANNEL;
}

/* The nodes that are still alone in their groups. */
static int list_alone(const Fusion *fusion, Node **out) {
  int n = 0;
  for (int i = 0; i < fusion->depend->n; i++)
    if (fusion->group[fusion->group_of[i]].n == 1)
      out[n++] = fusion_node(fusion, i);
  return n;
}

static void join_main(Fusion *fusion, Node *main, Node **among) {
  Node *around[MAX_AROUND];
  int index[MAX_AROUND];
  int n_among = list_alone(fusion, among);
  int n = fusion->target->kernel_around(fusion->target, main, among, n_among, around);
  for (int i = 0; i < n; i++)
    index[i] = fusion_index(fusion, around[i]);
  if (n > 1)
    fusion_merge_all(fusion, index, n);
}

void stage_join_mains(Fusion *fusion) {
  int n = fusion->depend->n;
  Node **among = arena_alloc(fusion->arena, ((size_t)n + 1) * sizeof *among);
  for (int i = 0; fusion->target->kernel_around && i < n; i++)
    if (node_is_main(fusion_node(fusion, i)))
      join_main(fusion, fusion_node(fusion, i), among);
}

/* ---- numbering ---- */

/* How many batch-wide reductions lie on the longest way to each node. */
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

static int group_main(const Fusion *fusion, int group) {
  for (int i = 0; i < fusion->group[group].n; i++)
    if (node_is_main(fusion_node(fusion, fusion->group[group].node[i])))
      return fusion->group[group].node[i];
  return -1;
}

/* The main op whose result the group reads with no reduction in between; the last if several. */
static int main_before(const Fusion *fusion, int group, const int *level) {
  int best = -1;
  for (int i = 0; i < fusion->group[group].n; i++) {
    int index = fusion->group[group].node[i];
    const Node *node = fusion_node(fusion, index);
    for (int k = 0; is_pro_or_epilogue(node) && k < node->n_args; k++) {
      int def = fusion_index(fusion, node->arg[k]->node);
      if (def >= 0 && node_is_main(node->arg[k]->node) && level[def] == level[index] &&
          (best < 0 ||
           fusion->group[fusion->group_of[def]].rank > fusion->group[fusion->group_of[best]].rank))
        best = def;
    }
  }
  return best;
}

/* The first main op that reads what the group makes. */
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

static void set_stage(const Fusion *fusion, int group, int stage, const char *role) {
  const Group *g = &fusion->group[group];
  int main = group_main(fusion, group);
  for (int i = 0; i < g->n; i++) {
    Node *node = fusion_node(fusion, g->node[i]);
    const char *own = main < 0 ? role : g->node[i] < main ? "prologue" : "epilogue";
    attr_set_int(fusion->graph, node, ATTR_STAGE, stage);
    if (own)
      attr_set_str(fusion->graph, node, ATTR_ROLE, g->node[i] == main ? "main" : own);
  }
}

/* Main ops get the numbers of their rank; a group with none that touches no main op has a stage of
 * its own, numbered where it stands. */
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
    bool alone = partner[group] < 0;
    int stage = stage_of[alone ? group : fusion->group_of[partner[group]]];
    bool pro = !alone && fusion->group[fusion->group_of[partner[group]]].rank > r;
    set_stage(fusion, group, stage, alone ? NULL : pro ? "prologue" : "epilogue");
  }
}
