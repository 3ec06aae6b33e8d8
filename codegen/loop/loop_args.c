/* The args of the kernels: places, sizes and numbers as C initialisers. */
#include "codegen/loop/loop.h"
#include "ir/eval/eval.h"

#include <math.h>

static const char *const where_name[] = {"AMP_ARENA", "AMP_STATE"};

const char *ref_nowhere(void) {
  return "{.where = AMP_NOWHERE}";
}

static const char *ref_of(Arena *arena, bool in_state, int64_t at, DType dtype) {
  return arena_printf(arena, "{%lld, NULL, %s, %d}", (long long)at, where_name[in_state],
                      (int)dtype);
}

/* As a C expression; hexadecimal, so that no digit is lost. */
static const char *number_text(Arena *arena, double x) {
  if (isnan(x))
    return "AMP_NAN";
  if (isinf(x))
    return x < 0 ? "-AMP_INF" : "AMP_INF";
  return arena_printf(arena, x == rint(x) && fabs(x) < 1e9 ? "%.0f" : "%a", x);
}

/* Floats of every type as f32: 16-bit constants are few and small. */
static void const_table(Emitter *emit, const Value *value, const char *name) {
  const Attr *data = attr_find(value->node, ATTR_DATA);
  DType dtype = value->type.dtype;
  fprintf(emit->tables, "static const %s %s[] = {",
          dtype_info[dtype].is_float ? "float" : ctype_of(dtype), name);
  for (int64_t i = 0, n = type_count(value->type); i < n; i++) {
    double x = data ? data->floats[i] : attr_float(value->node, ATTR_VALUE, 0);
    fprintf(emit->tables, "%s%s", i ? "," : "", number_text(emit->arena, eval_round(x, dtype)));
  }
  fputs("};\n", emit->tables);
}

const char *ref_read(Emitter *emit, const Value *value, const char *owner) {
  const Value *storage = value_storage((Value *)value);
  DType dtype = value->type.dtype;
  if (storage->node->op != OP_CONST)
    return ref_of(emit->arena, value_in_state(value), value_at(value), dtype);
  const_table(emit, storage, owner);
  return arena_printf(emit->arena, "{0, %s, AMP_DATA, %d}", owner,
                      dtype_info[dtype].is_float ? (int)DT_F32 : (int)dtype);
}

const char *ref_result(Emitter *emit, const Value *value) {
  const int64_t *at = attr_ints(value->node, ATTR_AT, value->node->n_results);
  CHECK(at, "%%%s was never planned", value->name);
  if (at[value->index] < 0)
    return ref_nowhere();
  return ref_of(emit->arena, false, at[value->index], value->type.dtype);
}

const char *ref_update(Emitter *emit, const Kernel *kernel, const Value *value) {
  for (int i = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    if (node->op == OP_UPDATE && node->arg[1] == value)
      return ref_of(emit->arena, true, value_at(node->arg[0]), value->type.dtype);
  }
  return ref_nowhere();
}

const char *args_name(Emitter *emit, const Kernel *kernel) {
  return arena_printf(emit->arena, "args_%s_%d", ident_of(emit->arena, emit->graph->name),
                      kernel->id);
}

/* ---- the table of a loop kernel ---- */

static void add_inputs(Emitter *emit, const LoopPlan *plan, const char *name, Text *out) {
  if (!plan->n_inputs)
    return;
  text_add(out, "  .x = {");
  for (int i = 0; i < plan->n_inputs; i++) {
    const LoopInput *in = &plan->input[i];
    const char *owner = arena_printf(emit->arena, "%s_x%d", name, i);
    const char *ref = in->form == LOAD_SPLAT ? ref_nowhere() : ref_read(emit, in->value, owner);
    text_format(out, "%s%s", i ? ", " : "", ref);
  }
  text_add(out, "},\n");
}

static const char *output_ref(Emitter *emit, const LoopOutput *out) {
  if (!out->variable)
    return ref_result(emit, out->value);
  return ref_of(emit->arena, true, value_at(out->variable), out->value->type.dtype);
}

static void add_outputs(Emitter *emit, const LoopPlan *plan, Text *out) {
  if (!plan->n_outputs)
    return;
  text_add(out, "  .y = {");
  for (int o = 0; o < plan->n_outputs; o++)
    text_format(out, "%s%s", o ? ", " : "", output_ref(emit, &plan->output[o]));
  text_add(out, "},\n  .go = {");
  for (int o = 0; o < plan->n_outputs; o++) {
    const Value *go = plan->output[o].go;
    text_format(out, "%s%s", o ? ", " : "", go ? ref_read(emit, go, "") : ref_nowhere());
  }
  text_add(out, "},\n");
}

static void add_list(Text *out, const char *field, const int64_t *v, int n) {
  text_format(out, "%s{", field);
  for (int i = 0; i < n; i++)
    text_format(out, "%s%lld", i ? "," : "", (long long)v[i]);
  text_add(out, "}");
}

void index_args(Text *out, const LoopIndex *index) {
  text_format(out, "{%d", index->rank);
  add_list(out, ", ", index->dim, index->rank);
  add_list(out, ", ", index->stride, index->rank);
  text_add(out, "}");
}

static void add_indices(const LoopPlan *plan, Text *out) {
  if (!plan->n_indices)
    return;
  text_add(out, "  .ix = {");
  for (int i = 0; i < plan->n_indices; i++) {
    text_add(out, i ? ", " : "");
    index_args(out, &plan->index[i]);
  }
  text_add(out, "},\n");
}

static void add_numbers(const LoopPlan *plan, Text *out) {
  if (!plan->n_numbers)
    return;
  text_add(out, "  .f = {");
  for (int i = 0; i < plan->n_numbers; i++)
    text_format(out, "%s%s", i ? ", " : "", number_text(plan->arena, plan->number[i]));
  text_add(out, "},\n");
}

int64_t kernel_scratch(const Kernel *kernel) {
  const int64_t *place = attr_ints(kernel->node[0], ATTR_WORKSPACE, 2);
  CHECK(place, "kernel %d has no workspace", kernel->id);
  return place[0];
}

void loop_args(Emitter *emit, const LoopPlan *plan, const char *function, const char *name) {
  const LoopGrid *g = &plan->grid;
  Text out = {emit->arena};
  text_format(&out, "static const %s_args %s = {\n", function, name);
  text_format(&out, "  .grid = {%lld, %lld, %lld, %lld, %lld, %lld, %lld},\n", (long long)g->total,
              (long long)g->blocks, (long long)g->groups, (long long)g->stride, (long long)g->width,
              (long long)g->panels, (long long)g->channels);
  add_inputs(emit, plan, name, &out);
  add_outputs(emit, plan, &out);
  add_indices(plan, &out);
  add_numbers(plan, &out);
  if (plan->n_sums)
    text_format(&out, "  .scratch = %lld,\n", (long long)kernel_scratch(plan->kernel));
  text_add(&out, "};\n");
  fputs(text_get(&out), emit->tables);
}
