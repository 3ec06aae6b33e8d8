/* What set-compute and amp share. Each implementation has its rule in a file of its own: casting.c,
 * policy.c. */
#ifndef AMPCC_PASSES_PRECISION_SET_COMPUTE_H
#define AMPCC_PASSES_PRECISION_SET_COMPUTE_H

#include "passes/pass.h"
#include "passes/precision/amp_solve.h"

/* Does this op, which the logits depend on, compute in the low type? */
typedef bool ComputeRule(const Node *node);
ComputeRule casting_is_low, policy_is_low;

/* What the node's attribute `compute` asks of amp; AMP_FREE if it has none. */
AmpPin compute_pin(const Node *node);
/* True if the implementation decides about every op, so that amp's lists do not matter. */
bool compute_decides(const CompileOptions *options);
/* Returns false after an error: the implementation should have decided about the ops, but the graph
 * was differentiated before set-compute could run. */
bool compute_check(const PassContext *context, const Graph *graph);

#endif
