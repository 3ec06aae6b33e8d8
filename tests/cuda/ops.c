/* CUDA kernels on the host: every row of cases.def that needs no library, at one dtype, launched
 * through the shim, against the evaluator; in two orders of threads and blocks, with equal bits.
 */
#include "launches.h"
#include "tests/ops/rows.h"

#include <string.h>

enum { N_SEEDS = 2 };

static bool needs_no_library(const Case *row) {
  GenClass gen = op_info[row->op].gen;
  return gen != GEN_CONV && gen != GEN_MATMUL && !strstr(row->text, "conv2d") &&
         !strstr(row->text, "matmul");
}

static int check_graph(RowSet *set, Launches *launches, int g) {
  EvalEnv *first = rows_fill(set, set->arena, g);
  int failed = launches_run(launches, g, 0, first);
  failed += rows_compare(set, first, g);
  for (int seed = 1; seed < N_SEEDS; seed++) {
    EvalEnv *again = rows_fill(set, set->arena, g);
    failed += launches_run(launches, g, (uint64_t)seed, again);
    failed += rows_same(set, first, again, NULL, "in another order");
  }
  return failed;
}

/* Prints what failed and the sums; returns the failures. */
static int check_dtype(DType dtype, const char *folder) {
  RowSet set = rows_plan(dtype, &target_launches, needs_no_library);
  const char *name = arena_printf(set.arena, "ops_%s", dtype_info[dtype].name);
  Launches *launches = launches_begin(set.arena, set.planned, folder, name, true);
  CHECK(launches_finish(launches), "the kernels of %s do not compile", dtype_info[dtype].name);
  int failed = 0;
  for (int g = 0; g < ROW_GRAPHS; g++)
    failed += check_graph(&set, launches, g);
  printf("%s: %d rows, %d launches, %d failures\n", dtype_info[dtype].name, rows_count(&set),
         launches_count(launches), failed);
  launches_free(launches);
  arena_free(set.arena);
  return failed;
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "usage: ops f32|f16|bf16 WORK_FOLDER");
  int failed = 0, n = 0;
  for (int d = 0; d < DT_COUNT; d++)
    if (strcmp(dtype_info[d].name, argv[1]) == 0 && ++n)
      failed += check_dtype((DType)d, argv[2]);
  CHECK(n, "no dtype `%s`", argv[1]);
  return failed != 0;
}
