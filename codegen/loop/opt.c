/* Optimizers: functions of opt.h in codegen/text. A kernel is one opt_* node and the updates of its
 * results. */
#include "codegen/loop/loop.h"

/* Operands after w and the slots: g, lr, inv (, step). */
typedef struct OptForm {
  const char *function;
  int slots;
  bool has_step;
} OptForm;

static const OptForm opt_form[OP_COUNT] = {
    [OP_OPT_SGD] = {"amp_opt_sgd", 0, false},
    [OP_OPT_MOMENTUM] = {"amp_opt_momentum", 1, false},
    [OP_OPT_LARS] = {"amp_opt_lars", 1, false},
    [OP_OPT_ADAM] = {"amp_opt_adam", 2, true},
};

int64_t opt_chunks(const Node *node) {
  int64_t n = type_count(node->result[0]->type);
  return chunk_count(n, n);
}

static void set_operands(Emitter *emit, const Node *node, const OptForm *form, const char *name,
                         AmpOpt *opt) {
  AmpRef *rest[] = {&opt->g, &opt->lr, &opt->inv, &opt->step};
  int k = 0, n_rest = 3 + form->has_step;
  AmpRef *to[1 + AMP_MAX_SLOTS + 4] = {&opt->w};
  for (; k < form->slots; k++)
    to[1 + k] = &opt->slot[k];
  for (int r = 0; r < n_rest; r++)
    to[1 + form->slots + r] = rest[r];
  for (k = 0; k < 1 + form->slots + n_rest; k++)
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
  opt->decay = attr_float(node, ATTR_DECAY, 0);
  opt->momentum = attr_float(node, ATTR_MOMENTUM, 0);
  opt->trust = attr_float(node, ATTR_TRUST, 0);
  opt->epsilon = attr_float(node, ATTR_EPSILON, 0);
  opt->beta1 = attr_float(node, ATTR_BETA1, 0.9);
  opt->beta2 = attr_float(node, ATTR_BETA2, 0.999);
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
  const OptForm *form = &opt_form[node->op];
  const Value *go = predicate_of(kernel);
  CHECK(form->function, "`%s` is no optimizer", op_info[node->op].name);
  AmpOpt opt = {.go = go ? ref_read(emit, go, "") : ref_nowhere(), .step = ref_nowhere()};
  for (int r = 0; r < AMP_MAX_OPT_OUT; r++)
    opt.out[r] = opt.var[r] = ref_nowhere();
  for (int k = 0; k < AMP_MAX_SLOTS; k++)
    opt.slot[k] = ref_nowhere();
  set_operands(emit, node, form, name, &opt);
  set_results(kernel, &opt);
  set_numbers(node, &opt);
  opt.n = type_count(node->result[0]->type);
  opt.chunks = opt_chunks(node);
  opt.scratch = node->op == OP_OPT_LARS ? kernel_scratch(kernel) : 0;
  opt.n_slots = form->slots;
  opt.has_copy = node->n_results > 1 + form->slots;
  return opt;
}

const char *opt_function(const Node *node) {
  return opt_form[node->op].function;
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
  text_format(&out,
              "  .decay = %a, .momentum = %a, .trust = %a, .epsilon = %a, .beta1 = %a, .beta2 = "
              "%a, .clip = %a,\n",
              opt->decay, opt->momentum, opt->trust, opt->epsilon, opt->beta1, opt->beta2,
              opt->clip);
  text_format(&out, "  .n_slots = %d, .nesterov = %d, .decoupled = %d, .has_copy = %d,\n};\n",
              opt->n_slots, opt->nesterov, opt->decoupled, opt->has_copy);
  fputs(text_get(&out), emit->tables);
}

void opt_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const char *name = args_name(emit, kernel);
  AmpOpt opt = opt_args(emit, kernel, name);
  write_table(emit, &opt, name);
  call->function = opt_function(kernel->node[0]);
  call->args = arena_printf(emit->arena, "&%s", name);
}
