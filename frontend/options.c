#include "frontend/options.h"

#include "ir/base/nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const OptionInfo option_info[OPTION_COUNT] = {
#define OPTION(id, flag, letter, argument, group, help)                                            \
  [OPT_##id] = {flag, argument, help, letter, GROUP_##group},
#include "frontend/options.def"
};

/* ---- help ---- */

enum { HELP_COLUMN = 30 };

static void help_line(FILE *out, char letter, const char *flag, const char *argument,
                      const char *help) {
  int n = letter ? fprintf(out, "  -%c, --%s", letter, flag) : fprintf(out, "  --%s", flag);
  if (argument && *argument == '[')
    n += fprintf(out, "[=%s", argument + 1);
  else if (argument)
    n += fprintf(out, "=%s", argument);
  fprintf(out, "%*s%s", n < HELP_COLUMN ? HELP_COLUMN - n : 1, "", help);
}

static void help_recipe(FILE *out) {
  static const char *const argument[] = {
      [RECIPE_STR] = "WORD", [RECIPE_INT] = "N", [RECIPE_FLOAT] = "X", [RECIPE_FLOATS] = "X,Y"};
  fputs("\nrecipe: instead of the model's (*: may also be given to the program)\n", out);
  for (int i = 0; i < n_recipe_fields; i++) {
    const RecipeField *field = &recipe_field[i];
    help_line(out, 0, field->flag, argument[field->kind], field->help);
    fputs(field->when == RECIPE_RUN ? " *\n" : "\n", out);
  }
}

static void help_warnings(FILE *out) {
  fputs("\nwarnings: -WNAME, -Wno-NAME, -Werror=NAME, -Wno-error=NAME; all for every one (*: on "
        "unasked)\n",
        out);
  for (int i = 0; i < WARN_COUNT; i++) {
    const WarnInfo *info = &warn_info[i];
    fprintf(out, "  %-*s%s%s\n", HELP_COLUMN - 2, info->name, info->meaning, info->on ? " *" : "");
  }
}

void options_help(FILE *out) {
  static const char *const heading[] = {[GROUP_OUTPUT] = "output",
                                        [GROUP_PROGRAM] = "program",
                                        [GROUP_PASSES] = "passes",
                                        [GROUP_REPORTS] = "reports",
                                        [GROUP_GRAPHDEF] =
                                            "tensorflow graphs (GraphDef: .pb, .pbtxt)",
                                        [GROUP_TOOLS] = "tools"};
  fputs("usage: ampcc MODEL [-o FILE] [options]\n\n"
        "Compiles MODEL (.pb, .pbtxt, or a graph as .amp; `-`: standard input) to a program that\n"
        "trains it. Underscores in options are the same as dashes.\n",
        out);
  for (int g = 0; g < GROUP_COUNT; g++) {
    fprintf(out, "\n%s\n", heading[g]);
    for (int i = 0; i < OPTION_COUNT; i++)
      if ((int)option_info[i].group == g) {
        const OptionInfo *info = &option_info[i];
        help_line(out, info->letter, info->flag, info->argument, info->help);
        fputc('\n', out);
      }
  }
  help_warnings(out);
  help_recipe(out);
  fputs("\nexit status: 0 done, 1 the model is wrong, 2 the command line is wrong, 3 the machine\n"
        "lacks something (compiler, disk space), 70 a bug in ampcc.\n",
        out);
}

void options_list_passes(FILE *out) {
  for (int i = 0; i < n_passes; i++)
    fprintf(out, "%-16s %s\n", pass_info[i].flag, pass_info[i].summary);
}

/* ---- parsing ---- */

typedef struct Args {
  Arena *arena;
  int argc, at;
  char **argv;
  Options *out;
  Override *override;
  int n_overrides, cap_overrides, n_positional;
} Args;

/* "--batch_size=3" -> "batch-size"; *value is what follows `=`, or NULL. */
static const char *flag_name(Args *args, const char *arg, const char **value) {
  size_t n = strcspn(arg, "=");
  char *name = arena_strdup(args->arena, arg, n);
  *value = arg[n] ? arg + n + 1 : NULL;
  for (char *c = name; *c; c++)
    if (*c == '_')
      *c = '-';
  return name;
}

/* The value after `=`, or else the next argument. */
static const char *take_value(Args *args, const char *flag, const char *value) {
  if (!value && args->at + 1 < args->argc)
    value = args->argv[++args->at];
  if (!value)
    fprintf(stderr, "ampcc: --%s needs a value\n", flag);
  return value;
}

static bool unknown_option(Args *args, const char *name, const char *argument) {
  Nearest nearest = nearest_to(name);
  for (int i = 0; i < OPTION_COUNT; i++)
    nearest_try(&nearest, option_info[i].flag);
  for (int i = 0; i < n_recipe_fields; i++)
    nearest_try(&nearest, recipe_field[i].flag);
  const char *hint = nearest_hint(args->arena, &nearest, "--");
  fprintf(stderr, "ampcc: unknown option `%s`%s\n", argument, *hint ? hint : "; see --help");
  return false;
}

/* -WNAME and the like: they add up, so none replaces another. */
static bool parse_warning(Args *args, const char *text) {
  const char *unknown = warn_set(&args->out->warn, text);
  if (!unknown)
    return true;
  Nearest nearest = nearest_to(unknown);
  for (int i = 0; i < WARN_COUNT; i++)
    nearest_try(&nearest, warn_info[i].name);
  const char *hint = nearest_hint(args->arena, &nearest, "");
  fprintf(stderr, "ampcc: unknown warning `%s`%s\n", unknown, *hint ? hint : "; see --help");
  return false;
}

static bool parse_option(Args *args, OptionId id, const char *value) {
  const OptionInfo *info = &option_info[id];
  bool optional = info->argument && *info->argument == '[';
  if (!info->argument && value) {
    fprintf(stderr, "ampcc: --%s takes no value\n", info->flag);
    return false;
  }
  if (info->argument && !optional)
    value = take_value(args, info->flag, value);
  else if (!value)
    value = "";
  args->out->text[id] = value;
  return value && (id != OPT_warn || parse_warning(args, value));
}

static bool parse_long(Args *args, const char *arg) {
  const char *value;
  const char *name = flag_name(args, arg + 2, &value);
  for (int i = 0; i < OPTION_COUNT; i++)
    if (!strcmp(option_info[i].flag, name))
      return parse_option(args, (OptionId)i, value);
  const RecipeField *field = recipe_find(name);
  if (!field || strcmp(field->flag, name))
    return unknown_option(args, name, arg);
  Override override = {field, take_value(args, name, value)};
  if (override.text)
    arena_push(args->arena, args->override, args->n_overrides, args->cap_overrides, override);
  return override.text != NULL;
}

/* -o FILE, -oFILE, -v */
static bool parse_short(Args *args, const char *arg) {
  for (int i = 0; i < OPTION_COUNT; i++)
    if (option_info[i].letter == arg[1]) {
      if (arg[2] && !option_info[i].argument)
        break;
      return parse_option(args, (OptionId)i, arg[2] ? arg + 2 : NULL);
    }
  return unknown_option(args, arg + 1, arg);
}

static bool parse_model(Args *args, const char *arg) {
  if (args->n_positional++) {
    fprintf(stderr, "ampcc: one model at a time: `%s`, `%s`\n", args->out->model, arg);
    return false;
  }
  args->out->model = arg;
  return true;
}

static bool parse_all(Args *args) {
  bool only_models = false;
  for (; args->at < args->argc; args->at++) {
    const char *arg = args->argv[args->at];
    bool ok;
    if (!only_models && !strcmp(arg, "--"))
      ok = only_models = true;
    else if (only_models || arg[0] != '-' || !arg[1])
      ok = parse_model(args, arg);
    else
      ok = arg[1] == '-' ? parse_long(args, arg) : parse_short(args, arg);
    if (!ok)
      return false;
  }
  return true;
}

bool options_parse(Arena *arena, int argc, char **argv, Options *out) {
  Args args = {.arena = arena, .argc = argc, .at = 1, .argv = argv, .out = out};
  *out = (Options){.batch_norm_momentum = -1, .max_error = NAN};
  compile_options_default(&out->compile);
  if (!parse_all(&args))
    return false;
  out->overrides = (Overrides){args.override, args.n_overrides};
  if (out->text[OPT_help] || out->text[OPT_version] || out->text[OPT_list_passes] ||
      out->text[OPT_list_targets])
    return true;
  if (!out->model) {
    fputs("ampcc: no model given; see --help\n", stderr);
    return false;
  }
  return options_interpret(arena, out);
}
