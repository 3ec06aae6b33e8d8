/* A graph and its state as tables of the runtime (runtime/amprt.h). */
#include "codegen/program/emit.h"
#include "ir/text.h"

#include <math.h>
#include <string.h>

void cstring_write(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\' || c == '?') /* ? for the sake of trigraphs */
      fprintf(out, "\\%c", c);
    else if (c == '\n')
      fputs(text[1] ? "\\n\"\n    \"" : "\\n", out);
    else if (c < ' ' || c > '~')
      fprintf(out, "\\%03o", c);
    else
      fputc(c, out);
  }
  fputc('"', out);
}

void cdouble_write(FILE *out, double value) {
  if (isnan(value))
    fputs("__builtin_nan(\"\")", out);
  else if (isinf(value))
    fputs(value < 0 ? "-__builtin_inf()" : "__builtin_inf()", out);
  else
    float_print(value, out);
}

const char *cdtype_name(DType dtype) {
  static const char *const name[] = {
      [DT_F32] = "AMPRT_F32", [DT_F16] = "AMPRT_F16",  [DT_BF16] = "AMPRT_BF16",
      [DT_F64] = "AMPRT_F64", [DT_I32] = "AMPRT_I32",  [DT_I64] = "AMPRT_I64",
      [DT_U8] = "AMPRT_U8",   [DT_BOOL] = "AMPRT_BOOL"};
  return name[dtype];
}

void ctype_write(TensorType type, FILE *out) {
  fprintf(out, ".dtype = %s, .rank = %d, .dim = {", cdtype_name(type.dtype), type.rank);
  for (int i = 0; i < type.rank; i++)
    fprintf(out, "%s%lld", i ? ", " : "", (long long)type.dim[i]);
  fputs(type.rank ? "}" : "0}", out);
}

/* Where a port lies; a value written straight to its variable lies there. */
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

static void write_port(const char *name, TensorType type, Address address, bool scaled, int after,
                       bool pixels, FILE *out) {
  fputs("  {.name = ", out);
  cstring_write(out, name);
  fputs(pixels ? ", .pixels = 1, " : ", ", out);
  ctype_write(type, out);
  fprintf(out, ", .in_state = %d, .scaled = %d, .at = %lld, .after = %d},\n", address.in_state,
          scaled, (long long)address.at, after);
}

static int write_ports(const GraphCode *code, OpKind op, FILE *out) {
  int n = 0;
  for (int i = 0; i < code->graph->n_nodes; i++) {
    const Node *node = code->graph->node[i];
    if (node->op != op)
      continue;
    const Value *value = op == OP_INPUT ? node->result[0] : node->arg[0];
    const char *name = attr_str(node, ATTR_NAME, value->name);
    Address address = address_of(code->graph, value);
    CHECK(address.found, "`%s` of @%s has no place", name, code->graph->name);
    write_port(name, value->type, address, false, kernel_of(value_storage((Value *)value)->node),
               attr_int(node, ATTR_PIXELS, 0), out);
    n++;
  }
  return n;
}

/* The operand of an optimizer that is the gradient: after its parameter and slots. */
static const Value *gradient_of(const Node *node) {
  static const struct {
    OpKind op;
    int arg;
  } place[] = {{OP_OPT_SGD, 1}, {OP_OPT_MOMENTUM, 2}, {OP_OPT_LARS, 2}, {OP_OPT_ADAM, 3}};
  for (size_t i = 0; i < sizeof place / sizeof *place; i++)
    if (place[i].op == node->op)
      return node->arg[place[i].arg];
  return NULL;
}

static int write_taps(Arena *arena, const GraphCode *code, FILE *out) {
  int n = 0;
  bool scaled = graph_find(code->graph, "loss_scale") != NULL;
  for (int i = 0; i < code->graph->n_nodes; i++) {
    const Value *gradient = gradient_of(code->graph->node[i]);
    if (!gradient)
      continue;
    Address address = address_of(code->graph, gradient);
    const char *param = value_storage(code->graph->node[i]->arg[0])->name;
    if (!address.found)
      continue; /* lives inside its kernel only */
    write_port(arena_printf(arena, "%s.grad", param), gradient->type, address, scaled,
               kernel_of(value_storage((Value *)gradient)->node), false, out);
    n++;
  }
  return n;
}

/* C has no empty tables, so each ends with an empty row that no count includes. The kernels'
 * functions are set when the part is chosen. */
static void write_graph(const ProgramCode *program, const GraphCode *code, FILE *out) {
  const char *g = code->ident;
  fprintf(out, "static AmprtKernel kernels_%s[] = {\n", g);
  for (int i = 0; i < code->kernels.n; i++) {
    const KernelCall *call = &code->call[i];
    fprintf(out, "  {NULL, %s, ", call->args);
    cstring_write(out, call->name);
    fputs(", ", out);
    cstring_write(out, kernel_layer(&code->kernels.kernel[i]));
    fputs("},\n", out);
  }
  fprintf(out, "  {0}};\n\nstatic const AmprtPort inputs_%s[] = {\n", g);
  int inputs = write_ports(code, OP_INPUT, out);
  fprintf(out, "  {0}};\n\nstatic const AmprtPort outputs_%s[] = {\n", g);
  int outputs = write_ports(code, OP_OUTPUT, out);
  fprintf(out, "  {0}};\n\nstatic const AmprtPort taps_%s[] = {\n", g);
  int taps = write_taps(program->arena, code, out);
  fprintf(
      out,
      "  {0}};\n\nenum { n_kernels_%s = %d, n_inputs_%s = %d, n_outputs_%s = %d, n_taps_%s = %d "
      "};\n\n",
      g, code->kernels.n, g, inputs, g, outputs, g, taps);
  emit_values(program->arena, code, code == &program->graph[0], out);
}

static void write_graph_row(const GraphCode *code, FILE *out) {
  const char *g = code->ident;
  fputs("  {.name = ", out);
  cstring_write(out, code->graph->name);
  fprintf(
      out,
      ", .kernel = kernels_%s, .input = inputs_%s, .output = outputs_%s, .tap = taps_%s,\n"
      "   .n_kernels = n_kernels_%s, .n_inputs = n_inputs_%s, .n_outputs = n_outputs_%s,\n"
      "   .n_taps = n_taps_%s, .arena_bytes = %lld, .value = values_%s, .n_values = n_values_%s,\n"
      "   .first_update = first_update_%s},\n",
      g, g, g, g, g, g, g, g, (long long)code->graph->arena_bytes, g, g, g);
}

void emit_tables(const ProgramCode *program, FILE *out) {
  int n = program->module->n_graphs;
  for (int i = 0; i < n; i++)
    write_graph(program, &program->graph[i], out);
  fputs("static const AmprtGraph graphs[] = {\n", out);
  for (int i = 0; i < n; i++)
    write_graph_row(&program->graph[i], out);
  fputs("};\n\n", out);
  emit_state(program, out);
}
