#include "runtime/flags/fixed.h"

#include "ir/recipe/lr_schedule.def"
#include "runtime/base/json.h"
#include "runtime/base/names.h"
#include "runtime/core/machine.h"
#include "runtime/state/init.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off: the rows of a table make one string */
static const char dataset_words[] =
#define DATASET(name, ...) #name " "
#include "ir/recipe/datasets.def"
    "synthetic";
static const char preprocessing_words[] =
#define PREPROCESSING(id, name, ...) " " name
#include "ir/recipe/preprocessing.def"
    ;
/* clang-format on */

/* The flags that decide what a program is: rows of two tables of the compiler. */
#define ARGUMENT_STR    "WORD"
#define ARGUMENT_INT    "N"
#define ARGUMENT_FLOAT  "X"
#define ARGUMENT_FLOATS "X,X..."
#define RUN_RUN         true
#define RUN_COMPILE     false
#define RECIPE(field, flag, kind, otherwise, takes, when, help)                                    \
  {flag, ARGUMENT_##kind, AMPRT_OPT_##kind, RUN_##when, {takes}},
#define OPTION(id, flag, letter, argument, group, help) OPTION_OF_##group(flag, argument)
#define OPTION_OF_PROGRAM(flag, argument)               {flag, argument, AMPRT_OPT_STR, false, {0}},
#define OPTION_OF_OUTPUT(flag, argument)
#define OPTION_OF_PASSES(flag, argument)
#define OPTION_OF_REPORTS(flag, argument)
#define OPTION_OF_TOOLS(flag, argument)
#define OPTION_OF_BATCH(flag, argument)
const AmprtBuiltFlag amprt_built_flag[] = {
#include "frontend/driver/options.def"
#include "ir/recipe/recipe.def"
};
const int amprt_n_built_flags = sizeof amprt_built_flag / sizeof *amprt_built_flag;
_Static_assert(sizeof amprt_built_flag / sizeof *amprt_built_flag <= AMPRT_MAX_BUILT,
               "AMPRT_MAX_BUILT");

bool amprt_same_flag(const char *a, size_t n, const char *b) {
  for (size_t i = 0; i < n; i++)
    if ((a[i] == '_' ? '-' : a[i]) != (b[i] == '_' ? '-' : b[i]) || !b[i])
      return false;
  return b[n] == '\0';
}

int amprt_built_find(const char *name, size_t n) {
  for (int i = 0; i < amprt_n_built_flags; i++)
    if (amprt_same_flag(name, n, amprt_built_flag[i].flag))
      return i;
  return -1;
}

static int row_of(const char *flag) {
  return amprt_built_find(flag, strlen(flag));
}

AmprtStatus amprt_wanted_set(AmprtWanted *wanted, int row, const char *value, AmprtError *error) {
  const AmprtBuiltFlag *built = &amprt_built_flag[row];
  AmprtOptionKind kind = built->argument ? built->kind : AMPRT_OPT_BOOL;
  AmprtValueOf parsed;
  wanted->value[row] = value ? value : "true";
  return amprt_value_read(built->flag, kind, &built->takes, wanted->value[row], &parsed, error);
}

/* ---- what the program is ---- */

static const char *setting(const AmprtSetting *list, int n, const char *flag) {
  for (int i = 0; i < n; i++)
    if (!strcmp(list[i].flag, flag))
      return list[i].value;
  return NULL;
}

/* The program's loss scale: "none", "dynamic" or a number. */
static void scale_of(const AmprtProgram *program, char *out, size_t size) {
  const AmprtVariable *scale = amprt_variable_find(program, amprt_name_loss_scale);
  if (!scale)
    snprintf(out, size, "none");
  else if (amprt_variable_find(program, amprt_name_good_steps))
    snprintf(out, size, "dynamic");
  else
    snprintf(out, size, "%.9g", scale->init_arg[0]);
}

static bool counts_top5(const AmprtProgram *program) {
  const AmprtGraph *eval = amprt_graph_find(program, "eval");
  return eval && amprt_port_find(eval->output, eval->n_outputs, amprt_name_hit5_each);
}

/* The value that this program has for a flag, as text; "true" or "false" for a switch, "" if ampcc
 * was not given the flag. */
static const char *value_of(const AmprtProgram *program, int row, char room[32]) {
  const char *flag = amprt_built_flag[row].flag;
  if (!strcmp(flag, "dtype"))
    return program->dtype;
  if (!strcmp(flag, "name"))
    return program->model;
  if (!strcmp(flag, "metrics"))
    return counts_top5(program) ? "top1,top5" : "top1";
  if (!strcmp(flag, "loss-scale"))
    return scale_of(program, room, 32), room;
  const char *made = setting(program->made, program->n_made, flag);
  const char *given = setting(program->given, program->n_given, flag);
  if (!amprt_built_flag[row].argument)
    return given ? "true" : "false";
  return made ? made : given ? given : "";
}

/* fp32 programs are the same for every implementation. */
static bool same_implementation(const AmprtProgram *program, const char *wants, const char *has) {
  const char *policy = "policy"; /* "keras" is another name for it */
  if (!strcmp(wants, "keras"))
    wants = policy;
  if (!strcmp(has, "keras"))
    has = policy;
  return !strcmp(wants, has) || !strcmp(program->dtype, "fp32");
}

/* A dynamic scale with settings must have been given to ampcc in the same words; a scale of 1
 * equals none. */
static bool same_scale(const AmprtProgram *program, const char *wants, const char *has) {
  if (!strncmp(wants, "dynamic:", 8)) {
    const char *given = setting(program->given, program->n_given, "loss-scale");
    return given && !strcmp(wants, given);
  }
  if (!strcmp(has, "none") && amprt_value_same(AMPRT_OPT_FLOAT, wants, "1"))
    return true;
  return !strcmp(wants, has) || amprt_value_same(AMPRT_OPT_FLOAT, wants, has);
}

static bool has_value(const AmprtProgram *program, int row, const char *wants) {
  const AmprtBuiltFlag *built = &amprt_built_flag[row];
  char room[32];
  const char *has = value_of(program, row, room);
  if (!strcmp(built->flag, "fp16-implementation"))
    return same_implementation(program, wants, has);
  if (!strcmp(built->flag, "loss-scale"))
    return same_scale(program, wants, has);
  return amprt_value_same(built->argument ? built->kind : AMPRT_OPT_BOOL, wants, has);
}

/* ---- rules between flags, in the words of the official programs ---- */

static bool is_dynamic(const char *text) {
  return !strncmp(text, "dynamic", 7) && (!text[7] || text[7] == ':');
}

static AmprtStatus check_precision(const AmprtWanted *wanted, const AmprtProgram *program,
                                   AmprtError *error) {
  int dtype = row_of("dtype"), row = row_of("fp16-implementation");
  const char *implementation = wanted->value[row], *scale = wanted->value[row_of("loss-scale")];
  const char *type = wanted->value[dtype] ? wanted->value[dtype] : program->dtype;
  AmprtValueOf number = {.number = 0};
  if (scale && strcmp(scale, "none") && !is_dynamic(scale) &&
      (amprt_value_read("loss-scale", AMPRT_OPT_FLOAT, NULL, scale, &number, error) ||
       !(number.number > 0 && number.number < 1e38)))
    return amprt_fail(error, AMPRT_USAGE,
                      "loss_scale should be a positive int/float or the string 'dynamic'.");
  if (implementation && !strcmp(implementation, "graph_rewrite") && strcmp(type, "fp16"))
    return amprt_fail(error, AMPRT_USAGE,
                      "--fp16_implementation should not be specified unless --dtype=fp16");
  if (scale && is_dynamic(scale) && implementation && !strcmp(implementation, "casting"))
    return amprt_fail(error, AMPRT_USAGE,
                      "--loss_scale=dynamic is only supported when "
                      "--fp16_implementation=graph_rewrite");
  return AMPRT_OK;
}

/* ---- the zoo's ResNets ---- */

typedef struct ZooName { /* PREFIXresnetSIZESUFFIX, as in cifar_resnet56_v2, but no wide_resnet */
  int stem;              /* letters before the size; 0: the name is not of this form */
  int64_t size;
  const char *suffix;
} ZooName;

static ZooName zoo_name(const char *model) {
  const char *resnet = strstr(model, "resnet");
  if (!resnet || !isdigit((unsigned char)resnet[6]) || !strncmp(model, "wide_", 5) ||
      strlen(model) > 80)
    return (ZooName){.suffix = ""};
  char *end;
  int64_t size = strtoll(resnet + 6, &end, 10);
  return (ZooName){(int)(resnet + 6 - model), size, end};
}

/* Finds the name of the zoo's model that is wanted; "" if it is this program's own model. */
static AmprtStatus zoo_wanted(const AmprtWanted *wanted, const char *model, char out[128],
                              AmprtError *error) {
  out[0] = '\0';
  if (!wanted->size && !wanted->version)
    return AMPRT_OK;
  ZooName has = zoo_name(model);
  bool was_second = !strcmp(has.suffix, "_v2"),
       imagenet = !has.stem || model == strstr(model, "resnet");
  bool second = wanted->version ? *wanted->version == '2' : was_second;
  int64_t size = wanted->size ? strtoll(wanted->size, NULL, 10) : has.stem ? has.size : 50;
  if (has.stem && size == has.size && second == was_second)
    return AMPRT_OK;
  char number[24];
  snprintf(number, sizeof number, "%lld", (long long)size);
  if (imagenet && amprt_word_index("18 34 50 101 152 200", number) < 0)
    return amprt_fail(error, AMPRT_USAGE,
                      "Could not find layers for selected Resnet size. Size received: %s; sizes "
                      "allowed: 18, 34, 50, 101, 152, 200.",
                      number);
  if (!imagenet && (size < 8 || size % 6 != 2))
    return amprt_fail(error, AMPRT_USAGE, "resnet_size must be 6n + 2: %s", number);
  bool keeps = has.stem && second == was_second;
  snprintf(out, 128, "%.*s%s%s", has.stem ? has.stem : 6, has.stem ? model : "resnet", number,
           keeps    ? has.suffix
           : second ? "_v2"
                    : "");
  return AMPRT_OK;
}

/* ---- the answer ---- */

/* Adds a word, quoted where a shell would not read it as it is. */
static void add_word(AmprtText *text, const char *word) {
  enum { MOST = 200 };
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_@%+=:,./-";
  if (word[strspn(word, plain)] == '\0') {
    amprt_text_add(text, "%.*s", MOST, word);
    return;
  }
  amprt_text_add(text, "'");
  for (int i = 0; i < MOST && word[i]; i++)
    if (word[i] == '\'')
      amprt_text_add(text, "'\\''");
    else
      amprt_text_add(text, "%c", word[i]);
  amprt_text_add(text, "'");
}

static void add_flag(AmprtText *text, const char *flag, bool is_switch, const char *value) {
  AmprtValueOf on = {.truth = true};
  AmprtError ignored;
  if (is_switch) {
    amprt_value_read(flag, AMPRT_OPT_BOOL, NULL, value, &on, &ignored);
    if (on.truth)
      amprt_text_add(text, " --%s", flag);
    return;
  }
  amprt_text_add(text, " --%s=", flag);
  add_word(text, value);
}

/* Adds the command that makes the program wanted: the flags that ampcc was given for this one, and
 * those wanted, which replace them. */
static void add_command(AmprtText *text, const AmprtWanted *wanted, const AmprtProgram *program,
                        const char *model) {
  char file[160];
  snprintf(file, sizeof file, "%.128s.pb", model);
  if (*model) {
    amprt_text_add(text, "ampcc-zoo ");
    add_word(text, model);
    amprt_text_add(text, " -o ");
    add_word(text, file);
    amprt_text_add(text, " && ampcc ");
    add_word(text, file);
  } else {
    amprt_text_add(text, "ampcc MODEL");
  }
  for (int i = 0; i < program->n_given; i++) {
    int row = row_of(program->given[i].flag);
    if (row < 0 || !wanted->value[row])
      add_flag(text, program->given[i].flag, row >= 0 && !amprt_built_flag[row].argument,
               program->given[i].value);
  }
  for (int row = 0; row < amprt_n_built_flags; row++)
    if (wanted->value[row])
      add_flag(text, amprt_built_flag[row].flag, !amprt_built_flag[row].argument,
               wanted->value[row]);
  amprt_text_add(text, " -o PROGRAM");
}

/* --enable_lars asks for one optimizer, or for any but that; --fine_tune for a head that trains
 * alone, or for any other choice. `head` is room for the globs that say so. */
static AmprtWanted with_switches(AmprtWanted wanted, const AmprtProgram *program, char head[128]) {
  char room[32];
  int optimizer = row_of("optimizer"), train = row_of("train");
  bool lars = !strcmp(value_of(program, optimizer, room), "lars");
  snprintf(head, 128, "%.120s.*", program->head ? program->head : "fc");
  bool tunes = !strcmp(value_of(program, train, room), head);
  if (wanted.lars && lars != !strcmp(wanted.lars, "lars"))
    wanted.value[optimizer] = wanted.lars;
  if (wanted.tunes && tunes != !strcmp(wanted.tunes, "true"))
    wanted.value[train] = tunes ? "" : head;
  return wanted;
}

AmprtStatus amprt_wanted_check(const AmprtWanted *of_line, const AmprtProgram *program,
                               AmprtError *error) {
  char head[128];
  AmprtWanted all = with_switches(*of_line, program, head), *wanted = &all;
  AmprtText differ = {0}, has = {0}, command = {0};
  char model[128];
  AmprtStatus status = check_precision(wanted, program, error);
  if (!status)
    status = zoo_wanted(wanted, program->model, model, error);
  if (status)
    return status;
  int n = 0;
  for (int row = 0; row < amprt_n_built_flags; row++) {
    char room[32];
    if (!wanted->value[row] || has_value(program, row, wanted->value[row]))
      continue;
    const char *value = value_of(program, row, room);
    amprt_text_add(&differ, "%s--%s", n ? ", " : "", amprt_built_flag[row].flag);
    amprt_text_add(&has, "%s%s", n++ ? ", " : "", *value ? value : "none");
  }
  if (*model) {
    const char *flag = wanted->size ? "--resnet-size" : "--resnet-version";
    amprt_text_add(&differ, "%s%s", n ? ", " : "", flag);
    amprt_text_add(&has, "%s%s", n++ ? ", " : "", program->model);
  }
  if (n) {
    add_command(&command, wanted, program, model);
    status = amprt_fail(error, AMPRT_USAGE,
                        "%.400s %s fixed when the program is made (here: %.400s): %.1000s",
                        differ.data, n > 1 ? "are" : "is", has.data, command.data);
  }
  if (differ.failed || has.failed || command.failed)
    status = amprt_fail_memory(error, command.room, "an error text");
  amprt_text_free(&differ);
  amprt_text_free(&has);
  amprt_text_free(&command);
  return status;
}
