/* What passes may ask about the CPU. Convolutions and products are library calls, so they take
 * nothing with them: prologue and epilogue become loops of their own. */
#include "codegen/cpu/cpu.h"
#include "codegen/loop/loop.h"

enum { ALIGN = 64 }; /* a cache line, and the widest vector */

static int64_t workspace(const Target *target, const Kernel *kernel) {
  (void)target;
  return kernel_main(kernel) ? cpu_main_workspace(kernel) : cpu_loop_workspace(kernel);
}

const Target target_cpu = {
    .name = "cpu",
    .align = ALIGN,
    .activations = LAYOUT_NHWC,
    .workspace = workspace,
};
