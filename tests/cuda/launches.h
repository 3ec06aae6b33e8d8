/* The kernels without a library call of a planned module, launched through the shim: their text
 * compiled for the host, their args as tables, one launch after the other, each with only its own
 * operands, results and workspace to touch. */
#ifndef AMPCC_TESTS_CUDA_LAUNCHES_H
#define AMPCC_TESTS_CUDA_LAUNCHES_H

#include "ir/eval/eval.h"
#include "passes/pass.h"

typedef struct Launches Launches;

extern const Target target_launches; /* CUDA without libraries */

/* The kernels' text alone, in the arena, as CUDA's compiler gets it. */
const char *launches_text(Arena *arena, const Module *planned);
/* Writes FOLDER/NAME.cu and more and starts to compile; several may be begun before one is
 * finished. Checked: see shim/kernels.h. */
Launches *launches_begin(Arena *arena, const Module *planned, const char *folder, const char *name,
                         bool is_checked);
bool launches_finish(Launches *launches); /* false: a text did not compile */
int launches_count(const Launches *launches);
/* Runs one graph: inputs and variables from env, outputs and new state to it, as eval_graph. `seed`
 * orders threads and blocks. Prints what was wrong and returns how many launches that was. */
int launches_run(Launches *launches, int graph, uint64_t seed, EvalEnv *env);
void launches_free(Launches *launches);

#endif
