/* What passes may ask about the CPU. Convolutions and products are library calls, so they take
 * nothing with them: prologue and epilogue become loops of their own. */
#include "codegen/cpu/cpu.h"
#include "codegen/loop/loop.h"

enum { ALIGN = 64 }; /* a cache line, and the widest vector */

static bool takes_nothing(const Node *main, const Node *other) {
  (void)main, (void)other;
  return false;
}

static int64_t workspace(const Target *target, const Kernel *kernel) {
  (void)target;
  return kernel_main(kernel) ? cpu_main_workspace(kernel) : cpu_loop_workspace(kernel);
}

const Target target_cpu = {
    .name = "cpu",
    .align = ALIGN,
    .activations = LAYOUT_NHWC,
    .takes_prologue = takes_nothing,
    .takes_epilogue = takes_nothing,
    .fuses = loop_fuses,
    .workspace = workspace,
};
