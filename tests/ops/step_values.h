/* Numbers to start whole training steps with, and how far two of them may be apart. */
#ifndef AMPCC_TESTS_OPS_STEP_VALUES_H
#define AMPCC_TESTS_OPS_STEP_VALUES_H

#include "ir/eval/eval.h"

/* Inputs and variables of a graph; the same for equal names, whatever passes made of the graph. */
EvalEnv *step_fill(Arena *arena, const Graph *graph);
/* Two steps from there by the evaluator: the second reads what the first wrote. */
EvalEnv *step_evaluate(Arena *arena, const Graph *graph);
/* All results, outputs and state, that both have: relative L2 distance at most `tolerance`. Returns
 * how many are not (each is printed), or 1 if there are none at all. */
int step_compare(const char *what, const Graph *graph, EvalEnv *want, EvalEnv *got,
                 double tolerance);
/* Relative, L2; 0 only for the same numbers, signs of zeros included; infinite if not both finite.
 */
double step_distance(const EvalTensor *a, const EvalTensor *b);
extern int step_compared; /* results, so far */

#endif
