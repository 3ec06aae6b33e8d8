/* Whole training steps of CUDA parts, against the evaluator. Usage: step RESOURCE_FOLDER
 * WORK_FOLDER FILE.amp...
 *
 * Two steps of every graph of each file, in each dtype; several orders of blocks and threads, which
 * must give the same bits. */
#include "codegen/cuda/device.h"
#include "passes/pass.h"
#include "tests/cuda/part.h"
#include "tests/ops/step_values.h"
#include "tests/read_file.h"

#include <string.h>

static const DType dtypes[] = {DT_F32, DT_F16, DT_BF16};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, MOST_FILES = 8, ORDERS = 3 };
/* As for the CPU (tests/ops/step.c): sums in f32, and roundings that fall differently. */
static const double tolerance[DT_COUNT] = {[DT_F32] = 2e-6, [DT_F16] = 5e-3, [DT_BF16] = 2e-2};

static const char passes[] = "simplify,eval-graph,autodiff,loss-scale,optimizer,simplify,amp,"
                             "fold-casts,weight-copies,cse,dce,assign-layout,lower-norm,fuse,"
                             "schedule,plan-memory,check-plan";

typedef struct Step {
  Arena *arena;
  const char *name;
  CompileOptions compile;
  CodegenOptions codegen;
  const Module *module;
  Part *part;
} Step;

static void begin(Step *s, const char *path, DType dtype, const char *resource, const char *folder,
                  int number) {
  *s = (Step){.arena = arena_new()};
  const char *error = NULL;
  Diag diag = {.out = stderr};
  compile_options_default(&s->compile);
  s->compile.dtype = dtype;
  s->codegen = (CodegenOptions){.compile = &s->compile, .resource = resource};
  s->name = arena_printf(s->arena, "cuda_step_%d_%s", number, dtype_info[dtype].name);
  const Device *device = device_find(s->arena, "sm_90", &error);
  const Backend *backend =
      device ? backend_cuda(s->arena, device, &(CudaOptions){.cache_dir = ""}, &error) : NULL;
  CHECK(backend, "%s", error);
  Module *module = module_parse(s->arena, path, read_file(s->arena, path), &diag);
  CHECK(module, "%s does not parse", path);
  s->module = module;
  PassContext context = {module, &s->compile, backend_target(backend), &diag, arena_new()};
  bool ok = pipeline_run(&context, passes, NULL, NULL);
  CHECK(ok && backend_report(backend, &diag) == 0, "%s failed", path);
  arena_free(context.scratch);
  s->part =
      part_begin(s->arena, &(ProgramPart){module, backend, NULL}, &s->codegen, folder, s->name);
}

/* Other numbers than in the first order, in this graph. */
static int count_changes(const Step *s, EvalEnv *first, EvalEnv *now, int order) {
  int changed = 0;
  for (int i = 0; i < first->n; i++) {
    const EvalTensor *a = &first->tensor[i], *b = eval_env_get(now, first->name[i]);
    size_t bytes = (size_t)type_count(a->type) * sizeof *a->v;
    if (memcmp(a->v, b->v, bytes) == 0)
      continue;
    printf("FAIL %s: %s differs in order %d\n", s->name, first->name[i], order);
    changed++;
  }
  return changed;
}

static int check_graph(Step *s, int g) {
  const Graph *graph = s->module->graph[g];
  EvalEnv *first = NULL, *want = step_evaluate(s->arena, graph);
  int failed = 0;
  for (int order = 0; order < ORDERS && !failed; order++) {
    EvalEnv *got = step_fill(s->arena, graph);
    failed += part_run(s->part, g, (uint64_t)order, got);
    failed += failed ? 0 : part_run(s->part, g, (uint64_t)order, got);
    if (order == 0)
      failed += step_compare(s->name, graph, want, first = got, tolerance[s->compile.dtype]);
    else
      failed += count_changes(s, first, got, order);
  }
  return failed;
}

static int finish(Step *s) {
  int failed = 0;
  part_finish(s->part);
  for (int g = 0; g < s->module->n_graphs; g++)
    failed += check_graph(s, g);
  part_free(s->part);
  arena_free(s->arena);
  return failed;
}

int main(int argc, char **argv) {
  CHECK(argc > 3 && argc <= 3 + MOST_FILES, "usage: step RESOURCE_FOLDER WORK_FOLDER FILE.amp...");
  static Step step[MOST_FILES * N_DTYPES];
  int failed = 0, n = 0;
  for (int i = 3; i < argc; i++)
    for (int d = 0; d < N_DTYPES; d++, n++)
      begin(&step[n], argv[i], dtypes[d], argv[1], argv[2], i);
  for (int i = 0; i < n; i++)
    failed += finish(&step[i]);
  printf("%d results compared, %d failures\n", step_compared, failed);
  return failed != 0;
}
