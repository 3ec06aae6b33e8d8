/* Whole training steps in the types they run in. Usage: step RESOURCE_FOLDER WORK_FOLDER
 * FILE.amp...
 *
 *   passes    from fold-casts on no pass may change a bit of a result, lower-norm excepted, whose
 * other order of operations may cost a rounding (tests/passes/same_values.c has exact arithmetic)
 *   skipping  a step whose gradients are not finite changes the loss scale and nothing else
 *   code      two steps of the compiled program, memory plan and all, against the evaluator
 *
 * each for f32, f16 with loss scaling, and bf16. */
#include "passes/pass.h"
#include "tests/read_file.h"
#include "tests/ops/cases.h"
#include "tests/ops/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const DType dtypes[] = {DT_F32, DT_F16, DT_BF16};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };
/* Relative L2 distance of code and evaluator: sums in f32, and in low types roundings that fall
 * differently and move the next layer. */
static const double code_tolerance[DT_COUNT] = {[DT_F32] = 2e-6, [DT_F16] = 5e-3, [DT_BF16] = 2e-2};
/* Of lower-norm: the normalised value is rounded elsewhere. */
static const double norm_tolerance[DT_COUNT] = {[DT_F32] = 1e-6, [DT_F16] = 2e-3, [DT_BF16] = 1e-2};

static const char *const before[] = {"simplify",  "eval-graph", "autodiff", "loss-scale",
                                     "optimizer", "simplify",   "amp"};
static const char *const keeping[] = {"fold-casts",    "weight-copies", "cse",  "dce",
                                      "assign-layout", "lower-norm",    "fuse", "schedule",
                                      "plan-memory",   "check-plan"};

typedef struct Step {
  Arena *arena;
  CompileOptions options;
  Diag diag;
  PassContext context;
  Module *module;
} Step;

static void step_init(Step *s, const char *path, DType dtype) {
  *s = (Step){.arena = arena_new(), .diag = {.out = stderr}};
  compile_options_default(&s->options);
  s->options.dtype = dtype;
  s->module = module_parse(s->arena, path, read_file(s->arena, path), &s->diag);
  CHECK(s->module, "%s does not parse", path);
  s->context = (PassContext){s->module, &s->options, &target_cpu, &s->diag, arena_new()};
}

static void step_free(Step *s) {
  arena_free(s->context.scratch);
  arena_free(s->arena);
}

static void run_pass(Step *s, const char *flag) {
  bool ok = pipeline_run(&s->context, flag, NULL, NULL);
  CHECK(ok, "%s failed", flag);
}

/* ---- state ---- */

static uint64_t hash(const char *name) {
  uint64_t h = UINT64_C(14695981039346656037);
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
  return h;
}

/* A value by the name of what it is and the place in it, so that graphs before and after a pass get
 * the same, and a copy the same as its parameter. */
static double value_of(const Node *node, const char *name, int64_t i, double ordinary) {
  const char *kind = attr_str(node, ATTR_KIND, "");
  const Attr *init = attr_find(node, ATTR_INIT_ARGS);
  if (strcmp(name, "schedule") == 0)
    return i == 1 ? 0.125 : 0; /* a constant rate */
  if (strcmp(name, "bn_momentum") == 0)
    return 0.75;
  if (strcmp(name, "label") == 0)
    return (double)(i % 3);
  if (strcmp(kind, "stat") == 0 || strcmp(kind, "slot") == 0)
    return fabs(ordinary);
  if (strcmp(kind, "scale") == 0 || strcmp(kind, "counter") == 0)
    return init ? init->floats[0] : 0;
  return ordinary;
}

static EvalEnv *fill(Arena *arena, const Graph *graph) {
  EvalEnv *env = eval_env_new(arena), *of = eval_env_new(arena);
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->node[n];
    if (node->op != OP_INPUT && node->op != OP_VARIABLE)
      continue;
    TensorType type = node->result[0]->type;
    const char *name = attr_str(node, ATTR_NAME, node->result[0]->name);
    bool is_copy = strcmp(attr_str(node, ATTR_KIND, ""), "copy") == 0;
    const char *source = is_copy ? attr_str(node, ATTR_OF, "") : name;
    EvalTensor *t = eval_env_set(env, name, type);
    EvalTensor *f32 = eval_env_set(of, source, type_with(type, DT_F32));
    fill_ordinary(hash(source), f32);
    for (int64_t i = 0, size = type_count(type); i < size; i++)
      t->v[i] = eval_round(value_of(node, source, i, f32->v[i]), type.dtype);
  }
  return env;
}

/* Two steps: the second reads what the first wrote. */
static EvalEnv *evaluate(Arena *arena, const Graph *graph) {
  EvalEnv *env = fill(arena, graph);
  eval_graph(graph, env, EVAL_TYPED, NULL);
  eval_graph(graph, env, EVAL_TYPED, NULL);
  return env;
}

/* ---- comparison ---- */

static int n_compared;

static double distance(const EvalTensor *a, const EvalTensor *b) {
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

/* Outputs and state; inputs may change their type. */
static bool is_result(const Graph *graph, const char *name) {
  const Value *value = graph_find(graph, name);
  return strncmp(name, "output:", 7) == 0 || (value && value->node->op == OP_VARIABLE);
}

/* All results that both environments have. */
static int compare(const char *what, const Graph *graph, EvalEnv *want, EvalEnv *got,
                   double tolerance) {
  int failed = 0, n = 0;
  for (int i = 0; i < want->n; i++) {
    const EvalTensor *now = eval_env_get(got, want->name[i]);
    if (!now || !is_result(graph, want->name[i]))
      continue;
    double d = distance(&want->tensor[i], now);
    n++;
    if (d <= tolerance)
      continue;
    printf("FAIL %s @%s: %s differs by %.3g\n", what, graph->name, want->name[i], d);
    failed++;
  }
  n_compared += n;
  return failed + (n == 0);
}

/* ---- the three checks ---- */

static int check_keeping(Step *s, const char *flag) {
  Arena *arena = arena_new();
  EvalEnv *old[MAX_GRAPHS];
  int failed = 0, n = s->module->n_graphs;
  for (int g = 0; g < n; g++)
    old[g] = evaluate(arena, s->module->graph[g]);
  run_pass(s, flag);
  double tolerance = strcmp(flag, "lower-norm") == 0 ? norm_tolerance[s->options.dtype] : 0;
  for (int g = 0; g < n; g++) {
    const Graph *graph = s->module->graph[g];
    const char *what = arena_printf(arena, "%s %s", dtype_info[s->options.dtype].name, flag);
    failed += compare(what, graph, old[g], evaluate(arena, graph), tolerance);
  }
  arena_free(arena);
  return failed;
}

/* With a loss scale near the end of f32, low gradients overflow. */
static int check_skipping(Step *s) {
  const Graph *train = module_find(s->module, "train");
  if (!graph_find(train, "good_steps"))
    return 0;
  EvalEnv *start = fill(s->arena, train), *end = fill(s->arena, train);
  const double scale = 0x1p100;
  eval_env_get(start, "loss_scale")->v[0] = eval_env_get(end, "loss_scale")->v[0] = scale;
  eval_env_get(end, "good_steps")->v[0] = 7;
  eval_graph(train, end, EVAL_TYPED, NULL);
  int failed = eval_env_get(end, "output:finite")->v[0] != 0 ||
               eval_env_get(end, "loss_scale")->v[0] != scale / 2 ||
               eval_env_get(end, "good_steps")->v[0] != 0;
  eval_env_get(start, "loss_scale")->v[0] = scale / 2;
  return failed + compare("a skipped step", train, start, end, 0);
}

static int check_code(Step *s, const char *resource, const char *folder, const char *name) {
  CodegenOptions options = {.compile = &s->options, .resource = resource};
  name = arena_printf(s->arena, "step_%s_%s", name, dtype_info[s->options.dtype].name);
  Program *program = program_begin(s->arena, s->module, &options, folder, name);
  program_finish(program);
  int failed = 0;
  for (int g = 0; g < s->module->n_graphs; g++) {
    const Graph *graph = s->module->graph[g];
    EvalEnv *got = fill(s->arena, graph);
    failed += program_run(program, g, 2, got) != 0;
    failed += program_run(program, g, 2, got) != 0;
    const char *what = arena_printf(s->arena, "%s code", dtype_info[s->options.dtype].name);
    EvalEnv *want = evaluate(s->arena, graph);
    failed += compare(what, graph, want, got, code_tolerance[s->options.dtype]);
  }
  return failed;
}

static int check_file(const char *path, DType dtype, const char *resource, const char *folder,
                      const char *name) {
  Step s;
  step_init(&s, path, dtype);
  int failed = 0;
  for (size_t i = 0; i < sizeof before / sizeof *before; i++)
    run_pass(&s, before[i]);
  for (size_t i = 0; i < sizeof keeping / sizeof *keeping; i++)
    failed += check_keeping(&s, keeping[i]);
  failed += check_skipping(&s);
  failed += check_code(&s, resource, folder, name);
  step_free(&s);
  return failed;
}

int main(int argc, char **argv) {
  CHECK(argc > 3, "usage: step RESOURCE_FOLDER WORK_FOLDER FILE.amp...");
  int failed = 0;
  for (int i = 3; i < argc; i++)
    for (int d = 0; d < N_DTYPES; d++)
      failed += check_file(argv[i], dtypes[d], argv[1], argv[2], (char[]){(char)('0' + i), 0});
  printf("%d results compared, %d failures\n", n_compared, failed);
  return failed != 0;
}
