/* The module as one JSON object, for tools: everything that the text form says. */
#include "codegen/codegen.h"
#include "codegen/program/json_text.h"
#include "ir/recipe/recipe.h"

#include <math.h>
#include <string.h>

json_t *json_text(Arena *arena, const char *text) {
  json_t *json = json_string(text);
  if (json)
    return json;
  char *clean = arena_alloc(arena, 4 * strlen(text) + 1), *to = clean;
  for (; *text; text++)
    to += (unsigned char)*text < 0x80 ? sprintf(to, "%c", *text)
                                      : sprintf(to, "\\x%02x", (unsigned char)*text);
  return json_string(clean);
}

/* JSON has neither infinity nor NaN, so they become strings. */
static json_t *float_json(double f) {
  if (isnan(f))
    return json_string("nan");
  if (isinf(f))
    return json_string(f < 0 ? "-inf" : "inf");
  return json_real(f);
}

static json_t *ints_json(const int64_t *ints, int n) {
  json_t *list = json_array();
  for (int i = 0; i < n; i++)
    json_array_append_new(list, json_integer(ints[i]));
  return list;
}

static json_t *floats_json(const double *floats, int n) {
  json_t *list = json_array();
  for (int i = 0; i < n; i++)
    json_array_append_new(list, float_json(floats[i]));
  return list;
}

static json_t *attr_json(Arena *arena, const Attr *attr) {
  switch (attr_info[attr->key].kind) {
  case ATTR_INT:
    return json_integer(attr->i);
  case ATTR_FLOAT:
    return float_json(attr->f);
  case ATTR_STR:
    return json_text(arena, attr->s);
  case ATTR_INTS:
    return ints_json(attr->ints, attr->n);
  case ATTR_FLOATS:
    return floats_json(attr->floats, attr->n);
  }
  BUG("attribute of unknown kind");
}

static json_t *result_json(Arena *arena, const Value *value) {
  json_t *json = json_object();
  json_object_set_new(json, "name", json_text(arena, value->name));
  json_object_set_new(json, "dtype", json_string(dtype_info[value->type.dtype].name));
  json_object_set_new(json, "dim", ints_json(value->type.dim, value->type.rank));
  json_object_set_new(json, "layout", json_string(layout_name[value->layout]));
  return json;
}

static json_t *node_json(Arena *arena, const Node *node) {
  json_t *json = json_object(), *args = json_array(), *results = json_array(),
         *attrs = json_object();
  for (int i = 0; i < node->n_args; i++)
    json_array_append_new(args, json_text(arena, node->arg[i]->name));
  for (int i = 0; i < node->n_results; i++)
    json_array_append_new(results, result_json(arena, node->result[i]));
  for (int i = 0; i < node->n_attrs; i++)
    json_object_set_new(attrs, attr_info[node->attr[i].key].text, attr_json(arena, &node->attr[i]));
  json_object_set_new(json, "op", json_string(op_info[node->op].name));
  json_object_set_new(json, "args", args);
  json_object_set_new(json, "results", results);
  json_object_set_new(json, "attrs", attrs);
  if (node->loc.name)
    json_object_set_new(json, "layer", json_text(arena, node->loc.name));
  return json;
}

static json_t *graph_json(Arena *arena, const Graph *graph) {
  json_t *json = json_object(), *nodes = json_array();
  for (int i = 0; i < graph->n_nodes; i++)
    json_array_append_new(nodes, node_json(arena, graph->node[i]));
  json_object_set_new(json, "name", json_text(arena, graph->name));
  json_object_set_new(json, "stage", json_string(stage_name[graph->stage]));
  if (graph->stage == STAGE_PLANNED)
    json_object_set_new(json, "arena_bytes", json_integer(graph->arena_bytes));
  json_object_set_new(json, "nodes", nodes);
  return json;
}

json_t *json_recipe(Arena *arena, const Recipe *recipe) {
  json_t *json = json_object();
  for (int i = 0; i < RECIPE_COUNT; i++) {
    const RecipeField *field = &recipe_field[i];
    const void *at = (const char *)recipe + field->offset;
    const RecipeFloats *floats = at;
    if (field->kind == RECIPE_FLOAT && !recipe_is_set(at))
      continue; /* a coefficient that this optimizer does not have */
    json_object_set_new(json, field->field,
                        field->kind == RECIPE_STR     ? json_text(arena, *(const char *const *)at)
                        : field->kind == RECIPE_INT   ? json_integer(*(const int64_t *)at)
                        : field->kind == RECIPE_FLOAT ? float_json(*(const double *)at)
                                                      : floats_json(floats->v, floats->n));
  }
  return json;
}

void emit_json(const Module *module, FILE *out) {
  json_t *json = json_object(), *graphs = json_array();
  for (int i = 0; i < module->n_graphs; i++)
    json_array_append_new(graphs, graph_json(module->arena, module->graph[i]));
  json_object_set_new(json, "recipe", json_recipe(module->arena, module->recipe));
  json_object_set_new(json, "state_bytes", json_integer(module->state_bytes));
  json_object_set_new(json, "graphs", graphs);
  CHECK(json_dumpf(json, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) == 0 || ferror(out),
        "the module does not fit into JSON");
  json_decref(json);
  fputc('\n', out);
}
