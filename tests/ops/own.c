/* The CPU's own kernels (--cpu-library=own): every row of cases.def with a convolution or a matrix
 * product, at every dtype, against the evaluator; in f32 for every instruction set that this CPU
 * has, in bf16 for those that multiply it and that do not; in f32 directly, and by Winograd's
 * method wherever that can be, in both of its orders. All numbers of threads and both widths of
 * vectors must give the same bits. */
#include "tests/ops/program.h"
#include "tests/ops/rows.h"

#include <string.h>

#ifdef __SANITIZE_ADDRESS__ /* slow */
static const bool is_sanitized = true;
enum { SHARE = 2 };
static const int threads[] = {3};
/* Kernels compiled without AMPCC_PAIRS_PAY have all tiles for f32 as well, and sanitized ones have
 * AMX in C (program.c). So the object of BF16 is also that of AMX, and f16 runs on it in the place
 * of V4 (widest_level). */
#define PAIRS ""
#else
static const bool is_sanitized = false;
enum { SHARE = 1 };
static const int threads[] = {1, 2, 3, 5};
#define PAIRS "-DAMPCC_PAIRS_PAY"
#endif
/* Of 16-bit floats, f16 runs the first of each SHARE rows and bf16 the last. */
static bool takes_f16(const Case *row) {
  return row_multiplies_one_in(row, SHARE, 0);
}
static bool takes_bf16(const Case *row) {
  return row_multiplies_one_in(row, SHARE, SHARE - 1);
}
static const struct {
  DType dtype;
  Winograd winograd;
  bool (*takes)(const Case *row);
} form[] = {
    {DT_F32, WINOGRAD_OFF, row_multiplies},         {DT_F32, WINOGRAD_ALWAYS, row_multiplies},
    {DT_F32, WINOGRAD_BY_CHANNELS, row_multiplies}, {DT_F16, WINOGRAD_BY_CHANNELS, takes_f16},
    {DT_BF16, WINOGRAD_ALWAYS, takes_bf16},         {DT_BF16, WINOGRAD_OFF, takes_bf16}};
enum { V3, V4, V1, BF16, AMX };
/* V1 has neither vectors of eight floats nor a product and sum in one rounding. AMX runs its
 * instructions in C, on any CPU that multiplies bf16. */
static const struct {
  const char *name, *march;
  bool same; /* has it the bits of the first one */
} level[] = {[V3] = {"v3", "x86-64-v3", true},
             [V4] = {"v4", "x86-64-v4", true},
             [V1] = {"v1", "x86-64", false},
             [BF16] = {"bf16", "x86-64-v4 -mavx512bf16 " PAIRS, false},
             [AMX] = {"amx", "x86-64-v4 -mavx512bf16 -DAMP_AMX_IN_C " PAIRS, false}};
enum {
  N_FORMS = sizeof form / sizeof *form,
  N_THREADS = sizeof threads / sizeof *threads,
  N_LEVELS = sizeof level / sizeof *level
};

static bool level_is_here(int l) {
  __builtin_cpu_init();
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
              __builtin_cpu_supports("avx512cd");
  if (l == BF16 || l == AMX)
    return wide && __builtin_cpu_supports("avx512bf16");
  return l != V4 || wide;
}

/* The level at which f16 runs, and f32 in a short run with sanitizers. */
static int widest_level(void) {
  if (is_sanitized && level_is_here(BF16))
    return BF16;
  return level_is_here(V4) ? V4 : V3;
}

/* Only f32 runs at every level, as 16-bit floats are converted before and after the sums: f16 runs
 * at the widest level, bf16 at the first and where it is multiplied as such. AMX takes the place of
 * Winograd's method, and so do pairs of bf16 where that is off. */
static bool is_wanted(int l, int f) {
  const bool is_widest = l == widest_level();
  if (!level_is_here(l))
    return false;
  if (form[f].dtype == DT_F16)
    return is_widest;
  if (form[f].dtype == DT_BF16)
    return l == BF16 || (form[f].winograd != WINOGRAD_OFF && (l == V3 || l == AMX));
  if (form[f].winograd == WINOGRAD_BY_CHANNELS)
    return is_widest || l == V3 || l == V4;
  return is_widest || (l != BF16 && l != AMX);
}

/* A short run takes every level and every form, but not every level with every form. With
 * sanitizers f32 runs at the widest level only: they find the same errors at the others, and the
 * kernels of each level take long to compile. They see Winograd's method by channels in f16 alone,
 * where its kernels compute in f32 as well. */
static bool is_in_short(int l, int f) {
  if (form[f].dtype == DT_F32 && is_sanitized)
    return l == widest_level() && form[f].winograd != WINOGRAD_BY_CHANNELS;
  if (form[f].dtype == DT_F32)
    return (form[f].winograd == WINOGRAD_OFF) == (l != V3);
  return form[f].dtype != DT_BF16 || l != V3 || !level_is_here(BF16);
}

/* What all levels of a form have of one graph: what runs begin with, memory for two of them, and
 * what the first level gave, or NULL. */
typedef struct Runs {
  Blocks start, end, other;
  EvalEnv *first;
} Runs;

/* One graph of one program. What has the same bits as the first level's is not compared with the
 * evaluator again. The first level runs with each number of threads. Other levels run with every
 * second one, because the code that shares work out to the threads is the same at all levels. */
static int check_graph(RowSet *rows, Program *program, int l, int g, Runs *runs) {
  const char *march = level[l].march;
  const int step = runs->first ? 2 : 1;
  Arena *scratch = arena_new();
  int failed = 0;
  if (!runs->start.arena)
    runs->start = program_start(program, g, rows_fill(rows, scratch, g));
  EvalEnv *one = rows_fill(rows, runs->first ? scratch : rows->arena, g);
  program_run_on(program, g, threads[0], &runs->start, &runs->end);
  program_results(program, g, &runs->end, one);
  for (int t = step; t < N_THREADS; t += step) {
    program_run_on(program, g, threads[t], &runs->start, &runs->other);
    if (!program_same(program, g, &runs->end, &runs->other)) { /* but perhaps only another NaN */
      EvalEnv *got = rows_fill(rows, scratch, g);
      program_results(program, g, &runs->other, got);
      failed += rows_same(rows, one, got, NULL,
                          arena_printf(rows->arena, "for %s with %d threads", march, threads[t]));
    }
    failed += program_strays(program, g, &runs->other);
  }
  failed += program_strays(program, g, &runs->end);
  if (runs->first && level[l].same)
    failed += rows_same(rows, runs->first, one, NULL, arena_printf(rows->arena, "for %s", march));
  else
    failed += rows_compare(rows, one, g);
  if (!runs->first)
    runs->first = one;
  arena_free(scratch);
  return failed;
}

int main(int argc, char **argv) {
  bool is_short = argc == 4 && strcmp(argv[3], "short") == 0;
  CHECK(argc == 3 || is_short, "usage: own RESOURCE_FOLDER WORK_FOLDER [short]");
  RowSet rows[N_FORMS];
  Program *program[N_FORMS][N_LEVELS] = {0};
  int failed = 0, n = 0;
  for (int f = 0; f < N_FORMS; f++) {
    rows[f] = rows_plan(form[f].dtype, &target_cpu_own[form[f].winograd], form[f].takes);
    CodegenOptions options = {.compile = &rows[f].options, .resource = argv[1]};
    program_spread(rows[f].planned);
    for (int l = 0; l < N_LEVELS; l++)
      if (is_wanted(l, f) && (!is_short || is_in_short(l, f)))
        program[f][l] = program_begin_with(rows[f].arena, rows[f].planned, &options, argv[2],
                                           arena_printf(rows[f].arena, "own_%s_%d_%s",
                                                        dtype_info[form[f].dtype].name,
                                                        form[f].winograd, level[l].name),
                                           "own", form[f].winograd, level[l].march);
  }
  for (int f = 0; f < N_FORMS; f++) {
    Runs runs[ROW_GRAPHS] = {{.first = NULL}};
    if (f)
      rows_expect(&rows[f], &rows[f - 1]);
    for (int l = 0; l < N_LEVELS; l++)
      if (program[f][l]) {
        program_finish(program[f][l]);
        for (int g = 0; g < ROW_GRAPHS; g++)
          failed += check_graph(&rows[f], program[f][l], l, g, &runs[g]);
        n += rows_count(&rows[f]);
      }
    for (int g = 0; g < ROW_GRAPHS; g++) {
      blocks_free(&runs[g].start);
      blocks_free(&runs[g].end);
      blocks_free(&runs[g].other);
    }
  }
  for (int f = 0; f < N_FORMS; f++)
    arena_free(rows[f].arena);
  for (int l = 0; l < N_LEVELS; l++)
    if (!level_is_here(l))
      printf("this CPU lacks %s\n", level[l].march);
  printf("%d rows, forms and instruction sets, %d failures\n", n, failed);
  return failed != 0;
}
