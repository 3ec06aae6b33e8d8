/* How large a memory plan may be, and its independent judge. That trusts no attribute but those it
 * checks. */
#ifndef AMPCC_PASSES_MEMORY_PLAN_H
#define AMPCC_PASSES_MEMORY_PLAN_H

#include "passes/pass.h"

/* The bytes that the arena of a graph may have: by --max-memory, else by what the target has beside
 * the variables; INT64_MAX if neither says. */
int64_t plan_limit(const PassContext *context);
/* NULL if the plan of this graph is sound, else a sentence that names the values at fault. Works
 * on any module that verifies, whatever its attributes say. */
const char *plan_check(Arena *arena, const Module *module, const Graph *graph,
                       const Target *target);
/* The same for the order and the make-up of kernels (stage fused or planned). */
const char *kernels_check(Arena *arena, const Graph *graph, const Target *target);
/* kernels_check for passes on graphs that may come from text: reports E116 and returns false. */
bool kernels_accept(PassContext *context, const Graph *graph);

#endif
