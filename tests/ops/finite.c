/* Ops with the flag OPF_FINITE in ops.def have finite results whenever their operands are finite,
 * also for the largest and the smallest numbers. The report of a program on what was not finite
 * relies on that. */
#include "tests/eval_env.h"
#include "tests/ops/cases.h"

#include <math.h>

static const DType dtypes[] = {DT_F32, DT_F16, DT_BF16};

static double largest(DType dtype) {
  return dtype == DT_F16 ? 65504 : dtype == DT_BF16 ? 0x1.fep127 : 0x1.fffffep127;
}

/* Operands that are not floats keep the values of the row. */
static void fill(const Case *row, int index, int round, EvalTensor *t) {
  static const double part[] = {1, -1, 0, 1e-30, -0.5, 1, 1, -1, 0.999};
  case_fill(row, index, true, t);
  if (!dtype_info[t->type.dtype].is_float)
    return;
  for (int64_t i = 0; i < type_count(t->type); i++)
    t->v[i] = eval_round(part[(i + index + round) % 9] * largest(t->type.dtype), t->type.dtype);
}

static int count_wrong(const Graph *graph, const EvalEnv *env) {
  int wrong = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_OUTPUT || !dtype_info[node->arg[0]->type.dtype].is_float)
      continue;
    const EvalTensor *t = eval_env_get(
        (EvalEnv *)env, arena_printf(graph->arena, "output:%s", attr_str(node, ATTR_NAME, "")));
    for (int64_t e = 0; e < type_count(t->type); e++)
      wrong += !isfinite(t->v[e]);
  }
  return wrong;
}

static bool stays_finite(const Case *row, DType dtype) {
  Arena *arena = arena_new();
  CaseAt at = {row, dtype, "c."};
  Module *module = case_module(arena, at, false);
  CHECK(module, "%s does not parse", case_name(arena, at));
  const Graph *graph = module->graph[0];
  int wrong = 0;
  for (int round = 0; round < 9; round++) {
    EvalEnv *env = eval_env_new(arena);
    for (int i = 0, index = 0; i < graph->n_nodes; i++) {
      const Node *node = graph->node[i];
      if (node->op == OP_INPUT)
        fill(row, index++, round,
             eval_env_set(env, attr_str(node, ATTR_NAME, ""), node->result[0]->type));
    }
    eval_graph(graph, env, EVAL_TYPED, NULL);
    wrong += count_wrong(graph, env);
  }
  if (wrong)
    printf("FAIL %s: %d elements are not finite\n", case_name(arena, at), wrong);
  arena_free(arena);
  return !wrong;
}

int main(void) {
  bool seen[OP_COUNT] = {false};
  int failed = 0;
  for (int i = 0; i < n_ops_cases; i++) {
    const Case *row = &ops_case[i];
    if (!(op_info[row->op].flags & OPF_FINITE) || !row->results)
      continue;
    seen[row->op] = true;
    for (size_t d = 0; d < (case_has_dtypes(row) ? sizeof dtypes / sizeof *dtypes : 1); d++)
      failed += !stays_finite(row, dtypes[d]);
  }
  for (int op = 0; op < OP_COUNT; op++)
    if (op_info[op].flags & OPF_FINITE && !seen[op]) {
      printf("FAIL `%s` has no row that could show it\n", op_info[op].name);
      failed++;
    }
  printf("%d failures\n", failed);
  return failed != 0;
}
