#include "frontend/driver/option_table.h"

#include "frontend/driver/response.h"
#include "ir/base/nearest.h"
#include "ir/base/text.h"
#include "ir/recipe/opt.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- help ---- */

enum { HELP_COLUMN = 30 };

static void help_line(FILE *out, char letter, const char *flag, const char *argument,
                      const char *help) {
  const char *dashes = isupper(*flag) ? "-" : "--";
  int n = letter ? fprintf(out, "  -%c, --%s", letter, flag) : fprintf(out, "  %s%s", dashes, flag);
  if (argument && isupper(*flag))
    n += fprintf(out, " %s", argument);
  else if (argument && *argument == '[')
    n += fprintf(out, "[=%s", argument + 1);
  else if (argument)
    n += fprintf(out, "=%s", argument);
  fprintf(out, "%*s%s", n < HELP_COLUMN ? HELP_COLUMN - n : 1, "", help);
}

static void help_warnings(const OptionTable *table, FILE *out) {
  fputs("\nwarnings: -WNAME, -Wno-NAME, -Werror=NAME, -Wno-error=NAME; all for every one (*: on "
        "unasked)\n",
        out);
  for (int i = 0; i < WARN_COUNT; i++) {
    const WarnInfo *info = &warn_info[i];
    if (table->warnings >> i & 1)
      fprintf(out, "  %-*s%s%s\n", HELP_COLUMN - 2, info->name, info->meaning,
              info->on ? " *" : "");
  }
}

static void help_recipe(FILE *out) {
  static const char *const argument[] = {
      [RECIPE_STR] = "WORD", [RECIPE_INT] = "N", [RECIPE_FLOAT] = "X", [RECIPE_FLOATS] = "X,Y"};
  Arena *arena = arena_new();
  fputs("\nrecipe: instead of the model's (*: may also be given to the program)\n", out);
  for (int i = 0; i < RECIPE_COUNT; i++) {
    const RecipeField *field = &recipe_field[i];
    help_line(out, 0, field->flag, argument[field->kind], field->help);
    if (field->takes.words)
      fprintf(out, ": %s", recipe_takes(arena, field));
    opt_print_defaults(field->field, out);
    fputs(field->when == RECIPE_RUN ? " *\n" : "\n", out);
  }
  arena_free(arena);
}

void option_table_help(const OptionTable *table, FILE *out) {
  for (int g = 0; g < table->n_groups; g++) {
    fprintf(out, "\n%s\n", table->heading[g]);
    for (int i = 0; i < table->n_options; i++) {
      const OptionInfo *info = &table->option[i];
      if (info->group != g)
        continue;
      help_line(out, info->letter, info->flag, info->argument, info->help);
      fputc('\n', out);
    }
  }
  help_warnings(table, out);
  if (table->recipe)
    help_recipe(out);
}

/* ---- parsing ---- */

typedef struct Args {
  Arena *arena;
  const OptionTable *table;
  int argc, at;
  char **argv;
  CommandLine *out;
  Override *override;
  int n_overrides, cap_overrides;
  Recipe *recipe; /* the defaults, with the overrides applied */
  GivenWord *word;
  int n_words, cap_words;
} Args;

bool option_wrong_value(const OptionTable *table, int option, const char *text) {
  const OptionInfo *info = &table->option[option];
  text_say("%s: --%s takes %s, not `%s`\n", table->program, info->flag, info->argument, text);
  return false;
}

bool option_choice(const OptionTable *table, int option, const char *text, int *out) {
  const char *words = table->option[option].argument;
  words += *words == '[';
  for (int i = 0; text && *words; i++) {
    size_t n = strcspn(words, "|]");
    if (strlen(text) == n && !memcmp(text, words, n)) {
      *out = i;
      return true;
    }
    words += n + (words[n] != '\0');
  }
  return !text || option_wrong_value(table, option, text);
}

bool option_number(const OptionTable *table, int option, const char *text, double low, double high,
                   double *out) {
  if (!text)
    return true;
  char *end;
  double number = strtod(text, &end);
  if (end == text || *end || !(number >= low && number <= high))
    return option_wrong_value(table, option, text);
  *out = number;
  return true;
}

bool option_count(const OptionTable *table, int option, const char *text, int most, int *out) {
  double number = 1;
  if (!option_number(table, option, text, 1, most, &number))
    return false;
  if (number != (int)number)
    return option_wrong_value(table, option, text);
  if (text)
    *out = (int)number;
  return true;
}

/* Turns "--batch_size=3" into "batch-size" and sets *value to what follows `=`, or to NULL. */
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
    text_say("%s: --%s needs a value\n", args->table->program, flag);
  return value;
}

static bool unknown_option(Args *args, const char *name, const char *argument) {
  const OptionTable *table = args->table;
  const char *program = table->program;
  for (const char *const *flag = table->foreign; *flag; flag++)
    if (!strcmp(*flag, name)) {
      text_say("%s: --%s is an option of %s\n", program, name, table->owner);
      return false;
    }
  Nearest nearest = nearest_to(name);
  for (int i = 0; i < table->n_options; i++)
    nearest_try(&nearest, table->option[i].flag);
  for (int i = 0; table->recipe && i < RECIPE_COUNT; i++)
    nearest_try(&nearest, recipe_field[i].flag);
  const char *hint = nearest_hint(args->arena, &nearest, "--");
  text_say("%s: unknown option `%s`%s\n", program, argument, *hint ? hint : "; see --help");
  return false;
}

/* Reads -WNAME and the like. Each adds to those before instead of replacing them. */
static bool parse_warning(Args *args, const char *text) {
  const char *unknown = warn_set(&args->out->warn, text);
  if (!unknown)
    return true;
  Nearest nearest = nearest_to(unknown);
  for (int i = 0; i < WARN_COUNT; i++)
    if (args->table->warnings >> i & 1)
      nearest_try(&nearest, warn_info[i].name);
  const char *hint = nearest_hint(args->arena, &nearest, "");
  text_say("%s: unknown warning `%s`%s\n", args->table->program, unknown,
           *hint ? hint : "; see --help");
  return false;
}

static void keep_word(Args *args, int option, const char *flag, const char *value) {
  GivenWord word = {option, value ? arena_printf(args->arena, "--%s=%s", flag, value)
                                  : arena_printf(args->arena, "--%s", flag)};
  arena_push(args->arena, args->word, args->n_words, args->cap_words, word);
}

static bool parse_option(Args *args, int option, const char *value) {
  const OptionInfo *info = &args->table->option[option];
  bool optional = info->argument && *info->argument == '[';
  if (!info->argument && value) {
    text_say("%s: --%s takes no value\n", args->table->program, info->flag);
    return false;
  }
  if (info->argument && !optional)
    value = take_value(args, info->flag, value);
  else if (!value)
    value = "";
  if (value)
    keep_word(args, option, info->flag, info->argument && (!optional || *value) ? value : NULL);
  args->out->text[option] = value;
  return value && (option != args->table->warn || parse_warning(args, value));
}

/* A flag of the recipe. */
static bool parse_override(Args *args, const RecipeField *field, const char *value) {
  Override override = {field, take_value(args, field->flag, value)};
  if (!override.text)
    return false;
  if (!recipe_set(args->arena, args->recipe, field, override.text)) {
    text_say("%s: --%s takes %s, not `%s`\n", args->table->program, field->flag,
             recipe_takes(args->arena, field), override.text);
    return false;
  }
  keep_word(args, -1, field->flag, override.text);
  arena_push(args->arena, args->override, args->n_overrides, args->cap_overrides, override);
  return true;
}

/* --recipe=NAME stands for the flags of its rows in ir/recipe/named.def. */
static bool parse_recipe(Args *args, int option) {
  static const struct {
    const char *recipe, *flag, *value, *source;
  } rows[] = {
#define NAMED(recipe, flag, value, source) {#recipe, flag, value, source},
#include "ir/recipe/named.def"
  };
  const char *text = args->out->text[option];
  char *name = arena_strdup(args->arena, text, strlen(text));
  int found = 0;
  for (char *c = name; *c; c++)
    *c = *c == '-' ? '_' : *c;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].recipe, name))
      continue;
    Override override = {recipe_find(rows[i].flag), rows[i].value,
                         arena_printf(args->arena, "--recipe=%s %s", text, rows[i].source)};
    bool fits =
        override.field && recipe_set(args->arena, args->recipe, override.field, override.text);
    CHECK(fits, "recipe %s: --%s=%s", name, rows[i].flag, rows[i].value);
    arena_push(args->arena, args->override, args->n_overrides, args->cap_overrides, override);
    found++;
  }
  return found || option_wrong_value(args->table, option, text);
}

static bool parse_long(Args *args, const char *arg) {
  const char *value;
  const char *name = flag_name(args, arg + 2, &value);
  for (int i = 0; i < args->table->n_options; i++)
    if (!strcmp(args->table->option[i].flag, name))
      return parse_option(args, i, value) &&
             (!args->table->recipe || strcmp(name, "recipe") || parse_recipe(args, i));
  const RecipeField *field = args->table->recipe ? recipe_find(name) : NULL;
  if (!field || strcmp(field->flag, name))
    return unknown_option(args, name, arg);
  return parse_override(args, field, value);
}

/* -o FILE, -oFILE, -v; -MF FILE */
static bool parse_short(Args *args, const char *arg) {
  for (int i = 0; i < args->table->n_options; i++)
    if (isupper(arg[1]) && !strcmp(args->table->option[i].flag, arg + 1))
      return parse_option(args, i, NULL);
  for (int i = 0; i < args->table->n_options; i++) {
    const OptionInfo *info = &args->table->option[i];
    if (info->letter == arg[1] && (!arg[2] || info->argument))
      return parse_option(args, i, arg[2] ? arg + 2 : NULL);
  }
  return unknown_option(args, arg + 1, arg);
}

static bool parse_model(Args *args, const char *arg) {
  if (args->out->model) {
    text_say("%s: one model at a time: `%s`, `%s`\n", args->table->program, args->out->model, arg);
    return false;
  }
  args->out->model = arg;
  return true;
}

bool command_line_parse(Arena *arena, const OptionTable *table, int argc, char **argv,
                        CommandLine *out) {
  Args args = {.arena = arena,
               .table = table,
               .argc = argc,
               .argv = argv,
               .out = out,
               .recipe = recipe_new(arena)};
  bool only_models = false;
  if (!response_expand(arena, table->program, &args.argc, &args.argv))
    return false;
  for (args.at = 1; args.at < args.argc; args.at++) {
    const char *arg = args.argv[args.at];
    bool ok;
    if (!only_models && !strcmp(arg, "--"))
      ok = only_models = true;
    else if (only_models || arg[0] != '-' || !arg[1])
      ok = parse_model(&args, arg);
    else
      ok = arg[1] == '-' ? parse_long(&args, arg) : parse_short(&args, arg);
    if (!ok)
      return false;
  }
  /* These two flags contradict each other whatever the model's recipe is. */
  if (args.recipe->clip_value > 0 && args.recipe->clip_norm > 0) {
    text_say("%s: %s\n", table->program, recipe_conflict(arena, args.recipe));
    return false;
  }
  out->overrides = (Overrides){args.override, args.n_overrides};
  out->word = args.word;
  out->n_words = args.n_words;
  return true;
}
