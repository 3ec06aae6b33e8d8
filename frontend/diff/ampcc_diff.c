/* ampcc-diff: what changed from one program, model or graph to another. */
#include "frontend/diff/diff.h"
#include "ir/base/output.h"
#include "ir/base/text.h"

#include <string.h>

/* As diff's. */
enum { EXIT_SAME, EXIT_DIFFERENT, EXIT_TROUBLE };
enum { MOST_LINES = 40 }; /* of each topic, without --all */

typedef struct DiffOptions {
  const char *path[2];
  int n_paths;
  bool all, json, quiet, help, version;
} DiffOptions;

static const struct {
  const char *flag, *letter, *help;
  size_t field;
} option[] = {
    {"--all", NULL, "show every difference (default: 40 of each kind)", offsetof(DiffOptions, all)},
    {"--format=json", NULL, "all differences as one JSON object", offsetof(DiffOptions, json)},
    {"--quiet", "-q", "print nothing: the exit status says it", offsetof(DiffOptions, quiet)},
    {"--version", NULL, "show the version and exit", offsetof(DiffOptions, version)},
    {"--help", "-h", "show this text and exit", offsetof(DiffOptions, help)},
};
enum { N_OPTIONS = sizeof option / sizeof *option };

static void help(void) {
  fputs("usage: ampcc-diff [options] A B\n\n"
        "Shows what changed from A to B: programs or objects that ampcc made, for any machine, or\n"
        "models (.pb, .pbtxt, .amp). Programs are read, not run. Of a program and a model, graph "
        "and\n"
        "recipe are compared.\n\n",
        stdout);
  for (int i = 0; i < N_OPTIONS; i++)
    printf("  %-3s %-15s %s\n", option[i].letter ? option[i].letter : "", option[i].flag,
           option[i].help);
  fputs("\nexit status: 0 the same, 1 different, 2 trouble: a file or the command line is wrong.\n",
        stdout);
}

/* False after one line on stderr. */
static bool parse(int argc, char **argv, DiffOptions *out) {
  bool only_paths = false;
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    int o = 0;
    while (o < N_OPTIONS && strcmp(arg, option[o].flag) &&
           (!option[o].letter || strcmp(arg, option[o].letter)))
      o++;
    if (!only_paths && !strcmp(arg, "--")) {
      only_paths = true;
    } else if (!only_paths && o < N_OPTIONS) {
      *(bool *)((char *)out + option[o].field) = true;
    } else if (!only_paths && !strcmp(arg, "--format=text")) {
      out->json = false;
    } else if (!only_paths && *arg == '-' && arg[1]) {
      text_say("ampcc-diff: unknown option `%s`; see --help\n", arg);
      return false;
    } else if (out->n_paths == 2) {
      text_say("ampcc-diff: more than two files; see --help\n");
      return false;
    } else {
      out->path[out->n_paths++] = arg;
    }
  }
  if (out->n_paths == 2 || out->help || out->version)
    return true;
  text_say("ampcc-diff: give two files; see --help\n");
  return false;
}

static void compare(const Side *a, const Side *b, DifferenceList *list) {
  if (a->module && b->module)
    compare_modules(a, b, list);
  if (a->program && b->program)
    compare_programs(a, b, list);
}

static void report(const Side *a, const Side *b, const DiffOptions *options,
                   const DifferenceList *list) {
  TextDraft draft;
  if (options->quiet)
    return;
  if (options->json) {
    report_json(a, b, list, stdout);
    return;
  }
  report_text(a, b, list, options->all ? 0 : MOST_LINES, text_draft(&draft));
  text_finish(&draft, stdout);
}

static int run(Arena *arena, const DiffOptions *options) {
  Side side[2] = {{0}};
  Diag diag = {.out = stderr};
  DifferenceList list = {arena};
  int status = EXIT_SAME;
  for (int i = 0; i < 2; i++)
    if (!side_read(arena, options->path[i], &side[i], &diag))
      status = EXIT_TROUBLE;
  diag_finish(&diag);
  if (!status) {
    compare(&side[0], &side[1], &list);
    report(&side[0], &side[1], options, &list);
    status = list.n ? EXIT_DIFFERENT : EXIT_SAME;
  }
  for (int i = 0; i < 2; i++)
    if (side[i].program)
      json_decref(side[i].program->manifest);
  return status;
}

int main(int argc, char **argv) {
  output_start("ampcc-diff");
  Arena *arena = arena_new();
  DiffOptions options = {0};
  int status = EXIT_SAME;
  if (!parse(argc, argv, &options))
    status = EXIT_TROUBLE;
  else if (options.help)
    help();
  else if (options.version)
    puts("ampcc-diff " AMPCC_VERSION);
  else
    status = run(arena, &options);
  arena_free(arena);
  return output_finish(0) ? EXIT_TROUBLE : status;
}
