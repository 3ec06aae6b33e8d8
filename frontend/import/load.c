#include "frontend/import/load.h"

#include "frontend/import/foreign.h"
#include "frontend/import/pbtext.h"
#include "frontend/model.pb-c.h"
#include "ir/base/reads.h"

#include <errno.h>
#include <string.h>

enum { MAX_FILE = 1 << 30, MAX_TEXT = 1 << 20 };

/* ---- bytes ---- */

/* Reads to the end and appends a NUL that is not counted. False after an error. */
static bool read_all(Arena *arena, const char *path, FILE *in, int most, Bytes *out, Diag *diag) {
  char chunk[1 << 16];
  size_t n;
  *out = (Bytes){0};
  while ((n = fread(chunk, 1, sizeof chunk, in)) > 0) {
    if (out->len + (int)n >= most) {
      diag_error(diag, (SrcLoc){.file = path}, DIAG_TOO_LARGE, "the file is larger than %d MiB",
                 most >> 20);
      return false;
    }
    while (out->cap < out->len + (int)n + 1) {
      int cap = out->cap ? 2 * out->cap : 2 * (int)sizeof chunk;
      out->at = arena_grow(arena, out->at, (size_t)out->cap, (size_t)cap);
      out->cap = cap;
    }
    memcpy(out->at + out->len, chunk, n);
    out->len += (int)n;
  }
  if (!out->at)
    out->at = arena_alloc(arena, 1);
  out->at[out->len] = '\0';
  if (ferror(in))
    diag_error(diag, (SrcLoc){.file = path}, DIAG_FILE, "cannot be read: %s", strerror(errno));
  return !ferror(in);
}

static FILE *file_open(const char *path, Diag *diag) {
  reads_add(path);
  FILE *in = fopen(path, "rb");
  if (!in)
    diag_error(diag, (SrcLoc){.file = path}, DIAG_FILE, "cannot be opened: %s", strerror(errno));
  return in;
}

bool file_read(Arena *arena, const char *path, Bytes *out, Diag *diag) {
  FILE *in = strcmp(path, "-") ? file_open(path, diag) : stdin;
  bool ok = in && read_all(arena, path, in, MAX_FILE, out, diag);
  if (in && in != stdin)
    fclose(in);
  return ok;
}

char *text_read(Arena *arena, const char *path, Diag *diag) {
  Bytes bytes;
  FILE *in = file_open(path, diag);
  bool ok = in && read_all(arena, path, in, MAX_TEXT, &bytes, diag);
  if (in)
    fclose(in);
  ok = ok && diag_check_text(diag, path, (const char *)bytes.at, (size_t)bytes.len, DIAG_FILE);
  return ok ? (char *)bytes.at : NULL;
}

/* ---- forms ---- */

/* After blanks and comments, does the text begin like a graph in text form? */
static bool starts_like_amp(const char *at) {
  for (;;) {
    at += strspn(at, " \t\r\n");
    if (strncmp(at, "//", 2))
      break;
    at += strcspn(at, "\n");
  }
  return !strncmp(at, "recipe {", 8) || !strncmp(at, "graph @", 7);
}

static bool is_text(const char *bytes, size_t size) {
  for (size_t i = 0; i < size && i < 512; i++)
    if ((unsigned char)bytes[i] < ' ' && !strchr("\t\r\n", bytes[i]))
      return false;
  return size > 0;
}

ModelForm model_form(const char *path, const char *bytes, size_t size) {
  static const struct {
    const char *ending;
    ModelForm form;
  } known[] = {{".pb", MODEL_PB},
               {".pbtxt", MODEL_PBTXT},
               {".txtpb", MODEL_PBTXT},
               {".textproto", MODEL_PBTXT},
               {".amp", MODEL_AMP}};
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    size_t n = strlen(known[i].ending);
    if (length > n && !strcmp(path + length - n, known[i].ending))
      return known[i].form;
  }
  if (!is_text(bytes, size))
    return MODEL_PB;
  return starts_like_amp(bytes) ? MODEL_AMP : MODEL_PBTXT;
}

/* ---- the text form of the graph ---- */

/* Does the graph depend on this field, so that the field cannot change any more? */
static bool is_built_in(const Module *module, const RecipeField *field) {
  static const char *const from_the_start[] = {"batch_size", "accumulate", "loss",
                                               "label_smoothing", "metrics"};
  for (size_t i = 0; i < sizeof from_the_start / sizeof *from_the_start; i++)
    if (!strcmp(field->field, from_the_start[i]))
      return true;
  bool named = !strcmp(field->field, "name");
  return field->when == RECIPE_COMPILE && !named && module->graph[0]->stage > STAGE_MODEL;
}

static bool same_field(const Recipe *a, const Recipe *b, const RecipeField *field) {
  const char *x = (const char *)a + field->offset, *y = (const char *)b + field->offset;
  if (field->kind == RECIPE_STR)
    return !strcmp(*(const char *const *)x, *(const char *const *)y);
  return !memcmp(x, y, field->kind == RECIPE_INT ? sizeof(RecipeINT) : sizeof(RecipeFLOAT));
}

static bool override_graph(Module *module, const char *file, Overrides overrides, Diag *diag) {
  int before = diag->n_errors;
  SrcLoc loc = {.file = file};
  for (int i = 0; i < overrides.n; i++) {
    const RecipeField *field = overrides.at[i].field;
    Recipe old = *module->recipe;
    bool fits = recipe_set(module->arena, module->recipe, field, overrides.at[i].text);
    CHECK(fits, "an override was not checked");
    if (is_built_in(module, field) && !same_field(&old, module->recipe, field))
      diag_error(diag, loc, DIAG_OPTION,
                 "--%s cannot change what is built into this graph: compile the model again",
                 field->flag);
  }
  const char *conflict = recipe_conflict(module->arena, module->recipe);
  if (conflict)
    diag_error(diag, loc, DIAG_RECIPE, "%s", conflict);
  return diag->n_errors == before;
}

Module *model_read(Arena *arena, const char *file, ModelForm form, const char *bytes, size_t size,
                   Overrides overrides, Diag *diag) {
  FileKind kind = form == MODEL_AMP ? FILE_UNKNOWN : file_kind(form == MODEL_PBTXT, bytes, size);
  const char *wrong =
      kind == FILE_GRAPHDEF
          ? "this is a TensorFlow GraphDef: ampcc-tf rewrites it, ampcc compiles models"
          : file_advice(kind);
  if (wrong) {
    diag_error(diag, (SrcLoc){.file = file}, DIAG_PROTOBUF, "%s", wrong);
    return NULL;
  }
  if (form == MODEL_PB)
    return import_bytes(arena, file, (const uint8_t *)bytes, size, overrides, diag);
  diag->source = bytes;
  if (form == MODEL_PBTXT) {
    Bytes wire;
    if (!pbtext_read(arena, file, bytes, size, &ampcc__model_def__descriptor, &wire, diag))
      return NULL;
    return import_bytes(arena, file, wire.at, (size_t)wire.len, overrides, diag);
  }
  if (!diag_check_text(diag, file, bytes, size, DIAG_SYNTAX))
    return NULL;
  Module *module = module_parse(arena, file, bytes, diag);
  return module && override_graph(module, file, overrides, diag) ? module : NULL;
}

Module *model_load(Arena *arena, const char *path, const Bytes *bytes, Overrides overrides,
                   Diag *diag) {
  const char *text = (const char *)bytes->at;
  size_t size = (size_t)bytes->len;
  return model_read(arena, strcmp(path, "-") ? path : "<stdin>", model_form(path, text, size), text,
                    size, overrides, diag);
}
