/* The CPU target: one C function per distinct kernel, called through a table of constants.
 *
 * Every kernel becomes one call `function(run, args)` (AmprtKernel in runtime/amprt.h). Kernels of
 * equal structure share the function; offsets, sizes and scalars go into `args`, a static const
 * struct. The functions' text may use the helpers of codegen/text/cpu/prelude.h, which emit_c puts
 * in front of them. */
#ifndef AMPCC_CODEGEN_CPU_CPU_H
#define AMPCC_CODEGEN_CPU_CPU_H

#include "codegen/loop/emitter.h"
#include "codegen/text/common/args.h"

/* loop.c and codegen/loop: kernels without a main op, that is of POINT, VECTOR, CHANNEL, ROW,
 * REDUCE, OPT and UPDATE nodes. */
void cpu_emit_loop(Emitter *emit, const Kernel *kernel, KernelCall *call);
int64_t cpu_loop_workspace(const Kernel *kernel);
/* How a loop behind a convolution of so many tiles is cut; a grid as the initialiser of a member
 * `grid`. */
AmpGrid cpu_grid_behind(const Kernel *loop, int64_t tiles);
const char *cpu_grid_text(Arena *arena, const AmpGrid *grid);

#endif
