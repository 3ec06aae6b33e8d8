/* Variables and recipe as tables of the runtime (runtime/amprt.h). */
#include "codegen/program/emit.h"
#include "ir/recipe.h"
#include "ir/text.h"

#include <stdlib.h>
#include <string.h>

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

/* By the name in the text form; the arguments are those of AmprtInit. */
static const char *init_id(const Node *node) {
  static const char *const known[][2] = {{"zeros", "AMPRT_ZEROS"},
                                         {"ones", "AMPRT_ONES"},
                                         {"constant", "AMPRT_CONSTANT"},
                                         {"uniform", "AMPRT_UNIFORM"},
                                         {"normal", "AMPRT_NORMAL"},
                                         {"truncated_normal", "AMPRT_TRUNCATED_NORMAL"},
                                         {"variance_scaling", "AMPRT_VARIANCE_SCALING"},
                                         {"data", "AMPRT_DATA"}};
  const char *name = attr_str(node, ATTR_INIT, "zeros"); /* copies have none and need none */
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i][0], name) == 0)
      return known[i][1];
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

/* Is `value` the parameter `of`, or its low-precision copy? */
static bool stands_for(const Value *value, const Node *of) {
  const Node *node = value_storage((Value *)value)->node;
  return node->op == OP_VARIABLE &&
         (strcmp(node->result[0]->name, of->result[0]->name) == 0 ||
          (strcmp(attr_str(node, ATTR_KIND, ""), "copy") == 0 &&
           strcmp(attr_str(node, ATTR_OF, ""), of->result[0]->name) == 0));
}

/* The layer that reads a parameter or copy first; NULL for other variables, and if none does. */
static const char *layer_of(const Graph *graph, const Node *variable) {
  const char *kind = attr_str(variable, ATTR_KIND, "param");
  if (strcmp(kind, "param") != 0 && strcmp(kind, "copy") != 0)
    return NULL;
  for (int i = 0; i < graph->n_nodes; i++)
    for (int k = 0; graph->node[i]->loc.name && k < graph->node[i]->n_args; k++)
      if (stands_for(graph->node[i]->arg[k], variable))
        return graph->node[i]->loc.name;
  return NULL;
}

static void write_variable(const Graph *graph, const Node *node, int index, FILE *out) {
  const Attr *args = attr_find(node, ATTR_INIT_ARGS);
  const char *of = attr_str(node, ATTR_OF, NULL), *layer = layer_of(graph, node);
  fputs("  {.name = ", out);
  cstring_write(out, node->result[0]->name);
  fputs(", ", out);
  ctype_write(node->result[0]->type, out);
  fprintf(out, ",\n   .kind = %s, .init = %s, .at = %lld", kind_id(node), init_id(node),
          (long long)value_at(node->result[0]));
  fputs(", .init_arg = {", out);
  for (int i = 0; i < 3; i++) {
    fputs(i ? ", " : "", out);
    cdouble_write(out, args && i < args->n ? args->floats[i] : 0);
  }
  fputs("}", out);
  if (attr_find(node, ATTR_DATA))
    fprintf(out, ", .init_data = init_%d", index);
  if (of) {
    fputs(", .of = ", out);
    cstring_write(out, of);
  }
  if (layer) {
    fputs(", .layer = ", out);
    cstring_write(out, layer);
  }
  fputs("},\n", out);
}

static void write_variables(const Graph *graph, const VariableList *variables, FILE *out) {
  for (int i = 0; i < variables->n; i++)
    write_init_data(variables->node[i], i, out);
  fputs("static const AmprtVariable variables[] = {\n", out);
  for (int i = 0; i < variables->n; i++)
    write_variable(graph, variables->node[i], i, out);
  fprintf(out, "  {0}};\n\nenum { n_variables = %d };\n\n", variables->n);
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

/* What the program has flags for. */
static void write_recipe(const Recipe *recipe, FILE *out) {
  int n = 0;
  fputs("static const AmprtSetting settings[] = {\n", out);
  for (int i = 0; i < RECIPE_COUNT; i++)
    if (recipe_field[i].when == RECIPE_RUN) {
      write_setting(recipe, &recipe_field[i], out);
      n++;
    }
  fprintf(out, "  {0}};\n\nenum { n_settings = %d };\n\n", n);
}

void emit_state(const ProgramCode *program, FILE *out) {
  VariableList variables = variables_of(program->arena, program->module);
  write_variables(program->module->graph[0], &variables, out);
  write_recipe(program->module->recipe, out);
}
