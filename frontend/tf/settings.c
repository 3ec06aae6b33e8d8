#include "frontend/tf/settings.h"

#include "frontend/load.h"
#include "ir/base/list.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PREFIX "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"

typedef enum Kind { LIST, LEVEL, SWITCH, COUNT } Kind;

/* One setting and its three ways in: `--amp-KEY=`, a line `KEY = VALUE` of the file, TensorFlow's
 * own environment variable. */
typedef struct Key {
  const char *key; /* NULL: an old name that only the environment knows */
  const char *env; /* NULL: none */
  Kind kind;
  AmpClass list;
  bool add;
  size_t offset; /* SWITCH, COUNT: of the field */
} Key;

static const Key keys[] = {
    {"allowlist-add", "ALLOWLIST_ADD", LIST, AMP_ALLOW, true, 0},
    {"allowlist-remove", "ALLOWLIST_REMOVE", LIST, AMP_ALLOW, false, 0},
    {NULL, "WHITELIST_ADD", LIST, AMP_ALLOW, true, 0},
    {NULL, "WHITELIST_REMOVE", LIST, AMP_ALLOW, false, 0},
    {"inferlist-add", "INFERLIST_ADD", LIST, AMP_INFER, true, 0},
    {"inferlist-remove", "INFERLIST_REMOVE", LIST, AMP_INFER, false, 0},
    {NULL, "GRAYLIST_ADD", LIST, AMP_INFER, true, 0},
    {NULL, "GRAYLIST_REMOVE", LIST, AMP_INFER, false, 0},
    {"denylist-add", "DENYLIST_ADD", LIST, AMP_DENY, true, 0},
    {"denylist-remove", "DENYLIST_REMOVE", LIST, AMP_DENY, false, 0},
    {NULL, "BLACKLIST_ADD", LIST, AMP_DENY, true, 0},
    {NULL, "BLACKLIST_REMOVE", LIST, AMP_DENY, false, 0},
    {"clearlist-add", "CLEARLIST_ADD", LIST, AMP_CLEAR, true, 0},
    {"clearlist-remove", "CLEARLIST_REMOVE", LIST, AMP_CLEAR, false, 0},
    {"level", "LEVEL", LEVEL, AMP_NONE, false, 0},
    {"ignore-performance", "IGNORE_PERFORMANCE", SWITCH, AMP_NONE, false,
     offsetof(TfSettings, ignore_performance)},
    {"simulate-gpu", "SIMULATE_GPU", SWITCH, AMP_NONE, false, offsetof(TfSettings, simulate_gpu)},
    {"emulate-fp16", "EMULATE_FP16", SWITCH, AMP_NONE, false, offsetof(TfSettings, emulate)},
    {"min-graph-nodes", NULL, COUNT, AMP_NONE, false, offsetof(TfSettings, min_nodes)},
};
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

/* As TensorFlow reads its booleans; "" is a flag without a value. */
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
    return level_parse(value, &out->level);
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
    if (keys[i].key && !strcmp(keys[i].key, name))
      return &keys[i];
  return NULL;
}

/* "level = UNSAFE_FORCE_ALL  # why not". NULL, or what is wrong. */
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

static bool wrong_value(const char *what, const char *takes, const char *value) {
  fprintf(stderr, "ampcc: %s takes %s, not `%s`\n", what, takes, value);
  return false;
}

static void say(const Options *options, const char *name, const char *value, bool has_effect) {
  if (!options->text[OPT_quiet])
    fprintf(stderr, "ampcc: note: the environment says %s=%s%s\n", name, value,
            has_effect ? "" : ", which has no effect");
}

static bool env_apply(Arena *arena, TfSettings *out, const Options *options) {
  for (int i = 0; i < N_KEYS; i++) {
    const Key *key = &keys[i];
    const char *name = key->env ? arena_printf(arena, PREFIX "%s", key->env) : NULL;
    const char *value = name ? getenv(name) : NULL;
    if (!value || !*value)
      continue;
    bool good = setting_apply(arena, out, key, value);
    if (!good && key->kind != LEVEL)
      return wrong_value(name, "0, 1, true or false", value);
    say(options, name, value, good);
  }
  if (getenv(PREFIX "LOG_PATH"))
    say(options, PREFIX "LOG_PATH", getenv(PREFIX "LOG_PATH"), false);
  return true;
}

/* The option called `--amp-KEY`. */
static const char *flag_value(const Options *options, const char *key) {
  for (int i = 0; i < OPTION_COUNT; i++) {
    const char *flag = option_info[i].flag;
    if (!strncmp(flag, "amp-", 4) && !strcmp(flag + 4, key))
      return options->text[i];
  }
  BUG("no option is called --amp-%s", key);
}

static bool flags_apply(Arena *arena, TfSettings *out, const Options *options) {
  for (int i = 0; i < N_KEYS; i++) {
    const char *value = keys[i].key ? flag_value(options, keys[i].key) : NULL;
    if (value && !setting_apply(arena, out, &keys[i], value))
      return wrong_value(arena_printf(arena, "--amp-%s", keys[i].key),
                         keys[i].kind == LEVEL
                             ? "TENSOR_CORES_ONLY, UNSAFE_FORCE_ALL or TREAT_INFER_AS_DENY"
                         : keys[i].kind == COUNT ? "a number from -1 on"
                                                 : "0, 1, true or false",
                         value);
  }
  return true;
}

/* ---- mode and machine ---- */

static bool read_mode(TfSettings *out, const Options *options) {
  static const char *const word[] = {"cuda", "bf16", "cpu", "fp16-cpu"};
  const char *dtype = options->text[OPT_dtype], *mode = options->text[OPT_amp_mode];
  bool bf16 = dtype && !strcmp(dtype, "bf16");
  if (dtype && !strcmp(dtype, "fp32"))
    return wrong_value("--dtype", "fp16 or bf16 for a GraphDef", dtype);
  out->mode = bf16 ? TF_BF16 : TF_CUDA;
  if (!mode)
    return true;
  for (int i = 0; i < 4; i++)
    if (!strcmp(mode, word[i])) {
      out->mode = (TfMode)i;
      bool fits = !dtype || bf16 == (out->mode == TF_BF16);
      return fits || wrong_value("--amp-mode", "a mode of that --dtype", mode);
    }
  return wrong_value("--amp-mode", option_info[OPT_amp_mode].argument, mode);
}

/* "8.0", "gfx908", "none" */
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

static bool read_number(const Options *options, OptionId id, const char *flag, int *out) {
  const char *text = options->text[id];
  return !text || int_parse(text, 0, out) || wrong_value(flag, "a number", text);
}

/* A GPU is there by default only where the mode is for GPUs: what has no device of its own would be
 * placed on it, away from the CPU modes. */
static bool read_machine(TfSettings *out, const Options *options) {
  const char *arch = options->text[OPT_gpu_arch];
  if (!arch)
    arch = out->mode == TF_CUDA ? "8.0" : "none";
  if (!read_arch(out, arch))
    return wrong_value("--gpu-arch", option_info[OPT_gpu_arch].argument, arch);
  out->cuda = out->rocm ? 0 : 11050;
  out->cudnn = out->rocm ? 0 : 8302;
  return read_number(options, OPT_cuda_version, "--cuda-version", &out->cuda) &&
         read_number(options, OPT_cudnn_version, "--cudnn-version", &out->cudnn);
}

static void read_fetch(Arena *arena, TfSettings *out, const char *text) {
  int cap = 0;
  for (const char *name; (name = list_word(arena, &text, ','));)
    arena_push(arena, out->fetch, out->n_fetch, cap, name);
}

bool tf_settings_read(Arena *arena, const Options *options, TfSettings *out, Diag *diag) {
  *out = (TfSettings){.version = options->tf_version, .emulate = true, .min_nodes = 4};
  if (!read_mode(out, options) || !read_machine(out, options))
    return false;
  read_fetch(arena, out, options->text[OPT_fetch]);
  if (options->text[OPT_amp_lists])
    file_apply(arena, out, options->text[OPT_amp_lists], diag);
  return env_apply(arena, out, options) && flags_apply(arena, out, options);
}
