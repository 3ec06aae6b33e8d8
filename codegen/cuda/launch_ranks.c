/* The launch that adds up what ranks have sent each other, for sums whose bits do not depend on
 * where ranks run. */
#include "codegen/cuda/launch.h"
#include "codegen/program/emit.h"

#include <string.h>

bool cuda_sums_ranks(const Graph *graph) {
  return strcmp(graph->name, "train_dp") == 0;
}

Launch cuda_emit_ranks(Emitter *emit) {
  const char *args =
      arena_printf(emit->arena, "args_%s_ranks", ident_of(emit->arena, emit->graph->name));
  fprintf(emit->tables, "static const AmpTree %s = {0};\n", args);
  return (Launch){.kind = CUDA_KERNEL,
                  .kernel = -1,
                  .name = "ranks",
                  .function = launch_wrap(emit, "ranks", "AmpTree", "", "amp_tree(&a)"),
                  .args = args,
                  .grid = {1, 1, 1},
                  .block = {LAUNCH_THREADS, 1, 1}};
}
