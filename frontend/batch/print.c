#include "frontend/batch/batch.h"
#include "ir/base/clock.h"
#include "ir/base/text.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

const char *const batch_result_name[BATCH_RESULT_COUNT] = {
    [BATCH_WAITING] = "not made",    [BATCH_RUNNING] = "running", [BATCH_MADE] = "made",
    [BATCH_UNCHANGED] = "unchanged", [BATCH_FAILED] = "failed",
};

enum { BAR = 30, NARROWEST = 10 };

/* ---- rows ---- */

static int name_columns(const Batch *batch) {
  int most = NARROWEST;
  for (int i = 0; i < batch->n; i++) {
    int n = (int)strlen(batch->program[i].name);
    most = n > most ? n : most;
  }
  return most;
}

static void print_name(const Batch *batch, const char *name) {
  int n = text_print(name, SIZE_MAX, stdout), most = name_columns(batch);
  printf("%*s", n < most ? most - n : 0, "");
}

void batch_print_head(const Batch *batch) {
  print_name(batch, "program");
  puts("  seconds  program MB    arena MB    state MB  casts  result");
}

static void print_figures(double seconds, int64_t bytes, int64_t arena, int64_t state,
                          int64_t casts) {
  printf(" %8.2f %11.3f %11.3f %11.3f %6" PRId64 "  ", seconds, (double)bytes / 1e6,
         (double)arena / 1e6, (double)state / 1e6, casts);
}

/* Of a program with several parts the most that any of them takes. */
static void print_row(const Batch *batch, const BatchProgram *program) {
  const Figures *figures = &program->figures;
  print_name(batch, program->name);
  if (program->result == BATCH_MADE || program->result == BATCH_UNCHANGED)
    print_figures(program->seconds, program->bytes, figures_most(figures, FIGURE_arena),
                  figures_most(figures, FIGURE_state), figures_most(figures, FIGURE_casts));
  else
    printf(" %8.2f %11s %11s %11s %6s  ", program->seconds, "-", "-", "-", "-");
  fputs(batch_result_name[program->result], stdout);
  if (program->message) {
    fputs(": ", stdout);
    text_print(program->message, SIZE_MAX, stdout);
  }
  putchar('\n');
}

void batch_print_done(const Batch *batch, const BatchProgram *program) {
  batch_print_clear(batch);
  if (batch->options->text[OPT_quiet])
    return;
  print_row(batch, program);
  fflush(stdout);
}

BatchCount batch_count(const Batch *batch) {
  BatchCount count = {0};
  for (int i = 0; i < batch->n; i++) {
    count.result[batch->program[i].result]++;
    count.regressed += batch->program[i].n_regressions > 0;
  }
  return count;
}

static void print_regressions(const Batch *batch) {
  if (batch->baseline && !batch->options->text[OPT_quiet])
    printf("%d of %d programs compared with %s at a tolerance of %g %%: %d regressed\n",
           batch->n_compared, batch->n, batch->options->text[OPT_baseline], batch->tolerance,
           batch_count(batch).regressed);
  fflush(stdout);
  for (int i = 0; i < batch->n; i++)
    for (int k = 0; k < batch->program[i].n_regressions; k++)
      text_say("ampcc: %s: %s\n", batch->program[i].name, batch->program[i].regression[k]);
}

void batch_print_table(const Batch *batch) {
  BatchCount count = batch_count(batch);
  int64_t bytes = 0, arena = 0, state = 0, casts = 0;
  if (!batch->options->text[OPT_quiet]) {
    putchar('\n');
    batch_print_head(batch);
  }
  for (int i = 0; i < batch->n; i++) {
    const BatchProgram *program = &batch->program[i];
    if (!batch->options->text[OPT_quiet])
      print_row(batch, program);
    bytes += program->bytes;
    arena += figures_most(&program->figures, FIGURE_arena);
    state += figures_most(&program->figures, FIGURE_state);
    casts += figures_most(&program->figures, FIGURE_casts);
  }
  if (!batch->options->text[OPT_quiet]) {
    print_name(batch, "total");
    print_figures(batch->seconds, bytes, arena, state, casts);
    printf("%d made, %d unchanged, %d failed\n", count.result[BATCH_MADE],
           count.result[BATCH_UNCHANGED], count.result[BATCH_FAILED]);
  }
  print_regressions(batch);
  for (int i = 0; i < batch->n; i++)
    if (batch->program[i].result == BATCH_FAILED)
      text_say("ampcc: %s: %s; all that it said is in %s\n", batch->program[i].name,
               batch->program[i].message, batch_file(batch, &batch->program[i], "log"));
}

/* ---- progress ---- */

void batch_print_clear(const Batch *batch) {
  if (!batch->options->text[OPT_quiet] && isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
}

/* Seconds that the rest will take if its programs take as long as those that were made. */
static double seconds_left(const Batch *batch) {
  double made = clock_seconds() - batch->start;
  return batch->n_made ? made / batch->n_made * (batch->n - batch->n_done) : 0;
}

void batch_print_progress(const Batch *batch) {
  if (batch->options->text[OPT_quiet] || !isatty(STDERR_FILENO))
    return;
  int filled = BAR * batch->n_done / batch->n, left = (int)seconds_left(batch);
  fprintf(stderr, "\r[%.*s%*s] %d of %d", filled, "##############################", BAR - filled,
          "", batch->n_done, batch->n);
  if (batch->n_made)
    fprintf(stderr, ", %d:%02d left", left / 60, left % 60);
  fputs("\033[K", stderr);
  fflush(stderr);
}
