#include "tests/eval_env.h"

#include <string.h>

EvalEnv *eval_env_new(Arena *arena) {
  EvalEnv *env = arena_new_of(arena, EvalEnv);
  env->arena = arena;
  return env;
}

EvalTensor *eval_env_get(EvalEnv *env, const char *name) {
  for (int i = 0; i < env->n; i++)
    if (strcmp(env->name[i], name) == 0)
      return &env->tensor[i];
  return NULL;
}

EvalTensor *eval_env_set(EvalEnv *env, const char *name, TensorType type) {
  EvalTensor *old = eval_env_get(env, name);
  if (old) {
    if (!type_equal(old->type, type))
      *old = eval_tensor_new(env->arena, type);
    return old;
  }
  int cap = env->cap, n = env->n;
  arena_push(env->arena, env->name, n, cap, arena_strdup(env->arena, name, strlen(name)));
  arena_push(env->arena, env->tensor, env->n, env->cap, eval_tensor_new(env->arena, type));
  return &env->tensor[env->n - 1];
}

static EvalTensor copy_of(Arena *arena, const EvalTensor *from) {
  EvalTensor copy = eval_tensor_new(arena, from->type);
  memcpy(copy.v, from->v, (size_t)type_count(from->type) * sizeof(double));
  return copy;
}

EvalEnv *eval_env_copy(Arena *arena, const EvalEnv *env) {
  EvalEnv *copy = eval_env_new(arena);
  copy->n = copy->cap = env->n;
  copy->name = arena_alloc(arena, (size_t)env->n * sizeof *copy->name);
  copy->tensor = arena_alloc(arena, (size_t)env->n * sizeof *copy->tensor);
  for (int i = 0; i < env->n; i++) {
    copy->name[i] = arena_strdup(arena, env->name[i], strlen(env->name[i]));
    copy->tensor[i] = copy_of(arena, &env->tensor[i]);
  }
  return copy;
}

static void env_put(EvalEnv *env, const char *name, const EvalTensor *value) {
  EvalTensor *to = eval_env_set(env, name, value->type);
  memcpy(to->v, value->v, (size_t)type_count(value->type) * sizeof(double));
}

static void round_results(const Node *node, EvalTensor *r) {
  const OpInfo *op = &op_info[node->op];
  for (int i = 0; i < node->n_results; i++)
    eval_round_tensor(&r[i]);
  /* An optimizer's low-precision copy is made of the parameter as it is stored. */
  if (op->gen != GEN_OPT || node->n_results == op->min_results)
    return;
  EvalTensor *copy = &r[node->n_results - 1];
  memcpy(copy->v, r[0].v, (size_t)type_count(copy->type) * sizeof(double));
  eval_round_tensor(copy);
}

typedef struct Run {
  const Graph *graph;
  EvalEnv *env;
  EvalRounding rounding;
  Arena *arena;      /* of this run */
  EvalTensor **slot; /* one array of results per node */
} Run;

static const EvalTensor *value_of(const Run *run, Value *value) {
  value = value_resolve(value);
  return &run->slot[value->node->order][value->index];
}

/* The result shares the elements of the environment's tensor, since nothing writes to that before
 * the last read. */
static void run_read(Run *run, const Node *node, EvalTensor *result) {
  const Value *value = node->result[0];
  const char *name = node->op == OP_INPUT ? attr_str(node, ATTR_NAME, value->name) : value->name;
  const EvalTensor *from = eval_env_get(run->env, name);
  CHECK(from, "@%s reads %s, which is not in the environment", run->graph->name, name);
  CHECK(type_equal(from->type, value->type), "%s has another type than in @%s", name,
        run->graph->name);
  *result = *from;
}

static void run_node(Run *run, const Node *node, EvalTensor *results) {
  if (node->op == OP_INPUT || node->op == OP_VARIABLE) {
    run_read(run, node, results);
    return;
  }
  EvalTensor *args = arena_alloc(run->arena, (size_t)(node->n_args + 1) * sizeof *args);
  for (int i = 0; i < node->n_args; i++)
    args[i] = *value_of(run, node->arg[i]);
  eval_node(node, args, results, run->arena);
  if (run->rounding == EVAL_TYPED)
    round_results(node, results);
}

static void run_effect(const Run *run, const Node *node) {
  Arena *arena = run->arena;
  if (node->op == OP_OUTPUT) {
    const char *name = attr_str(node, ATTR_NAME, "");
    env_put(run->env, arena_printf(arena, "output:%s", name), value_of(run, node->arg[0]));
    return;
  }
  if (node->n_args == 3 && value_of(run, node->arg[2])->v[0] == 0)
    return;
  env_put(run->env, value_resolve(node->arg[0])->name, value_of(run, node->arg[1]));
}

/* Effects come last. An update overwrites the elements that a variable's value shares with the
 * environment. Variables are therefore copied first, as the new value of one may be another. */
static void run_effects(Run *run) {
  const Graph *graph = run->graph;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_VARIABLE)
      continue;
    *run->slot[i] = copy_of(run->arena, run->slot[i]);
  }
  for (int i = 0; i < graph->n_nodes; i++)
    if (op_info[graph->node[i]->op].flags & OPF_EFFECT)
      run_effect(run, graph->node[i]);
}

void eval_graph(const Graph *graph, EvalEnv *env, EvalRounding rounding, EvalEnv *trace) {
  Arena *arena = arena_new();
  Run run = {graph, env, rounding, arena, NULL};
  run.slot = arena_alloc(arena, (size_t)(graph->n_nodes + 1) * sizeof *run.slot);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    CHECK(node->order == i, "@%s is not numbered", graph->name);
    if (op_info[node->op].flags & OPF_EFFECT)
      continue;
    run.slot[i] = arena_alloc(arena, MAX_RESULTS * sizeof(EvalTensor));
    run_node(&run, node, run.slot[i]);
    for (int r = 0; trace && r < node->n_results; r++)
      env_put(trace, node->result[r]->name, &run.slot[i][r]);
  }
  run_effects(&run);
  arena_free(arena);
}
