#include "frontend/driver/precision_file.h"

#include "frontend/import/load.h"
#include "ir/base/nearest.h"

#include <string.h>

enum { WORDS = 3 };

typedef struct Line {
  Arena *arena;
  Diag *diag;
  SrcLoc loc;
  const char *start, *at;
} Line;

static SrcLoc here(const Line *line, const char *at) {
  SrcLoc loc = line->loc;
  loc.col = (int)(at - line->start) + 1;
  return loc;
}

static bool at_end(Line *line) {
  line->at += strspn(line->at, " \t\r");
  return !*line->at || *line->at == '\n' || *line->at == '#';
}

/* The position of a word in a list; -1 after an error that names the list. */
static int read_choice(const Line *line, const char *at, const char *word,
                       const char *const *choice, int n) {
  Nearest nearest = nearest_to(word);
  const char *list = "";
  for (int i = 0; i < n; i++) {
    if (strcmp(choice[i], word) == 0)
      return i;
    nearest_try(&nearest, choice[i]);
    list = arena_printf(line->arena, "%s%s%s", list, i ? ", " : "", choice[i]);
  }
  diag_error(line->diag, here(line, at), DIAG_PRECISION_FILE, "`%s` is none of %s%s", word, list,
             nearest_hint(line->arena, &nearest, ""));
  return -1;
}

static bool read_rule(Line *line, PrecisionRule *rule) {
  const char *word[WORDS], *at[WORDS];
  for (int i = 0; i < WORDS; i++) {
    bool end = at_end(line);
    at[i] = line->at;
    if (end) {
      diag_error(line->diag, here(line, at[i]), DIAG_PRECISION_FILE,
                 "a rule has three words: op, layer or value; a name; a precision");
      return false;
    }
    bool quoted = *at[i] == '"'; /* a quoted word may hold blanks and # */
    const char *from = at[i] + quoted;
    size_t n = strcspn(from, quoted ? "\"\n" : " \t\r\n#");
    if (quoted && from[n] != '"') {
      diag_error(line->diag, here(line, at[i]), DIAG_PRECISION_FILE, "the quote is not closed");
      return false;
    }
    word[i] = arena_strdup(line->arena, from, n);
    line->at = from + n + quoted;
  }
  if (!at_end(line)) {
    diag_error(line->diag, here(line, line->at), DIAG_PRECISION_FILE,
               "more than three words; a name with blanks needs double quotes");
    return false;
  }
  int kind = read_choice(line, at[0], word[0], rule_kind_name, RULE_KIND_COUNT);
  int says = read_choice(line, at[2], word[2], rule_says_name, RULE_SAYS_COUNT);
  *rule = (PrecisionRule){(RuleKind)kind, (RuleSays)says, word[1], here(line, at[1])};
  return kind >= 0 && says >= 0;
}

static PrecisionRules *file_parse(Arena *arena, const char *path, const char *text, Diag *diag) {
  PrecisionRules *rules = arena_new_of(arena, PrecisionRules);
  const char *source = diag->source;
  int errors = diag->n_errors;
  diag->source = text;
  for (int number = 1; *text; number++) {
    Line line = {arena, diag, {.file = path, .line = number}, text, text};
    PrecisionRule rule;
    if (!at_end(&line) && read_rule(&line, &rule))
      arena_push(arena, rules->at, rules->n, rules->cap, rule);
    text += strcspn(text, "\n");
    text += *text == '\n';
  }
  diag->source = source;
  return diag->n_errors == errors ? rules : NULL;
}

PrecisionRules *precision_file_read(Arena *arena, const char *path, const char **text, Diag *diag) {
  *text = text_read(arena, path, diag);
  return *text ? file_parse(arena, path, *text, diag) : NULL;
}
