/* Kernels without a main op: how their elements are cut into chunks, their workspace, their text.
 */
#include "codegen/loop/loop.h"

#include "codegen/cpu/cpu.h"
#include "codegen/cpu/loop_text.h"

/* ---- the space ---- */

enum { WIDTH = 1024, SUM_ROWS = 64 }; /* WIDTH: AMP_WIDTH of prelude.h */
/* Behind a convolution, where a tile is short: less to set up and to add up for each. */
enum { WIDTH_BEHIND = 256 };

/* A block is as many whole rows of C channels as fit into WIDTH elements; a longer row is cut into
 * equal panels. Kernels with sums get chunks of many rows, because each chunk leaves partial sums
 * as long as a row. */
static AmpGrid grid_of(const Kernel *kernel, int64_t most_elements) {
  Space space = node_space(kernel->node[0]);
  int64_t channels = space.channels, width = most_elements, stride = width, panels = 1;
  bool sums = false;
  for (int i = 0; i < kernel->n_nodes; i++)
    sums |= op_info[kernel->node[i]->op].gen == GEN_CHANNEL;
  if (loop_has_channels(kernel) && channels <= width) {
    stride = width = width / channels * channels;
  } else if (loop_has_channels(kernel)) {
    panels = (channels + width - 1) / width;
    stride = channels;
    width = ((channels + panels - 1) / panels + 15) / 16 * 16;
    panels = (channels + width - 1) / width;
  }
  AmpGrid g = {.total = space.count};
  g.blocks = (g.total + stride - 1) / stride;
  int64_t most = sums ? g.total / channels / SUM_ROWS : g.blocks;
  g.groups = chunk_count(g.total / panels, most < g.blocks ? most : g.blocks);
  g.stride = (int32_t)stride;
  g.width = (int32_t)width;
  g.panels = (int32_t)panels;
  g.channels = (int32_t)channels;
  return g;
}

static AmpGrid loop_grid(const Kernel *kernel) {
  return grid_of(kernel, WIDTH);
}

AmpGrid cpu_grid_behind(const Kernel *loop, int64_t tiles) {
  AmpGrid grid = grid_of(loop, WIDTH_BEHIND);
  grid.groups = tiles;
  return grid;
}

/* ---- workspace ---- */

int64_t cpu_loop_workspace(const Kernel *kernel) {
  int64_t sums = 0;
  for (int i = 0; i < kernel->n_nodes; i++)
    sums += loop_sums_of(kernel->node[i]);
  if (sums) {
    AmpGrid grid = loop_grid(kernel);
    return sums * grid.groups * grid.channels * (int64_t)sizeof(double);
  }
  return opt_needs(kernel) == OPT_NORMS ? 2 * opt_chunks(kernel->node[0]) * (int64_t)sizeof(double)
                                        : 0;
}

/* ---- emission ---- */

const char *cpu_grid_text(Arena *arena, const AmpGrid *g) {
  return arena_printf(arena, ".grid = {%lld, %lld, %lld, %d, %d, %d, %d}", (long long)g->total,
                      (long long)g->blocks, (long long)g->groups, g->stride, g->width, g->panels,
                      g->channels);
}

static void emit_points(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  LoopPlan plan = loop_plan(emit->arena, kernel);
  AmpGrid g = loop_grid(kernel);
  const char *stem = arena_printf(emit->arena, "k_%s", loop_stem(emit->arena, kernel));
  const char *args = args_name(emit, kernel), *text = loop_text(&plan);
  const char *grid = cpu_grid_text(emit->arena, &g);
  int64_t scratch = plan.n_sums ? kernel_scratch(kernel) : 0;
  call->function = function_intern(emit, stem, loop_types(&plan, "AmpGrid grid"), text);
  loop_args(emit, &plan, grid, scratch, call->function, args);
  call->args = arena_printf(emit->arena, "&%s", args);
}

void cpu_emit_loop(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  call->name = arena_printf(emit->arena, "k%d_%s", kernel->id, loop_stem(emit->arena, kernel));
  if (!table_emit(emit, kernel, call))
    emit_points(emit, kernel, call);
}
