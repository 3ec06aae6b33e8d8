/* Any bytes as a model: the importer never crashes and always says what is wrong; what it takes verifies
 * and its text form parses back to the same. Bytes without a control character are read as protobuf's text. */
#include "frontend/load.h"

#include <stdlib.h>
#include <string.h>

static char *printed(const Module *module) {
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  module_print(module, out);
  fclose(out);
  return text;
}

static void check_round_trip(Arena *arena, const Module *module, Diag *diag) {
  char *once = printed(module);
  diag->source = once;
  Module *again = module_parse(arena, "again.amp", once, diag);
  CHECK(again, "printed text does not parse:\n%s", once);
  char *twice = printed(again);
  CHECK(!strcmp(once, twice), "print is not a fixed point:\n%s\n%s", once, twice);
  free(once);
  free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static FILE *null;
  if (!null)
    null = fopen("/dev/null", "w");
  Arena *arena = arena_new();
  const char *bytes = arena_strdup(arena, (const char *)data, size);
  ModelForm form = model_form("-", bytes, size);
  Diag diag = {.out = null};
  if (form != MODEL_AMP) { /* fuzz_ir's */
    Module *module = model_read(arena, "fuzz.pb", form, bytes, size, (Overrides){0}, &diag);
    CHECK((module != NULL) == (diag.n_errors == 0), "%d errors, module %p", diag.n_errors,
          (void *)module);
    if (module) {
      module_verify(module, "the import");
      check_round_trip(arena, module, &diag);
    }
  }
  arena_free(arena);
  return 0;
}
