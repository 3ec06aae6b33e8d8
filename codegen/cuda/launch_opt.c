/* Optimizers: one launch for all parameters whose kernels follow each other, as far as the memory
 * plan, made for one after the other, lets them run at once. */
#include "codegen/cuda/launch.h"

static int64_t lars_bytes(const Node *node) {
  return many_pieces(type_count(node->result[0]->type)) * 2 * (int64_t)sizeof(double);
}

int64_t launch_opt_workspace(const Node *node) {
  return node->op == OP_OPT_LARS ? lars_bytes(node) : 0;
}

/* ---- which kernels can run at once ---- */

static bool stores_in_arena(const Node *node) {
  const int64_t *at = attr_ints(node, ATTR_AT, node->n_results);
  for (int r = 0; at && r < node->n_results; r++)
    if (at[r] >= 0)
      return true;
  return false;
}

static bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

/* May the scratch of a later kernel lie where an earlier one still reads or writes? */
static bool scratch_meets(const Kernel *later, const Kernel *earlier) {
  const Node *node = earlier->node[0];
  int64_t at = kernel_scratch(later), bytes = lars_bytes(later->node[0]);
  if (overlap(at, bytes, kernel_scratch(earlier), lars_bytes(node)))
    return true;
  for (int k = 0; k < node->n_args; k++) {
    const Value *value = node->arg[k];
    if (value_storage((Value *)value)->node->op != OP_CONST && !value_in_state(value) &&
        overlap(at, bytes, value_at(value), type_bytes(value->type)))
      return true;
  }
  return false;
}

static bool can_join(const Kernel *first, int n, const Kernel *next) {
  if (next->node[0]->op != first->node[0]->op || stores_in_arena(next->node[0]))
    return false;
  for (int i = 0; i < n && next->node[0]->op == OP_OPT_LARS; i++)
    if (scratch_meets(next, &first[i]))
      return false;
  return true;
}

int cuda_loops_joined(const Kernel *kernel, int n) {
  if (op_info[kernel->node[0]->op].gen != GEN_OPT || stores_in_arena(kernel->node[0]))
    return 1;
  int joined = 1;
  while (joined < n && can_join(kernel, joined, &kernel[joined]))
    joined++;
  return joined;
}

/* ---- the launch ---- */

static AmpMany opt_many(Emitter *emit, const Kernel *kernel, int n) {
  AmpOpt *opt = arena_alloc(emit->arena, (size_t)n * sizeof *opt);
  AmpTensor *list = arena_alloc(emit->arena, (size_t)n * sizeof *list);
  for (int i = 0; i < n; i++) {
    opt[i] = opt_args(emit, &kernel[i], args_name(emit, &kernel[i]));
    opt[i].chunks = many_pieces(opt[i].n);
    list[i].count = opt[i].n;
  }
  int64_t at = constant_intern(emit, opt, (size_t)n * sizeof *opt);
  AmpMany many = {.list = {.at = at, .where = AMP_CONST}, .n = n};
  many_cut(emit, list, n, 0, &many);
  return many;
}

void launch_opt(Emitter *emit, const Kernel *kernel, int n, LaunchList *out) {
  static const struct {
    OpKind op;
    const char *shared, *rest;
  } form[] = {{OP_OPT_SGD, "", ""},
              {OP_OPT_MOMENTUM, "", ""},
              {OP_OPT_LARS, "  AMP_SHARED(double, shared, 8);\n", ", shared"},
              {OP_OPT_ADAM, "  AMP_SHARED(float, shared, 2);\n", ", shared"}};
  const Node *node = kernel->node[0];
  const char *function = opt_function(node), *args = args_name(emit, kernel);
  AmpMany many = opt_many(emit, kernel, n);
  fprintf(emit->tables, "static const AmpMany %s = %s;\n", args, many_text(emit->arena, &many));
  size_t i = 0;
  while (i < sizeof form / sizeof *form && form[i].op != node->op)
    i++;
  CHECK(i < sizeof form / sizeof *form, "`%s` is no optimizer", op_info[node->op].name);
  if (node->op == OP_OPT_LARS) {
    const char *norms = launch_wrap(emit, "amp_opt_lars_norms", "AmpMany", form[i].shared,
                                    "amp_opt_lars_norms(&run, &a, shared)");
    launch_add(emit, kernel, norms, args, many.pieces, 1, out);
  }
  const char *call = arena_printf(emit->arena, "%s(&run, &a%s)", function, form[i].rest);
  launch_add(emit, kernel, launch_wrap(emit, function, "AmpMany", form[i].shared, call), args,
             many.pieces, 1, out);
}
