/* What the files of pass fuse share: groups of nodes that will become one kernel each, kept
 * acyclic. */
#ifndef AMPCC_PASSES_KERNELS_FUSE_H
#define AMPCC_PASSES_KERNELS_FUSE_H

#include "ir/space.h"
#include "passes/memory/depend.h"
#include "passes/pass.h"

enum { MAX_GROUP = MAX_LOOP }; /* nodes of one kernel */

typedef struct Group {
  int n;
  int *node; /* indices into Depend.node, ascending; NULL when merged into another */
  int rank;  /* place in `by_rank`: makers before readers, always */
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
  int n_merges;  /* tried so far */
} Fusion;

/* fuse_group.c */
Fusion *fusion_new(Arena *arena, Graph *graph, const Target *target);
Node *fusion_node(const Fusion *fusion, int index);
int fusion_index(const Fusion *fusion, const Node *node); /* -1 without code */
/* Makes one group of two. False, and nothing done, if something outside must run between them. */
bool fusion_merge(Fusion *fusion, int a, int b);
/* The same of n nodes, at most MAX_GROUP, each still alone in its group: all or nothing. */
bool fusion_merge_all(Fusion *fusion, const int *node, int n);

/* fuse_form.c: may the nodes of two groups share one kernel without a main op? Says nothing about
 * cycles. */
bool form_allows(const Fusion *fusion, int a, int b);
/* Could fuse have made this kernel for the target, nodes in this order? */
bool form_legal(const Kernel *kernel, const Target *target);
/* Orders a kernel's nodes: loop body, sums, tail, updates. */
void form_order(Kernel *kernel);

/* fuse_prepare.c: edits before grouping. Constants and variables get a copy where a reader needs
 * memory of its own, ReLU masks are recomputed where that saves a read. True if anything changed.
 */
bool fuse_prepare(Graph *graph);

/* fuse_stage.c */
void stage_join_mains(Fusion *fusion); /* with what the target takes along */
void stage_number(Fusion *fusion);     /* attributes `stage` and `role` of every node with code */

#endif
