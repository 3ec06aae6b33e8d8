/* ampcc-tf: a TensorFlow GraphDef in, the same as TensorFlow's mixed precision rewrites it out, or
 * a report of that. */
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
typedef struct Compat {
  Arena *arena;
  const TfOptions *options;
  const char *file;
  Diag *diag;
  TfSettings settings;
  Bytes bytes; /* binary */
  TfGraph *graph;
  TfOutcome outcome;
} Compat;

static SrcLoc here(const Compat *c) {
  return (SrcLoc){.file = c->file};
}

/* A fresh graph from the bytes of the file. */
static bool unpack(Compat *c) {
  Tensorflow__GraphDef *def = tf_graphdef_unpack(c->arena, c->file, c->bytes, c->diag);
  c->graph = def ? tf_graph_new(c->arena, def, c->file, c->diag) : NULL;
  return c->graph != NULL;
}

static bool load(Compat *c) {
  Bytes bytes;
  const char *path = c->options->model;
  if (!file_read(c->arena, path, &bytes, c->diag))
    return false;
  bool text = model_form(path, (const char *)bytes.at, (size_t)bytes.len) != MODEL_PB;
  return tf_graphdef_bytes(c->arena, c->file, bytes, text, &c->bytes, c->diag) && unpack(c);
}

static bool check_fetches(Compat *c) {
  for (int i = 0; i < c->settings.n_fetch; i++) {
    int port;
    const char *fetch = c->settings.fetch[i];
    if (tf_graph_find(c->graph, fetch, tf_input_split(fetch, &port)) < 0)
      diag_error(c->diag, here(c), DIAG_FETCH, "--fetch: no node is called `%s`", fetch);
  }
  return c->diag->n_errors == 0;
}

/* ---- what the user should know ---- */

/* Each op that the table does not hold, once; the first few by name. Functions and their ops are
 * legal and said to be kept. */
static void note_ops(const Compat *c) {
  enum { MOST_NAMED = 8 };
  const TfGraph *graph = c->graph;
  TfNames *said = tf_names_new(c->arena);
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Tensorflow__NodeDef *def = graph->node[i].def;
    bool fresh = !graph->node[i].op && tf_names_put(said, def->op, i);
    if (fresh && n < MOST_NAMED)
      diag_note(c->diag, here(c), "op `%.80s` (node `%.80s`) is not in the table: left as it is",
                def->op, def->name);
    n += fresh;
  }
  if (n > MOST_NAMED)
    diag_note(c->diag, here(c), "%d more ops are not in the table", n - MOST_NAMED);
  const Tensorflow__FunctionDefLibrary *library = graph->def->library;
  if (library && library->n_function > 0)
    diag_note(c->diag, here(c), "the bodies of %zu library functions are left as they are",
              library->n_function);
}

/* Ops that a list edit names and nothing is called. */
static void note_edits(const Compat *c) {
  for (int i = 0; i < c->settings.n_edits; i++) {
    const char *left = c->settings.edit[i].ops;
    for (const char *op; (op = list_word(c->arena, &left, ','));)
      if (!tf_op_find(c->arena, op))
        diag_note(c->diag, here(c), "a list is edited for `%s`, which is no op of the table%s", op,
                  *op == ' ' ? ": a blank is part of the name" : "");
  }
}

/* UNSAFE_FORCE_ALL asks no op which types it admits. TensorFlow makes such a graph and then refuses
 * to load it. The first attribute of that kind is named, the others are counted. */
static void warn_types(const Compat *c) {
  const TfGraph *graph = c->graph;
  const TfVertex *first = NULL;
  int more = 0;
  for (int v = 0; v < graph->n_vertices; v++) {
    const TfVertex *vertex = &graph->vertex[v];
    const TfOp *op = graph->node[vertex->node].op;
    if (!c->outcome.rewrite.changed[v] || op->attr[vertex->attr].half)
      continue;
    more += first != NULL;
    first = first ? first : vertex;
  }
  if (!first)
    return;
  const TfNode *node = &graph->node[first->node];
  diag_warning(c->diag, (SrcLoc){.file = c->file, .name = node->def->name}, WARN_TF_TYPE,
               "%s of %s becomes f16, which it does not admit: TensorFlow will not load this "
               "graph (attributes like it: %d more)",
               node->op->attr[first->attr].name, node->def->op, more);
}

static void say(const Compat *c) {
  if (c->outcome.failed)
    diag_warning(c->diag, here(c), WARN_TF_PASS, "%s", c->outcome.log);
  if (c->outcome.rewritten && c->settings.level == TF_UNSAFE_FORCE_ALL)
    warn_types(c);
  if (c->diag->quiet)
    return;
  note_edits(c);
  if (c->graph->reader) /* it was built */
    note_ops(c);
  if (!c->outcome.failed)
    diag_note(c->diag, here(c), "%s", c->outcome.log);
}

/* ---- out ---- */

static bool is_text_file(const char *path) {
  return model_form(path, "", 0) == MODEL_PBTXT;
}

static bool write_graph(const Compat *c) {
  Output out;
  const char *path = c->options->output;
  if (!output_open(c->arena, path, &out))
    return false;
  tf_graphdef_write(c->arena, c->graph->def, is_text_file(path), out.file);
  return output_close(&out);
}

/* Alone it is the output; beside a graph it goes where the graph does not. */
static bool write_report(const Compat *c) {
  Output out;
  bool free = strcmp(c->options->output, "-") != 0;
  const TfRewrite *rewrite = c->outcome.rewritten ? &c->outcome.rewrite : NULL;
  if (c->options->graph) {
    tf_report(c->graph, rewrite, c->outcome.log, free ? stdout : stderr);
    return true;
  }
  if (!output_open(c->arena, c->options->output, &out))
    return false;
  tf_report(c->graph, rewrite, c->outcome.log, out.file);
  return output_close(&out);
}

static int run(Compat *c) {
  if (!load(c) || !check_fetches(c))
    return EXIT_INPUT;
  tf_pass(c->graph, &c->settings, &c->outcome);
  say(c);
  if (c->outcome.failed && !unpack(c)) /* as TensorFlow: the graph as it was */
    return EXIT_INPUT;
  if (c->diag->n_errors)
    return EXIT_INPUT;
  const TfOptions *options = c->options;
  bool good = (!options->report || write_report(c)) && (!options->graph || write_graph(c));
  return good ? 0 : EXIT_ENVIRONMENT;
}

static int rewrite(Arena *arena, const TfOptions *options) {
  Diag diag = {.out = stderr,
               .warn = options->warn,
               .quiet = options->text[TF_OPT_quiet] != NULL,
               .all_errors = options->text[TF_OPT_all_errors] != NULL};
  const char *file = strcmp(options->model, "-") ? options->model : "<stdin>";
  Compat compat = {.arena = arena, .options = options, .file = file, .diag = &diag};
  if (!tf_settings_read(arena, options, &compat.settings, &diag))
    return EXIT_USAGE;
  int status = diag.n_errors ? EXIT_INPUT : run(&compat);
  diag_finish(&diag);
  return status;
}

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
  if (!tf_options_parse(arena, argc, argv, &options))
    status = EXIT_USAGE;
  else if (options.text[TF_OPT_help])
    tf_options_help(stdout);
  else if (options.text[TF_OPT_version])
    puts("ampcc-tf " AMPCC_VERSION);
  else
    status = rewrite(arena, &options);
  arena_free(arena);
  return output_finish(status);
}
