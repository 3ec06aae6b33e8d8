#include "frontend/diff/diff.h"
#include "frontend/import/load.h"

bool side_read(Arena *arena, const char *path, Side *out, Diag *diag) {
  Bytes bytes;
  const char *error = NULL;
  *out = (Side){.path = path};
  diag->file = path;
  diag->source = NULL;
  if (!file_read(arena, path, &bytes, diag))
    return false;
  out->bytes = (const unsigned char *)bytes.at;
  out->size = (size_t)bytes.len;
  if (!program_is(out->bytes, out->size)) {
    out->module = model_load(arena, path, &bytes, (Overrides){0}, diag);
    return out->module != NULL;
  }
  out->program = program_read(arena, out->bytes, out->size, &error);
  if (!out->program) {
    diag_error(diag, (SrcLoc){.file = path}, DIAG_FILE, "%s", error);
    return false;
  }
  diag->source = out->program->ir;
  out->module = out->program->ir ? module_parse(arena, path, out->program->ir, diag) : NULL;
  return out->module || !out->program->ir;
}
