/* Kernels of optimizers: one opt_* node and the updates of its results. The optimizers are rows of
 * ir/recipe/opt.def; the step of an element is in codegen/text/common/opt.h. */
#include "ir/recipe/opt.h"

#include "codegen/loop/loop.h"

_Static_assert((int)OPT_MAX_SLOTS == (int)AMP_MAX_SLOTS, "AmpOpt has room for every slot");

int64_t opt_chunks(const Node *node) {
  int64_t n = type_count(node->result[0]->type);
  return chunk_count(n, n);
}

/* The predicate under which the kernel's updates run, the same for all of them, or NULL. */
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
  int slots = opt_slots(node->op);
  AmpOpt opt = {.go = go ? ref_read(emit, go, "") : ref_nowhere(), .step = ref_nowhere()};
  for (int r = 0; r < AMP_MAX_OPT_OUT; r++)
    opt.out[r] = opt.var[r] = ref_nowhere();
  for (int k = 0; k < AMP_MAX_SLOTS; k++)
    opt.slot[k] = ref_nowhere();

  /* The operands in the order of the node: parameter, slots, gradient, learning rate, inverse of
   * the loss scale and, for some optimizers, the number of steps. */
  AmpRef *operand[1 + AMP_MAX_SLOTS + 4] = {&opt.w};
  for (int k = 0; k < slots; k++)
    operand[1 + k] = &opt.slot[k];
  operand[slots + 1] = &opt.g;
  operand[slots + 2] = &opt.lr;
  operand[slots + 3] = &opt.inv;
  operand[slots + 4] = &opt.step;
  for (int k = 0; k < node->n_args; k++)
    *operand[k] = ref_read(emit, node->arg[k], arena_printf(emit->arena, "%s_%d", name, k));

  for (int r = 0; r < node->n_results; r++) {
    opt.out[r] = ref_result(node->result[r]);
    opt.var[r] = ref_update(kernel, node->result[r]);
  }
  opt.has_copy = node->n_results > 1 + slots;

#define COEFFICIENT(attribute, field, ...) opt.field = attr_float(node, ATTR_##attribute, 0);
#include "ir/recipe/opt.def"
  opt.decay = attr_float(node, ATTR_DECAY, 0);
  opt.clip = attr_float(node, ATTR_CLIP, 0);
  opt.nesterov = (int32_t)attr_int(node, ATTR_NESTEROV, 0);
  opt.decoupled = (int32_t)attr_int(node, ATTR_DECOUPLED, 0);

  opt.n = type_count(node->result[0]->type);
  opt.chunks = opt_chunks(node);
  opt.scratch = opt_needs(kernel) == OPT_NORMS ? kernel_scratch(kernel) : 0;
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

static const char *refs_text(Arena *arena, const AmpRef *ref, int n) {
  Text list = {arena};
  for (int i = 0; i < n; i++)
    text_item(&list, ref_text(arena, ref[i]));
  return text_get(&list);
}

void opt_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  Arena *arena = emit->arena;
  const char *name = args_name(emit, kernel);
  OpKind op = kernel->node[0]->op;
  AmpOpt opt = opt_args(emit, kernel, name);
  Text coefficients = {arena};
#define COEFFICIENT(attribute, field, ...)                                                         \
  text_item(&coefficients, arena_printf(arena, "." #field " = %a", opt.field));
#include "ir/recipe/opt.def"
  file_fill(emit->tables, arena,
            "AMP_ARGS AmpOpt $NAME = {\n"
            "  .w = $W,\n"
            "  .slot = {$SLOTS},\n"
            "  .g = $G,\n"
            "  .lr = $LR,\n"
            "  .inv = $INV,\n"
            "  .step = $STEP,\n"
            "  .go = $GO,\n"
            "  .out = {$OUT},\n"
            "  .var = {$VAR},\n"
            "  .n = $N, .chunks = $CHUNKS, .scratch = $SCRATCH,\n"
            "  .decay = $DECAY, .clip = $CLIP, $COEFFICIENTS,\n"
            "  .nesterov = $NESTEROV, .decoupled = $DECOUPLED, .has_copy = $COPY,\n"
            "};\n",
            holes({"NAME", name}, {"W", ref_text(arena, opt.w)},
                  {"SLOTS", refs_text(arena, opt.slot, AMP_MAX_SLOTS)},
                  {"G", ref_text(arena, opt.g)}, {"LR", ref_text(arena, opt.lr)},
                  {"INV", ref_text(arena, opt.inv)}, {"STEP", ref_text(arena, opt.step)},
                  {"GO", ref_text(arena, opt.go)},
                  {"OUT", refs_text(arena, opt.out, AMP_MAX_OPT_OUT)},
                  {"VAR", refs_text(arena, opt.var, AMP_MAX_OPT_OUT)}, {"N", .number = opt.n},
                  {"CHUNKS", .number = opt.chunks}, {"SCRATCH", .number = opt.scratch},
                  {"DECAY", arena_printf(arena, "%a", opt.decay)},
                  {"CLIP", arena_printf(arena, "%a", opt.clip)},
                  {"COEFFICIENTS", text_get(&coefficients)}, {"NESTEROV", .number = opt.nesterov},
                  {"DECOUPLED", .number = opt.decoupled}, {"COPY", .number = opt.has_copy}));
  call->function = arena_printf(arena, "amp_%s", op_info[op].name);
  call->args = arena_printf(arena, "&%s", name);
}
