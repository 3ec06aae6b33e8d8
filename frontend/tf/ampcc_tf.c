/* ampcc-tf: rewrites a TensorFlow GraphDef as TensorFlow's own mixed precision does, or reports
 * what that would change. */
#include "frontend/explain/explain.h"
#include "frontend/import/foreign.h"
#include "frontend/import/load.h"
#include "frontend/tf/graphdef.h"
#include "frontend/tf/names.h"
#include "frontend/tf/pass.h"
#include "frontend/tf/report.h"
#include "ir/base/exit.h"
#include "ir/base/list.h"
#include "ir/base/output.h"

#include <string.h>
#include <unistd.h>

/* One run over one file. */
typedef struct Run {
  Arena *arena;
  const TfOptions *options;
  const char *file;
  Diag *diag;
  TfSettings settings;
  Bytes bytes; /* binary */
  TfGraph *graph;
  TfOutcome outcome;
} Run;

static SrcLoc here(const Run *r) {
  return (SrcLoc){.file = r->file};
}

/* Makes a fresh graph from the bytes of the file. */
static bool unpack(Run *r) {
  Tensorflow__GraphDef *def = tf_graphdef_unpack(r->arena, r->file, r->bytes, r->diag);
  r->graph = def ? tf_graph_new(r->arena, def, r->file, r->diag) : NULL;
  return r->graph != NULL;
}

static bool load(Run *r) {
  Bytes bytes;
  const char *path = r->options->model;
  if (!file_read(r->arena, path, &bytes, r->diag))
    return false;
  const char *at = (const char *)bytes.at, *wrong;
  ModelForm form = model_form(path, at, (size_t)bytes.len);
  bool text = form != MODEL_PB;
  FileKind kind = file_kind(text, at, (size_t)bytes.len);
  if (kind == FILE_MODELDEF || form == MODEL_AMP)
    wrong = "this is a model of ampcc: ampcc compiles it, ampcc-tf rewrites TensorFlow's GraphDefs";
  else
    wrong = file_advice(kind);
  if (wrong) {
    diag_error(r->diag, here(r), DIAG_GRAPHDEF, "%s", wrong);
    return false;
  }
  return tf_graphdef_bytes(r->arena, r->file, bytes, text, &r->bytes, r->diag) && unpack(r);
}

static bool check_fetches(Run *r) {
  for (int i = 0; i < r->settings.n_fetch; i++) {
    int port;
    const char *fetch = r->settings.fetch[i];
    if (tf_graph_find(r->graph, fetch, tf_input_split(fetch, &port)) < 0)
      diag_error(r->diag, here(r), DIAG_FETCH, "--fetch: no node is called `%s`", fetch);
  }
  return r->diag->n_errors == 0;
}

/* ---- notes and warnings ---- */

/* So many notes of each kind are printed; the others are counted. */
enum { MOST_NOTES = 8 };

/* Notes each op that is not in the table, once. */
static void note_ops(const Run *r) {
  const TfGraph *graph = r->graph;
  TfNames *said = tf_names_new(r->arena);
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Tensorflow__NodeDef *def = graph->node[i].def;
    if (graph->node[i].op || !tf_names_put(said, def->op, i) || n++ >= MOST_NOTES)
      continue;
    diag_note(r->diag, (SrcLoc){.file = r->file, .name = def->name},
              "op `%.80s` is not in the table: left as it is", def->op);
  }
  if (n > MOST_NOTES)
    diag_note(r->diag, here(r), "%d more ops are not in the table", n - MOST_NOTES);
  const Tensorflow__FunctionDefLibrary *library = graph->def->library;
  if (library && library->n_function > 0)
    diag_note(r->diag, here(r), "the bodies of %zu library functions are left as they are",
              library->n_function);
}

/* Notes names in edits of lists that are no ops: most likely typing errors. */
static void note_edits(const Run *r) {
  int n = 0;
  for (int i = 0; i < r->settings.n_edits; i++) {
    const char *left = r->settings.edit[i].ops;
    for (const char *op; (op = list_word(r->arena, &left, ','));)
      if (!tf_op_find(r->arena, op) && n++ < MOST_NOTES)
        diag_note(r->diag, here(r), "a list is edited for `%.80s`, which is no op of the table%s",
                  op, *op == ' ' ? ": a blank is part of the name" : "");
  }
  if (n > MOST_NOTES)
    diag_note(r->diag, here(r), "lists are edited for %d more names that are no ops",
              n - MOST_NOTES);
}

/* UNSAFE_FORCE_ALL gives ops types that they do not admit. TensorFlow makes such a graph and then
 * refuses to load it. The warning names the first such attribute and counts the others. */
static void warn_types(const Run *r) {
  const TfGraph *graph = r->graph;
  const TfVertex *first = NULL;
  int more = 0;
  for (int v = 0; v < graph->n_vertices; v++) {
    const TfVertex *vertex = &graph->vertex[v];
    const TfOp *op = graph->node[vertex->node].op;
    if (!r->outcome.rewrite.changed[v] || op->attr[vertex->attr].half)
      continue;
    more += first != NULL;
    first = first ? first : vertex;
  }
  if (!first)
    return;
  const TfNode *node = &graph->node[first->node];
  diag_warning(r->diag, (SrcLoc){.file = r->file, .name = node->def->name}, WARN_TF_TYPE,
               "%s of %s becomes f16, which it does not admit: TensorFlow will not load this "
               "graph (attributes like it: %d more)",
               node->op->attr[first->attr].name, node->def->op, more);
}

static void say(const Run *r) {
  if (r->outcome.failed)
    diag_warning(r->diag, (SrcLoc){.file = r->file, .name = r->outcome.failed_node}, WARN_TF_PASS,
                 "%s", r->outcome.log);
  if (r->outcome.rewritten && r->settings.level == TF_UNSAFE_FORCE_ALL)
    warn_types(r);
  if (r->diag->quiet)
    return;
  note_edits(r);
  if (r->graph->reader) /* it was built */
    note_ops(r);
  if (!r->outcome.failed)
    diag_note(r->diag, here(r), "%s", r->outcome.log);
}

/* ---- output ---- */

static bool write_graph(const Run *r) {
  Output out;
  const char *path = r->options->output;
  if (!output_open(r->arena, path, &out))
    return false;
  bool text = model_form(path, "", 0) == MODEL_PBTXT;
  tf_graphdef_write(r->arena, r->graph->def, text, out.file);
  return output_close(&out);
}

/* A report without a graph is the output. A report beside a graph goes to standard output, or to
 * standard error if the graph goes to standard output. */
static bool write_report(const Run *r) {
  Output out;
  bool free = strcmp(r->options->output, "-") != 0;
  const TfRewrite *rewrite = r->outcome.rewritten ? &r->outcome.rewrite : NULL;
  if (r->options->graph) {
    tf_report(r->graph, rewrite, r->outcome.log, free ? stdout : stderr);
    return true;
  }
  if (!output_open(r->arena, r->options->output, &out))
    return false;
  tf_report(r->graph, rewrite, r->outcome.log, out.file);
  return output_close(&out);
}

static int run(Run *r) {
  if (!load(r) || !check_fetches(r))
    return EXIT_INPUT;
  tf_pass(r->graph, &r->settings, &r->outcome);
  say(r);
  if (r->outcome.failed && !unpack(r)) /* like TensorFlow, write the graph as it was */
    return EXIT_INPUT;
  if (r->diag->n_errors)
    return EXIT_INPUT;
  const TfOptions *options = r->options;
  bool good = (!options->report || write_report(r)) && (!options->graph || write_graph(r));
  return good ? 0 : EXIT_ENVIRONMENT;
}

static int rewrite(Arena *arena, const TfOptions *options) {
  Diag diag = {.warn = options->warn,
               .quiet = options->text[TF_OPT_quiet] != NULL,
               .all_errors = options->text[TF_OPT_all_errors] != NULL};
  Diagnostics diagnostics;
  diagnostics_start(&diagnostics, "ampcc-tf", AMPCC_VERSION, &options->diagnostics, &diag);
  const char *file = strcmp(options->model, "-") ? options->model : "<stdin>";
  Run one = {.arena = arena, .options = options, .file = file, .diag = &diag};
  if (!tf_settings_read(arena, options, &one.settings, &diag))
    return diagnostics_finish(arena, &diagnostics, &diag, EXIT_USAGE);
  int status = diag.n_errors ? EXIT_INPUT : run(&one);
  return diagnostics_finish(arena, &diagnostics, &diag, status);
}

/* ---- the program ---- */

static void on_bug(void) {
  output_abandon();
  fputs("ampcc-tf: this is a bug of ampcc-tf. Please report it with the GraphDef.\n", stderr);
  _exit(EXIT_BUG);
}

int main(int argc, char **argv) {
  output_start("ampcc-tf");
  Arena *arena = arena_new();
  TfOptions options;
  int status = 0;
  bug_set_hook(on_bug);
  if (!tf_options_parse(arena, argc, argv, &options)) {
    status = EXIT_USAGE;
  } else if (options.text[TF_OPT_help]) {
    tf_options_help(stdout);
  } else if (options.text[TF_OPT_explain]) {
    const char *code = options.text[TF_OPT_explain];
    status = explain("ampcc-tf", *code ? code : options.model, stdout) ? 0 : EXIT_USAGE;
  } else if (options.text[TF_OPT_version]) {
    puts("ampcc-tf " AMPCC_VERSION);
  } else {
    status = rewrite(arena, &options);
  }
  arena_free(arena);
  return output_finish(status);
}
