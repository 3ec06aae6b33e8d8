/* Optimizers: rows of ir/recipe/opt.def, whose steps are in codegen/text/common/opt.h. A kernel is
 * one opt_* node and the updates of its results. */
#include "ir/recipe/opt.h"

#include "codegen/loop/loop.h"

_Static_assert((int)OPT_MAX_SLOTS == (int)AMP_MAX_SLOTS, "AmpOpt has room for every slot");

int64_t opt_chunks(const Node *node) {
  int64_t n = type_count(node->result[0]->type);
  return chunk_count(n, n);
}

/* Parameter, slots, gradient, rate, inverse scale (, steps). */
static void set_operands(Emitter *emit, const Node *node, const char *name, AmpOpt *opt) {
  AmpRef *to[1 + AMP_MAX_SLOTS + 4] = {&opt->w};
  int n = 1 + opt_slots(node->op);
  for (int k = 1; k < n; k++)
    to[k] = &opt->slot[k - 1];
  to[n++] = &opt->g;
  to[n++] = &opt->lr;
  to[n++] = &opt->inv;
  to[n++] = &opt->step;
  for (int k = 0; k < node->n_args; k++)
    *to[k] = ref_read(emit, node->arg[k], arena_printf(emit->arena, "%s_%d", name, k));
}

static void set_results(const Kernel *kernel, AmpOpt *opt) {
  const Node *node = kernel->node[0];
  for (int r = 0; r < node->n_results; r++) {
    opt->out[r] = ref_result(node->result[r]);
    opt->var[r] = ref_update(kernel, node->result[r]);
  }
}

static void set_numbers(const Node *node, AmpOpt *opt) {
#define COEFFICIENT(attribute, field, ...) opt->field = attr_float(node, ATTR_##attribute, 0);
#include "ir/recipe/opt.def"
  opt->decay = attr_float(node, ATTR_DECAY, 0);
  opt->clip = attr_float(node, ATTR_CLIP, 0);
  opt->nesterov = (int32_t)attr_int(node, ATTR_NESTEROV, 0);
  opt->decoupled = (int32_t)attr_int(node, ATTR_DECOUPLED, 0);
}

/* The one predicate of all updates, or NULL. */
static const Value *predicate_of(const Kernel *kernel) {
  const Value *go = NULL;
  for (int i = 1; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    const Value *own = node->n_args > 2 ? node->arg[2] : NULL;
    CHECK(node->op == OP_UPDATE && (i == 1 || own == go), "kernel %d mixes updates", kernel->id);
    go = own;
  }
  return go;
}

AmpOpt opt_args(Emitter *emit, const Kernel *kernel, const char *name) {
  const Node *node = kernel->node[0];
  const Value *go = predicate_of(kernel);
  AmpOpt opt = {.go = go ? ref_read(emit, go, "") : ref_nowhere(), .step = ref_nowhere()};
  for (int r = 0; r < AMP_MAX_OPT_OUT; r++)
    opt.out[r] = opt.var[r] = ref_nowhere();
  for (int k = 0; k < AMP_MAX_SLOTS; k++)
    opt.slot[k] = ref_nowhere();
  set_operands(emit, node, name, &opt);
  set_results(kernel, &opt);
  set_numbers(node, &opt);
  opt.n = type_count(node->result[0]->type);
  opt.chunks = opt_chunks(node);
  opt.scratch = opt_needs(kernel) == OPT_NORMS ? kernel_scratch(kernel) : 0;
  opt.has_copy = node->n_results > 1 + opt_slots(node->op);
  return opt;
}

OptNeeds opt_needs(const Kernel *kernel) {
  const OptOp *op = opt_op(kernel->node[0]->op);
  return op ? op->needs : OPT_NOTHING;
}

const char *opt_text(Arena *arena, OpKind op) {
  const OptOp *row = opt_op(op);
  CHECK(row, "`%s` is no optimizer", op_info[op].name);
  return arena_printf(arena, "%s, %d, %s", row->name, opt_slots(op), row->needs_text);
}

static void write_refs(Emitter *emit, Text *out, const char *field, const AmpRef *ref, int n) {
  text_format(out, "  .%s = {", field);
  for (int i = 0; i < n; i++)
    text_format(out, "%s%s", i ? ", " : "", ref_text(emit->arena, ref[i]));
  text_add(out, "},\n");
}

static void write_ref(Emitter *emit, Text *out, const char *field, AmpRef ref) {
  text_format(out, "  .%s = %s,\n", field, ref_text(emit->arena, ref));
}

static void write_table(Emitter *emit, const AmpOpt *opt, const char *name) {
  Text out = {emit->arena};
  text_format(&out, "static const AmpOpt %s = {\n", name);
  write_ref(emit, &out, "w", opt->w);
  write_refs(emit, &out, "slot", opt->slot, AMP_MAX_SLOTS);
  write_ref(emit, &out, "g", opt->g);
  write_ref(emit, &out, "lr", opt->lr);
  write_ref(emit, &out, "inv", opt->inv);
  write_ref(emit, &out, "step", opt->step);
  write_ref(emit, &out, "go", opt->go);
  write_refs(emit, &out, "out", opt->out, AMP_MAX_OPT_OUT);
  write_refs(emit, &out, "var", opt->var, AMP_MAX_OPT_OUT);
  text_format(&out, "  .n = %lld, .chunks = %lld, .scratch = %lld,\n", (long long)opt->n,
              (long long)opt->chunks, (long long)opt->scratch);
  text_format(&out, "  .decay = %a, .clip = %a", opt->decay, opt->clip);
#define COEFFICIENT(attribute, field, ...) text_format(&out, ", ." #field " = %a", opt->field);
#include "ir/recipe/opt.def"
  text_format(&out, ",\n  .nesterov = %d, .decoupled = %d, .has_copy = %d,\n};\n", opt->nesterov,
              opt->decoupled, opt->has_copy);
  fputs(text_get(&out), emit->tables);
}

void opt_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const char *name = args_name(emit, kernel);
  OpKind op = kernel->node[0]->op;
  AmpOpt opt = opt_args(emit, kernel, name);
  write_table(emit, &opt, name);
  call->function = arena_printf(emit->arena, "amp_%s", op_info[op].name);
  call->args = arena_printf(emit->arena, "&%s", name);
  if (table_intern(emit, call->function))
    fprintf(emit->functions, "AMP_OPTIMIZER(%s, %s)\n\n", call->function,
            opt_text(emit->arena, op));
}
