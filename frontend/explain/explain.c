#include "frontend/explain/explain.h"

#include "ir/base/text.h"

#include <stdlib.h>

static void list_codes(FILE *out) {
  for (const ExplainPage *page = explain_page; page->code; page++)
    fprintf(out, "E%03d  %s\n", page->code, page->meaning);
}

/* The number in "E112", "e112" or "112"; 0 if the text is of another form. */
static int read_code(const char *text) {
  const char *digits = text + (*text == 'E' || *text == 'e');
  char *end;
  long number = strtol(digits, &end, 10);
  return *digits >= '0' && *digits <= '9' && !*end && number < 1000 ? (int)number : 0;
}

bool explain(const char *program, const char *code, FILE *out) {
  if (!code || !*code) {
    list_codes(out);
    return true;
  }
  int number = read_code(code);
  for (const ExplainPage *page = explain_page; number && page->code; page++)
    if (page->code == number) {
      fprintf(out, "E%03d: %s\n\n%s", page->code, page->meaning, page->text);
      return true;
    }
  text_say("%s: --explain: no error has the code `%s`; --explain alone lists all\n", program, code);
  return false;
}
