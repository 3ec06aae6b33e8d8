/* Numbers of the evaluator as bytes of memory and back, independent of any compiler's conversions.
 */
#ifndef AMPCC_TESTS_OPS_BYTES_H
#define AMPCC_TESTS_OPS_BYTES_H

#include "runtime/amprt.h"
#include "tests/eval_env.h"

/* Values must be of the tensor's dtype already; little-endian. */
void tensor_encode(const EvalTensor *t, unsigned char *to);
void tensor_decode(const unsigned char *from, EvalTensor *t);

size_t port_bytes(const AmprtPort *port); /* of its tensor */
/* Copies the inputs and variables of a graph from env to the two blocks of a program; and from
 * these back to env what the graph has computed, outputs as "output:NAME" and variables under their
 * names. Variables that env does not have are not copied. */
void blocks_load(const AmprtProgram *program, const AmprtGraph *graph, const AmprtRun *run,
                 EvalEnv *env);
void blocks_store(Arena *arena, const AmprtProgram *program, const AmprtGraph *graph,
                  const AmprtRun *run, EvalEnv *env);

#endif
