#include "runtime/flags/options.h"

#include "runtime/flags/official.h"

#include <stdlib.h>
#include <string.h>

const AmprtOption amprt_option[] = {
#define GROUP(title) {.group = title},
#define OPTION(field, flag, letter, kind, otherwise, value, help)                                  \
  {NULL,                                                                                           \
   flag,                                                                                           \
   otherwise,                                                                                      \
   value,                                                                                          \
   help,                                                                                           \
   letter,                                                                                         \
   AMPRT_OPT_##kind,                                                                               \
   offsetof(AmprtOptions, field),                                                                  \
   offsetof(AmprtOptions, given.field)},
#include "runtime/flags/options.def"
};
const int amprt_n_options = sizeof amprt_option / sizeof *amprt_option;

static const AmprtOption *option_find(const char *name, size_t n) {
  for (int i = 0; i < amprt_n_options; i++)
    if (amprt_option[i].flag && amprt_same_flag(name, n, amprt_option[i].flag))
      return &amprt_option[i];
  return NULL;
}

static const AmprtOption *option_find_letter(char letter) {
  for (int i = 0; i < amprt_n_options; i++)
    if (amprt_option[i].letter && amprt_option[i].letter == letter)
      return &amprt_option[i];
  return NULL;
}

/* The Levenshtein distance of two names of at most 39 letters. */
static int distance(const char *a, size_t na, const char *b) {
  enum { MOST = 40 };
  int row[MOST];
  size_t nb = strlen(b);
  if (na >= MOST || nb >= MOST)
    return MOST;
  for (size_t j = 0; j <= nb; j++)
    row[j] = (int)j;
  for (size_t i = 1; i <= na; i++) {
    int corner = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= nb; j++) {
      int swap = corner + !amprt_same_flag(&a[i - 1], 1, (char[]){b[j - 1], '\0'});
      corner = row[j];
      int least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      row[j] = least < swap ? least : swap;
    }
  }
  return row[nb];
}

/* The error for an unknown flag, which suggests the nearest of the program's own flags, or of the
 * official programs'. */
static AmprtStatus fail_unknown(const char *arg, const char *name, size_t n, AmprtError *error) {
  char near[256] = "";
  for (int want = 1, found = 0; want <= 4 && found < 3; want++)
    for (int i = 0; i < amprt_n_options + amprt_n_official && found < 3; i++) {
      const char *flag =
          i < amprt_n_options ? amprt_option[i].flag : amprt_official[i - amprt_n_options].name;
      bool own = flag && i >= amprt_n_options && option_find(flag, strlen(flag));
      bool begins = flag && want == 4 && n >= 3 && strncmp(flag, name, n) == 0;
      if (!flag || own || (!begins && (want == 4 || distance(name, n, flag) != want)))
        continue;
      size_t used = strlen(near);
      snprintf(near + used, sizeof near - used, "%s--%s", found++ ? ", " : "; did you mean ", flag);
    }
  return amprt_fail(error, AMPRT_USAGE, "unknown flag `%.80s`%s%s; see --help", arg, near,
                    *near ? "?" : "");
}

/* The values that a field of the recipe takes, or a flag whose values official.def lists; NULL for
 * other flags. */
static const AmprtTakes *takes_of(const char *flag) {
  int row = amprt_built_find(flag, strlen(flag));
  if (row >= 0 && amprt_built_flag[row].run)
    return &amprt_built_flag[row].takes;
  const AmprtOfficial *official = amprt_official_find(flag, strlen(flag));
  return official && official->does == AMPRT_DOES_OURS ? &official->takes : NULL;
}

int amprt_recipe_word(const char *flag, const char *word) {
  const AmprtTakes *takes = takes_of(flag);
  return takes ? amprt_word_index(takes->words, word) : -1;
}

static AmprtStatus set_one(AmprtOptions *options, const AmprtOption *option,
                           const AmprtTakes *takes, const char *value, AmprtError *error) {
  if (!value && option->kind == AMPRT_OPT_BOOL)
    value = "true";
  if (value && option->offset == offsetof(AmprtOptions, about) && !strcmp(value, "json")) {
    value = "true";
    option = option_find("manifest", strlen("manifest"));
  }
  if (!value)
    return amprt_fail(error, AMPRT_USAGE, "--%s needs a value (%s)", option->flag,
                      amprt_kind_text(option->kind));
  if (option->offset == offsetof(AmprtOptions, resume) && !strcmp(value, "auto"))
    value = "true"; /* it does start where there is no checkpoint */
  bool plain = option->kind == AMPRT_OPT_STR && !strcmp(value, option->otherwise);
  return amprt_value_read(option->flag, option->kind, plain ? NULL : takes, value,
                          (char *)options + option->offset, error);
}

/* Sets a flag given on the command line. */
static AmprtStatus give_one(AmprtOptions *options, const AmprtOption *option, const char *value,
                            AmprtError *error) {
  *(bool *)((char *)options + option->given) = true;
  return set_one(options, option, takes_of(option->flag), value, error);
}

AmprtStatus amprt_options_set(AmprtOptions *options, const char *flag, const char *value,
                              AmprtError *error) {
  const AmprtOption *option = option_find(flag, strlen(flag));
  if (!option)
    return fail_unknown(flag, flag, strlen(flag), error);
  return give_one(options, option, value, error);
}

/* ---- the command line ---- */

typedef struct Parse {
  AmprtOptions *options;
  AmprtWanted wanted;
  const AmprtFlagFile *file; /* the file that is being read; NULL: the command line itself */
} Parse;

/* What a name on the command line stands for: a flag of one of three tables, or none. */
typedef struct Flag {
  const AmprtOption *option;
  const AmprtOfficial *official;
  int built;    /* -1: it is not in that table */
  bool negated; /* --noNAME */
} Flag;

static bool is_bool(const Flag *flag) {
  if (flag->option)
    return flag->option->kind == AMPRT_OPT_BOOL;
  return flag->official ? flag->official->kind == AMPRT_OPT_BOOL
                        : flag->built >= 0 && !amprt_built_flag[flag->built].argument;
}

/* Finds the flag of a name. `--version` without a value prints the version; with one it is the
 * official flag for the ResNet's version. */
static Flag find_flag(const char *name, size_t n, bool has_value) {
  Flag flag = {.built = -1};
  if (n == 1)
    flag.option = option_find_letter(*name);
  if (!flag.option && !(has_value && amprt_same_flag(name, n, "version")))
    flag.option = option_find(name, n);
  if (!flag.option)
    flag.official = amprt_official_find(name, n);
  if (!flag.option && !flag.official)
    flag.built = amprt_built_find(name, n);
  return flag;
}

static Flag find_negated(const char *name, size_t n) {
  size_t skip = n > 3 && (name[2] == '-' || name[2] == '_') ? 3 : 2;
  Flag flag = {.built = -1};
  if (n > skip && !strncmp(name, "no", 2))
    flag = find_flag(name + skip, n - skip, false);
  flag.negated = is_bool(&flag);
  return flag.negated ? flag : (Flag){.built = -1};
}

static AmprtStatus parse_lines(Parse *parse, const char *path, AmprtError *error);

/* Applies one flag and its value. An official flag that stands for one of the program's own sets
 * that one. */
static AmprtStatus take(Parse *parse, const Flag *flag, const char *value, AmprtError *error) {
  AmprtOptions *options = parse->options;
  if (flag->official)
    return amprt_official_set(options, &parse->wanted, flag->official, value, error);
  if (flag->built >= 0)
    return amprt_wanted_set(&parse->wanted, flag->built, value, error);
  AmprtStatus status = give_one(options, flag->option, value, error);
  if (!status && flag->option->offset == offsetof(AmprtOptions, flagfile))
    status = parse_lines(parse, value, error);
  return status;
}

static bool is_resnet_version(const char *text) {
  return text && (!strcmp(text, "1") || !strcmp(text, "2"));
}

/* Parses one argument. `next` is the argument after it, or NULL; *took_next: it is the value of
 * this one. */
static AmprtStatus parse_one(Parse *parse, const char *arg, const char *next, bool *took_next,
                             AmprtError *error) {
  *took_next = false;
  const char *name = arg + 1 + (arg[0] == '-' && arg[1] == '-');
  size_t n = arg[0] == '-' ? strcspn(name, "=") : 0;
  const char *value = n && name[n] ? name + n + 1 : NULL;
  if (!n)
    return amprt_fail(error, AMPRT_USAGE, "unexpected argument `%.80s`%s; see --help", arg,
                      amprt_word_index("true false", arg) >= 0
                          ? " (the value of a boolean is written as --flag=false)"
                          : "");
  bool of_resnet = amprt_same_flag(name, n, "version") && is_resnet_version(next);
  Flag flag = find_flag(name, n, value || of_resnet);
  if (!flag.option && !flag.official && flag.built < 0)
    flag = find_negated(name, n);
  if (!flag.option && !flag.official && flag.built < 0)
    return fail_unknown(arg, name, n, error);
  if (flag.negated && value)
    return amprt_fail(error, AMPRT_USAGE, "%.80s: a flag that begins with no takes no value", arg);
  if (flag.negated)
    value = "false";
  if (!value && !is_bool(&flag) && next) {
    value = next;
    *took_next = true;
  }
  if (!value && !is_bool(&flag) && flag.built >= 0)
    return amprt_fail(error, AMPRT_USAGE, "--%s needs a value (%s)",
                      amprt_built_flag[flag.built].flag, amprt_built_flag[flag.built].argument);
  return take(parse, &flag, value, error);
}

/* Joins "A B C" on the command line to "A,B,C", for a flag that takes a list; *used: how many
 * words. */
static const char *join_list(Parse *parse, int argc, char **argv, int i, int *used) {
  const char *name = argv[i] + strspn(argv[i], "-");
  const AmprtOfficial *row = amprt_official_find(name, strlen(name));
  AmprtText all = {0};
  *used = 1;
  if (i + 1 >= argc)
    return NULL;
  if (*argv[i] != '-' || !row || !row->takes.many)
    return argv[i + 1];
  amprt_text_add(&all, "%s", argv[i + 1]);
  for (; i + 1 + *used < argc && *argv[i + 1 + *used] != '-'; (*used)++)
    amprt_text_add(&all, ",%s", argv[i + 1 + *used]);
  AmprtArgText *kept =
      all.failed ? NULL : amprt_arg_text(&parse->options->texts, all.data, strlen(all.data));
  amprt_text_free(&all);
  return kept ? kept->text : argv[i + 1];
}

/* Parses the lines of a file. The message of an error names the innermost file and its line. */
static AmprtStatus parse_lines(Parse *parse, const char *path, AmprtError *error) {
  AmprtFlagFile file;
  const AmprtFlagFile *outer = parse->file;
  AmprtStatus status = amprt_flagfile_read(&file, path, outer, &parse->options->texts, error);
  parse->file = &file;
  for (int i = 0; i < file.n_lines && !status; i++) {
    const AmprtFlagLine *line = &file.line[i];
    bool took_value = false;
    AmprtError inner = {0};
    status = parse_one(parse, line->argument, line->value, &took_value, &inner);
    if (!status && line->value && !took_value)
      status = amprt_fail(&inner, AMPRT_USAGE, "unexpected argument `%.80s`", line->value);
    if (status && amprt_same_flag(line->argument + strspn(line->argument, "-"), 8, "flagfile"))
      *error = inner;
    else if (status)
      amprt_fail(error, status, "%.900s:%d: %.1000s", path, line->number, inner.text);
  }
  parse->file = outer;
  amprt_flagfile_close(&file);
  return status;
}

static AmprtStatus check_ranges(const AmprtOptions *o, AmprtError *error) {
  const struct {
    bool good;
    const char *text;
  } rule[] = {
      {o->epochs_between_evals > 0, "--epochs-between-evals must be larger than 0"},
      {amprt_word_index("placement run off", o->deterministic) >= 0,
       "--deterministic must be placement, run or off"},
      {o->connect_timeout > 0, "--connect-timeout must be larger than 0"},
      {o->comm_timeout >= 0, "--comm-timeout must not be negative"},
      {o->shards >= 0, "--shards must not be negative"},
      {o->max_train_steps >= 0, "--max-train-steps must not be negative"},
      {o->synthetic_examples >= 0, "--synthetic-examples must not be negative"},
      {o->data_threads >= 0 && o->data_threads <= 64, "--data-threads must be from 0 to 64"},
      {o->threads >= 0 && o->threads <= 4096, "--threads must be from 0 to 4096"},
      /* bounded because no signal ends that loop */
      {o->recompute_bn_stats >= 0 && o->recompute_bn_stats <= 100000,
       "--recompute-bn-stats must be from 0 to 100000"},
      {o->checkpoint_every >= 0, "--checkpoint-every must not be negative"},
      {o->keep_checkpoints >= 0, "--keep-checkpoints must not be negative"},
      {o->max_skipped_steps >= 0, "--max-skipped-steps must not be negative"},
      {o->log_every > 0, "--log-every must be larger than 0"},
      {o->log_steps >= 0, "--log-steps must not be negative"},
      {o->summary_every > 0, "--summary-every must be larger than 0"},
      {!(o->given.summary_every && !o->tensorboard), "--summary-every needs --tensorboard"},
      {o->grad_histogram_every >= 0, "--grad-histogram-every must not be negative"},
      {!*o->trap || !strcmp(o->trap, "first-nonfinite"), "--trap must be first-nonfinite"},
      {!(*o->reproduce && (o->resume || o->clean || o->eval_only || *o->init_from || *o->trap)),
       "--reproduce does not go with --resume, --clean, --eval-only, --init-from or --trap"},
      {!(o->resume && o->clean), "--resume and --clean do not go together"},
      {!(o->eval_only && o->clean), "--eval-only and --clean do not go together"},
      {!(o->train_epochs == 0 && o->clean),
       "--train-epochs=0 only evaluates: it does not go with --clean"},
      {!(o->init_from_strict && !*o->init_from), "--init-from-strict needs --init-from"},
      {!(o->given.init_from && !*o->init_from), "--init-from needs the name of a file"},
      {!(o->given.reproduce && !*o->reproduce), "--reproduce needs the name of a file"},
      {!(o->given.dump_step && !*o->dump_step), "--dump-step needs the name of a file"},
      {!(o->quiet && o->verbose), "--quiet and --verbose do not go together"},
  };
  for (size_t i = 0; i < sizeof rule / sizeof *rule; i++)
    if (!rule[i].good)
      return amprt_fail(error, AMPRT_USAGE, "%s", rule[i].text);
  return AMPRT_OK;
}

AmprtStatus amprt_options_parse(AmprtOptions *options, const AmprtProgram *program, int argc,
                                char **argv, AmprtError *error) {
  *options = (AmprtOptions){0};
  Parse parse = {.options = options};
  AmprtStatus status = AMPRT_OK;
  for (int i = 0; i < amprt_n_options && !status; i++)
    if (amprt_option[i].flag && amprt_option[i].kind != AMPRT_OPT_BOOL)
      status = set_one(options, &amprt_option[i], NULL, amprt_option[i].otherwise, error);
  for (int i = 0; i < program->n_recipe && !status; i++) {
    const AmprtSetting *set = &program->recipe[i];
    const AmprtOption *option = option_find(set->flag, strlen(set->flag));
    status = option ? set_one(options, option, NULL, set->value, error)
                    : fail_unknown(set->flag, set->flag, strlen(set->flag), error);
  }
  for (int i = 1; i < argc && !status; i++) {
    bool took_next;
    int used;
    const char *next = join_list(&parse, argc, argv, i, &used);
    status = parse_one(&parse, argv[i], next, &took_next, error);
    i += took_next ? used : 0;
  }
  if (!status)
    status = amprt_wanted_check(&parse.wanted, program, error);
  return status ? status : check_ranges(options, error);
}

void amprt_options_free(AmprtOptions *options) {
  amprt_arg_texts_free(&options->texts);
}
