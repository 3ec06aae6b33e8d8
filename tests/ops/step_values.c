#include "tests/ops/step_values.h"

#include "ir/recipe/lr_schedule.def"
#include "tests/ops/cases.h"

#include <math.h>
#include <string.h>

/* ---- state ---- */

static uint64_t hash(const char *name) {
  uint64_t h = UINT64_C(14695981039346656037);
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
  return h;
}

/* A number that depends on the name of a tensor and on the place in it. So graphs before and after
 * a pass get the same numbers, and a copy the same as its parameter. */
static double value_of(const Node *node, const char *name, int64_t i, double ordinary) {
  VariableKind kind = variable_kind(node);
  const Attr *init = attr_find(node, ATTR_INIT_ARGS);
  if (strcmp(name, "schedule") == 0)
    return i == AMP_LR_BASE ? 0.125 : 0; /* a constant learning rate */
  if (strcmp(name, "bn_momentum") == 0)
    return 0.75;
  if (strcmp(name, "label") == 0)
    return (double)(i % 3);
  if (kind == VARIABLE_STAT || kind == VARIABLE_SLOT)
    return fabs(ordinary);
  if (kind == VARIABLE_SCALE || kind == VARIABLE_COUNTER)
    return init ? init->floats[0] : 0;
  return ordinary;
}

EvalEnv *step_fill(Arena *arena, const Graph *graph) {
  EvalEnv *env = eval_env_new(arena), *of = eval_env_new(arena);
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->node[n];
    if (node->op != OP_INPUT && node->op != OP_VARIABLE)
      continue;
    TensorType type = node->result[0]->type;
    const char *name = attr_str(node, ATTR_NAME, node->result[0]->name);
    bool is_copy = variable_kind(node) == VARIABLE_COPY;
    const char *source = is_copy ? attr_str(node, ATTR_OF, "") : name;
    EvalTensor *t = eval_env_set(env, name, type);
    EvalTensor *f32 = eval_env_set(of, source, type_with(type, DT_F32));
    fill_ordinary(hash(source), f32);
    for (int64_t i = 0, size = type_count(type); i < size; i++)
      t->v[i] = eval_round(value_of(node, source, i, f32->v[i]), type.dtype);
  }
  return env;
}

EvalEnv *step_evaluate(Arena *arena, const Graph *graph) {
  EvalEnv *env = step_fill(arena, graph);
  eval_graph(graph, env, EVAL_TYPED, NULL);
  eval_graph(graph, env, EVAL_TYPED, NULL);
  return env;
}

/* ---- comparison ---- */

int step_compared;

double step_distance(const EvalTensor *a, const EvalTensor *b) {
  double diff = 0, norm = 0;
  bool same = true;
  for (int64_t i = 0; i < type_count(a->type); i++) {
    double x = a->v[i], y = b->v[i];
    same &= x == y && signbit(x) == signbit(y);
    diff += (x - y) * (x - y);
    norm += x * x;
  }
  double d = same ? 0 : sqrt(diff) / (sqrt(norm) + 1e-30);
  return d >= 0 ? d + (same ? 0 : 1e-300) : INFINITY;
}

/* Compares outputs and state, but not inputs, whose type a pass may change. */
static bool is_result(const Graph *graph, const char *name) {
  const Value *value = graph_find(graph, name);
  return strncmp(name, "output:", 7) == 0 || (value && value->node->op == OP_VARIABLE);
}

int step_compare(const char *what, const Graph *graph, EvalEnv *want, EvalEnv *got,
                 double tolerance) {
  int failed = 0, n = 0;
  for (int i = 0; i < want->n; i++) {
    const EvalTensor *now = eval_env_get(got, want->name[i]);
    if (!now || !is_result(graph, want->name[i]))
      continue;
    double d = step_distance(&want->tensor[i], now);
    n++;
    if (d <= tolerance)
      continue;
    printf("FAIL %s @%s: %s differs by %.3g\n", what, graph->name, want->name[i], d);
    failed++;
  }
  step_compared += n;
  return failed + (n == 0);
}
