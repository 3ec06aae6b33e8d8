/* The args of a generated loop: their type, and the table of one kernel. */
#include "codegen/loop/loop.h"

static void array_member(Text *text, const char *type, const char *name, int n) {
  if (n)
    text_format(text, "  %s %s[%d];\n", type, name, n);
}

const char *loop_types(const LoopPlan *plan, const char *space) {
  Text types = {plan->arena};
  text_format(&types, "typedef struct @_args {\n  %s;\n", space);
  array_member(&types, "AmpRef", "x", plan->n_inputs);
  array_member(&types, "AmpRef", "y", plan->n_outputs);
  array_member(&types, "AmpRef", "go", plan->n_outputs);
  array_member(&types, "AmpIndex", "ix", plan->n_indices);
  array_member(&types, "double", "f", plan->n_numbers);
  text_add(&types, plan->n_sums ? "  int64_t scratch;\n} @_args;\n\n" : "} @_args;\n\n");
  return text_get(&types);
}

AmpRef loop_input_ref(Emitter *emit, const LoopInput *in, const char *owner) {
  return in->form == LOAD_SPLAT ? ref_nowhere() : ref_read(emit, in->value, owner);
}

AmpRef loop_output_ref(const LoopOutput *out) {
  if (!out->variable)
    return ref_result(out->value);
  return (AmpRef){value_at(out->variable), NULL, AMP_STATE, (uint8_t)out->value->type.dtype, {0}};
}

AmpRef loop_go_ref(Emitter *emit, const LoopOutput *out) {
  return out->go ? ref_read(emit, out->go, "") : ref_nowhere();
}

static void add_inputs(Emitter *emit, const LoopPlan *plan, const char *name, Text *out) {
  if (!plan->n_inputs)
    return;
  text_add(out, "  .x = {");
  for (int i = 0; i < plan->n_inputs; i++) {
    const char *owner = arena_printf(emit->arena, "%s_x%d", name, i);
    AmpRef ref = loop_input_ref(emit, &plan->input[i], owner);
    text_format(out, "%s%s", i ? ", " : "", ref_text(emit->arena, ref));
  }
  text_add(out, "},\n");
}

static void add_outputs(Emitter *emit, const LoopPlan *plan, Text *out) {
  if (!plan->n_outputs)
    return;
  text_add(out, "  .y = {");
  for (int o = 0; o < plan->n_outputs; o++)
    text_format(out, "%s%s", o ? ", " : "",
                ref_text(emit->arena, loop_output_ref(&plan->output[o])));
  text_add(out, "},\n  .go = {");
  for (int o = 0; o < plan->n_outputs; o++)
    text_format(out, "%s%s", o ? ", " : "",
                ref_text(emit->arena, loop_go_ref(emit, &plan->output[o])));
  text_add(out, "},\n");
}

static void add_list(Text *out, const char *field, const int64_t *v, int n) {
  text_format(out, "%s{", field);
  for (int i = 0; i < n; i++)
    text_format(out, "%s%lld", i ? "," : "", (long long)v[i]);
  text_add(out, "}");
}

void index_args(Text *out, const AmpIndex *index) {
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

void loop_args(Emitter *emit, const LoopPlan *plan, const char *space, const char *function,
               const char *name) {
  Text out = {emit->arena};
  text_format(&out, "static const %s_args %s = {\n  %s,\n", function, name, space);
  add_inputs(emit, plan, name, &out);
  add_outputs(emit, plan, &out);
  add_indices(plan, &out);
  add_numbers(plan, &out);
  if (plan->n_sums)
    text_format(&out, "  .scratch = %lld,\n", (long long)kernel_scratch(plan->kernel));
  text_add(&out, "};\n");
  fputs(text_get(&out), emit->tables);
}
