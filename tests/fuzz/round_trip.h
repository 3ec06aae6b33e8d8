/* The law of the text form, for every module that a fuzzer gets: print(parse(print(m))) ==
 * print(m). */
#ifndef AMPCC_TESTS_FUZZ_ROUND_TRIP_H
#define AMPCC_TESTS_FUZZ_ROUND_TRIP_H

#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

static inline char *printed(const Module *module) {
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  module_print(module, out);
  fclose(out);
  return text;
}

static inline void check_round_trip(Arena *arena, const Module *module, Diag *diag) {
  char *once = printed(module);
  Diag fresh = {.out = diag->out, .source = once};
  Module *again = module_parse(arena, "again.amp", once, &fresh);
  CHECK(again, "printed text does not parse:\n%s", once);
  char *twice = printed(again);
  CHECK(!strcmp(once, twice), "print is not a fixed point:\n%s\n%s", once, twice);
  free(once);
  free(twice);
}

#endif
