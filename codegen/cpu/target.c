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

const char *const cpu_names[] = {"native",
                                 "x86-64-v3",
                                 "x86-64-v4",
                                 "haswell",
                                 "core-avx2",
                                 "broadwell",
                                 "skylake",
                                 "skylake-avx512",
                                 "cascadelake",
                                 "cooperlake",
                                 "cannonlake",
                                 "icelake-client",
                                 "icelake-server",
                                 "tigerlake",
                                 "rocketlake",
                                 "alderlake",
                                 "raptorlake",
                                 "meteorlake",
                                 "sapphirerapids",
                                 "emeraldrapids",
                                 "graniterapids",
                                 "graniterapids-d",
                                 "sierraforest",
                                 "grandridge",
                                 "bdver4",
                                 "znver1",
                                 "znver2",
                                 "znver3",
                                 "znver4",
                                 "znver5",
                                 NULL};

#define CPU(library, takes)                                                                        \
  {                                                                                                \
    .name = "cpu", .align = ALIGN, .activations = LAYOUT_NHWC, .takes_loop = (takes),              \
    .workspace = workspace, .error_bound = error_bound, .context = (void *)&(library)              \
  }
const Target target_cpu_onednn = CPU(cpu_onednn, NULL);
const Target target_cpu_own[] = {CPU(cpu_own[WINOGRAD_AUTO], takes_loop),
                                 CPU(cpu_own[WINOGRAD_OFF], takes_loop),
                                 CPU(cpu_own[WINOGRAD_ALWAYS], takes_loop)};
