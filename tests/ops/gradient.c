/* Gradients: for every row of cases.def whose op has a rule, what pass autodiff builds, evaluated
 * in double precision, against central differences of the evaluator itself. */
#include "passes/edit.h"
#include "passes/pass.h"
#include "tests/eval_env.h"
#include "tests/ops/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many elements of each operand are differentiated: some MAX_PROBES, but FEW_PROBES in a row of
 * cases.def whose largest operand has more than LARGE elements, because such rows are there for the
 * tests of generated code. With the argument `short`, a quarter of these numbers. */
enum { MAX_PROBES = 48, FEW_PROBES = 4, LARGE = 4096 };
static int fewer = 1; /* elements are divided by it */
static const double step = 2e-5, tolerance = 1e-6;

static bool is_differentiated(const Case *row) {
  const OpInfo *op = &op_info[row->op];
  bool has_rule = !(op->flags & OPF_NOGRAD) && op->gen != GEN_STATE && op->first == STAGE_MODEL;
  if (row->op == OP_CAST || strchr("ib", row->operands[0]))
    return false; /* no difference quotient helps where values are rounded, or are integers */
  return row->is_grad || (row->results && has_rule);
}

/* The row as a forward graph whose loss is a weighted mean of its first result: the weights make
 * every element's gradient different. */
static Module *build(Arena *arena, CaseAt at) {
  Module *module = case_module(arena, at, true);
  CHECK(module, "the row does not parse");
  Graph *graph = module->graph[0];
  Value *y = graph_find(graph, at.row->results ? "r0" : "y");
  Node *weight = graph_append(graph, OP_INPUT, (SrcLoc){0}, 0, NULL);
  attr_set_str(graph, weight, ATTR_NAME, "weight");
  Value *w = node_finish(graph, weight, "weight", 1, &y->type);
  Value *product = graph_op(graph, OP_MUL, "product", (SrcLoc){0}, 2, (Value *[]){y, w});
  Node *mean = graph_append(graph, OP_REDUCE_MEAN, (SrcLoc){0}, 1, &product);
  attr_set_ints(graph, mean, ATTR_AXES, (int64_t[]){0, 1, 2, 3, 4, 5}, y->type.rank);
  graph_output_add(graph, node_finish(graph, mean, "l", 1, NULL), "loss");
  graph_index_uses(graph);
  module_verify(module, "the test built it");
  return module;
}

/* @train with the gradients as outputs PARAM.grad; a clone, since the forward graph is needed too.
 */
static const Graph *differentiate(Arena *arena, const Module *forward) {
  Module *module = module_new(arena);
  CompileOptions options;
  Diag diag = {.out = stderr};
  PassContext context = {module, &options, NULL, &diag, arena_new()};
  compile_options_default(&options);
  graph_clone(module, forward->graph[0], "train");
  bool ok = pipeline_run(&context, "autodiff", NULL, NULL);
  CHECK(ok, "autodiff refused the row");
  arena_free(context.scratch);
  return module->graph[0];
}

static EvalEnv *fill(Arena *arena, const Case *row, const Graph *graph) {
  EvalEnv *env = eval_env_new(arena);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_INPUT && node->op != OP_VARIABLE)
      continue;
    const char *name = node->result[0]->name;
    EvalTensor *t = eval_env_set(env, name, node->result[0]->type);
    if (strcmp(name, "weight") == 0)
      fill_ordinary(7, t);
    else
      case_fill(row, atoi(name), true, t);
  }
  return env;
}

static double loss(const Graph *graph, EvalEnv *env) {
  eval_graph(graph, env, EVAL_EXACT, NULL);
  return eval_env_get(env, "output:loss")->v[0];
}

static double difference(const Graph *graph, EvalEnv *env, double *x) {
  double at = *x;
  *x = at + step;
  double above = loss(graph, env);
  *x = at - step;
  double below = loss(graph, env);
  *x = at;
  return (above - below) / (2 * step);
}

static int64_t largest_operand(const EvalEnv *env) {
  int64_t largest = 0;
  for (int i = 0; i < env->n; i++)
    if (type_count(env->tensor[i].type) > largest)
      largest = type_count(env->tensor[i].type);
  return largest;
}

/* Errors are relative to the largest element of the gradient. */
static int check_param(const char *name, const Graph *graph, EvalEnv *env, const char *param,
                       const EvalTensor *grad) {
  const EvalTensor *x = eval_env_get(env, param);
  int64_t n = type_count(x->type);
  int64_t stride = n / (largest_operand(env) > LARGE ? FEW_PROBES : MAX_PROBES) * fewer + 1;
  double largest = 1e-3 / (double)n;
  for (int64_t i = 0; i < n; i++)
    largest = fmax(largest, fabs(grad->v[i]));
  for (int64_t i = 0; i < n; i += stride) {
    double want = difference(graph, env, &eval_env_get(env, param)->v[i]);
    if (!(fabs(grad->v[i] - want) <= tolerance * largest)) {
      printf("FAIL %s: operand %s element %lld: gradient %.9g, finite differences %.9g\n", name,
             param, (long long)i, grad->v[i], want);
      return 1;
    }
  }
  return 0;
}

static int check_row(const Case *row) {
  Arena *arena = arena_new();
  CaseAt at = {row, DT_F32, ""};
  const char *name = case_name(arena, at);
  const Module *module = build(arena, at);
  const Graph *forward = module->graph[0], *backward = differentiate(arena, module);
  EvalEnv *env = fill(arena, row, forward), *grads = fill(arena, row, forward);
  eval_graph(backward, grads, EVAL_EXACT, NULL);
  int failed = 0, checked = 0;
  for (int i = 0; i < forward->n_nodes; i++) {
    if (!node_is_param(forward->node[i]))
      continue;
    const char *param = forward->node[i]->result[0]->name;
    const char *output = arena_printf(arena, "output:%s.grad", param);
    failed += check_param(name, forward, env, param, eval_env_get(grads, output));
    checked++;
  }
  if (!checked) {
    printf("FAIL %s: nothing to differentiate by\n", name);
    failed++;
  }
  arena_free(arena);
  return failed;
}

int main(int argc, char **argv) {
  int failed = 0, rows = 0;
  if (argc > 1 && strcmp(argv[1], "short") == 0)
    fewer = 4;
  bool seen[OP_COUNT] = {false};
  for (int i = 0; i < n_ops_cases; i++) {
    if (!is_differentiated(&ops_case[i]))
      continue;
    seen[ops_case[i].op] = true;
    failed += check_row(&ops_case[i]);
    rows++;
  }
  for (int op = 0; op < OP_COUNT; op++)
    if (!(op_info[op].flags & OPF_NOGRAD) && op_info[op].gen != GEN_STATE && op != OP_CAST &&
        !seen[op]) {
      printf("FAIL `%s` has a gradient rule but no row in cases.def\n", op_info[op].name);
      failed++;
    }
  printf("%d rows differentiated, %d failures\n", rows, failed);
  return failed != 0;
}
