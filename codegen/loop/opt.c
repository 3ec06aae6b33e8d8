/* Optimizers: functions of prelude_opt.h. A kernel is one opt_* node and the updates of its
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

static const struct {
  const char *field;
  AttrKey key;
  double otherwise;
} opt_number[] = {
    {"decay", ATTR_DECAY, 0},     {"momentum", ATTR_MOMENTUM, 0}, {"trust", ATTR_TRUST, 0},
    {"epsilon", ATTR_EPSILON, 0}, {"beta1", ATTR_BETA1, 0.9},     {"beta2", ATTR_BETA2, 0.999},
    {"clip", ATTR_CLIP, 0},
};

int64_t opt_chunks(const Node *node) {
  int64_t n = type_count(node->result[0]->type);
  return chunk_count(n, n);
}

/* Lists of refs: the entries that a form lacks are nowhere. */
enum { MAX_SLOTS = 2, MAX_OUT = 4 };

static const char *operand(Emitter *emit, const Node *node, int k, const char *name) {
  return ref_read(emit, node->arg[k], arena_printf(emit->arena, "%s_%d", name, k));
}

static void add_operands(Emitter *emit, const Node *node, const OptForm *form, const char *name,
                         Text *out) {
  static const char *const field[] = {"g", "lr", "inv", "step"};
  text_format(out, "  .w = %s,\n  .slot = {", operand(emit, node, 0, name));
  for (int k = 0; k < MAX_SLOTS; k++)
    text_format(out, "%s%s", k ? ", " : "",
                k < form->slots ? operand(emit, node, 1 + k, name) : ref_nowhere());
  text_add(out, "},\n");
  for (int k = 0; k < 3 + form->has_step; k++)
    text_format(out, "  .%s = %s,\n", field[k], operand(emit, node, 1 + form->slots + k, name));
}

static void add_results(Emitter *emit, const Kernel *kernel, Text *out) {
  const Node *node = kernel->node[0];
  text_add(out, "  .out = {");
  for (int r = 0; r < MAX_OUT; r++)
    text_format(out, "%s%s", r ? ", " : "",
                r < node->n_results ? ref_result(emit, node->result[r]) : ref_nowhere());
  text_add(out, "},\n  .var = {");
  for (int r = 0; r < MAX_OUT; r++)
    text_format(out, "%s%s", r ? ", " : "",
                r < node->n_results ? ref_update(emit, kernel, node->result[r]) : ref_nowhere());
  text_add(out, "},\n");
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

void opt_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const Node *node = kernel->node[0];
  const OptForm *form = &opt_form[node->op];
  const Value *go = predicate_of(kernel);
  const char *name = args_name(emit, kernel);
  Text out = {emit->arena};
  CHECK(form->function, "`%s` is no optimizer", op_info[node->op].name);
  text_format(&out, "static const AmpOpt %s = {\n", name);
  add_operands(emit, node, form, name, &out);
  text_format(&out, "  .go = %s,\n", go ? ref_read(emit, go, "") : ref_nowhere());
  add_results(emit, kernel, &out);
  for (size_t i = 0; i < sizeof opt_number / sizeof *opt_number; i++)
    text_format(&out, "  .%s = %a,\n", opt_number[i].field,
                attr_float(node, opt_number[i].key, opt_number[i].otherwise));
  text_format(&out, "  .n = %lld, .chunks = %lld, .scratch = %lld,\n",
              (long long)type_count(node->result[0]->type), (long long)opt_chunks(node),
              (long long)(node->op == OP_OPT_LARS ? kernel_scratch(kernel) : 0));
  text_format(&out, "  .n_slots = %d, .nesterov = %d, .decoupled = %d, .has_copy = %d,\n};\n",
              form->slots, (int)attr_int(node, ATTR_NESTEROV, 0),
              (int)attr_int(node, ATTR_DECOUPLED, 0), node->n_results > 1 + form->slots);
  fputs(text_get(&out), emit->tables);
  call->function = form->function;
  call->args = arena_printf(emit->arena, "&%s", name);
}
