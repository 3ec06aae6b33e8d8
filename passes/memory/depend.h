/* What must run before what: the nodes that become code, with an edge from each value's maker to
 * its readers (views looked through) and from each reader of a variable to its update, so that
 * every kernel still sees the state of the start of the step. */
#ifndef AMPCC_PASSES_MEMORY_DEPEND_H
#define AMPCC_PASSES_MEMORY_DEPEND_H

#include "ir/ir.h"
#include "ir/kernel.h"

typedef struct Depend {
  int n;           /* nodes with code */
  Node **node;     /* topological, updates as early as they may be */
  int *index;      /* node order -> place in `node`, -1 without code */
  int *succ_begin; /* [n + 1] into succ */
  int *succ;       /* may hold an index twice */
} Depend;

/* The bias of the normalisation that `node` applies, an affine by bn_fold's scale and shift; else
 * NULL. A kernel with a main op may compute the affine from it, so it counts as read. */
const Value *affine_bias(const Node *node);
/* Graph order must be topological. */
Depend *depend_new(Arena *arena, const Graph *graph);

/* Gives `kernel` (in their new order, nodes within each too) the numbers 0.. and reorders the
 * graph: inputs, variables, constants and their views first, each view right behind its maker's
 * kernel, outputs last. */
void graph_order_kernels(Arena *arena, Graph *graph, const Kernel *kernel, int n);

#endif
