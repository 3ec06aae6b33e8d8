/* Groups of nodes, merged two at a time. `by_rank` is a topological order of the groups at all
 * times, so a merge needs to look only at the groups that stand between the two, and the order left
 * at the end is the order of the kernels. */
#include "passes/kernels/fuse.h"

#include <string.h>

Node *fusion_node(const Fusion *fusion, int index) {
  return fusion->depend->node[index];
}

int fusion_index(const Fusion *fusion, const Node *node) {
  return fusion->depend->index[node->order];
}

Fusion *fusion_new(Arena *arena, Graph *graph, const Target *target) {
  Fusion *fusion = arena_new_of(arena, Fusion);
  fusion->arena = arena;
  fusion->graph = graph;
  fusion->target = target;
  fusion->depend = depend_new(arena, graph);
  fusion->shards = shards_of(arena, graph);
  size_t n = (size_t)fusion->depend->n + 1;
  fusion->group_of = arena_alloc(arena, n * sizeof(int));
  fusion->by_rank = arena_alloc(arena, n * sizeof(int));
  fusion->reached = arena_alloc(arena, n * sizeof(int));
  fusion->late = arena_alloc(arena, n * sizeof(int));
  fusion->group = arena_alloc(arena, n * sizeof(Group));
  for (int i = 0; i < fusion->depend->n; i++) {
    fusion->group_of[i] = fusion->by_rank[i] = i;
    fusion->group[i] = (Group){.n = 1, .node = arena_alloc(arena, sizeof(int)), .rank = i};
    fusion->group[i].node[0] = i;
  }
  return fusion;
}

static bool has(const int *list, int n, int x) {
  for (int i = 0; i < n; i++)
    if (list[i] == x)
      return true;
  return false;
}

/* Marks the groups that read what group `from` makes, except itself and the n in `except`. */
static void reach(Fusion *fusion, int from, const int *except, int n) {
  const Group *group = &fusion->group[from];
  const Depend *depend = fusion->depend;
  for (int i = 0; i < group->n; i++)
    for (int e = depend->succ_begin[group->node[i]]; e < depend->succ_begin[group->node[i] + 1];
         e++) {
      int to = fusion->group_of[depend->succ[e]];
      if (to != from && !has(except, n, to))
        fusion->reached[to] = fusion->n_merges;
    }
}

/* Is the group late (shards.h)? Then all that is not comes in front of it. */
static bool is_late(const Fusion *fusion, int group) {
  return fusion->shards &&
         fusion->shards->late[fusion_node(fusion, fusion->group[group].node[0])->order];
}

/* Must another group run between two of the n groups, which are given in the order of their ranks?
 * Leaves marks in `reached` on the groups up to the last that depend on any of them. */
static bool separated(Fusion *fusion, const int *group, int n) {
  fusion->n_merges++;
  for (int i = 1; i < n; i++)
    if (is_late(fusion, group[i]) != is_late(fusion, group[0]))
      return true;
  for (int r = fusion->group[group[0]].rank; r <= fusion->group[group[n - 1]].rank; r++) {
    int id = fusion->by_rank[r];
    bool member = id >= 0 && has(group, n, id);
    bool reached = id >= 0 && fusion->reached[id] == fusion->n_merges;
    if (member && reached)
      return true;
    if (member || reached)
      reach(fusion, id, group, member ? n : 0);
  }
  return false;
}

static void put(Fusion *fusion, int rank, int group) {
  fusion->by_rank[rank] = group;
  fusion->group[group].rank = rank;
}

bool fusion_merge(Fusion *fusion, int a, int b) {
  bool swap = fusion->group[a].rank > fusion->group[b].rank;
  int both[] = {swap ? b : a, swap ? a : b};
  CHECK(a != b, "group %d with itself", a);
  if (separated(fusion, both, 2))
    return false;

  /* The groups between the two: those that do not depend on the first stay in front of the merged
   * group, those that do go behind it. */
  Group *into = &fusion->group[both[0]], *from = &fusion->group[both[1]];
  int end = from->rank, rank = into->rank, n_late = 0;
  for (int r = into->rank + 1; r < end; r++) {
    int id = fusion->by_rank[r];
    if (id >= 0 && fusion->reached[id] == fusion->n_merges)
      fusion->late[n_late++] = id;
    else if (id >= 0)
      put(fusion, rank++, id);
  }
  put(fusion, rank++, both[0]);
  for (int i = 0; i < n_late; i++)
    put(fusion, rank++, fusion->late[i]);
  while (rank <= end)
    fusion->by_rank[rank++] = -1;

  /* The nodes of both, ascending. */
  int n = into->n + from->n, i = 0, j = 0;
  int *node = arena_alloc(fusion->arena, (size_t)n * sizeof *node);
  for (int k = 0; k < n; k++) {
    bool first = j == from->n || (i < into->n && into->node[i] < from->node[j]);
    node[k] = first ? into->node[i++] : from->node[j++];
  }
  for (j = 0; j < from->n; j++)
    fusion->group_of[from->node[j]] = both[0];
  *into = (Group){.n = n, .node = node, .rank = into->rank};
  *from = (Group){.rank = -1};
  return true;
}

bool fusion_merge_all(Fusion *fusion, const int *node, int n) {
  int group[MAX_GROUP] = {0};
  for (int i = 0, k; i < n; i++) {
    int id = fusion->group_of[node[i]];
    if (fusion->group[id].n > 1)
      return false;
    for (k = i; k > 0 && fusion->group[group[k - 1]].rank > fusion->group[id].rank; k--)
      group[k] = group[k - 1];
    group[k] = id;
  }
  if (separated(fusion, group, n))
    return false;
  for (int i = 1; i < n; i++)
    CHECK(fusion_merge(fusion, group[0], group[i]), "group %d does not join", group[i]);
  return true;
}
