/* AmprtProgram, which describes the whole program; AmprtPart; and main. */
#include "codegen/backend.h"
#include "ir/ports.h"
#include "ir/recipe/recipe.h"
#include "passes/memory/memory_report.h"
#include "passes/precision/explain.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_text(uint64_t hash, const char *text) {
  for (; *text; text++)
    hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t hash_ints(uint64_t hash, const int64_t *ints, int n) {
  for (int i = 0; i < n; i++)
    hash = (hash ^ (uint64_t)ints[i]) * UINT64_C(0x9e3779b97f4a7c15);
  return hash;
}

static uint64_t hash_variable(const Node *node) {
  VariableKind kind = variable_kind(node);
  if (kind != VARIABLE_PARAM && kind != VARIABLE_STAT)
    return 0;
  TensorType type = node->result[0]->type;
  return hash_ints(hash_text(1, node->result[0]->name), type.dim, type.rank);
}

static uint64_t hash_window(const Node *node) {
  if (op_info[node->op].gen != GEN_CONV && op_info[node->op].gen != GEN_POOL)
    return 0;
  uint64_t hash =
      hash_text(hash_text(2, op_info[node->op].name), node->loc.name ? node->loc.name : "");
  static const struct {
    AttrKey key;
    int n;
  } part[] = {{ATTR_WINDOW, 2}, {ATTR_STRIDE, 2}, {ATTR_PAD, 4}};
  for (int i = 0; i < 3; i++) {
    const int64_t *ints = attr_ints(node, part[i].key, part[i].n);
    if (ints)
      hash = hash_ints(hash, ints, part[i].n);
  }
  return hash;
}

/* A sum of hashes does not depend on the order of nodes, which the scheduler chooses. */
static const char *fingerprint_of(Arena *arena, const Module *module) {
  VariableList variables = variables_of(arena, module);
  uint64_t sum = hash_text(3, module->recipe->name);
  for (int i = 0; i < variables.n; i++)
    sum += hash_variable(variables.node[i]);
  const Graph *graph = module->graph[0];
  for (int i = 0; i < graph->n_nodes; i++)
    sum += hash_window(graph->node[i]);
  return arena_printf(arena, "%016llx", (unsigned long long)sum);
}

/* The largest momentum of any moving average of statistics. */
static double bn_momentum(const Module *module) {
  double momentum = 0;
  const Graph *graph = module->graph[0];
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    const Node *from = node->op == OP_EMA ? node->arg[2]->node : NULL;
    double m = from && from->op == OP_CONST ? attr_float(from, ATTR_VALUE, 0) : 0;
    if (m > momentum)
      momentum = m;
  }
  return momentum;
}

/* The type of the port `name` of the first graph; rank 0 if there is none. */
static TensorType port_type(const Module *module, OpKind op, const char *name) {
  const Graph *graph = module->graph[0];
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == op && strcmp(attr_str(node, ATTR_NAME, ""), name) == 0)
      return op == OP_INPUT ? node->result[0]->type : node->arg[0]->type;
  }
  return (TensorType){0};
}

/* How large the input `image` is along an axis of N,H,W,C. Where it has fewer axes, the last one is
 * still C and the first one N, and sizes of 1 take the places between: N,C is 1 x 1 pixel. All
 * sizes are 0 where there is no such input. */
static int64_t image_size(TensorType image, int axis) {
  const int at = axis + image.rank - 4;
  if (axis == 0 || image.rank == 0)
    return image.dim[0];
  return at > 0 ? image.dim[at] : 1;
}

/* The layer that makes the logits. */
static const char *head_of(const Module *module) {
  const Graph *graph = module->graph[0];
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_OUTPUT && !strcmp(attr_str(node, ATTR_NAME, ""), port_logits))
      return node->arg[0]->node->loc.name;
  }
  return NULL;
}

/* Writes the table of constants by number. False if there are none. */
static bool emit_constants(const Emitter *emit, FILE *out) {
  Text names = {emit->arena};
  for (int i = 0; i < emit->n_constants; i++)
    text_item(&names, emit->constant[i]);
  if (emit->n_constants)
    fprintf(out, "static const void *const constants[] = {%s};\n\n", text_get(&names));
  return emit->n_constants > 0;
}

void emit_program(const ProgramCode *program, FILE *out) {
  Arena *arena = program->arena;
  const Module *module = program->module;
  TensorType image = port_type(module, OP_INPUT, port_image);
  TensorType logits = port_type(module, OP_OUTPUT, port_logits);
  const char *constant = emit_constants(&program->emit, out) ? "constants" : "NULL";
  const char *fingerprint = fingerprint_of(arena, module);
  const char *memory = emit_report(arena, "memory_plan", memory_report, module, out);
  const char *precision = emit_report(arena, "precision", precision_report, module, out);
  const char *part = emit_part_manifest(program, out), *source = program->options->source;
  fputs("#ifdef AMPCC_PARTS\n", out);
  const char *manifest = emit_manifest(program, fingerprint, out);
  const char *ir = source ? emit_note(arena, "ir", source, strlen(source), out) : "{0}";
  fputs("#endif\n\n", out);
  int64_t parts = module_find(module, "accumulate") ? module->recipe->accumulate : 1;
  file_fill(out, arena,
            "static const AmprtProgram amp_program = {\n"
            "  .abi = AMPRT_ABI,\n"
            "  .model = $MODEL,\n"
            "  .version = \"ampcc " AMPCC_VERSION "\",\n"
            "  .target = $TARGET,\n"
            "  .dtype = $DTYPE,\n"
            "  .fingerprint = \"$FINGERPRINT\",\n"
            "  .batch_size = $BATCH, .height = $HEIGHT, .width = $WIDTH, .channels = $CHANNELS,"
            " .n_classes = $CLASSES,\n"
            "  .variable = variables, .n_variables = n_variables, .graph = graphs,"
            " .n_graphs = $NGRAPHS,\n"
            "  .state_bytes = $STATE, .recipe = settings, .n_recipe = n_settings,"
            " .made = made, .n_made = n_made, .given = given, .n_given = n_given,"
            " .head = $HEAD, .constant = $CONSTANT,"
            " .bn_momentum = $MOMENTUM,\n"
            "  .memory_plan = $MEMORY, .precision = $PRECISION, .part_manifest = $PART,\n"
            "#ifdef AMPCC_PARTS\n"
            "  .manifest = $MANIFEST, .ir = $IR,\n"
            "#endif\n"
            "  .parts = $PARTS,\n"
            "$FIELDS\n"
            "};\n"
            "\n",
            holes({"HEAD", head_of(module) ? cstring_text(arena, head_of(module)) : "NULL"},
                  {"CONSTANT", constant}, {"MODEL", cstring_text(arena, module->recipe->name)},
                  {"TARGET", cstring_text(arena, program->backend->target->name)},
                  {"DTYPE", cstring_text(arena, dtype_info[program->options->compile->dtype].flag)},
                  {"FINGERPRINT", fingerprint}, {"BATCH", .number = image_size(image, 0)},
                  {"HEIGHT", .number = image_size(image, 1)},
                  {"WIDTH", .number = image_size(image, 2)},
                  {"CHANNELS", .number = image_size(image, 3)},
                  {"CLASSES", .number = logits.rank ? logits.dim[logits.rank - 1] : 0},
                  {"NGRAPHS", .number = module->n_graphs}, {"STATE", .number = module->state_bytes},
                  {"MOMENTUM", cdouble_text(arena, bn_momentum(module))}, {"MEMORY", memory},
                  {"PRECISION", precision}, {"PART", part}, {"MANIFEST", manifest}, {"IR", ir},
                  {"PARTS", .number = parts}, {"FIELDS", program->backend->fields}));
}

void emit_part(const ProgramCode *program, FILE *out) {
  program->backend->emit_fits(program, out);
  fprintf(out, "\nconst AmprtPart amp_part_%s = {\"%s\", &amp_program, fits};\n",
          program->backend->ident, program->backend->target->name);
}

void emit_main(FILE *out) {
  fputs("#define P(name) extern const AmprtPart name;\n"
        "AMPCC_PARTS\n"
        "#undef P\n"
        "\n"
        "int main(int argc, char **argv) {\n"
        "#define P(name) name,\n"
        "  const AmprtPart part[] = {AMPCC_PARTS};\n"
        "#undef P\n"
        "  return amprt_main(part, (int)(sizeof part / sizeof *part), argc, argv);\n"
        "}\n",
        out);
}
