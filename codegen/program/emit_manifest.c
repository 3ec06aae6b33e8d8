/* The manifest of a program: all that it was made from, as JSON. A note for what all parts have in
 * common, which is plain text since it takes the versions of the C compiler and library from that
 * compiler's macros, and a compressed note for each part. The runtime prints them one behind the
 * other, and tools read them from the section `ampcc` (runtime/amprt.h). */
#include "codegen/backend.h"
#include "codegen/program/json_text.h"
#include "ir/base/list.h"
#include "ir/base/text.h"
#include "passes/memory/memory_report.h"
#include "passes/precision/explain.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- notes ---- */

/* Bytes as a C literal. */
static const char *bytes_text(Arena *arena, const unsigned char *byte, size_t n) {
  Text out = {arena};
  text_add(&out, "\"");
  for (size_t i = 0; i < n; i++)
    text_format(&out, "%s\\%03o", i % 24 || !i ? "" : "\"\n    \"", byte[i]);
  text_add(&out, "\"");
  return text_get(&out);
}

const char *emit_note(Arena *arena, const char *name, const char *text, size_t size, FILE *out) {
  uLongf packed = compressBound(size);
  unsigned char *bytes = arena_alloc(arena, packed);
  CHECK(compress2(bytes, &packed, (const Bytef *)text, size, Z_BEST_COMPRESSION) == Z_OK,
        "zlib cannot compress");
  fprintf(out,
          "static const struct {\n  AmprtNote head;\n  char bytes[%lu];\n} note_%s "
          "__attribute__((section(\"ampcc\"), used)) = {\n"
          "  {AMPRT_NOTE_MARK, \"%s\", %lu, %zu},\n  %s};\n\n",
          packed, name, name, packed, size, bytes_text(arena, bytes, packed));
  return arena_printf(arena, "{note_%s.bytes, %lu, %zu}", name, packed, size);
}

const char *emit_report(Arena *arena, const char *name, void (*report)(const Module *, FILE *),
                        const Module *module, FILE *out) {
  TextDraft draft;
  report(module, text_draft(&draft));
  const char *text = text_take(&draft, arena);
  return emit_note(arena, name, text, draft.size, out);
}

/* ---- members ---- */

/* Appends `"NAME": VALUE` on a line of its own, and drops the value. */
static void add_member(Text *out, const char *name, json_t *value) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_PRESERVE_ORDER);
  CHECK(text, "`%s` does not fit into JSON", name);
  text_format(out, "%s\"%s\": ", out->len > 1 ? ",\n" : "\n", name);
  text_add(out, text);
  free(text);
  json_decref(value);
}

static json_t *flags_json(Arena *arena, const CodegenOptions *options) {
  json_t *list = json_array();
  for (int i = 0; i < options->n_given; i++)
    json_array_append_new(list,
                          json_text(arena, arena_printf(arena, "--%s=%s", options->given[i].flag,
                                                        options->given[i].value)));
  return list;
}

static json_t *inputs_json(Arena *arena, const CodegenOptions *options) {
  json_t *list = json_array();
  for (int i = 0; i < options->n_inputs; i++) {
    const InputFile *input = &options->input[i];
    json_t *json = json_object();
    json_object_set_new(json, "what", json_string(input->what));
    json_object_set_new(json, "name", json_text(arena, input->name));
    json_object_set_new(json, "bytes", json_integer(input->bytes));
    json_object_set_new(json, "sha256", json_string(input->sha256));
    json_array_append_new(list, json);
  }
  return list;
}

/* The versions of what is linked into the program. */
static json_t *libraries_json(const CodegenOptions *options) {
  json_t *json = json_object();
  json_object_set_new(json, "zlib", json_string(AMPCC_ZLIB_VERSION));
  json_object_set_new(json, "protobuf-c", json_string(AMPCC_PROTOBUF_C_VERSION));
#ifdef AMPCC_STATIC_IMAGES
  if (options->is_static) {
    json_object_set_new(json, "libjpeg", json_string(AMPCC_JPEG_VERSION));
    json_object_set_new(json, "libpng", json_string(AMPCC_PNG_VERSION));
  }
#else
  (void)options;
#endif
  return json;
}

const char *emit_manifest(const ProgramCode *program, const char *fingerprint, FILE *out) {
  Arena *arena = program->arena;
  const CodegenOptions *options = program->options;
  const Recipe *recipe = program->module->recipe;
  Text text = {arena};
  text_add(&text, "{");
  add_member(&text, "manifest", json_integer(1));
  add_member(&text, "model", json_text(arena, recipe->name));
  add_member(&text, "fingerprint", json_string(fingerprint));
  add_member(&text, "dtype", json_string(dtype_info[options->compile->dtype].flag));
  add_member(&text, "flags", flags_json(arena, options));
  add_member(&text, "inputs", inputs_json(arena, options));
  add_member(&text, "recipe", json_recipe(arena, recipe));
  add_member(&text, "ampcc", json_string(AMPCC_VERSION));
  add_member(&text, "libraries", libraries_json(options));
  text_add(&text, ",\n\"cc\": \"");
  const char *head = text_get(&text), *libc = "\",\n\"libc\": \"", *tail = "\",\n\"parts\": [\n";
  size_t size = strlen(head) + strlen(libc) + strlen(tail);
  fprintf(out,
          "#ifdef __clang__\n"
          "#define AMPCC_CC __VERSION__\n"
          "#else\n"
          "#define AMPCC_CC \"gcc \" __VERSION__\n"
          "#endif\n"
          "#ifdef __GLIBC__\n"
          "#define AMPCC_NUMBER(number) #number\n"
          "#define AMPCC_GLIBC(major, minor) \"glibc \" AMPCC_NUMBER(major) \".\" "
          "AMPCC_NUMBER(minor)\n"
          "#define AMPCC_LIBC AMPCC_GLIBC(__GLIBC__, __GLIBC_MINOR__)\n"
          "#else\n"
          "#define AMPCC_LIBC \"another\"\n"
          "#endif\n"
          "enum { manifest_size = %zu + sizeof AMPCC_CC - 1 + sizeof AMPCC_LIBC - 1 };\n"
          "static const struct {\n  AmprtNote head;\n  char bytes[manifest_size + 1];\n} "
          "note_manifest __attribute__((section(\"ampcc\"), used)) = {\n"
          "  {AMPRT_NOTE_MARK, \"manifest\", manifest_size, 0},\n  %s AMPCC_CC\n  %s AMPCC_LIBC\n"
          "  %s};\n\n",
          size, cstring_text(arena, head), cstring_text(arena, libc), cstring_text(arena, tail));
  return "{note_manifest.bytes, manifest_size, 0}";
}

/* ---- a part ---- */

/* How many results each op has in each type: {"conv2d": {"f16": 53}, ...}. */
static json_t *types_json(const Graph *graph) {
  json_t *json = json_object();
  static int count[OP_COUNT][DT_COUNT];
  memset(count, 0, sizeof count);
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->n_results)
      count[graph->node[i]->op][graph->node[i]->result[0]->type.dtype]++;
  for (int op = 0; op < OP_COUNT; op++) {
    json_t *types = json_object();
    for (int d = 0; d < DT_COUNT; d++)
      if (count[op][d])
        json_object_set_new(types, dtype_info[d].name, json_integer(count[op][d]));
    if (json_object_size(types))
      json_object_set_new(json, op_info[op].name, types);
    else
      json_decref(types);
  }
  return json;
}

static json_t *casts_json(const Graph *graph) {
  PrecisionTotals t = precision_totals(graph);
  json_t *json = json_object();
  json_object_set_new(json, "own", json_integer(t.casts_own));
  json_object_set_new(json, "inside_kernels", json_integer(t.casts_inside));
  json_object_set_new(json, "folded_exact", json_integer(t.folded_exact));
  json_object_set_new(json, "folded_changing", json_integer(t.folded_changing));
  json_object_set_new(json, "bytes", json_integer(t.bytes_own));
  return json;
}

/* [["conv_affine_relu", "layer1.0.conv1"], ...]: kernels without their number, and their layers. */
static json_t *kernels_json(Arena *arena, const GraphCode *code) {
  json_t *list = json_array();
  for (int i = 0; i < code->kernels.n; i++) {
    const char *name = code->call[i].name, *layer = kernel_layer(&code->kernels.kernel[i]);
    size_t digits = *name == 'k' ? strspn(name + 1, "0123456789") : 0;
    json_t *pair = json_array();
    json_array_append_new(
        pair, json_text(arena, digits && name[1 + digits] == '_' ? name + digits + 2 : name));
    json_array_append_new(pair, json_text(arena, layer));
    json_array_append_new(list, pair);
  }
  return list;
}

static json_t *graph_json(Arena *arena, const GraphCode *code) {
  json_t *json = json_object();
  json_object_set_new(json, "name", json_text(arena, code->graph->name));
  json_object_set_new(json, "arena_bytes", json_integer(code->graph->arena_bytes));
  json_object_set_new(json, "types", types_json(code->graph));
  json_object_set_new(json, "casts", casts_json(code->graph));
  json_object_set_new(json, "kernels", kernels_json(arena, code));
  return json;
}

static json_t *words_json(Arena *arena, const char *list) {
  json_t *words = json_array();
  for (const char *word; (word = list_word(arena, &list, ',')) != NULL;)
    json_array_append_new(words, json_string(word));
  return words;
}

const char *emit_part_manifest(const ProgramCode *program, FILE *out) {
  Arena *arena = program->arena;
  const Module *module = program->module;
  json_t *more = json_object(), *graphs = json_array(), *value;
  const char *key;
  Text text = {arena};
  char hash[SHA256_TEXT];
  sha256_text(program->functions, strlen(program->functions), hash);
  text_add(&text, "{");
  add_member(&text, "target", json_string(program->backend->target->name));
  add_member(&text, "state_bytes", json_integer(module->state_bytes));
  add_member(&text, "arena_bytes", json_integer(module_arena_bytes(module)));
  add_member(&text, "passes", words_json(arena, program->figures->passes));
  add_member(&text, "kernel_text_sha256", json_string(hash));
  program->backend->manifest(program, more);
  json_object_foreach(more, key, value) {
    add_member(&text, key, json_incref(value));
  }
  for (int i = 0; i < module->n_graphs; i++)
    json_array_append_new(graphs, graph_json(arena, &program->graph[i]));
  add_member(&text, "graphs", graphs);
  json_decref(more);
  text_add(&text, "}");
  return emit_note(arena, "part", text_get(&text), (size_t)text.len, out);
}
