/* The independent judge of memory plans. It trusts no attribute but those it checks. */
#ifndef AMPCC_PASSES_PLAN_H
#define AMPCC_PASSES_PLAN_H

#include "passes/pass.h"

/* NULL if the plan of this graph is sound, else a sentence that names the values at fault. Works
 * on any module that verifies, whatever its attributes say. */
const char *plan_check(Arena *arena, const Module *module, const Graph *graph,
                       const Target *target);
/* The same for the order and the make-up of kernels (stage fused or planned). */
const char *kernels_check(Arena *arena, const Graph *graph, const Target *target);
/* kernels_check for passes on graphs that may come from text: reports E116 and returns false. */
bool kernels_accept(PassContext *context, const Graph *graph);

#endif
