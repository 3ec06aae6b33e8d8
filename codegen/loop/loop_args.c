/* The args of a generated loop: the struct type, and the table that holds those of one kernel. */
#include "codegen/loop/loop.h"

int loop_predicates(const LoopPlan *plan) {
  int n = plan->n_outputs;
  while (n > 0 && !plan->output[n - 1].go)
    n--;
  return n;
}

const char *loop_types(const LoopPlan *plan, const char *space) {
  return text_filled(plan->arena,
                     "typedef struct @_args {\n"
                     "  $SPACE;\n"
                     "  AmpRef x[$INPUTS];\n"
                     "  AmpRef y[$OUTPUTS];\n"
                     "  AmpRef go[$PREDICATES];\n"
                     "  AmpIndex ix[$INDICES];\n"
                     "  double f[$NUMBERS];\n"
                     "  $SCRATCH;\n"
                     "} @_args;\n\n",
                     holes({"SPACE", space}, {"INPUTS", hole_count(plan->n_inputs)},
                           {"OUTPUTS", hole_count(plan->n_outputs)},
                           {"PREDICATES", hole_count(loop_predicates(plan))},
                           {"INDICES", hole_count(plan->n_indices)},
                           {"NUMBERS", hole_count(plan->n_numbers)},
                           {"SCRATCH", plan->n_sums ? "int64_t scratch" : ""}));
}

AmpRef loop_input_ref(Emitter *emit, const LoopInput *in, const char *owner) {
  return in->form == LOAD_SPLAT || in->form == LOAD_MADE ? ref_nowhere()
                                                         : ref_read(emit, in->value, owner);
}

AmpRef loop_output_ref(const LoopOutput *out) {
  if (!out->variable)
    return ref_result(out->value);
  return (AmpRef){value_at(out->variable), AMP_STATE, (uint8_t)out->value->type.dtype};
}

AmpRef loop_go_ref(Emitter *emit, const LoopOutput *out) {
  return out->go ? ref_read(emit, out->go, "") : ref_nowhere();
}

static const char *list_of(Arena *arena, const int64_t *v, int n) {
  Text list = {arena};
  for (int i = 0; i < n; i++)
    text_format(&list, "%s%lld", i ? "," : "", (long long)v[i]);
  return text_get(&list);
}

const char *index_text(Arena *arena, const AmpIndex *index) {
  return arena_printf(arena, "{%d, {%s}, {%s}, %lld}", index->rank,
                      list_of(arena, index->dim, index->rank),
                      list_of(arena, index->stride, index->rank), (long long)index->first);
}

void loop_args(Emitter *emit, const LoopPlan *plan, const char *space, int64_t scratch,
               const char *function, const char *name) {
  Arena *arena = emit->arena;
  Text x = {arena}, y = {arena}, go = {arena}, indices = {arena}, numbers = {arena};
  for (int i = 0; i < plan->n_inputs; i++) {
    const char *owner = arena_printf(arena, "%s_x%d", name, i);
    text_item(&x, ref_text(arena, loop_input_ref(emit, &plan->input[i], owner)));
  }
  for (int o = 0; o < plan->n_outputs; o++)
    text_item(&y, ref_text(arena, loop_output_ref(&plan->output[o])));
  for (int o = 0; o < loop_predicates(plan); o++)
    text_item(&go, ref_text(arena, loop_go_ref(emit, &plan->output[o])));
  for (int i = 0; i < plan->n_indices; i++)
    text_item(&indices, index_text(arena, &plan->index[i]));
  for (int i = 0; i < plan->n_numbers; i++)
    text_item(&numbers, number_text(arena, plan->number[i]));
  file_fill(emit->tables, arena,
            "AMP_ARGS $FUNCTION_args $NAME = {\n"
            "  $SPACE,\n"
            "  .x = {$X},\n"
            "  .y = {$Y},\n"
            "  .go = {$GO},\n"
            "  .ix = {$INDICES},\n"
            "  .f = {$NUMBERS},\n"
            "  .scratch = $SCRATCH,\n"
            "};\n",
            holes({"FUNCTION", function}, {"NAME", name}, {"SPACE", space}, {"X", text_get(&x)},
                  {"Y", text_get(&y)}, {"GO", text_get(&go)}, {"INDICES", text_get(&indices)},
                  {"NUMBERS", text_get(&numbers)}, {"SCRATCH", plan->n_sums ? NULL : "", scratch}));
}
