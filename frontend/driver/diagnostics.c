#include "frontend/driver/diagnostics.h"

#include "frontend/explain/explain.h"
#include "ir/base/exit.h"
#include "ir/base/output.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

/* Does standard error show colours, and does the user want them? */
static bool terminal_has_colours(void) {
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  return (!no || !*no) && term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
}

bool diagnostics_read(const OptionTable *table, const char *const *text, int format, int file,
                      int color, DiagSettings *out) {
  enum { AUTO, ALWAYS, NEVER };
  const char *given = text[color];
  int form = FORM_TEXT, when = AUTO;
  if (!option_choice(table, format, text[format], &form) ||
      !option_choice(table, color, given && !*given ? "always" : given, &when))
    return false;
  out->form = (DiagForm)form;
  out->path = text[file];
  out->colour = when == ALWAYS || (when == AUTO && !out->path && terminal_has_colours());
  return true;
}

/* ---- a message as JSON ---- */

/* Bytes that are no UTF-8 become \xHH, as they do on terminals. */
static json_t *string(const char *text) {
  if (text_is_utf8(text))
    return json_string(text);
  char *printable = text_printable(text, SIZE_MAX);
  json_t *json = json_string(printable);
  free(printable);
  return json;
}

static const char *const level_name[] = {"note", "warning", "error"};

static const char *kind_name(const SrcLoc *loc) {
  return loc->kind ? loc->kind : "node";
}

static void print_json(json_t *json, size_t flags, FILE *out) {
  json_dumpf(json, out, flags | JSON_ENSURE_ASCII);
  fputc('\n', out);
  fflush(out);
  json_decref(json);
}

static void take_json(void *to, const DiagMessage *message) {
  Diagnostics *d = to;
  const SrcLoc *loc = &message->loc;
  json_t *json = json_pack("{s:s}", "level", level_name[message->level]);
  if (message->code)
    json_object_set_new(json, "code", json_sprintf("E%03d", message->code));
  if (message->warning >= 0)
    json_object_set_new(json, "warning", json_string(warn_info[message->warning].name));
  if (message->file)
    json_object_set_new(json, "file", string(message->file));
  if (loc->line) {
    json_object_set_new(json, "line", json_integer(loc->line));
    json_object_set_new(json, "column", json_integer(loc->col));
  }
  if (loc->name) {
    json_object_set_new(json, "kind", json_string(kind_name(loc)));
    json_object_set_new(json, "name", string(loc->name));
  }
  json_object_set_new(json, "message", json_string(message->text));
  print_json(json, JSON_COMPACT, d->out);
}

/* ---- a message as a result of SARIF ---- */

/* A path as the reference to a URI. */
static json_t *uri(const char *path) {
  TextDraft draft;
  FILE *out = text_draft(&draft);
  fputs(*path == '/' ? "file://" : "", out);
  for (const unsigned char *c = (const unsigned char *)path; *c; c++)
    fprintf(out, *c < 0x80 && (isalnum(*c) || strchr("/-._~", *c)) ? "%c" : "%%%02X", *c);
  fclose(out);
  json_t *json = json_string(draft.text);
  free(draft.text);
  return json;
}

/* SARIF counts characters, we count bytes. */
static int character(const DiagMessage *message) {
  int column = 1;
  for (int at = 1; at < message->loc.col; at++)
    column += !message->line || (message->line[at - 1] & 0xc0) != 0x80;
  return column;
}

/* The text of a line, unless that is no text. */
static json_t *snippet(const DiagMessage *message) {
  enum { MOST = 400 };
  size_t n = message->line ? strcspn(message->line, "\n") : 0;
  char line[MOST + 1];
  if (!message->line || n > MOST)
    return NULL;
  snprintf(line, sizeof line, "%.*s", (int)n, message->line);
  return json_pack("{s:o}", "text", string(line));
}

static json_t *location(const DiagMessage *message) {
  const SrcLoc *loc = &message->loc;
  json_t *json = json_object();
  if (message->file) {
    json_t *physical = json_pack("{s:{s:o}}", "artifactLocation", "uri", uri(message->file));
    if (loc->line) {
      json_t *region =
          json_pack("{s:i,s:i}", "startLine", loc->line, "startColumn", character(message));
      json_t *text = snippet(message);
      if (text)
        json_object_set_new(region, "snippet", text);
      json_object_set_new(physical, "region", region);
    }
    json_object_set_new(json, "physicalLocation", physical);
  }
  if (loc->name)
    json_object_set_new(
        json, "logicalLocations",
        json_pack("[{s:o,s:s}]", "name", string(loc->name), "kind", kind_name(loc)));
  return json;
}

/* What --explain and --help say of the kind of message. */
static json_t *rule_of(const DiagMessage *message, const char *id) {
  const ExplainPage *page = explain_page;
  while (page->code != message->code)
    page++;
  if (page->code)
    return json_pack("{s:s,s:{s:s},s:{s:s}}", "id", id, "shortDescription", "text", page->meaning,
                     "help", "text", page->text);
  const WarnInfo *info = &warn_info[message->warning];
  return json_pack("{s:s,s:{s:s},s:{s:b,s:s}}", "id", id, "shortDescription", "text", info->meaning,
                   "defaultConfiguration", "enabled", info->on, "level", "warning");
}

/* Sets the rule of a result, which is added to the rules if it is not among them. */
static void set_rule(Diagnostics *d, json_t *result, const DiagMessage *message) {
  char id[64];
  if (message->code)
    snprintf(id, sizeof id, "E%03d", message->code);
  else if (message->warning >= 0)
    snprintf(id, sizeof id, "%s", warn_info[message->warning].name);
  else
    return;
  size_t i = 0, n = json_array_size(d->rules);
  while (i < n && strcmp(json_string_value(json_object_get(json_array_get(d->rules, i), "id")), id))
    i++;
  if (i == n)
    json_array_append_new(d->rules, rule_of(message, id));
  json_object_set_new(result, "ruleId", json_string(id));
  json_object_set_new(result, "ruleIndex", json_integer((json_int_t)i));
}

static void take_sarif(void *to, const DiagMessage *message) {
  Diagnostics *d = to;
  json_t *result = json_object();
  set_rule(d, result, message);
  json_object_set_new(result, "level", json_string(level_name[message->level]));
  json_object_set_new(result, "message", json_pack("{s:s}", "text", message->text));
  if (message->file || message->loc.name)
    json_object_set_new(result, "locations", json_pack("[o]", location(message)));
  json_array_append_new(d->results, result);
}

static void print_sarif(Diagnostics *d, int status) {
  json_t *document =
      json_pack("{s:s,s:s,s:[{s:{s:{s:s,s:s,s:o}},s:[{s:b,s:i}],s:s,s:o}]}", "$schema",
                "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool",
                "driver", "name", d->program, "version", d->version, "rules", d->rules,
                "invocations", "executionSuccessful", status == 0, "exitCode", status, "columnKind",
                "unicodeCodePoints", "results", d->results);
  print_json(document, JSON_INDENT(2), d->out);
}

/* ---- a run ---- */

void diagnostics_start(Diagnostics *out, const char *program, const char *version,
                       const DiagSettings *settings, Diag *diag) {
  *out = (Diagnostics){.program = program, .version = version, .settings = *settings};
  out->out = settings->path ? text_draft(&out->draft) : stderr;
  diag->out = out->out;
  diag->colour = settings->colour;
  diag->to = out;
  diag->sink = settings->form == FORM_JSON    ? take_json
               : settings->form == FORM_SARIF ? take_sarif
                                              : NULL;
  if (settings->form == FORM_SARIF) {
    out->rules = json_array();
    out->results = json_array();
  }
}

int diagnostics_finish(Arena *arena, Diagnostics *d, const Diag *diag, int status) {
  diag_finish(diag);
  if (d->settings.form == FORM_SARIF)
    print_sarif(d, status);
  if (!d->settings.path)
    return status;
  fclose(d->draft.file);
  bool good = output_write(arena, d->settings.path, 0666, d->draft.text, d->draft.size);
  free(d->draft.text);
  return good || status ? status : EXIT_ENVIRONMENT;
}
