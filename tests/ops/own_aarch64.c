/* The CPU's own kernels, cross-compiled for AArch64 and run by an emulator: rows of cases.def with
 * a convolution or a matrix product against the evaluator, with Winograd's method and without.
 * NEON runs all of these rows in f32, and every fourth one in f16 and in bf16. SVE with vectors of
 * 256 bits runs every eighth in f32, because its emulation is ten times as slow. Both instruction
 * sets round a product and its sum once, so they must give the bits of AVX2. Skipped (77) without
 * gcc-aarch64-linux-gnu or qemu-user. */
#include "tests/ops/program.h"
#include "tests/ops/rows.h"

#include <stdlib.h>

#define NEON                                                                                       \
  { "aarch64-linux-gnu-gcc", "armv8-a", "qemu-aarch64" }
#define SVE                                                                                        \
  {                                                                                                \
    "aarch64-linux-gnu-gcc", "armv8-a+sve -msve-vector-bits=256",                                  \
        "qemu-aarch64 -cpu max,sve256=on,sve-default-vector-length=32"                             \
  }

static bool takes_f16(const Case *row) {
  return row_multiplies_one_in(row, 4, 0);
}
static bool takes_bf16(const Case *row) {
  return row_multiplies_one_in(row, 4, 2);
}
static bool takes_eighth(const Case *row) {
  return row_multiplies_one_in(row, 8, 0);
}

static const struct {
  DType dtype;
  Winograd winograd;
  const char *name;
  Machine machine;
  bool (*takes)(const Case *row);
} form[] = {
    {DT_F32, WINOGRAD_OFF, "f32_neon", NEON, row_multiplies},
    {DT_F32, WINOGRAD_ALWAYS, "f32_winograd_neon", NEON, row_multiplies},
    {DT_F32, WINOGRAD_BY_CHANNELS, "f32_winograd_sve", SVE, takes_eighth},
    {DT_F16, WINOGRAD_OFF, "f16_neon", NEON, takes_f16},
    {DT_BF16, WINOGRAD_ALWAYS, "bf16_neon", NEON, takes_bf16},
};
enum { N_FORMS = sizeof form / sizeof *form, THREADS = 3 };

int main(int argc, char **argv) {
  CHECK(argc == 4, "usage: own_aarch64 RESOURCE_FOLDER WORK_FOLDER SOURCE_FOLDER");
  if (system("command -v aarch64-linux-gnu-gcc qemu-aarch64 >/dev/null")) {
    puts("skipped: needs Debian's gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user");
    return 77;
  }
  RowSet rows[N_FORMS];
  Program *program[N_FORMS];
  int failed = 0, n = 0;
  for (int f = 0; f < N_FORMS; f++) {
    rows[f] = rows_plan(form[f].dtype, &target_cpu_own[form[f].winograd], form[f].takes);
    CodegenOptions options = {.compile = &rows[f].options, .resource = argv[1]};
    program_spread(rows[f].planned);
    program[f] = program_begin_with(rows[f].arena, rows[f].planned, &options, argv[2],
                                    arena_printf(rows[f].arena, "aarch64_%s", form[f].name), "own",
                                    form[f].winograd, "x86-64-v3");
    program_emulate(program[f], &form[f].machine, argv[3]);
  }
  for (int f = 0; f < N_FORMS; f++) {
    program_finish(program[f]);
    if (f)
      rows_expect(&rows[f], &rows[f - 1]);
    for (int g = 0; g < ROW_GRAPHS; g++) {
      EvalEnv *here = rows_fill(&rows[f], rows[f].arena, g);
      EvalEnv *there = rows_fill(&rows[f], rows[f].arena, g);
      failed += program_run(program[f], g, THREADS, here) != 0;
      failed += program_run_emulated(program[f], g, THREADS, there) != 0;
      failed += rows_compare(&rows[f], there, g);
      failed += rows_same(&rows[f], here, there, NULL,
                          arena_printf(rows[f].arena, "for %s", form[f].machine.march));
    }
    n += rows_count(&rows[f]);
  }
  for (int f = 0; f < N_FORMS; f++)
    arena_free(rows[f].arena);
  printf("%d rows, dtypes and instruction sets, %d failures\n", n, failed);
  return failed != 0;
}
