/* What --batch names: models with their options, each once for every type of --dtype. */
#include "ir/base/list.h"

#include "codegen/program/bytes.h"
#include "frontend/batch/batch.h"
#include "ir/base/text.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const model_endings[] = {".pb", ".pbtxt", ".amp"};

/* The ending of a model's file, or NULL. */
static const char *model_ending(const char *path) {
  const char *dot = strrchr(path, '.');
  for (size_t i = 0; dot && i < sizeof model_endings / sizeof *model_endings; i++)
    if (!strcmp(dot, model_endings[i]))
      return dot;
  return NULL;
}

static bool refuse(const char *where, const char *why, const char *what) {
  text_say("ampcc: %s: %s%s%s%s\n", where, why, what ? " `" : "", what ? what : "",
           what ? "`" : "");
  return false;
}

/* ---- one program ---- */

/* The options of the command line and of a line of the list together; the latter's win. */
typedef struct Wanted {
  const char *where;
  const CommandLine *line; /* NULL: no line */
} Wanted;

static const char *text_of(const Batch *batch, const CommandLine *line, OptionId id) {
  const char *own = line ? line->text[id] : NULL;
  return own ? own : batch->options->text[id];
}

const char *batch_text(const Batch *batch, const BatchProgram *program, OptionId id) {
  return text_of(batch, program->line, id);
}

static void add_words(const GivenWord *word, int n, BatchProgram *program) {
  for (int i = 0; i < n; i++) {
    int option = word[i].option;
    bool ours = option == OPT_dtype || option == OPT_output ||
                (option >= 0 && option_info[option].group == GROUP_BATCH);
    if (!ours)
      program->word[program->n_words++] = word[i];
  }
}

/* The name of the program: that of the model's file, or of -o in the line. */
static const char *own_name(const Batch *batch, const Wanted *wanted, const char *model) {
  if (wanted->line && wanted->line->text[OPT_output])
    return wanted->line->text[OPT_output];
  const char *slash = strrchr(model, '/'), *base = slash ? slash + 1 : model;
  const char *dot = model_ending(base);
  return arena_strdup(batch->arena, base, dot ? (size_t)(dot - base) : strlen(base));
}

static bool add_program(Batch *batch, const Wanted *wanted, const char *model, const char *dtype,
                        const char *name) {
  const Options *options = batch->options;
  int most = options->n_words + (wanted->line ? wanted->line->n_words : 0) + 1;
  BatchProgram program = {
      .name = name,
      .model = model,
      .where = wanted->where,
      .line = wanted->line,
      .word = arena_alloc(batch->arena, (size_t)most * sizeof *program.word),
  };
  add_words(options->word, options->n_words, &program);
  if (wanted->line)
    add_words(wanted->line->word, wanted->line->n_words, &program);
  if (dtype)
    program.word[program.n_words++] =
        (GivenWord){OPT_dtype, arena_printf(batch->arena, "--dtype=%s", dtype)};
  if (!*name || *name == '.' || strchr(name, '/'))
    return refuse(wanted->where, "this cannot be the name of a program:", name);
  for (int i = 0; i < batch->n; i++)
    if (!strcmp(batch->program[i].name, name)) {
      text_say("ampcc: %s: there is another program `%s`, of %s: give one another name by -o NAME "
               "in a list\n",
               wanted->where, name, batch->program[i].where);
      return false;
    }
  arena_push(batch->arena, batch->program, batch->n, batch->cap, program);
  return true;
}

/* The programs of one model: as many as there are types. */
static bool add_model(Batch *batch, const Wanted *wanted, const char *model) {
  const char *dtypes = text_of(batch, wanted->line, OPT_dtype);
  const char *name = own_name(batch, wanted, model);
  if (!dtypes || !strchr(dtypes, ','))
    return add_program(batch, wanted, model, dtypes, name);
  bool good = true;
  const char *dtype;
  while (good && (dtype = list_word(batch->arena, &dtypes, ',')) != NULL)
    good =
        add_program(batch, wanted, model, dtype, arena_printf(batch->arena, "%s-%s", name, dtype));
  return good;
}

/* The models that a pattern names, in the order of their names. */
static bool add_pattern(Batch *batch, const Wanted *wanted, const char *pattern) {
  struct stat st;
  if (stat(pattern, &st) == 0)
    return add_model(batch, wanted, pattern); /* whatever characters are in its name */
  glob_t found;
  int error = glob(pattern, GLOB_ERR, NULL, &found);
  if (error)
    return refuse(wanted->where,
                  error == GLOB_NOMATCH ? "no file is named by" : "a folder cannot be read for",
                  pattern);
  bool good = true;
  for (size_t i = 0; i < found.gl_pathc && good; i++)
    good = add_model(batch, wanted,
                     arena_strdup(batch->arena, found.gl_pathv[i], strlen(found.gl_pathv[i])));
  globfree(&found);
  return good;
}

/* The models in a folder, in the order of their names. */
static bool add_folder(Batch *batch, const Wanted *wanted, const char *folder) {
  const char **name;
  int n;
  if (!folder_names(batch->arena, folder, &name, &n))
    return refuse(folder, strerror(errno), NULL);
  bool good = true;
  for (int i = 0; i < n && good; i++)
    if (model_ending(name[i]))
      good = add_model(batch, wanted, arena_printf(batch->arena, "%s/%s", folder, name[i]));
  return good;
}

/* ---- the list ---- */

/* Options that a program of a batch cannot have: they make no program, or one file for all, or no
 * log for people. */
static const OptionId never[] = {OPT_help,
                                 OPT_explain,
                                 OPT_version,
                                 OPT_list_passes,
                                 OPT_list_targets,
                                 OPT_cache_stats,
                                 OPT_cache_verify,
                                 OPT_passes,
                                 OPT_print_recipe,
                                 OPT_figures,
                                 OPT_save_temps,
                                 OPT_certify,
                                 OPT_diagnostics_format,
                                 OPT_diagnostics_file,
                                 OPT_MD,
                                 OPT_MF,
                                 OPT_MT,
                                 OPT_dry_run};

static bool check_options(const char *where, const char *const *text, bool in_line) {
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    if (text[never[i]])
      return refuse(where, "not with --batch: option", option_info[never[i]].flag);
  const char *emit = text[OPT_emit];
  if (emit && strcmp(emit, "exe") && strcmp(emit, "obj"))
    return refuse(where, "--batch makes programs and objects, not --emit=", emit);
  for (int i = 0; i < OPTION_COUNT && in_line; i++)
    if (text[i] && option_info[i].group == GROUP_BATCH)
      return refuse(where, "not in a list: option", option_info[i].flag);
  if (!in_line && text[OPT_output])
    return refuse(where, "-o names a program in a list; --out-dir is where all go", NULL);
  return true;
}

static bool read_line(Batch *batch, const char *where, const char *line) {
  static const QuoteRules as_shell = {" \t\r", .comments = true, .single_is_plain = true};
  Arena *arena = batch->arena;
  const char **argv = NULL, *word;
  char *rest = arena_strdup(arena, line, strlen(line));
  bool open = false;
  int argc = 0, cap = 0;
  arena_push(arena, argv, argc, cap, "ampcc");
  while ((word = quoted_word(&rest, &as_shell, &open)) != NULL)
    arena_push(arena, argv, argc, cap, word);
  if (open)
    return refuse(where, "a quote is not closed", NULL);
  if (argc == 1)
    return true;
  const char **text = arena_alloc(arena, OPTION_COUNT * sizeof *text);
  CommandLine *given = arena_new_of(arena, CommandLine);
  given->text = text;
  if (!command_line_parse(arena, &option_table, argc, (char **)(uintptr_t)argv, given))
    return refuse(where, "this line of the list is wrong", NULL);
  if (!given->model)
    return refuse(where, "this line of the list names no model", NULL);
  return check_options(where, text, true) &&
         add_pattern(batch, &(Wanted){where, given}, given->model);
}

static bool read_list(Batch *batch, const char *path) {
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t size = 0;
  bool good = file != NULL;
  ssize_t length = 0;
  for (int number = 1; good && (length = getline(&line, &size, file)) >= 0; number++) {
    const char *where = arena_printf(batch->arena, "%s:%d", path, number);
    if (memchr(line, 0, (size_t)length))
      good = refuse(where, "this is no text", NULL);
    line[strcspn(line, "\n")] = '\0';
    good = good && read_line(batch, where, line);
  }
  if (!file || ferror(file))
    good = refuse(path, strerror(errno), NULL);
  free(line);
  if (file)
    fclose(file);
  return good;
}

bool batch_list(Batch *batch) {
  const char *what = batch->options->text[OPT_batch];
  const Wanted wanted = {"--batch", NULL};
  struct stat st;
  bool good = check_options("--batch", batch->options->text, false);
  if (!good)
    return false;
  bool exists = stat(what, &st) == 0;
  if (exists && S_ISDIR(st.st_mode))
    good = add_folder(batch, &wanted, what);
  else if (exists && !model_ending(what))
    good = read_list(batch, what);
  else
    good = add_pattern(batch, &wanted, what);
  return good && (batch->n || refuse("--batch", "there is no model in", what));
}
