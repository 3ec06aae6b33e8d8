/* A graph and its state as tables of the runtime (runtime/amprt.h). */
#include "codegen/emit.h"
#include "ir/recipe.h"
#include "ir/text.h"

#include <math.h>
#include <stdlib.h>
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

VariableList variables_of(Arena *arena, const Module *module) {
  VariableList list = {0};
  for (int g = 0; g < module->n_graphs; g++)
    for (int i = 0; i < module->graph[g]->n_nodes; i++) {
      const Node *node = module->graph[g]->node[i];
      bool known = node->op != OP_VARIABLE;
      for (int j = 0; !known && j < list.n; j++)
        known = strcmp(list.node[j]->result[0]->name, node->result[0]->name) == 0;
      if (!known)
        arena_push(arena, list.node, list.n, list.cap, node);
    }
  return list;
}

static void write_type(TensorType type, FILE *out) {
  static const char *const dtype[] = {
      [DT_F32] = "AMPRT_F32", [DT_F16] = "AMPRT_F16",  [DT_BF16] = "AMPRT_BF16",
      [DT_F64] = "AMPRT_F64", [DT_I32] = "AMPRT_I32",  [DT_I64] = "AMPRT_I64",
      [DT_U8] = "AMPRT_U8",   [DT_BOOL] = "AMPRT_BOOL"};
  fprintf(out, ".dtype = %s, .rank = %d, .dim = {", dtype[type.dtype], type.rank);
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
                       FILE *out) {
  fputs("  {.name = ", out);
  cstring_write(out, name);
  fputs(", ", out);
  write_type(type, out);
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
    write_port(name, value->type, address, false, op == OP_INPUT ? -1 : code->kernels.n - 1, out);
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
               kernel_of(value_storage((Value *)gradient)->node), out);
    n++;
  }
  return n;
}

/* C has no empty tables, so each ends with an empty row that no count includes. */
void emit_graph_tables(Arena *arena, const GraphCode *code, FILE *out) {
  const char *g = code->ident;
  fprintf(out, "static const AmprtKernel kernels_%s[] = {\n", g);
  for (int i = 0; i < code->kernels.n; i++) {
    const KernelCall *call = &code->call[i];
    fprintf(out, "  {%s, %s, ", call->function, call->args);
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
  int taps = write_taps(arena, code, out);
  fprintf(out,
          "  {0}};\n\nenum { n_kernels_%s = %d, n_inputs_%s = %d, n_outputs_%s = %d, n_taps_%s = "
          "%d };\n\n",
          g, code->kernels.n, g, inputs, g, outputs, g, taps);
}

void emit_graph_row(const GraphCode *code, FILE *out) {
  const char *g = code->ident;
  fputs("  {.name = ", out);
  cstring_write(out, code->graph->name);
  fprintf(out,
          ", .kernel = kernels_%s, .input = inputs_%s, .output = outputs_%s, .tap = taps_%s,\n"
          "   .n_kernels = n_kernels_%s, .n_inputs = n_inputs_%s, .n_outputs = n_outputs_%s,\n"
          "   .n_taps = n_taps_%s, .arena_bytes = %lld},\n",
          g, g, g, g, g, g, g, g, (long long)code->graph->arena_bytes);
}

typedef struct InitName {
  const char *name, *id;
  double arg[3]; /* what the name alone implies */
} InitName;

static const InitName init_name[] = {
    {"zeros", "AMPRT_ZEROS", {0}},
    {"ones", "AMPRT_ONES", {0}},
    {"constant", "AMPRT_CONSTANT", {0}},
    {"uniform", "AMPRT_UNIFORM", {0}},
    {"normal", "AMPRT_NORMAL", {0}},
    {"truncated_normal", "AMPRT_TRUNCATED_NORMAL", {0}},
    {"variance_scaling", "AMPRT_VARIANCE_SCALING", {0}},
    {"glorot_uniform", "AMPRT_VARIANCE_SCALING", {1, 2, 2}},
    {"he_normal", "AMPRT_VARIANCE_SCALING", {2, 0, 0}},
    {"data", "AMPRT_DATA", {0}},
};

static const InitName *init_of(const Node *node) {
  const char *name = attr_str(node, ATTR_INIT, "zeros");
  for (size_t i = 0; i < sizeof init_name / sizeof *init_name; i++)
    if (strcmp(init_name[i].name, name) == 0)
      return &init_name[i];
  BUG("unknown initialiser `%s`", name);
}

static const char *kind_id(const Node *node) {
  static const char *const known[][2] = {{"param", "AMPRT_PARAM"},     {"slot", "AMPRT_SLOT"},
                                         {"stat", "AMPRT_STAT"},       {"scale", "AMPRT_SCALE"},
                                         {"counter", "AMPRT_COUNTER"}, {"copy", "AMPRT_COPY"}};
  const char *kind = attr_str(node, ATTR_KIND, "param");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i][0], kind) == 0)
      return known[i][1];
  BUG("unknown kind of variable `%s`", kind);
}

static void write_init_data(const Node *node, int index, FILE *out) {
  const Attr *data = attr_find(node, ATTR_DATA);
  if (!data)
    return;
  fprintf(out, "static const double init_%d[] = {", index);
  for (int i = 0; i < data->n; i++) {
    fputs(i % 8 ? ", " : i ? ",\n  " : "\n  ", out);
    cdouble_write(out, data->floats[i]);
  }
  fputs("};\n\n", out);
}

static void write_variable(const Node *node, int index, FILE *out) {
  const InitName *init = init_of(node);
  const Attr *args = attr_find(node, ATTR_INIT_ARGS);
  const char *of = attr_str(node, ATTR_OF, NULL);
  fputs("  {.name = ", out);
  cstring_write(out, node->result[0]->name);
  fputs(", ", out);
  write_type(node->result[0]->type, out);
  fprintf(out, ",\n   .kind = %s, .init = %s, .at = %lld", kind_id(node), init->id,
          (long long)value_at(node->result[0]));
  fputs(", .init_arg = {", out);
  for (int i = 0; i < 3; i++) {
    fputs(i ? ", " : "", out);
    cdouble_write(out, args && i < args->n ? args->floats[i] : init->arg[i]);
  }
  fputs("}", out);
  if (attr_find(node, ATTR_DATA))
    fprintf(out, ", .init_data = init_%d", index);
  if (of) {
    fputs(", .of = ", out);
    cstring_write(out, of);
  }
  fputs("},\n", out);
}

void emit_variables(const VariableList *variables, FILE *out) {
  for (int i = 0; i < variables->n; i++)
    write_init_data(variables->node[i], i, out);
  fputs("static const AmprtVariable variables[] = {\n", out);
  for (int i = 0; i < variables->n; i++)
    write_variable(variables->node[i], i, out);
  fputs("  {0}};\n\n", out);
}

static void write_setting(const Recipe *recipe, const RecipeField *field, FILE *out) {
  const char *at = (const char *)recipe + field->offset;
  char *text = NULL;
  size_t size;
  FILE *value = open_memstream(&text, &size);
  CHECK(value, "out of memory");
  if (field->kind == RECIPE_STR)
    fputs(*(const char *const *)at, value);
  else if (field->kind == RECIPE_INT)
    fprintf(value, "%lld", (long long)*(const int64_t *)at);
  else if (field->kind == RECIPE_FLOAT)
    float_print(*(const double *)at, value);
  else
    for (int i = 0; i < ((const RecipeFloats *)at)->n; i++) {
      fputs(i ? "," : "", value);
      float_print(((const RecipeFloats *)at)->v[i], value);
    }
  fclose(value);
  fprintf(out, "  {\"%s\", ", field->flag);
  cstring_write(out, text);
  fputs("},\n", out);
  free(text);
}

void emit_recipe(const Recipe *recipe, FILE *out) {
  int n = 0;
  fputs("static const AmprtSetting settings[] = {\n", out);
  for (int i = 0; i < n_recipe_fields; i++)
    if (recipe_field[i].when == RECIPE_RUN) {
      write_setting(recipe, &recipe_field[i], out);
      n++;
    }
  fprintf(out, "  {0}};\n\nenum { n_settings = %d };\n\n", n);
}
