#include "runtime/flags/value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool parse_double(const char *text, const char **end, double *out) {
  char *stop;
  *out = strtod(text, &stop);
  *end = stop;
  return stop != text;
}

static bool set_int(void *field, const char *text) {
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (errno || end == text || *end)
    return false;
  *(int64_t *)field = v;
  return true;
}

static bool set_float(void *field, const char *text) {
  const char *end;
  double v;
  if (!parse_double(text, &end, &v) || *end)
    return false;
  *(double *)field = v;
  return true;
}

static bool set_floats(void *field, const char *text) {
  AmprtFloats list = {0};
  for (const char *end = text; *text; text = end + (*end == ',')) {
    if (list.n == AMPRT_MAX_FLOATS || !parse_double(text, &end, &list.v[list.n++]) ||
        (*end && *end != ',') || (*end == ',' && !end[1]))
      return false;
  }
  *(AmprtFloats *)field = list;
  return true;
}

static bool set_bool(void *field, const char *text) {
  static const char *const word[] = {"false", "true", "f", "t", "0", "1", "no", "yes"};
  for (size_t i = 0; i < sizeof word / sizeof *word; i++)
    if (!strcasecmp(text, word[i])) {
      *(bool *)field = i % 2;
      return true;
    }
  return false;
}

static bool set_str(void *field, const char *text) {
  *(const char **)field = text;
  return true;
}

static const struct {
  bool (*set)(void *field, const char *text);
  const char *what;
} kind_info[] = {
    [AMPRT_OPT_BOOL] = {set_bool, "true or false"},
    [AMPRT_OPT_INT] = {set_int, "a whole number"},
    [AMPRT_OPT_FLOAT] = {set_float, "a number"},
    [AMPRT_OPT_STR] = {set_str, "text"},
    [AMPRT_OPT_FLOATS] = {set_floats, "numbers with commas between"},
};

const char *amprt_kind_text(AmprtOptionKind kind) {
  return kind_info[kind].what;
}

int amprt_word_index(const char *words, const char *word) {
  size_t n = strlen(word);
  for (int i = 0; words; i++) {
    size_t length = strcspn(words, " ");
    if (length == n && !memcmp(words, word, n))
      return i;
    words = words[length] ? words + length + 1 : NULL;
  }
  return -1;
}

void amprt_words_list(const char *words, char *out, size_t size) {
  size_t used = 0;
  for (const char *at = words; *at && used < size;) {
    int n = (int)strcspn(at, " ");
    const char *between = at == words ? "" : at[n] ? ", " : " or ";
    used += (size_t)snprintf(out + used, size - used, "%s%.*s", between, n, at);
    at += n + (at[n] == ' ');
  }
}

/* Is each word of a list with commas among `words`? */
static bool words_fit(const char *words, const char *list) {
  for (const char *at = list;; at++) {
    size_t n = strcspn(at, ",");
    bool found = false;
    for (const char *word = words; !found && *word;) {
      size_t length = strcspn(word, " ");
      found = length == n && !strncasecmp(word, at, n);
      word += length + (word[length] == ' ');
    }
    if (!found)
      return false;
    at += n;
    if (!*at)
      return true;
  }
}

static bool numbers_fit(const AmprtTakes *takes, const double *v, int n) {
  if (takes->low == 0 && takes->high == 0)
    return true;
  for (int i = 0; i < n; i++)
    if (!(v[i] >= takes->low && v[i] <= takes->high) ||
        (takes->rising && !(v[i] > (i ? v[i - 1] : takes->low))))
      return false;
  return true;
}

static bool value_fits(const AmprtTakes *takes, AmprtOptionKind kind, const AmprtValueOf *value) {
  double number = (double)value->integer;
  switch (kind) {
  case AMPRT_OPT_STR:
    if (!takes->words)
      return true;
    return takes->many ? words_fit(takes->words, value->text)
                       : amprt_word_index(takes->words, value->text) >= 0;
  case AMPRT_OPT_INT:
    return numbers_fit(takes, &number, 1);
  case AMPRT_OPT_FLOAT:
    return numbers_fit(takes, &value->number, 1);
  case AMPRT_OPT_FLOATS:
    return numbers_fit(takes, value->list.v, value->list.n);
  case AMPRT_OPT_BOOL:
    break;
  }
  return true;
}

static AmprtStatus fail_takes(const char *flag, AmprtOptionKind kind, const AmprtTakes *takes,
                              const char *text, AmprtError *error) {
  char words[256] = "";
  if (kind != AMPRT_OPT_STR)
    return amprt_fail(error, AMPRT_USAGE, "--%s takes %s%s from %.16g to %.16g, not `%.80s`", flag,
                      takes->rising ? "rising " : "", kind_info[kind].what, takes->low, takes->high,
                      text);
  amprt_words_list(takes->words, words, sizeof words);
  return amprt_fail(error, AMPRT_USAGE, "--%s takes %s%s, not `%.80s`", flag, words,
                    takes->many ? ", several with commas between" : "", text);
}

AmprtStatus amprt_value_read(const char *flag, AmprtOptionKind kind, const AmprtTakes *takes,
                             const char *text, void *out, AmprtError *error) {
  static const size_t size[] = {[AMPRT_OPT_BOOL] = sizeof(AmprtOptBOOL),
                                [AMPRT_OPT_INT] = sizeof(AmprtOptINT),
                                [AMPRT_OPT_FLOAT] = sizeof(AmprtOptFLOAT),
                                [AMPRT_OPT_STR] = sizeof(AmprtOptSTR),
                                [AMPRT_OPT_FLOATS] = sizeof(AmprtOptFLOATS)};
  AmprtValueOf value = {.integer = 0};
  if (!kind_info[kind].set(&value, text))
    return amprt_fail(error, AMPRT_USAGE, "--%s: `%.80s` is not %s", flag, text,
                      kind_info[kind].what);
  if (takes && !value_fits(takes, kind, &value))
    return fail_takes(flag, kind, takes, text, error);
  memcpy(out, &value, size[kind]);
  return AMPRT_OK;
}

bool amprt_value_same(AmprtOptionKind kind, const char *a, const char *b) {
  AmprtValueOf x = {.integer = 0}, y = {.integer = 0};
  if (!kind_info[kind].set(&x, a) || !kind_info[kind].set(&y, b))
    return false;
  switch (kind) {
  case AMPRT_OPT_BOOL:
    return x.truth == y.truth;
  case AMPRT_OPT_INT:
    return x.integer == y.integer;
  case AMPRT_OPT_FLOAT:
    return x.number == y.number;
  case AMPRT_OPT_STR:
    return !strcmp(a, b);
  case AMPRT_OPT_FLOATS:
    break;
  }
  return x.list.n == y.list.n && !memcmp(x.list.v, y.list.v, (size_t)x.list.n * sizeof *x.list.v);
}
