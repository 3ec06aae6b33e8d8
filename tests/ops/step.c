/* Whole training steps in the types they run in. Usage: step RESOURCE_FOLDER WORK_FOLDER all|short
 * FILE.amp...
 *
 *   passes    from fold-casts on no pass may change a bit of a result, lower-norm excepted, whose
 * other order of operations may cost a rounding (tests/passes/same_values.c has exact arithmetic)
 *   skipping  a step whose gradients are not finite changes the loss scale and nothing else
 *   code      two steps of the compiled program, memory plan and all, against the evaluator; with
 *             the CPU's own kernels, the same bits for every number of threads
 *
 * each for f32, f16 with loss scaling, and bf16, and for both libraries of the CPU. A short run
 * takes only f32 with oneDNN and f16 with the own kernels. */
#include "passes/pass.h"
#include "tests/ops/program.h"
#include "tests/ops/step_values.h"
#include "tests/read_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const DType dtypes[] = {DT_F32, DT_F16, DT_BF16};
/* One thread takes the results of a convolution tile by tile to the loop behind it; several take
 * them all at once, where there are few tiles. */
static const int threads[] = {1, 2, 3, 5};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, N_THREADS = sizeof threads / sizeof *threads };
/* Bounds on the relative L2 distance between code and evaluator. Sums are in f32, and in 16-bit
 * types some numbers are rounded differently, which changes the next layer. */
static const double code_tolerance[DT_COUNT] = {[DT_F32] = 2e-6, [DT_F16] = 5e-3, [DT_BF16] = 2e-2};
/* The bound for lower-norm, after which the normalised value is rounded in another place. */
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
  EvalEnv *now[MAX_GRAPHS]; /* what the evaluator gives for each graph as it is */
} Step;

static void step_init(Step *s, const char *path, DType dtype, const Target *target) {
  *s = (Step){.arena = arena_new(), .diag = {.out = stderr}};
  compile_options_default(&s->options);
  s->options.dtype = dtype;
  s->module = module_parse(s->arena, path, read_file(s->arena, path), &s->diag);
  CHECK(s->module, "%s does not parse", path);
  s->context = (PassContext){s->module, &s->options, target, &s->diag, arena_new()};
}

static void step_free(Step *s) {
  arena_free(s->context.scratch);
  arena_free(s->arena);
}

static void run_pass(Step *s, const char *flag) {
  bool ok = pipeline_run(&s->context, flag, NULL, NULL);
  CHECK(ok, "%s failed", flag);
}

/* ---- the three checks ---- */

static void evaluate_all(Step *s) {
  for (int g = 0; g < s->module->n_graphs; g++)
    s->now[g] = step_evaluate(s->arena, s->module->graph[g]);
}

static int check_keeping(Step *s, const char *flag) {
  EvalEnv *old[MAX_GRAPHS];
  memcpy(old, s->now, sizeof old);
  run_pass(s, flag);
  evaluate_all(s);
  int failed = 0;
  double tolerance = strcmp(flag, "lower-norm") == 0 ? norm_tolerance[s->options.dtype] : 0;
  const char *what = arena_printf(s->arena, "%s %s", dtype_info[s->options.dtype].name, flag);
  for (int g = 0; g < s->module->n_graphs; g++)
    failed += step_compare(what, s->module->graph[g], old[g], s->now[g], tolerance);
  return failed;
}

/* With a loss scale near the largest f32, 16-bit gradients overflow. */
static int check_skipping(Step *s) {
  const Graph *train = module_find(s->module, "train");
  if (!graph_find(train, "good_steps"))
    return 0;
  EvalEnv *start = step_fill(s->arena, train), *end = step_fill(s->arena, train);
  const double scale = 0x1p100;
  eval_env_get(start, "loss_scale")->v[0] = eval_env_get(end, "loss_scale")->v[0] = scale;
  eval_env_get(end, "good_steps")->v[0] = 7;
  eval_graph(train, end, EVAL_TYPED, NULL);
  int failed = eval_env_get(end, "output:finite")->v[0] != 0 ||
               eval_env_get(end, "loss_scale")->v[0] != scale / 2 ||
               eval_env_get(end, "good_steps")->v[0] != 0;
  eval_env_get(start, "loss_scale")->v[0] = scale / 2;
  return failed + step_compare("a skipped step", train, start, end, 0);
}

/* Two steps of one graph. */
static EvalEnv *run_twice(Step *s, Program *program, int g, int n_threads, int *failed) {
  EvalEnv *got = step_fill(s->arena, s->module->graph[g]);
  *failed += program_run(program, g, n_threads, got) != 0;
  *failed += program_run(program, g, n_threads, got) != 0;
  return got;
}

static int check_code(Step *s, const char *resource, const char *folder, const char *name) {
  CodegenOptions options = {.compile = &s->options, .resource = resource};
  const char *dtype = dtype_info[s->options.dtype].name;
  bool own = s->context.target != &target_cpu_onednn;
  name = arena_printf(s->arena, "step_%s_%s%s", name, dtype, own ? "_own" : "");
  Program *program = program_begin_with(s->arena, s->module, &options, folder, name,
                                        own ? "own" : "onednn", WINOGRAD_ALWAYS, "x86-64-v3");
  program_finish(program);
  int failed = 0;
  for (int g = 0; g < s->module->n_graphs; g++) {
    const Graph *graph = s->module->graph[g];
    EvalEnv *got = run_twice(s, program, g, 2, &failed);
    failed += step_compare(arena_printf(s->arena, "%s code", name), graph, s->now[g], got,
                           code_tolerance[s->options.dtype]);
    for (int t = 0; own && t < N_THREADS; t++)
      failed += step_compare(arena_printf(s->arena, "%s with %d threads", name, threads[t]), graph,
                             got, run_twice(s, program, g, threads[t], &failed), 0);
  }
  return failed;
}

static int check_file(const char *path, DType dtype, const Target *target, const char *resource,
                      const char *folder, const char *name) {
  Step s;
  step_init(&s, path, dtype, target);
  int failed = 0;
  for (size_t i = 0; i < sizeof before / sizeof *before; i++)
    run_pass(&s, before[i]);
  evaluate_all(&s);
  for (size_t i = 0; i < sizeof keeping / sizeof *keeping; i++)
    failed += check_keeping(&s, keeping[i]);
  failed += check_skipping(&s);
  failed += check_code(&s, resource, folder, name);
  step_free(&s);
  return failed;
}

int main(int argc, char **argv) {
  bool is_short = argc > 3 && strcmp(argv[3], "short") == 0;
  CHECK(argc > 4 && (is_short || strcmp(argv[3], "all") == 0),
        "usage: step RESOURCE_FOLDER WORK_FOLDER all|short FILE.amp...");
  int failed = 0;
  for (int i = 4; i < argc; i++)
    for (int d = 0; d < 2 * N_DTYPES; d += is_short ? 3 : 1) /* the first and the fourth */
      failed += check_file(argv[i], dtypes[d / 2],
                           d % 2 ? &target_cpu_own[WINOGRAD_ALWAYS] : &target_cpu_onednn, argv[1],
                           argv[2], (char[]){(char)('0' + i), 0});
  printf("%d results compared, %d failures\n", step_compared, failed);
  return failed != 0;
}
