#include "ir/recipe.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const RecipeField recipe_field[] = {
#define RECIPE(field, flag, kind, otherwise, when, help)                                           \
  {#field, flag, help, RECIPE_##kind, RECIPE_##when, offsetof(Recipe, field)},
#include "ir/recipe.def"
};
const int n_recipe_fields = (int)(sizeof recipe_field / sizeof recipe_field[0]);

#define DEFAULT_STR(value)   value
#define DEFAULT_INT(value)   value
#define DEFAULT_FLOAT(value) value
#define DEFAULT_FLOATS(value)                                                                      \
  { value, NULL }
static const Recipe defaults = {
#define RECIPE(field, flag, kind, otherwise, when, help) .field = DEFAULT_##kind(otherwise),
#include "ir/recipe.def"
};

Recipe *recipe_new(Arena *arena) {
  Recipe *recipe = arena_new_of(arena, Recipe);
  *recipe = defaults;
  return recipe;
}

const RecipeField *recipe_find(const char *flag_or_field) {
  for (int i = 0; i < n_recipe_fields; i++)
    if (!strcmp(recipe_field[i].flag, flag_or_field) ||
        !strcmp(recipe_field[i].field, flag_or_field))
      return &recipe_field[i];
  return NULL;
}

static void *field_of(Recipe *recipe, const RecipeField *field) {
  return (char *)recipe + field->offset;
}

static bool read_float(const char **text, double *out) {
  char *end = NULL;
  double value = strtod(*text, &end);
  if (end == *text || !isfinite(value))
    return false;
  *text = end;
  *out = value;
  return true;
}

static bool set_floats(Arena *arena, RecipeFloats *out, const char *text) {
  double *list = NULL, value = 0;
  int len = 0, cap = 0;
  while (*text) {
    if ((len && *text++ != ',') || !read_float(&text, &value))
      return false;
    arena_push(arena, list, len, cap, value);
  }
  *out = (RecipeFloats){len, list};
  return true;
}

bool recipe_set(Arena *arena, Recipe *recipe, const RecipeField *field, const char *text) {
  void *at = field_of(recipe, field);
  char *end = NULL;
  double value = 0;
  switch (field->kind) {
  case RECIPE_STR:
    *(const char **)at = arena_strdup(arena, text, strlen(text));
    return true;
  case RECIPE_INT:
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno)
      return false;
    *(int64_t *)at = number;
    return true;
  case RECIPE_FLOAT:
    if (!read_float(&text, &value) || *text)
      return false;
    *(double *)at = value;
    return true;
  case RECIPE_FLOATS:
    return set_floats(arena, at, text);
  }
  return false;
}

/* ---- text form ---- */

static bool same(const RecipeField *field, const void *a, const void *b) {
  switch (field->kind) {
  case RECIPE_STR:
    return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
  case RECIPE_INT:
    return *(const int64_t *)a == *(const int64_t *)b;
  case RECIPE_FLOAT:
    return memcmp(a, b, sizeof(double)) == 0;
  case RECIPE_FLOATS:
    return ((const RecipeFloats *)a)->n == 0;
  }
  return false;
}

static void print_field(const RecipeField *field, const void *at, FILE *out) {
  const RecipeFloats *list = at;
  switch (field->kind) {
  case RECIPE_STR:
    string_print(*(const char *const *)at, out);
    return;
  case RECIPE_INT:
    fprintf(out, "%" PRId64, *(const int64_t *)at);
    return;
  case RECIPE_FLOAT:
    float_print(*(const double *)at, out);
    return;
  case RECIPE_FLOATS:
    for (int i = 0; i < list->n; i++) {
      fputc(i ? ',' : '[', out);
      float_print(list->v[i], out);
    }
    fputc(']', out);
    return;
  }
}

void recipe_print(const Recipe *recipe, FILE *out) {
  int printed = 0;
  for (int i = 0; i < n_recipe_fields; i++) {
    const RecipeField *field = &recipe_field[i];
    const void *at = (const char *)recipe + field->offset;
    if (same(field, at, (const char *)&defaults + field->offset))
      continue;
    fprintf(out, "%s%s=", printed++ ? ", " : "recipe {", field->field);
    print_field(field, at, out);
  }
  fputs(printed ? "}\n\n" : "", out);
}

static bool parse_field(Recipe *recipe, const RecipeField *field, Lexer *lex) {
  void *at = field_of(recipe, field);
  RecipeFloats *list = at;
  switch (field->kind) {
  case RECIPE_STR:
    return lex_string(lex, at);
  case RECIPE_INT:
    return lex_int(lex, at);
  case RECIPE_FLOAT:
    return lex_float(lex, at);
  case RECIPE_FLOATS:
    return lex_floats(lex, &list->v, &list->n);
  }
  return false;
}

bool recipe_parse(Recipe *recipe, Lexer *lex) {
  if (!lex_accept(lex, "{"))
    return lex_fail(lex, "`{`");
  do {
    lex_blanks(lex);
    SrcLoc loc = lex_here(lex);
    const char *name = lex_word(lex);
    const RecipeField *field = name ? recipe_find(name) : NULL;
    if (!field) {
      diag_error(lex->diag, loc, DIAG_RECIPE, "the recipe has no field `%s`", name ? name : "");
      return false;
    }
    if (!lex_accept(lex, "="))
      return lex_fail(lex, "`=`");
    if (!parse_field(recipe, field, lex))
      return false;
  } while (lex_accept(lex, ","));
  return lex_accept(lex, "}") ? true : lex_fail(lex, "`,` or `}`");
}

/* ---- checks ---- */

/* Which words a field may hold; `many`: a comma list of them. */
static const struct Words {
  const char *field, *words;
  bool many;
} words_of[] = {
    {"dataset", "fashion_mnist cifar10 synthetic", false},
    {"optimizer", "sgd momentum nesterov lars adam adamw", false},
    {"schedule", "constant piecewise cosine", false},
    {"decay_spares", "batch_norm bias none", true},
    {"metrics", "top1 top5", true},
};

/* Ranges of numeric fields. */
static const struct Range {
  const char *field;
  double low, high;
} range_of[] = {
    {"batch_size", 1, 1 << 20},
    {"train_epochs", 0, 1e6},
    {"momentum", 0, 1},
    {"beta1", 0, 1},
    {"beta2", 0, 1},
    {"epsilon", 0, 1},
    {"trust", 0, 1e3},
    {"weight_decay", 0, 1e3},
    {"clip_value", 0, 1e30},
    {"clip_norm", 0, 1e30},
    {"label_smoothing", 0, 1},
    {"learning_rate", 0, 1e6},
    {"lr_batch", 0, 1e9},
    {"end_learning_rate", 0, 1e6},
    {"warmup_epochs", 0, 1e6},
    {"pad", 0, 1024},
    {"flip", 0, 1},
    {"standardize", 0, 1},
    {"seed", 0, 9007199254740992.0},
};

static bool has_word(const char *words, const char *word, size_t len) {
  for (const char *at = words; *at;) {
    size_t n = strcspn(at, " ");
    if (n == len && memcmp(at, word, len) == 0)
      return true;
    at += n + (at[n] == ' ');
  }
  return false;
}

static void check_words(const Recipe *recipe, const struct Words *rule, SrcLoc loc, Diag *diag) {
  const RecipeField *field = recipe_find(rule->field);
  const char *text = *(const char *const *)((const char *)recipe + field->offset);
  const char *otherwise = *(const char *const *)((const char *)&defaults + field->offset);
  if (!strcmp(text, otherwise)) /* also "", where a model need not say it */
    return;
  do {
    size_t len = rule->many ? strcspn(text, ",") : strlen(text);
    if (!has_word(rule->words, text, len))
      diag_error(diag, loc, DIAG_RECIPE, "%s: `%.*s` is none of: %s", rule->field, (int)len, text,
                 rule->words);
    text += len + (text[len] == ',');
  } while (*text);
}

static void check_range(const Recipe *recipe, const struct Range *rule, SrcLoc loc, Diag *diag) {
  const RecipeField *field = recipe_find(rule->field);
  const char *at = (const char *)recipe + field->offset;
  double value = field->kind == RECIPE_INT ? (double)*(const int64_t *)at : *(const double *)at;
  if (!(value >= rule->low && value <= rule->high))
    diag_error(diag, loc, DIAG_RECIPE, "%s: %g is not between %g and %g", rule->field, value,
               rule->low, rule->high);
}

enum { MAX_BOUNDARIES = 28 }; /* the 64 entries of input `schedule`, ir/README.md */

static void check_schedule(const Recipe *recipe, SrcLoc loc, Diag *diag) {
  const RecipeFloats *b = &recipe->boundaries, *m = &recipe->multipliers;
  if (strcmp(recipe->schedule, "piecewise") != 0)
    return;
  if (b->n > MAX_BOUNDARIES || m->n != b->n + 1)
    diag_error(diag, loc, DIAG_RECIPE,
               "multipliers: a piecewise schedule with %d boundaries (at most %d) needs %d, not %d",
               b->n, MAX_BOUNDARIES, b->n + 1, m->n);
  for (int i = 0; i < b->n; i++)
    if (!(b->v[i] > (i ? b->v[i - 1] : 0)))
      diag_error(diag, loc, DIAG_RECIPE, "boundaries: must be ascending and positive");
}

void recipe_check(const Recipe *recipe, SrcLoc loc, Diag *diag) {
  for (size_t i = 0; i < sizeof words_of / sizeof words_of[0]; i++)
    check_words(recipe, &words_of[i], loc, diag);
  for (size_t i = 0; i < sizeof range_of / sizeof range_of[0]; i++)
    check_range(recipe, &range_of[i], loc, diag);
  if (recipe->clip_value > 0 && recipe->clip_norm > 0)
    diag_error(diag, loc, DIAG_RECIPE, "clip_value and clip_norm do not go together");
  check_schedule(recipe, loc, diag);
}
