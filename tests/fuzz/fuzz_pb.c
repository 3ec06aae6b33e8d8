/* Reads any bytes as a model. The importer never crashes and always says what is wrong; a module
 * that it makes passes the verifier, and its text form reads back as the same module. Bytes without
 * a control character are read as protobuf's text form. */
#include "frontend/import/load.h"
#include "tests/fuzz/round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static FILE *null;
  if (!null)
    null = fopen("/dev/null", "w");
  Arena *arena = arena_new();
  const char *bytes = arena_strdup(arena, (const char *)data, size);
  ModelForm form = model_form("-", bytes, size);
  Diag diag = {.out = null};
  if (form != MODEL_AMP) { /* fuzz_ir reads this form */
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
