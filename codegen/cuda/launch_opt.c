/* Optimizers: one launch for all parameters whose kernels follow each other. */
#include "codegen/cuda/launch.h"

/* NORMS: the first kernel's workspace serves all that share its launch, so each asks for enough for
 * many. */
enum { SHARED_SCRATCH = 1 << 16 };

static int64_t norm_bytes(const Kernel *kernel) {
  return many_pieces(type_count(kernel->node[0]->result[0]->type)) * 2 * (int64_t)sizeof(double);
}

int64_t launch_opt_workspace(const Kernel *kernel) {
  if (opt_needs(kernel) != OPT_NORMS)
    return 0;
  int64_t own = norm_bytes(kernel);
  return own > SHARED_SCRATCH ? own : SHARED_SCRATCH;
}

bool launch_opt_joins(const Kernel *first, int n, const Kernel *next) {
  int64_t scratch = launch_opt_workspace(first);
  if (next->node[0]->op != first->node[0]->op)
    return false;
  for (int i = 0; i <= n; i++)
    scratch -= opt_needs(next) == OPT_NORMS ? norm_bytes(&first[i]) : 0;
  return scratch >= 0;
}

static AmpMany opt_many(Emitter *emit, const Kernel *kernel, int n) {
  AmpOpt *opt = arena_alloc(emit->arena, (size_t)n * sizeof *opt);
  AmpTensor *list = arena_alloc(emit->arena, (size_t)n * sizeof *list);
  int64_t scratch = opt_needs(kernel) == OPT_NORMS ? kernel_scratch(kernel) : 0;
  for (int i = 0; i < n; i++) {
    opt[i] = opt_args(emit, &kernel[i], args_name(emit, &kernel[i]));
    opt[i].chunks = many_pieces(opt[i].n);
    opt[i].scratch = scratch;
    scratch += norm_bytes(&kernel[i]);
    list[i].count = opt[i].n;
  }
  int64_t at = constant_intern(emit, opt, (size_t)n * sizeof *opt);
  AmpMany many = {.list = {.at = at, .where = AMP_CONST}, .n = n};
  many_cut(emit, list, n, 0, &many);
  return many;
}

void launch_opt(Emitter *emit, const Kernel *kernel, int n, LaunchList *out) {
  OpKind op = kernel->node[0]->op;
  const char *args = args_name(emit, kernel);
  const char *stem = arena_printf(emit->arena, "amp_%s", op_info[op].name);
  AmpMany many = opt_many(emit, kernel, n);
  fprintf(emit->tables, "static const AmpMany %s = %s;\n", args, many_text(emit->arena, &many));
  if (opt_needs(kernel) == OPT_NORMS)
    launch_add(emit, kernel,
               launch_wrap(emit, "amp_opt_squares", "AmpMany", "  AMP_SHARED(double, shared, 8);\n",
                           "amp_opt_squares(&run, &a, shared)"),
               args, many.pieces, 1, out);
  const char *body = arena_printf(emit->arena, "AMP_OPTIMIZER(%s)", opt_text(emit->arena, op));
  launch_add(emit, kernel, launch_wrap(emit, stem, "AmpMany", "", body), args, many.pieces, 1, out);
}
