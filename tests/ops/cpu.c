/* CPU code: every row of cases.def, at every dtype, through the end of the pipeline, emitted,
 * compiled and run, against the evaluator. One program per dtype. A short run does f16 and, but for
 * sanitizers, f32. */
#include "tests/ops/program.h"
#include "tests/ops/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const DType dtypes[] = {DT_F16, DT_F32, DT_BF16};
#ifdef __SANITIZE_ADDRESS__ /* slow */
enum { N_SHORT = 1 };
#else
enum { N_SHORT = 2 };
#endif
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, THREADS = 3 };

/* All rows at one dtype. */
typedef struct Suite {
  RowSet rows;
  Program *program;
} Suite;

static Suite build(DType dtype, const char *resource, const char *folder) {
  Suite suite = {.rows = rows_plan(dtype, &target_cpu_onednn, NULL)};
  CodegenOptions options = {.compile = &suite.rows.options, .resource = resource};
  program_spread(suite.rows.planned);
  suite.program =
      program_begin(suite.rows.arena, suite.rows.planned, &options, folder, dtype_info[dtype].name);
  return suite;
}

static bool same_bits(double a, double b) {
  return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

/* Two runs give the same bits. With another number of threads generated code gives the same bits
 * too, but the library may give others. */
static int check_same(const Suite *suite, EvalEnv *a, EvalEnv *b, bool spare_library,
                      const char *why) {
  int failed = 0;
  for (int i = 0; i < a->n; i++) {
    int operand;
    const char *name = a->name[i];
    const Case *row = row_of(name, &operand);
    GenClass gen = op_info[row->op].gen;
    const EvalTensor *x = &a->tensor[i], *y = eval_env_get(b, name);
    int64_t at = 0, n = type_count(x->type);
    while (at < n && same_bits(x->v[at], y->v[at]))
      at++;
    if (at == n || (spare_library && (gen == GEN_CONV || gen == GEN_MATMUL)))
      continue;
    printf("FAIL %s: %s[%lld] is %.9g, but %.9g %s\n", row_name(&suite->rows, name), name,
           (long long)at, x->v[at], y->v[at], why);
    failed++;
  }
  return failed;
}

static int check_graph(Suite *suite, int g) {
  static const struct {
    int threads;
    bool spare_library;
    const char *why;
  } run[] = {{THREADS}, {1, true, "on one thread"}, {THREADS, false, "when run again"}};
  enum { RUNS = sizeof run / sizeof *run };
  const Graph *graph = suite->rows.plain->graph[g];
  EvalEnv *got = rows_fill(suite->rows.arena, graph);
  int failed = program_repeat(suite->program, g, 2, got);
  Blocks start = program_start(suite->program, g, got), end[RUNS];
  for (int r = 0; r < RUNS; r++) {
    end[r] = program_run_on(suite->program, g, run[r].threads, &start);
    if (r == 0) {
      program_results(suite->program, g, &end[0], got);
    } else if (!program_same(suite->program, g, &end[0], &end[r])) {
      EvalEnv *other = rows_fill(suite->rows.arena, graph);
      program_results(suite->program, g, &end[r], other);
      failed += check_same(suite, got, other, run[r].spare_library, run[r].why);
    }
  }
  for (int r = 0; r < RUNS; r++)
    failed += program_end(suite->program, g, &end[r]);
  free(start.arena);
  free(start.state);
  return failed + rows_compare(&suite->rows, got, g);
}

int main(int argc, char **argv) {
  bool is_short = argc == 4 && strcmp(argv[3], "short") == 0;
  CHECK(argc == 3 || is_short, "usage: cpu RESOURCE_FOLDER WORK_FOLDER [short]");
  Suite suite[N_DTYPES];
  int failed = 0, n = 0, n_dtypes = is_short ? N_SHORT : N_DTYPES;
  for (int d = 0; d < n_dtypes; d++)
    suite[d] = build(dtypes[d], argv[1], argv[2]);
  for (int d = 0; d < n_dtypes; d++) {
    program_finish(suite[d].program);
    for (int g = 0; g < ROW_GRAPHS; g++)
      failed += check_graph(&suite[d], g);
    n += rows_count(&suite[d].rows);
    arena_free(suite[d].rows.arena);
  }
  printf("%d rows and dtypes, %d failures\n", n, failed);
  return failed != 0;
}
