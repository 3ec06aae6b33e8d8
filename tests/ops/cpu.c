/* CPU code: every row of cases.def, at every dtype, through the end of the pipeline, emitted,
 * compiled and run, against the evaluator. One program per dtype; its graph @train holds the rows
 * whose op lower-norm removes, @late all others. */
#include "passes/pass.h"
#include "tests/ops/cases.h"
#include "tests/ops/compare.h"
#include "tests/ops/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char passes[] = "assign-layout,lower-norm,fuse,schedule,plan-memory,check-plan";
static const DType dtypes[] = {DT_F32, DT_F16, DT_BF16};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, N_GRAPHS = 2, THREADS = 3 };
static const char *const graph_name[N_GRAPHS] = {"train", "late"};
static const Stage graph_stage[N_GRAPHS] = {STAGE_TRAIN, STAGE_LOWERED};

/* All rows at one dtype. */
typedef struct Suite {
  Arena *arena;
  DType dtype;
  Module *plain, *planned; /* as written; after the passes */
  Program *program;
} Suite;

static int graph_for(const Case *row) {
  return op_info[row->op].last > STAGE_TRAIN;
}

static bool is_in(const Suite *suite, const Case *row) {
  return suite->dtype == DT_F32 || case_has_dtypes(row);
}

static CaseAt case_at(const Suite *suite, const Case *row) {
  const char *prefix = arena_printf(suite->arena, "c%d.", (int)(row - ops_case));
  return (CaseAt){row, suite->dtype, prefix};
}

static Module *parse(const Suite *suite) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  for (int g = 0; g < N_GRAPHS; g++) {
    fprintf(out, "graph @%s stage %s {\n", graph_name[g], stage_name[graph_stage[g]]);
    for (int i = 0; i < n_ops_cases; i++)
      if (graph_for(&ops_case[i]) == g && is_in(suite, &ops_case[i]))
        case_print(case_at(suite, &ops_case[i]), false, out);
    fprintf(out, "}\n");
  }
  fclose(out);
  Diag diag = {.out = stderr, .source = text};
  Module *module = module_parse(suite->arena, "cases.def", text, &diag);
  CHECK(module, "cases.def does not parse: see test shapes");
  free(text);
  return module;
}

static Suite build(DType dtype, const char *resource, const char *folder) {
  Suite suite = {.arena = arena_new(), .dtype = dtype};
  suite.plain = parse(&suite);
  suite.planned = parse(&suite);
  CompileOptions compile;
  compile_options_default(&compile);
  compile.dtype = dtype;
  CodegenOptions options = {.compile = &compile, .resource = resource};
  Diag diag = {.out = stderr};
  PassContext context = {suite.planned, &compile, &target_cpu, &diag, arena_new()};
  bool ok = pipeline_run(&context, passes, NULL, NULL);
  CHECK(ok, "the pipeline refused the rows");
  arena_free(context.scratch);
  program_spread(suite.planned);
  suite.program =
      program_begin(suite.arena, suite.planned, &options, folder, dtype_info[dtype].name);
  return suite;
}

/* "c12.3" -> row 12, operand 3; a name of the row's own: operand -1. */
static const Case *row_of(const char *name, int *operand) {
  const char *rest = strchr(name, '.') + 1;
  *operand = *rest >= '0' && *rest <= '9' ? atoi(rest) : -1;
  return &ops_case[atoi(name + 1)];
}

static EvalEnv *fill(Arena *arena, const Graph *graph) {
  EvalEnv *env = eval_env_new(arena);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_INPUT && node->op != OP_VARIABLE)
      continue;
    int operand;
    const Case *row = row_of(node->result[0]->name, &operand);
    EvalTensor *t = eval_env_set(env, node->result[0]->name, node->result[0]->type);
    if (operand < 0)
      fill_ordinary((uint64_t)i, t);
    else
      case_fill(row, operand, false, t);
  }
  return env;
}

/* Ops whose error is relative to the sum of their terms' magnitudes, which the op itself gives
 * when its operands have no sign. */
static bool is_sum(OpKind op) {
  GenClass gen = op_info[op].gen;
  return gen == GEN_CHANNEL || gen == GEN_REDUCE || gen == GEN_CONV || gen == GEN_MATMUL ||
         gen == GEN_POOL || gen == GEN_OPT || op == OP_AFFINE || op == OP_AFFINE2;
}

static EvalEnv *evaluate(Arena *arena, const Graph *graph, EvalRounding rounding,
                         bool is_absolute) {
  EvalEnv *env = fill(arena, graph);
  for (int i = 0; is_absolute && i < env->n; i++)
    for (int64_t j = 0, n = type_count(env->tensor[i].type); j < n; j++)
      env->tensor[i].v[j] = fabs(env->tensor[i].v[j]);
  eval_graph(graph, env, rounding, NULL);
  return env;
}

/* Of element i; `largest` is what all errors of rows without extreme values are relative to. */
static double tolerance(const Case *row, double want, double terms, double largest) {
  double magnitude = fmax(fabs(want), largest);
  if (is_sum(row->op) && isfinite(terms))
    magnitude = fmax(magnitude, fabs(terms));
  return row->ulps > 0 ? row->ulps * 0x1p-23 * magnitude + 0x1p-149 : 0;
}

static int compare(const Suite *suite, const char *name, const EvalTensor *got,
                   const EvalTensor *want, const EvalTensor *terms) {
  int operand;
  const Case *row = row_of(strncmp(name, "output:", 7) == 0 ? name + 7 : name, &operand);
  double largest = strchr(row->values, 'n') ? 0 : largest_finite(want);
  for (int64_t i = 0, n = type_count(want->type); i < n; i++) {
    double t = tolerance(row, want->v[i], terms->v[i], largest);
    if (close_enough(got->v[i], want->v[i], t, want->type.dtype))
      continue;
    printf("FAIL %s: %s[%lld] is %.9g, not %.9g (tolerance %.3g)\n",
           case_name(suite->arena, case_at(suite, row)), name, (long long)i, got->v[i], want->v[i],
           t);
    return 1;
  }
  return 0;
}

static bool same_bits(double a, double b) {
  return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

/* Two runs give the same bits; on other numbers of threads generated code does, the library may
 * not. */
static int check_same(const Suite *suite, EvalEnv *a, EvalEnv *b, bool spare_library,
                      const char *why) {
  int failed = 0;
  for (int i = 0; i < a->n; i++) {
    int operand;
    const char *name = a->name[i];
    const Case *row = row_of(strncmp(name, "output:", 7) == 0 ? name + 7 : name, &operand);
    GenClass gen = op_info[row->op].gen;
    const EvalTensor *x = &a->tensor[i], *y = eval_env_get(b, name);
    int64_t at = 0, n = type_count(x->type);
    while (at < n && same_bits(x->v[at], y->v[at]))
      at++;
    if (at == n || (spare_library && (gen == GEN_CONV || gen == GEN_MATMUL)))
      continue;
    printf("FAIL %s: %s[%lld] is %.9g, but %.9g %s\n", case_name(suite->arena, case_at(suite, row)),
           name, (long long)at, x->v[at], y->v[at], why);
    failed++;
  }
  return failed;
}

static int check_graph(const Suite *suite, int g) {
  const Graph *graph = suite->plain->graph[g];
  EvalEnv *want = evaluate(suite->arena, graph, EVAL_TYPED, false);
  EvalEnv *terms = evaluate(suite->arena, graph, EVAL_EXACT, true);
  EvalEnv *got = fill(suite->arena, graph), *one = fill(suite->arena, graph);
  int failed = program_run(suite->program, g, THREADS, got) != 0;
  failed += program_run(suite->program, g, 1, one) != 0;
  failed += check_same(suite, got, one, true, "on one thread");
  EvalEnv *again = fill(suite->arena, graph);
  failed += program_run(suite->program, g, THREADS, again) != 0;
  failed += check_same(suite, got, again, false, "when run again");
  failed += program_repeat(suite->program, g, 2, fill(suite->arena, graph));
  for (int i = 0; i < want->n; i++) {
    const EvalTensor *g_i = eval_env_get(got, want->name[i]);
    CHECK(g_i, "the program has no %s", want->name[i]);
    failed +=
        compare(suite, want->name[i], g_i, &want->tensor[i], eval_env_get(terms, want->name[i]));
  }
  return failed;
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "usage: cpu RESOURCE_FOLDER WORK_FOLDER");
  Suite suite[N_DTYPES];
  int failed = 0, n = 0;
  for (int d = 0; d < N_DTYPES; d++)
    suite[d] = build(dtypes[d], argv[1], argv[2]);
  for (int d = 0; d < N_DTYPES; d++) {
    program_finish(suite[d].program);
    for (int g = 0; g < N_GRAPHS; g++)
      failed += check_graph(&suite[d], g);
    for (int i = 0; i < n_ops_cases; i++)
      n += is_in(&suite[d], &ops_case[i]);
    arena_free(suite[d].arena);
  }
  printf("%d rows and dtypes, %d failures\n", n, failed);
  return failed != 0;
}
