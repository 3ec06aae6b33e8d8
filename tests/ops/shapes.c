/* Every op of ops.def has rows in cases.def and, but for optimizers, which optimizers.c asks all
 * alike, a file tests/ops/OP.amp; every row is legal IR at every dtype, with the results that it
 * names. */
#include "ir/opt.h"
#include "tests/ops/cases.h"

#include <unistd.h>

static const DType dtypes[] = {DT_F32, DT_F16, DT_BF16};

static bool parses(const Case *row, DType dtype) {
  Arena *arena = arena_new();
  bool ok = case_module(arena, (CaseAt){row, dtype, "c."}, false) != NULL;
  arena_free(arena);
  return ok;
}

int main(int argc, char **argv) {
  CHECK(argc == 2, "usage: shapes FOLDER");
  bool seen[OP_COUNT] = {false};
  int failed = 0;
  for (int i = 0; i < n_ops_cases; i++) {
    seen[ops_case[i].op] = true;
    for (size_t d = 0; d < (case_has_dtypes(&ops_case[i]) ? sizeof dtypes / sizeof *dtypes : 1);
         d++)
      failed += !parses(&ops_case[i], dtypes[d]);
  }
  for (int op = 0; op < OP_COUNT; op++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.amp", argv[1], op_info[op].name);
    if (!seen[op])
      printf("FAIL `%s` has no row in cases.def\n", op_info[op].name);
    bool lacks_file = !opt_op((OpKind)op) && access(path, R_OK) != 0;
    if (lacks_file)
      printf("FAIL `%s` has no file %s\n", op_info[op].name, path);
    failed += !seen[op] + lacks_file;
  }
  printf("%d rows, %d failures\n", n_ops_cases, failed);
  return failed != 0;
}
