/* As JSON, which --baseline reads again:
 *
 *   {"ampcc": "0.1.0", "seconds": 2.41, "made": 6, "unchanged": 0, "failed": 1, "regressed": 0,
 *    "programs": [{"name": "mlp-bf16", "file": "mlp.pb", "options": ["--dtype=bf16"],
 *                  "result": "made", "status": 0, "seconds": 0.63, "regressions": [],
 *                  "program_bytes": 735192, "program_sha256": "...", and those of figures.h}]}
 *
 * A program that failed has "message" in place of what follows "regressions". */
#include "frontend/batch/report.h"

#include "codegen/program/json_text.h"
#include "ir/base/output.h"
#include "ir/base/text.h"

#include <string.h>

static const struct {
  const char *ending;
  void (*write)(const Batch *batch, FILE *out);
} form[] = {{".json", report_json}, {".xml", report_junit}, {".html", report_html}};
enum { N_FORMS = sizeof form / sizeof *form };

static int form_of(const char *path) {
  for (int i = 0; i < N_FORMS; i++)
    if (text_ends_in(path, form[i].ending))
      return i;
  return -1;
}

bool report_check(const Options *options) {
  const char *path = options->text[OPT_report];
  if (!path || form_of(path) >= 0)
    return true;
  text_say("ampcc: --report=%s: its name must end in .json, .xml (JUnit) or .html\n", path);
  return false;
}

bool report_write(const Batch *batch) {
  const char *path = batch->options->text[OPT_report];
  Output out;
  if (!path)
    return true;
  if (!output_open(batch->arena, path, &out))
    return false;
  form[form_of(path)].write(batch, out.file);
  return output_close(&out);
}

static json_t *program_json(const Batch *batch, const BatchProgram *program) {
  json_t *json = json_object(), *words = json_array(), *regressions = json_array();
  for (int i = 0; i < program->n_words; i++)
    json_array_append_new(words, json_text(batch->arena, program->word[i].text));
  for (int i = 0; i < program->n_regressions; i++)
    json_array_append_new(regressions, json_text(batch->arena, program->regression[i]));
  json_object_set_new(json, "name", json_text(batch->arena, program->name));
  json_object_set_new(json, "file", json_text(batch->arena, program->model));
  json_object_set_new(json, "options", words);
  json_object_set_new(json, "result", json_string(batch_result_name[program->result]));
  json_object_set_new(json, "status", json_integer(program->status));
  json_object_set_new(json, "seconds", json_real(program->seconds));
  json_object_set_new(json, "regressions", regressions);
  if (program->result == BATCH_FAILED) {
    json_object_set_new(json, "message", json_text(batch->arena, program->message));
    return json;
  }
  json_object_set_new(json, "program_bytes", json_integer(program->bytes));
  json_object_set_new(json, "program_sha256", json_string(program->sha256));
  figures_add(batch->arena, &program->figures, json);
  return json;
}

void report_json(const Batch *batch, FILE *out) {
  BatchCount count = batch_count(batch);
  json_t *json = json_object(), *programs = json_array();
  for (int i = 0; i < batch->n; i++)
    json_array_append_new(programs, program_json(batch, &batch->program[i]));
  json_object_set_new(json, "ampcc", json_string(AMPCC_VERSION));
  json_object_set_new(json, "seconds", json_real(batch->seconds));
  json_object_set_new(json, "made", json_integer(count.result[BATCH_MADE]));
  json_object_set_new(json, "unchanged", json_integer(count.result[BATCH_UNCHANGED]));
  json_object_set_new(json, "failed", json_integer(count.result[BATCH_FAILED]));
  json_object_set_new(json, "regressed", json_integer(count.regressed));
  json_object_set_new(json, "programs", programs);
  json_dumpf(json, out, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
  json_decref(json);
  fputc('\n', out);
}
