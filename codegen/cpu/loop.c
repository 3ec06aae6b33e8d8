/* Kernels without a main op: which nodes may share one, and their emission. */
#include "codegen/cpu/loop.h"

#include <string.h>

/* ---- which nodes share a kernel ---- */

static GenClass gen_of(const Node *node) {
  return op_info[node->op].gen;
}
static bool in_body(GenClass gen) {
  return gen == GEN_POINT || gen == GEN_VECTOR;
}

/* Does `node` read a result of `from`, perhaps through vectors? */
static bool reads(const Node *node, const Node *from) {
  for (int k = 0; k < node->n_args; k++) {
    const Node *source = value_storage(node->arg[k])->node;
    if (source == from || (gen_of(source) == GEN_VECTOR && reads(source, from)))
      return true;
  }
  return false;
}

static bool same_space(const Node *a, const Node *b) {
  return loop_count(a) == loop_count(b) && loop_channels(a) == loop_channels(b);
}

/* The body's values are not known before the loop ends, those of sums not before the tail. */
static bool loop_pair(const Node *a, const Node *b) {
  GenClass ga = gen_of(a), gb = gen_of(b);
  if (in_body(ga) && in_body(gb) && same_space(a, b))
    return !(b->op == OP_BROADCAST && reads(b, a));
  if (ga == GEN_POINT && gb == GEN_CHANNEL)
    return same_space(a, b);
  if (ga == GEN_CHANNEL && gb == GEN_CHANNEL)
    return same_space(a, b) && !reads(b, a);
  if (ga == GEN_CHANNEL && gb == GEN_VECTOR)
    return loop_channels(a) == loop_count(b);
  if (ga == GEN_POINT && gb == GEN_VECTOR) /* with sums between them: the tail */
    return loop_channels(a) == loop_count(b) && !reads(b, a);
  return false;
}

/* An update joins the node whose result it stores; what other nodes of that kernel are does not
 * matter, but its predicate comes from outside. */
static bool update_pair(const Node *a, const Node *update) {
  const Value *go = update->n_args > 2 ? update->arg[2] : NULL;
  GenClass gen = gen_of(a);
  if (go && value_storage((Value *)go)->node == a)
    return false;
  return a->op == OP_UPDATE || in_body(gen) || gen == GEN_CHANNEL || gen == GEN_OPT;
}

bool cpu_loop_fuses(const Node *a, const Node *b) {
  if (b->op == OP_UPDATE)
    return update_pair(a, b);
  return a->op != OP_UPDATE && loop_pair(a, b);
}

/* ---- workspace ---- */

int64_t cpu_loop_workspace(const Kernel *kernel) {
  int64_t sums = 0;
  for (int i = 0; i < kernel->n_nodes; i++)
    sums += loop_sums_of(kernel->node[i]);
  if (sums) {
    LoopGrid grid = loop_grid(kernel);
    return sums * grid.groups * grid.channels * (int64_t)sizeof(double);
  }
  const Node *first = kernel->node[0];
  return first->op == OP_OPT_LARS ? 2 * opt_chunks(first) * (int64_t)sizeof(double) : 0;
}

/* ---- emission ---- */

/* "k12_affine_relu": the ops in order, cut where it gets long. */
static const char *stem_of(Arena *arena, const Kernel *kernel) {
  Text stem = {arena};
  for (int i = 0; i < kernel->n_nodes && stem.len < 40; i++)
    if (kernel->node[i]->op != OP_UPDATE || i == 0)
      text_format(&stem, "%s%s", i ? "_" : "", op_info[kernel->node[i]->op].name);
  return text_get(&stem);
}

static void emit_points(CpuEmit *emit, const Kernel *kernel, KernelCall *call) {
  LoopPlan plan = loop_plan(emit->arena, kernel);
  const char *stem = arena_printf(emit->arena, "k_%s", stem_of(emit->arena, kernel));
  const char *args = args_name(emit, kernel);
  call->function = function_intern(emit, stem, loop_text(&plan));
  loop_args(emit, &plan, call->function, args);
  call->args = arena_printf(emit->arena, "&%s", args);
}

void cpu_emit_loop(CpuEmit *emit, const Kernel *kernel, KernelCall *call) {
  call->name = arena_printf(emit->arena, "k%d_%s", kernel->id, stem_of(emit->arena, kernel));
  switch (gen_of(kernel->node[0])) {
  case GEN_ROW:
    row_emit(emit, kernel, call);
    break;
  case GEN_REDUCE:
    reduce_emit(emit, kernel, call);
    break;
  case GEN_OPT:
    opt_emit(emit, kernel, call);
    break;
  default:
    emit_points(emit, kernel, call);
  }
}
