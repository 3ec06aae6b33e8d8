/* A graph in double precision, one node after the other: a reader of everything that it computes,
 * and of what it would have read. Results are gone after their last use, so that a step of a large
 * model fits in memory. */
#ifndef AMPCC_FRONTEND_CERTIFY_WALK_H
#define AMPCC_FRONTEND_CERTIFY_WALK_H

#include "ir/eval/eval.h"

typedef struct Visitor {
  /* Fills the value of an input or a variable; it is zero as given. */
  void (*source)(void *context, const Node *node, EvalTensor *value);
  /* What the node makes of `args`, floats not rounded yet. What it leaves there is what later nodes
   * read. */
  void (*visit)(void *context, const Node *node, const EvalTensor *args, EvalTensor *results);
  void *context;
} Visitor;

/* Outputs and updates are not visited. */
void graph_walk(const Graph *graph, const Visitor *visitor);

#endif
