/* What the files of pass fuse share: groups of nodes, each of which will become one kernel. The
 * graph of the groups is acyclic at all times. */
#ifndef AMPCC_PASSES_KERNELS_FUSE_H
#define AMPCC_PASSES_KERNELS_FUSE_H

#include "ir/space.h"
#include "passes/memory/depend.h"
#include "passes/memory/shards.h"
#include "passes/pass.h"

enum { MAX_GROUP = MAX_LOOP }; /* nodes of one kernel */

typedef struct Group {
  int n;
  int *node; /* indices into Depend.node, ascending; NULL when merged into another */
  int rank;  /* place in `by_rank`, where makers stand before readers */
} Group;

typedef struct Fusion {
  Arena *arena;
  Graph *graph;
  const Target *target;
  Depend *depend;
  int *group_of; /* per node with code */
  Group *group;  /* as many as nodes with code; each starts with the node of its index */
  int *by_rank;  /* group ids in an order that is always topological; -1: merged away */
  int *reached;  /* scratch of fusion_merge: per group, the merge that reached it */
  int *late;     /* scratch of fusion_merge */
  int n_merges;  /* merges tried so far */
  Shards *shards;
} Fusion;

/* fuse_group.c */
Fusion *fusion_new(Arena *arena, Graph *graph, const Target *target);
Node *fusion_node(const Fusion *fusion, int index);
int fusion_index(const Fusion *fusion, const Node *node); /* -1 without code */
/* Merges two groups. Returns false and does nothing if another group must run between them. */
bool fusion_merge(Fusion *fusion, int a, int b);
/* Merges the groups of n nodes, at most MAX_GROUP, each of which is still alone in its group.
 * Returns false and does nothing if another group must run between any two of them. */
bool fusion_merge_all(Fusion *fusion, const int *node, int n);

/* fuse_form.c: may the nodes of two groups share one kernel without a main op? Says nothing about
 * cycles. */
bool form_allows(const Fusion *fusion, int a, int b);
/* May the loop of group `loop` run on the result of the main op that group `main` consists of? */
bool form_follows(const Fusion *fusion, int main, int loop);
/* Could fuse have made this kernel for the target, nodes in this order? */
bool form_legal(const Kernel *kernel, const Target *target);
/* Orders a kernel's nodes: a main op that has a loop behind it, loop body, sums, tail, updates. */
void form_order(Kernel *kernel, const Target *target);

/* fuse_prepare.c: edits before grouping. A constant or variable is copied where a reader needs
 * memory of its own; a ReLU mask is computed again where that saves a read. True if anything
 * changed. */
bool fuse_prepare(Graph *graph);

/* fuse_stage.c */
/* Merges each main op with the nodes that the target computes in one kernel with it. */
void stage_join_mains(Fusion *fusion);
/* Merges each main op that is still alone with the loop that reads its result, where the target
 * runs both as one kernel. */
void stage_join_loops(Fusion *fusion);
/* Sets the attributes `stage` and `role` of every node with code. */
void stage_number(Fusion *fusion);

#endif
