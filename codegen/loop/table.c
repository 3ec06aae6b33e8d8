/* Kernels that are one call of a function of the prelude: rows, reductions, optimizers, pooling. */
#include "codegen/loop/loop.h"

const char *loop_stem(Arena *arena, const Kernel *kernel) {
  Text stem = {arena};
  for (int i = 0; i < kernel->n_nodes && stem.len < 40; i++)
    if (kernel->node[i]->op != OP_UPDATE || i == 0)
      text_format(&stem, "%s%s", i ? "_" : "", op_info[kernel->node[i]->op].name);
  return text_get(&stem);
}

bool table_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  static void (*const form[])(Emitter *, const Kernel *,
                              KernelCall *) = {[GEN_ROW] = row_emit,
                                               [GEN_REDUCE] = reduce_emit,
                                               [GEN_OPT] = opt_emit,
                                               [GEN_POOL] = pool_emit};
  GenClass gen = op_info[kernel->node[0]->op].gen;
  if (gen >= sizeof form / sizeof *form || !form[gen])
    return false;
  form[gen](emit, kernel, call);
  return true;
}
