/* Runs the passes one by one on a model and the reference evaluator, in exact arithmetic, before
 * and after each: outputs and new states must be the same. Usage: same_values fp32|fp16|bf16
 * FILE.amp...
 *
 * Inputs and variables get values from a hash of their name, so that a variable that a pass adds or
 * copies needs no bookkeeping. Gradients may be the loss scale times as large. */
#include "codegen/codegen.h"
#include "ir/recipe/lr_schedule.def"
#include "passes/pass.h"
#include "tests/eval_env.h"
#include "tests/read_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double tolerance = 2e-6; /* simplify rounds constants to f32 */

/* Uniform in [0, 1), the i-th number of a name. */
static double noise(const char *name, int64_t i) {
  uint64_t h = UINT64_C(14695981039346656037) ^ (uint64_t)i;
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
  h = (h ^ h >> 31) * UINT64_C(0x9e3779b97f4a7c15);
  return (double)(h >> 11) * 0x1p-53;
}

static double element(const Node *node, const char *name, int64_t i) {
  VariableKind kind = variable_kind(node);
  if (strcmp(name, "schedule") == 0)
    return i == AMP_LR_BASE ? 0.125 : 0; /* a constant learning rate */
  if (strcmp(name, "bn_momentum") == 0)
    return 0.75;
  if (strcmp(name, "loss_scale") == 0)
    return 1024;
  if (!dtype_info[node->result[0]->type.dtype].is_float)
    return floor(3 * noise(name, i)); /* integers are labels and counters */
  if (kind == VARIABLE_STAT || kind == VARIABLE_SLOT)
    return 0.5 + noise(name, i); /* variances are positive */
  return 2 * noise(name, i) - 1;
}

static EvalEnv *fill(Arena *arena, const Graph *graph) {
  EvalEnv *env = eval_env_new(arena);
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->node[n];
    if (node->op != OP_INPUT && node->op != OP_VARIABLE)
      continue;
    const char *name = node->op == OP_INPUT ? attr_str(node, ATTR_NAME, "") : node->result[0]->name;
    EvalTensor *tensor = eval_env_set(env, name, node->result[0]->type);
    bool copy = variable_kind(node) == VARIABLE_COPY;
    for (int64_t i = 0; i < type_count(tensor->type); i++)
      tensor->v[i] = element(node, copy ? attr_str(node, ATTR_OF, "") : name, i);
  }
  eval_graph(graph, env, EVAL_EXACT, NULL);
  return env;
}

/* Is the value an output, or a variable that the graph updates? */
static bool is_result(const Graph *graph, const char *name) {
  if (strncmp(name, "output:", 7) == 0)
    return true;
  for (int n = 0; n < graph->n_nodes; n++)
    if (graph->node[n]->op == OP_UPDATE && strcmp(graph->node[n]->arg[0]->name, name) == 0)
      return true;
  return false;
}

static double scale_of(EvalEnv *env, const char *name) {
  size_t len = strlen(name);
  bool grad = len > 5 && strcmp(name + len - 5, ".grad") == 0;
  return grad && eval_env_get(env, "loss_scale") ? 1024 : 1;
}

/* Relative distance of two results; infinite where one is no number. */
static double distance(const EvalTensor *a, double scale_a, const EvalTensor *b, double scale_b) {
  double diff = 0, norm = 0;
  for (int64_t i = 0; i < type_count(a->type); i++) {
    double x = a->v[i] / scale_a, y = b->v[i] / scale_b;
    diff += (x - y) * (x - y);
    norm += x * x;
  }
  double d = sqrt(diff) / (sqrt(norm) + 1e-30);
  return d >= 0 ? d : INFINITY;
}

static int compare(const char *when, const Graph *before, EvalEnv *old, const Graph *after,
                   EvalEnv *new, int *n_compared) {
  int failed = 0;
  for (int i = 0; i < old->n; i++) {
    const char *name = old->name[i];
    EvalTensor *now = eval_env_get(new, name);
    if (!now || !is_result(before, name) || !is_result(after, name))
      continue;
    double d = distance(&old->tensor[i], scale_of(old, name), now, scale_of(new, name));
    ++*n_compared;
    if (d <= tolerance)
      continue;
    printf("FAIL %s: @%s %s differs by %.3g\n", when, after->name, name, d);
    failed++;
  }
  return failed;
}

/* One pass between two evaluations of every graph. */
static int check_pass(const PassInfo *pass, PassContext *context, int *n_compared) {
  Arena *arena = arena_new();
  Module *module = context->module, *old = module_new(arena);
  EvalEnv *env[MAX_GRAPHS];
  int n = module->n_graphs, failed = 0;
  for (int g = 0; g < n; g++) {
    graph_clone(old, module->graph[g], module->graph[g]->name);
    env[g] = fill(arena, old->graph[g]);
  }
  pass_run(pass, context, NULL);
  for (int g = 0; g < n; g++)
    failed += compare(pass->flag, old->graph[g], env[g], module->graph[g],
                      fill(arena, module->graph[g]), n_compared);
  arena_free(arena);
  return failed;
}

static int check_file(const char *path, const CompileOptions *options) {
  Arena *arena = arena_new();
  char *text = read_file(arena, path);
  Diag diag = {.out = stderr, .source = text};
  int failed = 0, n_compared = 0;
  Module *module = module_parse(arena, path, text, &diag);
  CHECK(module, "%s does not parse", path);
  PassContext context = {.module = module,
                         .options = options,
                         .target = &target_cpu_own[WINOGRAD_AUTO],
                         .diag = &diag,
                         .scratch = arena_new()};
  for (int i = 0; i < n_passes; i++)
    failed += check_pass(&pass_info[i], &context, &n_compared);
  for (int g = 0; g < module->n_graphs; g++)
    if (module->graph[g]->stage != STAGE_PLANNED || module->n_graphs != 3) {
      printf("FAIL %s: @%s is in stage %s\n", path, module->graph[g]->name,
             stage_name[module->graph[g]->stage]);
      failed++;
    }
  printf("%s: %d results compared, %d differ\n", path, n_compared, failed);
  arena_free(context.scratch);
  arena_free(arena);
  return failed + (n_compared < 100) + diag.n_errors;
}

int main(int argc, char **argv) {
  CompileOptions options;
  compile_options_default(&options);
  int failed = argc < 3;
  for (int d = DT_F32; argc > 1 && d <= DT_BF16; d++) {
    static const char *const flag[] = {[DT_F32] = "fp32", [DT_F16] = "fp16", [DT_BF16] = "bf16"};
    if (strcmp(argv[1], flag[d]) == 0)
      options.dtype = (DType)d;
  }
  for (int i = 2; i < argc; i++)
    failed += check_file(argv[i], &options);
  return failed ? 1 : 0;
}
