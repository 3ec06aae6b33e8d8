/* The CPU's answers to what passes ask of a target (passes/target.h). */
#include "codegen/codegen.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/library.h"
#include "codegen/loop/loop.h"

enum { ALIGN = 64 }; /* a cache line, and the widest vector */

const CpuLibrary *cpu_library(const Target *target) {
  return target->context;
}

static int64_t workspace(const Target *target, const Kernel *kernel) {
  const Node *main = kernel_main(kernel);
  if (main && op_info[main->op].gen != GEN_POOL)
    return cpu_library(target)->workspace(cpu_library(target), kernel);
  return main ? 0 : cpu_loop_workspace(kernel);
}

static bool takes_loop(const Target *target, const Node *main, const Kernel *loop) {
  (void)loop;
  return cpu_library(target)->takes_loop(main);
}

static const double *error_bound(const Target *target, Arena *arena, const Node *node,
                                 const struct EvalTensor *args) {
  const CpuLibrary *library = cpu_library(target);
  return library->error_bound ? library->error_bound(library, arena, node, args) : NULL;
}

#define CPU(called, library, takes)                                                                \
  {                                                                                                \
    .name = (called), .align = ALIGN, .activations = LAYOUT_NHWC, .takes_loop = (takes),           \
    .workspace = workspace, .error_bound = error_bound, .context = (void *)&(library)              \
  }
#define OWN(called)                                                                                \
  {                                                                                                \
    CPU(called, cpu_own[WINOGRAD_AUTO], takes_loop),                                               \
        CPU(called, cpu_own[WINOGRAD_OFF], takes_loop),                                            \
        CPU(called, cpu_own[WINOGRAD_ALWAYS], takes_loop),                                         \
        CPU(called, cpu_own[WINOGRAD_BY_CHANNELS], takes_loop)                                     \
  }
const Target target_cpu_onednn = CPU("cpu", cpu_onednn, NULL);
const Target target_cpu_own[] = OWN("cpu"), target_cpu_aarch64[] = OWN("cpu:aarch64");
