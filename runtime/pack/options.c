#include "runtime/pack/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum Kind { SWITCH, NUMBER, TEXT } Kind;

typedef struct Option {
  const char *group; /* a heading, in whose row nothing else is set */
  const char *flag, *otherwise, *argument, *help;
  char letter;
  Kind kind;
  int64_t least, most;
  size_t offset;
} Option;

static const Option table[] = {
#define GROUP(title) {.group = title},
#define OPTION(field, flag, letter, kind, otherwise, least, most, argument, help)                  \
  {NULL, flag, otherwise, argument, help, letter, kind, least, most, offsetof(PackOptions, field)},
#include "runtime/pack/options.def"
};
enum { N_OPTIONS = sizeof table / sizeof *table };

/* --data_dir is --data-dir */
static const Option *find_flag(const char *name, size_t n) {
  for (int i = 0; i < N_OPTIONS; i++) {
    const char *flag = table[i].flag;
    size_t same = 0;
    while (flag && same < n && flag[same] == (name[same] == '_' ? '-' : name[same]))
      same++;
    if (flag && same == n && !flag[n])
      return &table[i];
  }
  return NULL;
}

static const Option *find_letter(char letter) {
  for (int i = 0; i < N_OPTIONS; i++)
    if (table[i].flag && table[i].letter == letter)
      return &table[i];
  return NULL;
}

/* `value` as it is on the command line or in the table, whose values may lie outside the bounds. */
static AmprtStatus set(PackOptions *options, const Option *option, const char *value, bool given,
                       AmprtError *error) {
  char *field = (char *)options + option->offset, *end;
  if (option->kind == TEXT) {
    if (given && !*value)
      return amprt_fail(error, AMPRT_USAGE, "--%s needs a value (%s)", option->flag,
                        option->argument);
    memcpy(field, &value, sizeof value);
    return AMPRT_OK;
  }
  errno = 0;
  int64_t number = strtoll(value, &end, 10);
  if (given && (errno || end == value || *end || number < option->least || number > option->most))
    return amprt_fail(error, AMPRT_USAGE,
                      "--%s takes a whole number from %lld to %lld, not `%.80s`", option->flag,
                      (long long)option->least, (long long)option->most, value);
  if (option->kind == NUMBER)
    memcpy(field, &number, sizeof number);
  else
    *(bool *)field = number != 0;
  return AMPRT_OK;
}

/* Parses argv[*i], and the next argument if that is its value. */
static AmprtStatus parse_one(PackOptions *options, int argc, char **argv, int *i,
                             AmprtError *error) {
  const char *arg = argv[*i], *value = NULL;
  const Option *option = NULL;
  if (arg[0] == '-' && arg[1] == '-') {
    size_t n = strcspn(arg + 2, "=");
    option = find_flag(arg + 2, n);
    value = arg[2 + n] ? arg + 3 + n : NULL;
  } else if (arg[0] == '-' && arg[1]) {
    option = find_letter(arg[1]);
    value = arg[2] ? arg + 2 : NULL; /* -oDIR */
  } else {
    return amprt_fail(error, AMPRT_USAGE, "unexpected argument `%.80s`; see --help", arg);
  }
  if (!option)
    return amprt_fail(error, AMPRT_USAGE, "unknown option `%.80s`; see --help", arg);
  if (option->kind == SWITCH && value)
    return amprt_fail(error, AMPRT_USAGE, "--%s takes no value", option->flag);
  if (option->kind == SWITCH)
    return set(options, option, "1", false, error);
  if (!value && *i + 1 < argc)
    value = argv[++*i];
  return set(options, option, value ? value : "", true, error);
}

AmprtStatus pack_options_parse(PackOptions *o, int argc, char **argv, AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  for (int i = 0; i < N_OPTIONS; i++)
    if (table[i].flag)
      set(o, &table[i], table[i].otherwise, false, error);
  for (int i = 1; i < argc && !status; i++)
    status = parse_one(o, argc, argv, &i, error);
  if (status || o->help || o->version)
    return status;
  const struct {
    bool good;
    const char *text;
  } rule[] = {
      {!*o->split || !strcmp(o->split, "train") || !strcmp(o->split, "val"),
       "--split takes train or val"},
      {(*o->list || *o->verify) != (*o->dataset || *o->output),
       "give --dataset=NAME --data-dir=DIR -o DIR to make packs, or --list=FILE or --verify=FILE; "
       "see --help"},
      {!*o->dataset == !*o->output, "--dataset=NAME and -o DIR are both needed"},
      {o->resize || !o->lossless, "--lossless is for images that --resize makes smaller"},
  };
  for (size_t i = 0; i < sizeof rule / sizeof *rule; i++)
    if (!rule[i].good)
      return amprt_fail(error, AMPRT_USAGE, "%s", rule[i].text);
  return AMPRT_OK;
}

/* clang-format off: one string */
static const char dataset_words[] =
#define DATASET(name, ...) " " #name
#include "ir/recipe/datasets.def"
    "";
/* clang-format on */

void pack_options_help(FILE *out) {
  amprt_print(out, "usage: ampcc-pack --dataset=NAME --data-dir=DIR -o DIR [options]\n"
                   "       ampcc-pack --list=FILE\n"
                   "       ampcc-pack --verify=FILE\n\n"
                   "Packs a data set into one file for training and one for evaluation.\n");
  for (int i = 0; i < N_OPTIONS; i++) {
    const Option *option = &table[i];
    char left[64];
    if (option->group) {
      amprt_print(out, "\n%s:\n", option->group);
      continue;
    }
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ', option->letter ? ", " : "  ", option->flag,
             *option->argument ? "=" : "", option->argument);
    int64_t number = option->kind == NUMBER ? strtoll(option->otherwise, NULL, 10) : 0;
    bool shown = option->kind == NUMBER && number >= option->least;
    amprt_print(out, "  %-28s %s%s%s%s%s\n", left, option->help,
                strcmp(option->flag, "dataset") ? "" : dataset_words, shown ? " [" : "",
                shown ? option->otherwise : "", shown ? "]" : "");
  }
}
