/* --explain-precision=json: the choice of every op's precision, for tools. */
#include "codegen/codegen.h"
#include "codegen/program/json_text.h"
#include "passes/precision/explain.h"

static json_t *casts_json(Arena *arena, const Explanation *e) {
  json_t *list = json_array();
  for (int i = 0; i < e->n_casts; i++) {
    const ExplainedCast *cast = &e->cast[i];
    json_t *json = json_object();
    json_object_set_new(json, "name", json_text(arena, cast->value->name));
    json_object_set_new(json, "of", json_text(arena, cast->value->node->arg[0]->name));
    json_object_set_new(json, "to", json_string(dtype_info[cast->value->type.dtype].name));
    json_object_set_new(json, "bytes", json_integer(cast->bytes));
    json_object_set_new(json, "readers", json_integer(cast->readers));
    json_object_set_new(json, "kernel",
                        cast->kernel < 0 ? json_null() : json_integer(cast->kernel));
    json_object_set_new(json, "alone", json_boolean(cast->alone));
    json_array_append_new(list, json);
  }
  return list;
}

static json_t *folds_json(const Explanation *e) {
  json_t *list = json_array();
  for (int i = 0; i < e->n_folds; i++) {
    const ExplainedFold *fold = &e->fold[i];
    json_t *json = json_object();
    json_object_set_new(json, "to", json_string(fold->to));
    json_object_set_new(json, "class", json_string(fold->class));
    json_object_set_new(json, "bytes", json_integer(fold->bytes));
    json_object_set_new(json, "how", json_string(fold->how));
    json_array_append_new(list, json);
  }
  return list;
}

static json_t *op_json(Arena *arena, const Explanation *e) {
  json_t *json = json_object(), *chain = json_array();
  for (int i = 0; i < e->n_chain; i++)
    json_array_append_new(chain, json_text(arena, e->chain[i]));
  json_object_set_new(json, "name", json_text(arena, e->name));
  json_object_set_new(json, "op", json_string(op_info[e->node->op].name));
  json_object_set_new(json, "layer", e->layer ? json_text(arena, e->layer) : json_null());
  json_object_set_new(json, "dtype", json_string(dtype_info[e->dtype].name));
  json_object_set_new(json, "class", json_string(e->class));
  json_object_set_new(json, "rule", json_string(e->reason.rule));
  json_object_set_new(json, "why", json_text(arena, e->why));
  json_object_set_new(json, "chain", chain);
  json_object_set_new(json, "casts", casts_json(arena, e));
  json_object_set_new(json, "folded", folds_json(e));
  return json;
}

static json_t *totals_json(const Graph *graph) {
  PrecisionTotals t = precision_totals(graph);
  json_t *json = json_object();
  json_object_set_new(json, "ops_low", json_integer(t.ops_low));
  json_object_set_new(json, "ops_f32", json_integer(t.ops_f32));
  json_object_set_new(json, "casts_own", json_integer(t.casts_own));
  json_object_set_new(json, "casts_of_weights", json_integer(t.casts_weights));
  json_object_set_new(json, "casts_inside_kernels", json_integer(t.casts_inside));
  json_object_set_new(json, "casts_folded_exact", json_integer(t.folded_exact));
  json_object_set_new(json, "casts_folded_changing", json_integer(t.folded_changing));
  json_object_set_new(json, "weight_copies", json_integer(t.copies));
  json_object_set_new(json, "bytes_own", json_integer(t.bytes_own));
  json_object_set_new(json, "bytes_folded", json_integer(t.bytes_gone));
  return json;
}

static json_t *graph_json(const Graph *graph) {
  json_t *json = json_object(), *ops = json_array();
  Arena *arena = arena_new();
  Explanation e;
  for (int i = 0; i < graph->n_nodes; i++)
    if (explain_node(arena, graph, graph->node[i], &e))
      json_array_append_new(ops, op_json(arena, &e));
  json_object_set_new(json, "graph", json_text(arena, graph->name));
  json_object_set_new(json, "totals", totals_json(graph));
  json_object_set_new(json, "ops", ops);
  arena_free(arena);
  return json;
}

void emit_explain(const Module *module, FILE *out) {
  json_t *json = json_array();
  for (int g = 0; g < module->n_graphs; g++)
    json_array_append_new(json, graph_json(module->graph[g]));
  CHECK(json_dumpf(json, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) == 0 || ferror(out),
        "the explanation does not fit into JSON");
  json_decref(json);
  fputc('\n', out);
}
