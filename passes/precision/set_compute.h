/* set-compute, and what amp reads of it. One file per implementation: casting.c, policy.c. */
#ifndef AMPCC_PASSES_PRECISION_SET_COMPUTE_H
#define AMPCC_PASSES_PRECISION_SET_COMPUTE_H

#include "passes/pass.h"
#include "passes/precision/amp_solve.h"

/* Does this op, which the logits depend on, compute in the low type? */
typedef bool ComputeRule(const Node *node);
ComputeRule casting_is_low, policy_is_low;

/* What the attribute `compute` asks of amp; AMP_FREE without one. */
AmpPin compute_pin(const Node *node);
/* True if the implementation has its say about every op, so that amp's lists have none. */
bool compute_decides(const CompileOptions *options);
/* False after an error: it should have decided, but the graph came differentiated already. */
bool compute_check(const PassContext *context, const Graph *graph);

#endif
