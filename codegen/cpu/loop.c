/* Kernels without a main op: their scratch and their emission. */
#include "codegen/loop/loop.h"

#include "codegen/cpu/cpu.h"

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

static void emit_points(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  LoopPlan plan = loop_plan(emit->arena, kernel);
  const char *stem = arena_printf(emit->arena, "k_%s", loop_stem(emit->arena, kernel));
  const char *args = args_name(emit, kernel);
  call->function = function_intern(emit, stem, loop_text(&plan));
  loop_args(emit, &plan, call->function, args);
  call->args = arena_printf(emit->arena, "&%s", args);
}

void cpu_emit_loop(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  call->name = arena_printf(emit->arena, "k%d_%s", kernel->id, loop_stem(emit->arena, kernel));
  if (!table_emit(emit, kernel, call))
    emit_points(emit, kernel, call);
}
