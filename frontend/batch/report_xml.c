/* Reports as JUnit XML, which CI servers read, and as a page of HTML. A program is a test case: a
 * model that is wrong and a regression are failures, all else that went wrong are errors. */
#include "frontend/batch/report.h"
#include "ir/base/exit.h"
#include "ir/base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OF_LOG = 1 << 16 };

/* Is this UTF-8 character one that XML may hold, and a reader can see? */
static bool is_allowed(const unsigned char *at, int length) {
  if (length == 1)
    return (*at >= 0x20 && *at < 0x7f) || *at == '\n' || *at == '\t';
  bool c1 = *at == 0xc2 && at[1] < 0xa0;                              /* control characters */
  bool none = *at == 0xef && at[1] == 0xbf && (at[2] & 0xfe) == 0xbe; /* U+FFFE, U+FFFF */
  return length > 0 && !c1 && !none;
}

/* Text between tags or in an attribute. Bytes that XML does not allow become \xHH. */
static void xml_text(const char *text, FILE *out) {
  size_t left = strlen(text);
  while (left) {
    const unsigned char *at = (const unsigned char *)text;
    int length = utf8_length(text, left);
    const char *entity = *text == '<'   ? "&lt;"
                         : *text == '>' ? "&gt;"
                         : *text == '&' ? "&amp;"
                         : *text == '"' ? "&quot;"
                                        : NULL;
    if (entity)
      fputs(entity, out);
    else if (is_allowed(at, length))
      fwrite(text, 1, (size_t)length, out);
    else
      fprintf(out, "\\x%02x", *at);
    int step = is_allowed(at, length) ? length : 1;
    text += step;
    left -= (size_t)step;
  }
}

static void xml_attribute(const char *name, const char *text, FILE *out) {
  fprintf(out, " %s=\"", name);
  xml_text(text, out);
  fputc('"', out);
}

static void xml_log(const Batch *batch, const BatchProgram *program, FILE *out) {
  FILE *log = fopen(batch_file(batch, program, "log"), "r");
  char *text = calloc(1, MOST_OF_LOG + 1);
  if (log && text && fread(text, 1, MOST_OF_LOG, log) > 0)
    xml_text(text, out);
  free(text);
  if (log)
    fclose(log);
}

/* ---- JUnit ---- */

static bool is_input(const BatchProgram *program) {
  return program->status == EXIT_INPUT || program->status == EXIT_USAGE;
}

/* "E201" of a message that has error[E201] in it, else what kind of status it is. */
static const char *kind_of(const Batch *batch, const BatchProgram *program) {
  const char *code = program->message ? strstr(program->message, "error[") : NULL;
  if (code)
    return arena_strdup(batch->arena, code + 6, strcspn(code + 6, "]"));
  return program->status == EXIT_USAGE         ? "usage"
         : program->status == EXIT_INPUT       ? "input"
         : program->status == EXIT_ENVIRONMENT ? "environment"
         : program->status == EXIT_BUG         ? "bug"
                                               : "signal";
}

static void junit_case(const Batch *batch, const BatchProgram *program, FILE *out) {
  fputs("  <testcase", out);
  xml_attribute("name", program->name, out);
  xml_attribute("classname", "ampcc", out);
  fprintf(out, " time=\"%.3f\">\n", program->seconds);
  if (program->result == BATCH_FAILED) {
    const char *tag = is_input(program) ? "failure" : "error";
    fprintf(out, "   <%s", tag);
    xml_attribute("type", kind_of(batch, program), out);
    xml_attribute("message", program->message, out);
    fputc('>', out);
    xml_log(batch, program, out);
    fprintf(out, "</%s>\n", tag);
  }
  for (int i = 0; i < program->n_regressions; i++) {
    fputs("   <failure type=\"regression\"", out);
    xml_attribute("message", program->regression[i], out);
    fputs("/>\n", out);
  }
  if (program->result != BATCH_FAILED) {
    fprintf(out, "   <system-out>program_bytes %" PRId64 "\n", program->bytes);
    for (int i = 0; i < program->figures.n; i++)
      for (int f = 0; f < FIGURE_COUNT; f++)
        fprintf(out, "%s %s %" PRId64 "\n", program->figures.part[i].target, figure_name[f],
                program->figures.part[i].value[f]);
    fputs("</system-out>\n", out);
  }
  fputs("  </testcase>\n", out);
}

void report_junit(const Batch *batch, FILE *out) {
  BatchCount count = batch_count(batch);
  int failures = count.regressed, errors = 0;
  for (int i = 0; i < batch->n; i++)
    if (batch->program[i].result == BATCH_FAILED)
      *(is_input(&batch->program[i]) ? &failures : &errors) += 1;
  const char *numbers =
      arena_printf(batch->arena, "tests=\"%d\" failures=\"%d\" errors=\"%d\" time=\"%.3f\"",
                   batch->n, failures, errors, batch->seconds);
  fprintf(out,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<testsuites name=\"ampcc --batch\" %s>\n <testsuite name=\"ampcc\" skipped=\"0\" %s>\n"
          "  <properties><property name=\"version\" value=\"%s\"/></properties>\n",
          numbers, numbers, AMPCC_VERSION);
  for (int i = 0; i < batch->n; i++)
    junit_case(batch, &batch->program[i], out);
  fputs(" </testsuite>\n</testsuites>\n", out);
}

/* ---- HTML ---- */

static const char style[] =
    "body{font:15px sans-serif;margin:2em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:right;vertical-align:top}"
    "td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}"
    ".failed{background:#fdd}.regressed{background:#fec}";

/* One row for each part, with what belongs to the program in the first. */
static void html_program(const BatchProgram *program, FILE *out) {
  bool failed = program->result == BATCH_FAILED;
  int rows = failed ? 1 : program->figures.n;
  for (int i = 0; i < rows; i++) {
    fprintf(out, "<tr%s><td>",
            failed                   ? " class=\"failed\""
            : program->n_regressions ? " class=\"regressed\""
                                     : "");
    if (i == 0) {
      xml_text(program->name, out);
      fprintf(out, "</td><td>%.2f</td><td>%" PRId64, program->seconds, program->bytes);
    } else {
      fputs("</td><td></td><td>", out);
    }
    fputs("</td><td>", out);
    if (!failed)
      xml_text(program->figures.part[i].target, out);
    fputs("</td>", out);
    for (int f = 0; f < FIGURE_COUNT; f++)
      if (failed)
        fputs("<td></td>", out);
      else
        fprintf(out, "<td>%" PRId64 "</td>", program->figures.part[i].value[f]);
    fprintf(out, "<td>%s", i == 0 ? batch_result_name[program->result] : "");
    if (i == 0 && program->message) {
      fputs(": ", out);
      xml_text(program->message, out);
    }
    for (int k = 0; i == 0 && k < program->n_regressions; k++) {
      fputs("<br>", out);
      xml_text(program->regression[k], out);
    }
    fputs("</td></tr>\n", out);
  }
}

void report_html(const Batch *batch, FILE *out) {
  BatchCount count = batch_count(batch);
  fprintf(out,
          "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<title>ampcc --batch</title><style>%s</style></head><body>\n"
          "<h1>ampcc %s --batch</h1>\n<p>%d made, %d unchanged, %d failed, %d regressed in %.1f "
          "s</p>\n<table>\n<tr><th>program</th><th>seconds</th><th>program_bytes</th>"
          "<th>target</th>",
          style, AMPCC_VERSION, count.result[BATCH_MADE], count.result[BATCH_UNCHANGED],
          count.result[BATCH_FAILED], count.regressed, batch->seconds);
  for (int f = 0; f < FIGURE_COUNT; f++)
    fprintf(out, "<th>%s</th>", figure_name[f]);
  fputs("<th>result</th></tr>\n", out);
  for (int i = 0; i < batch->n; i++)
    html_program(&batch->program[i], out);
  fputs("</table>\n</body></html>\n", out);
}
