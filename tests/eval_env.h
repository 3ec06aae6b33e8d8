/* Runs whole graphs with the reference evaluator (ir/eval), with variables and inputs given by
 * name. Tests compare every other way to run a graph with this one. Every value is kept until the
 * end, unlike in frontend/certify/walk.h, which is for large models. */
#ifndef AMPCC_TESTS_EVAL_ENV_H
#define AMPCC_TESTS_EVAL_ENV_H

#include "ir/eval/eval.h"

typedef enum EvalRounding {
  EVAL_EXACT, /* floats are never rounded: for tests of gradients and of passes that change no
                 value mathematically */
  EVAL_TYPED, /* every float result is rounded to its dtype (nearest even, overflow to Inf) */
} EvalRounding;

/* Variables and inputs by name; eval_graph adds outputs. */
typedef struct EvalEnv {
  Arena *arena;
  int n, cap;
  const char **name;
  EvalTensor *tensor;
} EvalEnv;

EvalEnv *eval_env_new(Arena *arena);
EvalTensor *eval_env_get(EvalEnv *env, const char *name); /* NULL if there is none */
/* Returns the tensor of that name if it has this type, else a new one of zeros. The pointer is
 * valid until the next name is added. */
EvalTensor *eval_env_set(EvalEnv *env, const char *name, TensorType type);
/* An environment in `arena` with the same names and copies of the tensors. */
EvalEnv *eval_env_copy(Arena *arena, const EvalEnv *env);

/* Runs the graph. Reads inputs and variables by name from env (BUG if one is missing), writes
 * outputs under "output:NAME", then applies the updates (all read the old state). If `trace` is not
 * NULL every result is also stored there under its %name. */
void eval_graph(const Graph *graph, EvalEnv *env, EvalRounding rounding, EvalEnv *trace);

#endif
