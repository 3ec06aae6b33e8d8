/* The reference evaluator: every op in double precision, one obvious loop each; the judge of
 * everything else. Values are double arrays in logical row-major order whatever their dtype. */
#ifndef AMPCC_IR_EVAL_EVAL_H
#define AMPCC_IR_EVAL_EVAL_H

#include "ir/ir.h"

typedef enum EvalRounding {
  EVAL_EXACT, /* floats stay doubles: for gradients and for passes that keep the mathematics   */
  EVAL_TYPED, /* every float result is rounded to its dtype (nearest even, overflow to Inf)     */
} EvalRounding;

typedef struct EvalTensor {
  TensorType type;
  double *v; /* type_count elements; owned by the caller's arena */
} EvalTensor;

/* State and inputs by name; outputs are added by eval_graph. */
typedef struct EvalEnv {
  Arena *arena;
  int n, cap;
  const char **name;
  EvalTensor *tensor;
} EvalEnv;

EvalEnv *eval_env_new(Arena *arena);
EvalTensor *eval_env_get(EvalEnv *env, const char *name); /* NULL if absent */
/* The old tensor if it has this type, else a new one of zeros. The pointer is good until the next
 * name is added. */
EvalTensor *eval_env_set(EvalEnv *env, const char *name, TensorType type);

/* Runs the graph. Reads inputs and variables by name from env (BUG if one is missing), writes
 * outputs under "output:NAME", then applies the updates (all read the old state). If `trace` is not
 * NULL every result is also stored there under its %name. */
void eval_graph(const Graph *graph, EvalEnv *env, EvalRounding rounding, EvalEnv *trace);
/* One node: args[i] are its operands, results are allocated in `arena`. Floats stay doubles;
 * integers and bools are rounded. */
void eval_node(const Node *node, const EvalTensor *args, EvalTensor *results, Arena *arena);
/* Floats: nearest even, overflow to Inf. Integers: truncates, saturates, NaN gives 0. */
double eval_round(double x, DType dtype);
void eval_round_tensor(EvalTensor *t); /* every element, to the tensor's own type */

#endif
