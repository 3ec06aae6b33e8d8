/* --baseline: this batch against the report of an earlier one. */
#include "frontend/batch/batch.h"
#include "ir/base/text.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool baseline_tolerance(Batch *batch) {
  return option_number(&option_table, OPT_tolerance, batch->options->text[OPT_tolerance], 0,
                       DBL_MAX, &batch->tolerance);
}

bool baseline_read(Batch *batch) {
  const char *path = batch->options->text[OPT_baseline];
  if (!path)
    return true;
  json_error_t error;
  batch->baseline = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  const char *why = NULL;
  if (!batch->baseline)
    why = arena_printf(batch->arena, "line %d: %s", error.line, error.text);
  else if (!json_is_array(json_object_get(batch->baseline, "programs")))
    why = "this is no report that --report=NAME.json has written";
  if (why)
    text_say("ampcc: --baseline: %s: %s\n", path, why);
  return !why;
}

static const json_t *find_program(const json_t *report, const char *name) {
  const json_t *programs = json_object_get(report, "programs");
  for (size_t i = 0; i < json_array_size(programs); i++) {
    const json_t *program = json_array_get(programs, i);
    const char *text = json_string_value(json_object_get(program, "name"));
    if (text && !strcmp(text, name))
      return program;
  }
  return NULL;
}

static void add_regression(Batch *batch, BatchProgram *program, const char *what) {
  arena_push(batch->arena, program->regression, program->n_regressions, program->cap_regressions,
             what);
}

/* `of` names the target with " of" in front, or is empty. */
static void compare(Batch *batch, BatchProgram *program, const char *name, const char *of,
                    int64_t before, int64_t now) {
  if ((double)now <= (double)before * (1 + batch->tolerance / 100))
    return;
  const char *percent =
      before ? arena_printf(batch->arena, " (+%.2f %%)", 100 * ((double)now / (double)before - 1))
             : "";
  add_regression(batch, program,
                 arena_printf(batch->arena, "%s%s grew from %" PRId64 " to %" PRId64 "%s", name, of,
                              before, now, percent));
}

static const PartFigure *find_part(const Figures *figures, const char *target) {
  for (int i = 0; i < figures->n; i++)
    if (!strcmp(figures->part[i].target, target))
      return &figures->part[i];
  return NULL;
}

static void compare_program(Batch *batch, BatchProgram *program, const json_t *earlier) {
  Figures before;
  if (!figures_read(batch->arena, earlier, &before))
    return; /* it had failed */
  compare(batch, program, "program_bytes", "",
          json_integer_value(json_object_get(earlier, "program_bytes")), program->bytes);
  for (int i = 0; i < before.n; i++) {
    const char *target = before.part[i].target;
    const PartFigure *now = find_part(&program->figures, target);
    if (!now)
      add_regression(batch, program, arena_printf(batch->arena, "the part for %s is gone", target));
    for (int f = 0; now && f < FIGURE_COUNT; f++)
      compare(batch, program, figure_name[f], arena_printf(batch->arena, " of %s", target),
              before.part[i].value[f], now->value[f]);
  }
}

void baseline_compare(Batch *batch) {
  for (int i = 0; i < batch->n && batch->baseline; i++) {
    BatchProgram *program = &batch->program[i];
    const json_t *earlier = find_program(batch->baseline, program->name);
    if (earlier && program->result != BATCH_FAILED)
      compare_program(batch, program, earlier);
    batch->n_compared += earlier != NULL;
  }
}
