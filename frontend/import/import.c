/* The importer: unpacks the model, checks its version and imports its inputs; import_*.c do the
 * rest. protobuf-c allocates from the arena, so a refused model needs no cleaning up. */
#include "frontend/import/import.h"

#include "frontend/import/import_parts.h"
#include "frontend/import/wire.h"
#include "ir/base/text.h"
#include "ir/ports.h"

#include <stdarg.h>
#include <string.h>

enum { MODEL_VERSION = 1, MAX_NAME = 255 };

Value import_poison;

/* ---- errors ---- */

const char *import_quote(Import *im, const char *name) {
  enum { SHOWN = 80 };
  return strlen(name) <= SHOWN ? name : arena_printf(im->arena, "%.*s...", SHOWN, name);
}

void import_error(Import *im, const char *kind, const char *name, DiagCode code, const char *fmt,
                  ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  SrcLoc loc = {.file = im->file, .name = kind ? name : NULL, .kind = kind};
  diag_error(im->diag, loc, code, "%s", text);
}

SrcLoc import_loc(const Import *im, const char *layer) {
  return (SrcLoc){.file = im->file, .name = layer};
}

/* ---- names ---- */

bool import_define(Import *im, const char *kind, const char *name, Value *value) {
  size_t length = strlen(name);
  const char *wrong = !length                      ? "is empty"
                      : length > MAX_NAME          ? "is longer than 255 bytes"
                      : !text_is_printable(name)   ? "holds a control character or is no UTF-8"
                      : names_get(im->names, name) ? "is defined twice"
                                                   : NULL;
  if (wrong)
    import_error(im, kind, name, DIAG_MODEL_NAME, "the name `%s` %s", import_quote(im, name),
                 wrong);
  else
    names_put(im->names, name, value);
  return !wrong;
}

Value *import_find(Import *im, const char *kind, const char *user, const char *name) {
  Value *value = names_get(im->names, name);
  if (!value)
    import_error(im, kind, user, DIAG_MODEL_NAME, "`%s` is not defined yet",
                 import_quote(im, name));
  return value;
}

void import_claim(Import *im, const char *name) {
  Value *holder = graph_find(im->graph, name);
  if (holder)
    graph_rename(im->graph, holder, graph_fresh_name(im->graph, name));
}

/* ---- types ---- */

bool import_type(Import *im, const char *kind, const char *name, const char *dtype, size_t rank,
                 const int64_t *dim, TensorType *out) {
  int d = dtype_lookup(dtype);
  if (d < 0) {
    import_error(im, kind, name, DIAG_SHAPE, "unknown dtype `%s`", import_quote(im, dtype));
    return false;
  }
  if (rank > MAX_RANK) {
    import_error(im, kind, name, DIAG_TOO_LARGE, "%zu dimensions, at most %d are possible", rank,
                 MAX_RANK);
    return false;
  }
  int64_t bytes = dtype_info[d].bytes;
  for (size_t i = 0; i < rank; i++)
    if (dim[i] < 1 || dim[i] > MAX_DIM || __builtin_mul_overflow(bytes, dim[i], &bytes) ||
        bytes > MAX_TENSOR_BYTES) {
      import_error(im, kind, name, DIAG_TOO_LARGE,
                   "dimension %zu is %lld: it must be at least 1 and the tensor at most 2^40 bytes",
                   i, (long long)dim[i]);
      return false;
    }
  *out = type_of((DType)d, (int)rank, dim);
  return true;
}

/* ---- inputs ---- */

typedef struct InputRule {
  const char *name, *dtype, *shape;
  size_t rank;
} InputRule;

static const InputRule input_rule[] = {
    {port_image, "f32", "[0, H, W, C]", 4},
    {port_label, "i32", "[0]", 1},
};
enum { N_INPUTS = sizeof input_rule / sizeof input_rule[0] };

/* Appends the input to the graph; returns import_poison if it does not follow the rule. */
static Value *make_input(Import *im, const InputRule *rule, const Ampcc__Input *input) {
  const char *dtype = *input->dtype ? input->dtype : rule->dtype;
  if (strcmp(dtype, rule->dtype) || input->n_dim != rule->rank || input->dim[0] != 0) {
    import_error(im, "input", input->name, DIAG_MODEL_INPUT,
                 "must be %s %s; the leading 0 stands for the batch", rule->dtype, rule->shape);
    return &import_poison;
  }
  int64_t dim[MAX_RANK];
  memcpy(dim, input->dim, rule->rank * sizeof dim[0]);
  dim[0] = recipe_part(im->module->recipe);
  TensorType type;
  if (!import_type(im, "input", input->name, dtype, rule->rank, dim, &type))
    return &import_poison;
  Node *node = graph_append(im->graph, OP_INPUT, import_loc(im, NULL), 0, NULL);
  attr_set_str(im->graph, node, ATTR_NAME, rule->name);
  return node_finish(im->graph, node, rule->name, 1, &type);
}

static void import_inputs(Import *im) {
  bool seen[N_INPUTS] = {false};
  for (size_t i = 0; i < im->model->n_input; i++) {
    const Ampcc__Input *input = im->model->input[i];
    int r = 0;
    while (r < N_INPUTS && strcmp(input_rule[r].name, input->name))
      r++;
    if (r == N_INPUTS)
      import_error(im, "input", input->name, DIAG_MODEL_INPUT,
                   "a model's inputs are `image` and `label`");
    else if (seen[r])
      import_error(im, "input", input->name, DIAG_MODEL_NAME, "is defined twice");
    else
      names_put(im->names, input->name, make_input(im, &input_rule[r], input));
    if (r < N_INPUTS)
      seen[r] = true;
  }
  for (int r = 0; r < N_INPUTS; r++)
    if (!seen[r]) {
      import_error(im, NULL, NULL, DIAG_MODEL_INPUT, "the model has no input `%s` %s",
                   input_rule[r].name, input_rule[r].shape);
      names_put(im->names, input_rule[r].name, &import_poison);
    }
}

/* ---- the whole ---- */

/* protobuf-c gives a missing string its empty default, so no pointer to a string is NULL. */
static const Ampcc__ModelDef *unpack(Import *im, const uint8_t *bytes, size_t size) {
  size_t at = 0;
  const char *wrong = size ? wire_check(&ampcc__model_def__descriptor, bytes, size, &at) : NULL;
  Ampcc__ModelDef *model =
      size && !wrong ? wire_unpack(im->arena, &ampcc__model_def__descriptor, bytes, size) : NULL;
  if (!size)
    import_error(im, NULL, NULL, DIAG_PROTOBUF, "the file is empty: it holds no model");
  else if (!model)
    import_error(im, NULL, NULL, DIAG_PROTOBUF,
                 "this is no ModelDef in protobuf's binary form: %s (byte %zu)",
                 wrong ? wrong : "a field is of another kind than it should be", at);
  else if (model->version != MODEL_VERSION)
    import_error(im, NULL, NULL, DIAG_MODEL_VERSION,
                 "the model has version %u, this ampcc reads version %d", model->version,
                 MODEL_VERSION);
  return model && model->version == MODEL_VERSION ? model : NULL;
}

Module *import_bytes(Arena *arena, const char *file, const uint8_t *bytes, size_t size,
                     Overrides overrides, Diag *diag) {
  Import im = {.arena = arena, .file = file, .diag = diag};
  int before = diag->n_errors;
  im.model = unpack(&im, bytes, size);
  if (!im.model)
    return NULL;
  im.module = module_new(arena);
  im.names = names_new(arena);
  import_recipe(&im, overrides);
  if (diag->n_errors != before) /* shapes need a valid batch size */
    return NULL;
  im.graph = module_add_graph(im.module, "train", STAGE_MODEL);
  import_inputs(&im);
  import_parameters(&im);
  import_nodes(&im);
  import_loss(&im);
  if (diag->n_errors != before || !module_check(im.module, diag))
    return NULL;
  graph_sweep(im.graph);
  return im.module;
}
