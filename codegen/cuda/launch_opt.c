/* Optimizers: one launch for all parameters whose kernels follow each other. */
#include "codegen/cuda/launch.h"

/* LARS: the first kernel's workspace serves all that share its launch, so each asks for enough for
 * many. */
enum { SHARED_SCRATCH = 1 << 16 };

static int64_t lars_bytes(const Kernel *kernel) {
  return many_pieces(type_count(kernel->node[0]->result[0]->type)) * 2 * (int64_t)sizeof(double);
}

int64_t launch_opt_workspace(const Kernel *kernel) {
  if (kernel->node[0]->op != OP_OPT_LARS)
    return 0;
  int64_t own = lars_bytes(kernel);
  return own > SHARED_SCRATCH ? own : SHARED_SCRATCH;
}

bool launch_opt_joins(const Kernel *first, int n, const Kernel *next) {
  int64_t scratch = launch_opt_workspace(first);
  if (next->node[0]->op != first->node[0]->op)
    return false;
  for (int i = 0; i <= n; i++)
    scratch -= next->node[0]->op == OP_OPT_LARS ? lars_bytes(&first[i]) : 0;
  return scratch >= 0;
}

static AmpMany opt_many(Emitter *emit, const Kernel *kernel, int n) {
  AmpOpt *opt = arena_alloc(emit->arena, (size_t)n * sizeof *opt);
  AmpTensor *list = arena_alloc(emit->arena, (size_t)n * sizeof *list);
  int64_t scratch = kernel->node[0]->op == OP_OPT_LARS ? kernel_scratch(kernel) : 0;
  for (int i = 0; i < n; i++) {
    opt[i] = opt_args(emit, &kernel[i], args_name(emit, &kernel[i]));
    opt[i].chunks = many_pieces(opt[i].n);
    opt[i].scratch = scratch;
    scratch += lars_bytes(&kernel[i]);
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
