/* CPU code: every row of cases.def, at every dtype, through the end of the pipeline, emitted,
 * compiled and run, against the evaluator. One program per dtype. A short run does f16 alone. */
#include "tests/ops/program.h"
#include "tests/ops/rows.h"

#include <string.h>

static const DType dtypes[] = {DT_F16, DT_F32, DT_BF16};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, N_SHORT = 1, THREADS = 3 };

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

/* Rows that oneDNN computes. With another number of threads it may give other bits, which generated
 * code must not. */
static bool is_of_library(const Case *row) {
  GenClass gen = op_info[row->op].gen;
  return gen == GEN_CONV || gen == GEN_MATMUL;
}

static int check_graph(Suite *suite, int g) {
  static const struct {
    int threads;
    bool (*spares)(const Case *row);
    const char *why;
  } again[] = {{1, is_of_library, "on one thread"}, {THREADS, NULL, "when run again"}};
  RowSet *rows = &suite->rows;
  Program *program = suite->program;
  EvalEnv *got = rows_fill(rows, rows->arena, g);
  int failed = program_repeat(program, g, 2, got);
  Blocks start = program_start(program, g, got), end = {0}, other = {0};
  program_run_on(program, g, THREADS, &start, &end);
  program_results(program, g, &end, got);
  for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
    program_run_on(program, g, again[i].threads, &start, &other);
    if (!program_same(program, g, &end, &other)) { /* but perhaps only another NaN */
      EvalEnv *results = rows_fill(rows, rows->arena, g);
      program_results(program, g, &other, results);
      failed += rows_same(rows, got, results, again[i].spares, again[i].why);
    }
    failed += program_strays(program, g, &other);
  }
  failed += program_strays(program, g, &end);
  blocks_free(&start);
  blocks_free(&end);
  blocks_free(&other);
  return failed + rows_compare(rows, got, g);
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
