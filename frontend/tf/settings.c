#include "frontend/tf/settings.h"

#include "frontend/import/load.h"
#include "ir/base/list.h"
#include "ir/base/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PREFIX "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"

typedef enum Kind { LIST, LEVEL, SWITCH, COUNT } Kind;

/* One setting. It is given by the flag `--amp-KEY=`, by a line `KEY = VALUE` of the file, or by
 * TensorFlow's own environment variable, which may have an old name too. */
typedef struct Key {
  const char *key;
  const char *env[2]; /* the new name and the old one; NULL where there is none */
  Kind kind;
  AmpClass list; /* LIST: which list is edited, and whether ops are added or removed */
  bool add;
  size_t offset; /* LEVEL, SWITCH, COUNT: of the field in TfSettings */
} Key;

#define EDIT(key, list, add, ...)                                                                  \
  { key, {__VA_ARGS__}, LIST, list, add, 0 }
#define FIELD(key, env, kind, field)                                                               \
  { key, {env}, kind, AMP_NONE, false, offsetof(TfSettings, field) }
static const Key keys[] = {
    EDIT("allowlist-add", AMP_ALLOW, true, "ALLOWLIST_ADD", "WHITELIST_ADD"),
    EDIT("allowlist-remove", AMP_ALLOW, false, "ALLOWLIST_REMOVE", "WHITELIST_REMOVE"),
    EDIT("inferlist-add", AMP_INFER, true, "INFERLIST_ADD", "GRAYLIST_ADD"),
    EDIT("inferlist-remove", AMP_INFER, false, "INFERLIST_REMOVE", "GRAYLIST_REMOVE"),
    EDIT("denylist-add", AMP_DENY, true, "DENYLIST_ADD", "BLACKLIST_ADD"),
    EDIT("denylist-remove", AMP_DENY, false, "DENYLIST_REMOVE", "BLACKLIST_REMOVE"),
    EDIT("clearlist-add", AMP_CLEAR, true, "CLEARLIST_ADD"),
    EDIT("clearlist-remove", AMP_CLEAR, false, "CLEARLIST_REMOVE"),
    FIELD("level", "LEVEL", LEVEL, level),
    FIELD("ignore-performance", "IGNORE_PERFORMANCE", SWITCH, ignore_performance),
    FIELD("simulate-gpu", "SIMULATE_GPU", SWITCH, simulate_gpu),
    FIELD("emulate-fp16", "EMULATE_FP16", SWITCH, emulate),
    FIELD("min-graph-nodes", NULL, COUNT, min_nodes),
};
#undef EDIT
#undef FIELD
enum { N_KEYS = sizeof keys / sizeof keys[0] };

/* ---- values ---- */

static bool int_parse(const char *text, int low, int *out) {
  char *end;
  long number = strtol(text, &end, 10);
  if (end == text || *end || number < low || number > INT_MAX)
    return false;
  *out = (int)number;
  return true;
}

/* Reads a boolean as TensorFlow does; "" is a flag without a value. */
static bool switch_parse(const char *text, bool *out) {
  bool on = !*text || !strcmp(text, "1") || !strcasecmp(text, "true");
  if (!on && strcmp(text, "0") != 0 && strcasecmp(text, "false") != 0)
    return false;
  *out = on;
  return true;
}

static bool level_parse(const char *text, TfLevel *out) {
  static const char *const level[] = {"", "TENSOR_CORES_ONLY", "UNSAFE_FORCE_ALL",
                                      "TREAT_INFER_AS_DENY"};
  for (int i = 0; i < 4; i++)
    if (!strcasecmp(text, level[i]))
      return *out = (TfLevel)i, true;
  return false;
}

static bool setting_apply(Arena *arena, TfSettings *out, const Key *key, const char *value) {
  void *field = (char *)out + key->offset;
  TfEdit edit = {key->list, key->add, value};
  switch (key->kind) {
  case LIST:
    arena_push(arena, out->edit, out->n_edits, out->cap_edits, edit);
    return true;
  case LEVEL:
    return level_parse(value, field);
  case SWITCH:
    return switch_parse(value, field);
  case COUNT:
    return int_parse(value, -1, field);
  }
  return false;
}

/* ---- the file ---- */

static char *trim(char *text) {
  text += strspn(text, " \t\r");
  for (char *end = text + strlen(text); end > text && strchr(" \t\r", end[-1]);)
    *--end = '\0';
  return text;
}

static const Key *key_find(const char *name) {
  for (int i = 0; i < N_KEYS; i++)
    if (!strcmp(keys[i].key, name))
      return &keys[i];
  return NULL;
}

/* Reads a line such as "level = UNSAFE_FORCE_ALL  # why not". Returns NULL, or what is wrong. */
static const char *line_apply(Arena *arena, TfSettings *out, char *line) {
  line[strcspn(line, "#")] = '\0';
  line = trim(line);
  if (!*line)
    return NULL;
  char *equals = strchr(line, '=');
  if (!equals)
    return "expected `KEY = VALUE`";
  *equals = '\0';
  const Key *key = key_find(trim(line));
  if (!key)
    return "no setting has this name";
  return setting_apply(arena, out, key, trim(equals + 1)) ? NULL : "the setting has no such value";
}

static void file_apply(Arena *arena, TfSettings *out, const char *path, Diag *diag) {
  int number = 0;
  for (char *line = text_read(arena, path, diag), *next; line; line = next) {
    next = strchr(line, '\n');
    if (next)
      *next++ = '\0';
    const char *wrong = line_apply(arena, out, line);
    number++;
    if (wrong)
      diag_error(diag, (SrcLoc){.file = path, .line = number, .col = 1}, DIAG_AMP_LISTS, "%s",
                 wrong);
  }
}

/* ---- environment and flags ---- */

/* Reports the value of a setting that is no list; lists take any value. Returns false. */
static bool wrong_value(const char *what, const Key *key, const char *value) {
  static const char *const takes[] = {
      [LEVEL] = "TENSOR_CORES_ONLY, UNSAFE_FORCE_ALL or TREAT_INFER_AS_DENY",
      [SWITCH] = "0, 1, true or false",
      [COUNT] = "a number from -1 on",
  };
  text_say("ampcc-tf: %s takes %s, not `%s`\n", what, takes[key->kind], value);
  return false;
}

static void say(const TfOptions *options, const char *name, const char *value, bool has_effect) {
  if (options->text[TF_OPT_quiet])
    return;
  text_say("ampcc-tf: note: the environment says %s=", name);
  text_print(value, 80, stderr);
  fputs(has_effect ? "\n" : ", which has no effect\n", stderr);
}

/* As in TensorFlow, all variables with new names are read before those with old names. */
static bool env_apply(Arena *arena, TfSettings *out, const TfOptions *options) {
  for (int i = 0; i < 2 * N_KEYS; i++) {
    const Key *key = &keys[i % N_KEYS];
    const char *env = key->env[i / N_KEYS];
    const char *name = env ? arena_printf(arena, PREFIX "%s", env) : NULL;
    const char *value = name ? getenv(name) : NULL;
    if (!value || !*value)
      continue;
    bool good = setting_apply(arena, out, key, value);
    if (!good && key->kind != LEVEL) /* TensorFlow takes any text for it and does nothing */
      return wrong_value(name, key, value);
    say(options, name, value, good);
  }
  if (getenv(PREFIX "LOG_PATH"))
    say(options, PREFIX "LOG_PATH", getenv(PREFIX "LOG_PATH"), false);
  return true;
}

/* The value of option `--amp-KEY`. */
static const char *flag_value(const TfOptions *options, const char *key) {
  for (int i = 0; i < TF_OPTION_COUNT; i++) {
    const char *flag = tf_option_table.option[i].flag;
    if (!strncmp(flag, "amp-", 4) && !strcmp(flag + 4, key))
      return options->text[i];
  }
  BUG("no option is called --amp-%s", key);
}

static bool flags_apply(Arena *arena, TfSettings *out, const TfOptions *options) {
  for (int i = 0; i < N_KEYS; i++) {
    const char *value = flag_value(options, keys[i].key);
    if (value && !setting_apply(arena, out, &keys[i], value))
      return wrong_value(arena_printf(arena, "--amp-%s", keys[i].key), &keys[i], value);
  }
  return true;
}

/* ---- mode and machine ---- */

/* Reports a value that --help does not list; returns false. */
static bool wrong(TfOptionId id, const char *text) {
  return option_wrong_value(&tf_option_table, id, text);
}

static bool read_mode(TfSettings *out, const TfOptions *options) {
  const char *dtype = options->text[TF_OPT_dtype], *mode = options->text[TF_OPT_amp_mode];
  int bf16 = 0;
  if (!option_choice(&tf_option_table, TF_OPT_dtype, dtype, &bf16))
    return false;
  int choice = bf16 ? TF_BF16 : TF_CUDA;
  if (!option_choice(&tf_option_table, TF_OPT_amp_mode, mode, &choice))
    return false;
  out->mode = (TfMode)choice;
  if (mode && dtype && bf16 != (out->mode == TF_BF16)) {
    text_say("ampcc-tf: --amp-mode=%s does not go with --dtype=%s\n", mode, dtype);
    return false;
  }
  return true;
}

/* Reads an architecture such as "8.0", "gfx908" or "none". */
static bool read_arch(TfSettings *out, const char *text) {
  out->gpu = strcmp(text, "none") != 0;
  out->rocm = !strncmp(text, "gfx", 3);
  if (out->rocm) {
    out->fast_gpu = !strcmp(text, "gfx906") || !strcmp(text, "gfx908");
    return true;
  }
  char *end;
  double number = out->gpu ? strtod(text, &end) : 0;
  out->fast_gpu = number >= 7;
  return !out->gpu || (isdigit((unsigned char)*text) && !*end);
}

static bool read_number(const TfOptions *options, TfOptionId id, int *out) {
  const char *text = options->text[id];
  return !text || int_parse(text, 0, out) || wrong(id, text);
}

/* By default there is a GPU only if the mode is for GPUs. Otherwise nodes without a device would be
 * placed on it, where the CPU modes do not change them. */
static bool read_machine(TfSettings *out, const TfOptions *options) {
  const char *arch = options->text[TF_OPT_gpu_arch];
  if (!arch)
    arch = out->mode == TF_CUDA ? "8.0" : "none";
  if (!read_arch(out, arch))
    return wrong(TF_OPT_gpu_arch, arch);
  out->cuda = out->rocm ? 0 : 11050;
  out->cudnn = out->rocm ? 0 : 8302;
  return read_number(options, TF_OPT_cuda_version, &out->cuda) &&
         read_number(options, TF_OPT_cudnn_version, &out->cudnn);
}

bool tf_settings_read(Arena *arena, const TfOptions *options, TfSettings *out, Diag *diag) {
  *out = (TfSettings){.version = options->version, .emulate = true, .min_nodes = 4};
  if (!read_mode(out, options) || !read_machine(out, options))
    return false;
  const char *fetches = options->text[TF_OPT_fetch];
  int cap = 0;
  for (const char *name; (name = list_word(arena, &fetches, ','));)
    arena_push(arena, out->fetch, out->n_fetch, cap, name);
  if (options->text[TF_OPT_amp_lists])
    file_apply(arena, out, options->text[TF_OPT_amp_lists], diag);
  return env_apply(arena, out, options) && flags_apply(arena, out, options);
}

void tf_settings_help(FILE *out) {
  fputs("\nenvironment: " PREFIX " followed by\n", out);
  for (int i = 0; i < 2 * N_KEYS; i++) {
    const Key *key = &keys[i % N_KEYS];
    const char *env = key->env[i / N_KEYS];
    if (env)
      fprintf(out, "  %-27s as --amp-%s%s\n", env, key->key, i < N_KEYS ? "" : " (old name)");
  }
}
