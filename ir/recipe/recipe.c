#include "ir/recipe/recipe.h"

#include "ir/base/text.h"
#include "ir/recipe/lr_schedule.def"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off: one string */
static const char dataset_words[] =
#define DATASET(name, ...) #name " "
#include "ir/recipe/datasets.def"
    "synthetic";
static const char preprocessing_words[] =
#define PREPROCESSING(id, name, ...) " " name
#include "ir/recipe/preprocessing.def"
    ;
/* clang-format on */

const RecipeField recipe_field[RECIPE_COUNT] = {
#define RECIPE(field, flag, kind, otherwise, takes, when, help)                                    \
  {#field, flag, help, RECIPE_##kind, RECIPE_##when, offsetof(Recipe, field), {takes}},
#include "ir/recipe/recipe.def"
};

#define DEFAULT_STR(value)   value
#define DEFAULT_INT(value)   value
#define DEFAULT_FLOAT(value) value
#define DEFAULT_FLOATS(value)                                                                      \
  { value, NULL }
static const Recipe defaults = {
#define RECIPE(field, flag, kind, otherwise, takes, when, help) .field = DEFAULT_##kind(otherwise),
#include "ir/recipe/recipe.def"
};

Recipe *recipe_new(Arena *arena) {
  Recipe *recipe = arena_new_of(arena, Recipe);
  *recipe = defaults;
  return recipe;
}

const RecipeField *recipe_find(const char *flag_or_field) {
  for (int i = 0; i < RECIPE_COUNT; i++)
    if (!strcmp(recipe_field[i].flag, flag_or_field) ||
        !strcmp(recipe_field[i].field, flag_or_field))
      return &recipe_field[i];
  return NULL;
}

bool recipe_is_set(const double *field) {
  return memcmp(field, &(double){RECIPE_UNSET}, sizeof *field) != 0;
}

int64_t recipe_part(const Recipe *recipe) {
  return recipe->batch_size / (recipe->accumulate > 0 ? recipe->accumulate : 1);
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

static bool set_value(Arena *arena, void *at, RecipeKind kind, const char *text) {
  char *end = NULL;
  double value = 0;
  switch (kind) {
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

/* ---- which values fit ---- */

static bool has_word(const char *words, const char *word, size_t len) {
  for (const char *at = words; *at;) {
    size_t n = strcspn(at, " ");
    if (n == len && memcmp(at, word, len) == 0)
      return true;
    at += n + (at[n] == ' ');
  }
  return false;
}

static bool words_fit(const RecipeTakes *takes, const char *text) {
  size_t len;
  do {
    len = takes->many ? strcspn(text, ",") : strlen(text);
    if (!has_word(takes->words, text, len))
      return false;
    text += len + 1;
  } while (text[-1]);
  return true;
}

static bool number_fits(const RecipeTakes *takes, double value) { /* false for NaN */
  return value >= takes->low && value <= takes->high;
}

static bool numbers_fit(const RecipeTakes *takes, const RecipeFloats *list) {
  for (int i = 0; i < list->n; i++)
    if (!number_fits(takes, list->v[i]) ||
        (takes->rising && !(list->v[i] > (i ? list->v[i - 1] : takes->low))))
      return false;
  return true;
}

/* The default always fits, even where it is not among the words: a model need not name a data set.
 */
static bool field_fits(const RecipeField *field, const void *at) {
  const char *text, *otherwise;
  switch (field->kind) {
  case RECIPE_STR:
    text = *(const char *const *)at;
    otherwise = *(const char *const *)((const char *)&defaults + field->offset);
    return !field->takes.words || !strcmp(text, otherwise) || words_fit(&field->takes, text);
  case RECIPE_INT:
    return number_fits(&field->takes, (double)*(const int64_t *)at);
  case RECIPE_FLOAT:
    return !recipe_is_set(at) || number_fits(&field->takes, *(const double *)at);
  case RECIPE_FLOATS:
    return numbers_fit(&field->takes, at);
  }
  return false;
}

bool recipe_set(Arena *arena, Recipe *recipe, const RecipeField *field, const char *text) {
  void *at = field_of(recipe, field);
  return set_value(arena, at, field->kind, text) && field_fits(field, at);
}

/* Turns "a b c" into "a, b or c". */
static const char *words_listed(Arena *arena, const char *words, const char *last) {
  const char *all = "";
  for (const char *at = words; *at;) {
    int n = (int)strcspn(at, " ");
    const char *between = !*all ? "" : at[n] ? ", " : last;
    all = arena_printf(arena, "%s%s%.*s", all, between, n, at);
    at += n + (at[n] == ' ');
  }
  return all;
}

const char *recipe_takes(Arena *arena, const RecipeField *field) {
  static const char *const numbers[] = {[RECIPE_INT] = "a whole number from %.16g to %.16g",
                                        [RECIPE_FLOAT] = "a number from %.16g to %.16g",
                                        [RECIPE_FLOATS] =
                                            "numbers from %.16g to %.16g with commas between"};
  const RecipeTakes *takes = &field->takes;
  if (field->kind == RECIPE_STR && !takes->words)
    return "text";
  if (field->kind == RECIPE_STR)
    return takes->many
               ? arena_printf(arena, "a comma list of %s", words_listed(arena, takes->words, ", "))
               : words_listed(arena, takes->words, " or ");
  const char *text = arena_printf(arena, numbers[field->kind], takes->low, takes->high);
  return takes->rising ? arena_printf(arena, "rising %s", text) : text;
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

void recipe_print_field(const Recipe *recipe, const RecipeField *field, FILE *out) {
  print_field(field, (const char *)recipe + field->offset, out);
}

bool recipe_is_default(const Recipe *recipe, const RecipeField *field) {
  return same(field, (const char *)recipe + field->offset, (const char *)&defaults + field->offset);
}

void recipe_print(const Recipe *recipe, FILE *out) {
  int printed = 0;
  for (int i = 0; i < RECIPE_COUNT; i++) {
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

bool recipe_parse(Recipe *recipe, Lexer *lex, RecipePlaces *places) {
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
    places->of[field - recipe_field] = loc;
  } while (lex_accept(lex, ","));
  return lex_accept(lex, "}") ? true : lex_fail(lex, "`,` or `}`");
}

/* ---- checks ---- */

enum { MAX_BOUNDARIES = AMP_LR_ROOM(SCHEDULE_SIZE) };

const char *recipe_conflict(Arena *arena, const Recipe *recipe) {
  int b = recipe->boundaries.n, m = recipe->multipliers.n;
  if (recipe->clip_value > 0 && recipe->clip_norm > 0)
    return "clip_value and clip_norm do not go together: --clip-value=0 or --clip-norm=0 turns one "
           "off";
  if (recipe->accumulate > 0 && recipe->batch_size % recipe->accumulate)
    return arena_printf(arena,
                        "batch_size %" PRId64 " cannot be cut into %" PRId64
                        " equal parts: accumulate must divide it",
                        recipe->batch_size, recipe->accumulate);
  if (!strcmp(recipe->schedule, "piecewise") && (b > MAX_BOUNDARIES || m != b + 1))
    return arena_printf(
        arena, "a piecewise schedule with %d boundaries (at most %d) needs %d multipliers, not %d",
        b, MAX_BOUNDARIES, b + 1, m);
  return NULL;
}

static void report_field(Arena *arena, const RecipeField *field, const void *at, SrcLoc loc,
                         Diag *diag) {
  TextDraft draft;
  print_field(field, at, text_draft(&draft));
  diag_error(diag, loc, DIAG_RECIPE, "the recipe's %s takes %s, not %s", field->field,
             recipe_takes(arena, field), text_take(&draft, arena));
}

void recipe_check(Arena *arena, const Recipe *recipe, const RecipePlaces *places, SrcLoc loc,
                  Diag *diag) {
  for (int i = 0; i < RECIPE_COUNT; i++) {
    const void *at = (const char *)recipe + recipe_field[i].offset;
    if (!field_fits(&recipe_field[i], at))
      report_field(arena, &recipe_field[i], at, places && places->of[i].line ? places->of[i] : loc,
                   diag);
  }
  if (!text_is_printable(recipe->name))
    diag_error(diag, loc, DIAG_RECIPE, "the model's name holds a control character");
  const char *conflict = recipe_conflict(arena, recipe);
  if (conflict)
    diag_error(diag, loc, DIAG_RECIPE, "%s", conflict);
}
