/* Each RUN field of ir/recipe.def is a flag of the program, with its kind, default and help. The
 * runtime must not depend on the compiler, so the rows stand in both tables; this compares them. */
#include "runtime/core/options.h"

#include <string.h>

typedef struct Field {
  const char *flag, *otherwise, *help;
  AmprtOptionKind kind;
  int run;
} Field;

enum { COMPILE, RUN };
static const Field field[] = {
#define RECIPE(field, flag, kind, otherwise, when, help)                                           \
  {flag, #otherwise, help, AMPRT_OPT_##kind, when},
#include "ir/recipe.def"
};

static int check(const Field *want) {
  for (int i = 0; i < amprt_n_options; i++) {
    const AmprtOption *have = &amprt_option[i];
    char quoted[64];
    if (!have->flag || strcmp(have->flag, want->flag))
      continue;
    snprintf(quoted, sizeof quoted, "\"%s\"", have->otherwise);
    /* an empty list is `0` in one table and empty in the other */
    int same = !strcmp(want->kind == AMPRT_OPT_STR ? quoted : have->otherwise, want->otherwise) ||
               want->kind == AMPRT_OPT_FLOATS;
    if (same && have->kind == want->kind && !strcmp(have->help, want->help))
      return 0;
    return fprintf(stderr, "--%s differs: %s, %s\n", want->flag, have->otherwise, have->help), 1;
  }
  return fprintf(stderr, "--%s is no flag of the program\n", want->flag), 1;
}

int main(void) {
  int bad = 0, n = 0;
  for (size_t i = 0; i < sizeof field / sizeof *field; i++)
    if (field[i].run)
      bad += check(&field[i]), n++;
  return bad || n < 10;
}
