/* Stages: what lies between two batch-wide reductions. A stage is a main op with the pointwise
 * ops in front of it (prologue) and behind it (epilogue), or a run of ops without a main op. Which
 * of these become one kernel the target's table says; what it lacks stays a kernel of its own. */
#include "passes/fuse.h"

static bool is_pro_or_epilogue(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  return gen == GEN_POINT || gen == GEN_CHANNEL;
}

/* ---- joining to main ops ---- */

static int direct_reads(const Node *reader, const Node *node) {
  int n = 0;
  for (int k = 0; k < reader->n_args; k++)
    n += reader->arg[k]->node == node;
  return n;
}

/* A value that is needed elsewhere too (or by a view, or by the program) would have to be made
 * twice. */
static bool used_only_by(const Fusion *fusion, int index, int group) {
  const Node *node = fusion_node(fusion, index);
  int uses = 0;
  for (int r = 0; r < node->n_results; r++)
    uses += node->result[r]->n_uses;
  for (int i = 0; i < fusion->group[group].n; i++)
    uses -= direct_reads(fusion_node(fusion, fusion->group[group].node[i]), node);
  return uses == 0;
}

/* A group in the making, for form_reads_allowed. */
typedef struct Members {
  const Fusion *fusion;
  int group;
} Members;

static bool is_member(const void *user, const Node *node) {
  const Members *members = user;
  return node->mark >= 0 && members->fusion->group_of[node->mark] == members->group;
}

static bool may_join(const Fusion *fusion, const Node *node, int group) {
  Members members = {fusion, group};
  return fusion->group[group].n < MAX_GROUP && form_reads_allowed(node, is_member, &members);
}

static bool join_prologue_node(Fusion *fusion, const Node *main, const Node *node, int group) {
  return node->mark >= 0 && fusion->group_of[node->mark] != group &&
         op_info[node->op].gen == GEN_POINT && fusion->group[fusion->group_of[node->mark]].n == 1 &&
         used_only_by(fusion, node->mark, group) && may_join(fusion, node, group) &&
         target_takes(fusion->target->takes_prologue, main, node) &&
         fusion_merge(fusion, fusion->group_of[node->mark], group);
}

/* One maker of what the group reads; false when none is left to take. */
static bool grow_prologue(Fusion *fusion, const Node *main) {
  int group = fusion->group_of[main->mark];
  for (int i = fusion->group[group].n - 1; i >= 0; i--) {
    const Node *reader = fusion_node(fusion, fusion->group[group].node[i]);
    for (int k = 0; k < reader->n_args; k++)
      if (join_prologue_node(fusion, main, reader->arg[k]->node, group))
        return true;
  }
  return false;
}

static bool reads_group(const Fusion *fusion, const Node *node, int group) {
  for (int k = 0; k < node->n_args; k++) {
    const Node *def = node->arg[k]->node;
    if (def->mark >= 0 && fusion->group_of[def->mark] == group)
      return true;
  }
  return false;
}

static bool join_epilogue_node(Fusion *fusion, const Node *main, const Node *node, int group) {
  int other = fusion->group_of[node->mark];
  return other != group && is_pro_or_epilogue(node) && fusion->group[other].n == 1 &&
         reads_group(fusion, node, group) && may_join(fusion, node, group) &&
         target_takes(fusion->target->takes_epilogue, main, node) &&
         fusion_merge(fusion, group, other);
}

/* One reader of what the main op or its epilogue makes. */
static bool grow_epilogue(Fusion *fusion, const Node *main) {
  const Depend *depend = fusion->depend;
  int group = fusion->group_of[main->mark];
  for (int i = 0; i < fusion->group[group].n; i++) {
    int from = fusion->group[group].node[i];
    for (int e = depend->succ_begin[from]; from >= main->mark && e < depend->succ_begin[from + 1];
         e++)
      if (join_epilogue_node(fusion, main, fusion_node(fusion, depend->succ[e]), group))
        return true;
  }
  return false;
}

void stage_join_mains(Fusion *fusion) {
  for (int i = 0; i < fusion->depend->n; i++)
    if (node_is_main(fusion_node(fusion, i))) {
      while (grow_prologue(fusion, fusion_node(fusion, i)))
        ;
      while (grow_epilogue(fusion, fusion_node(fusion, i)))
        ;
    }
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
      int def = node->arg[k]->node->mark;
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
