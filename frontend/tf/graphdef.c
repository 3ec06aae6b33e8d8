#include "frontend/tf/graphdef.h"

#include "frontend/import/wire.h"

bool tf_graphdef_bytes(Arena *arena, const char *file, Bytes bytes, bool text, Bytes *out,
                       Diag *diag) {
  const ProtobufCMessageDescriptor *type = &tensorflow__graph_def__descriptor;
  size_t at;
  diag->source = text ? (const char *)bytes.at : NULL;
  if (text &&
      !pbtext_read(arena, file, (const char *)bytes.at, (size_t)bytes.len, type, &bytes, diag))
    return false;
  const char *wrong = wire_check(type, bytes.at, (size_t)bytes.len, &at);
  if (wrong)
    diag_error(diag, (SrcLoc){.file = file}, DIAG_GRAPHDEF, "this is no GraphDef: %s (byte %zu)",
               wrong, at);
  *out = bytes;
  return !wrong;
}

Tensorflow__GraphDef *tf_graphdef_unpack(Arena *arena, const char *file, Bytes bytes, Diag *diag) {
  Tensorflow__GraphDef *def =
      wire_unpack(arena, &tensorflow__graph_def__descriptor, bytes.at, (size_t)bytes.len);
  if (!def)
    diag_error(diag, (SrcLoc){.file = file}, DIAG_GRAPHDEF,
               "this is no GraphDef: a field is of another kind than it should be");
  return def;
}

void tf_graphdef_write(Arena *arena, const Tensorflow__GraphDef *def, bool text, FILE *out) {
  if (text) {
    pbtext_print(&def->base, out);
    return;
  }
  size_t size = tensorflow__graph_def__get_packed_size(def);
  uint8_t *bytes = arena_alloc(arena, size + 1);
  fwrite(bytes, 1, tensorflow__graph_def__pack(def, bytes), out);
}
