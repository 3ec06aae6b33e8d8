/* A graph and its state as tables of the runtime (runtime/amprt.h). */
#include "codegen/program/emit.h"
#include "ir/ports.h"
#include "ir/recipe/opt.h"
#include "ir/text/text.h"

#include <math.h>
#include <string.h>

const char *cstring_text(Arena *arena, const char *text) {
  Text out = {arena};
  text_add(&out, "\"");
  for (const char *plain = text;; text++) {
    unsigned char c = (unsigned char)*text;
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?') /* ? for the sake of trigraphs */
      continue;
    text_bytes(&out, plain, (int)(text - plain));
    plain = text + 1;
    if (!c)
      break;
    if (c == '\n')
      text_add(&out, text[1] ? "\\n\"\n    \"" : "\\n");
    else
      text_format(&out, c < ' ' || c > '~' ? "\\%03o" : "\\%c", c);
  }
  text_add(&out, "\"");
  return text_get(&out);
}

const char *cdouble_text(Arena *arena, double value) {
  char text[FLOAT_TEXT];
  if (isnan(value))
    return "__builtin_nan(\"\")";
  if (isinf(value))
    return value < 0 ? "-__builtin_inf()" : "__builtin_inf()";
  return arena_printf(arena, "%s", float_text(value, text));
}

const char *ctype_text(Arena *arena, TensorType type) {
  Text dim = {arena};
  for (int i = 0; i < type.rank; i++)
    text_item(&dim, arena_printf(arena, "%lld", (long long)type.dim[i]));
  return arena_printf(arena, ".dtype = %s, .rank = %d, .dim = {%s}", cdtype_name(type.dtype),
                      type.rank, type.rank ? text_get(&dim) : "0");
}

/* Where a port lies. A value that is written straight to its variable lies in the variable. */
typedef struct Address {
  bool found, in_state;
  int64_t at;
} Address;

static Address address_of(const Graph *graph, const Value *value) {
  const Value *storage = value_storage((Value *)value);
  const int64_t *at = attr_ints(storage->node, ATTR_AT, storage->node->n_results);
  if (!at)
    return (Address){0};
  if (at[storage->index] >= 0)
    return (Address){true, storage->node->op == OP_VARIABLE, at[storage->index]};
  for (int i = 0; at[storage->index] == AT_STATE && i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_UPDATE && value_storage(node->arg[1]) == storage)
      return address_of(graph, node->arg[0]);
  }
  return (Address){0};
}

typedef struct Port {
  const char *name;
  TensorType type;
  Address address;
  int after; /* the kernel that makes it; -1: none */
  bool scaled, pixels;
} Port;

static void add_port(Text *rows, const Port *port) {
  Arena *arena = rows->arena;
  text_fill(rows,
            "{.name = $NAME, $TYPE, .in_state = $STATE, .scaled = $SCALED, .at = $AT,"
            " .after = $AFTER},\n",
            holes({"NAME", cstring_text(arena, port->name)},
                  {"TYPE", arena_printf(arena, "%s%s", port->pixels ? ".pixels = 1, " : "",
                                        ctype_text(arena, port->type))},
                  {"STATE", .number = port->address.in_state}, {"SCALED", .number = port->scaled},
                  {"AT", .number = port->address.at}, {"AFTER", .number = port->after}));
}

static int add_ports(Text *rows, const GraphCode *code, OpKind op) {
  int n = 0;
  for (int i = 0; i < code->graph->n_nodes; i++) {
    const Node *node = code->graph->node[i];
    if (node->op != op)
      continue;
    const Value *value = op == OP_INPUT ? node->result[0] : node->arg[0];
    Port port = {.name = attr_str(node, ATTR_NAME, value->name),
                 .type = value->type,
                 .address = address_of(code->graph, value),
                 .after = kernel_of(value_storage((Value *)value)->node),
                 .pixels = attr_int(node, ATTR_PIXELS, 0)};
    CHECK(port.address.found, "`%s` of @%s has no place", port.name, code->graph->name);
    add_port(rows, &port);
    n++;
  }
  return n;
}

static int add_taps(Text *rows, const GraphCode *code) {
  int n = 0;
  bool scaled = graph_find(code->graph, port_loss_scale) != NULL;
  for (int i = 0; i < code->graph->n_nodes; i++) {
    const Node *node = code->graph->node[i];
    const Value *gradient = opt_op(node->op) ? node->arg[opt_gradient(node->op)] : NULL;
    Address address = gradient ? address_of(code->graph, gradient) : (Address){0};
    if (!address.found)
      continue; /* none, or it lives inside its kernel only */
    const char *param = value_storage(node->arg[0])->name;
    Port port = {.name = arena_printf(rows->arena, "%s.grad", param),
                 .type = gradient->type,
                 .address = address,
                 .after = kernel_of(value_storage((Value *)gradient)->node),
                 .scaled = scaled};
    add_port(rows, &port);
    n++;
  }
  return n;
}

static bool sums(const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_ALL_REDUCE)
      return true;
  return false;
}

/* C has no empty tables, so each ends with an empty row that no count includes. The table of the
 * functions that the kernels call is filled when the program starts and chooses its part. */
static void write_graph(const ProgramCode *program, const GraphCode *code, FILE *out) {
  Arena *arena = program->arena;
  Text kernels = {arena}, inputs = {arena}, outputs = {arena}, taps = {arena};
  for (int i = 0; i < code->kernels.n; i++) {
    const char *layer = kernel_layer(&code->kernels.kernel[i]);
    text_format(&kernels, "{%s, %s, %s},\n", code->call[i].args,
                cstring_text(arena, code->call[i].name), cstring_text(arena, layer));
  }
  int n_inputs = add_ports(&inputs, code, OP_INPUT);
  int n_outputs = add_ports(&outputs, code, OP_OUTPUT);
  int n_taps = add_taps(&taps, code);
  file_fill(out, arena,
            "static const AmprtKernel kernels_$G[] = {\n"
            "  $KERNELS\n"
            "  {0}};\n"
            "\n"
            "static const AmprtPort inputs_$G[] = {\n"
            "  $INPUTS\n"
            "  {0}};\n"
            "\n"
            "static const AmprtPort outputs_$G[] = {\n"
            "  $OUTPUTS\n"
            "  {0}};\n"
            "\n"
            "static const AmprtPort taps_$G[] = {\n"
            "  $TAPS\n"
            "  {0}};\n"
            "\n"
            "enum { n_kernels_$G = $NKERNELS, n_inputs_$G = $NINPUTS, n_outputs_$G = $NOUTPUTS,"
            " n_taps_$G = $NTAPS };\n"
            "static AmprtFunction *run_$G[n_kernels_$G + 1];\n"
            "\n",
            holes({"G", code->ident}, {"KERNELS", text_get(&kernels)},
                  {"INPUTS", text_get(&inputs)}, {"OUTPUTS", text_get(&outputs)},
                  {"TAPS", text_get(&taps)}, {"NKERNELS", .number = code->kernels.n},
                  {"NINPUTS", .number = n_inputs}, {"NOUTPUTS", .number = n_outputs},
                  {"NTAPS", .number = n_taps}));
  emit_values(arena, code, code == &program->graph[0], out);
  if (sums(code->graph))
    emit_buckets(program, code, out);
}

void emit_tables(const ProgramCode *program, FILE *out) {
  Arena *arena = program->arena;
  int n = program->module->n_graphs;
  Text rows = {arena};
  for (int i = 0; i < n; i++)
    write_graph(program, &program->graph[i], out);
  for (int i = 0; i < n; i++) {
    const GraphCode *code = &program->graph[i];
    const char *id = code->ident, *rest = arena_printf(arena, "first_update_%s", id);
    if (sums(code->graph))
      rest = arena_printf(
          arena, "%s,\n .bucket = buckets_%s, .n_buckets = n_buckets_%s, .n_local = n_local_%s",
          rest, id, id, id);
    text_fill(&rows,
              "{.name = $NAME, .kernel = kernels_$G, .run = run_$G, .input = inputs_$G,\n"
              " .output = outputs_$G, .tap = taps_$G,\n"
              " .n_kernels = n_kernels_$G, .n_inputs = n_inputs_$G, .n_outputs = n_outputs_$G,\n"
              " .n_taps = n_taps_$G, .arena_bytes = $BYTES, .value = values_$G,"
              " .n_values = n_values_$G,\n"
              " .first_update = $REST},\n",
              holes({"G", id}, {"REST", rest}, {"NAME", cstring_text(arena, code->graph->name)},
                    {"BYTES", .number = code->graph->arena_bytes}));
  }
  file_fill(out, arena,
            "static const AmprtGraph graphs[] = {\n"
            "  $ROWS\n"
            "};\n"
            "\n",
            holes({"ROWS", text_get(&rows)}));
  emit_state(program, out);
}
