/* What computes the convolutions and matrix products of a CPU program (--cpu-library): kernels that
 * are pasted into it, or oneDNN. Nothing else of the CPU's part depends on it. */
#ifndef AMPCC_CODEGEN_CPU_LIBRARY_H
#define AMPCC_CODEGEN_CPU_LIBRARY_H

#include "codegen/codegen.h"
#include "codegen/loop/emitter.h"

typedef struct CpuLibrary CpuLibrary;
struct CpuLibrary {
  const char *name; /* as --cpu-library has it */
  Winograd winograd;
  /* May a loop behind the main op be one kernel with it? NULL: never. */
  bool (*takes_loop)(const Node *main);
  /* Scratch bytes of a kernel with a CONV or MATMUL node, and its function and args. */
  int64_t (*workspace)(const CpuLibrary *library, const Kernel *kernel);
  /* As that of Target. NULL: it states none. */
  const double *(*error_bound)(const CpuLibrary *library, Arena *arena, const Node *node,
                               const struct EvalTensor *args);
  void (*emit_kernel)(Emitter *emit, const Kernel *kernel, KernelCall *call);
  bool multiplies_bf16; /* has it functions of its own for CPUs that do? */
  const char *include;  /* stands in front of the prelude, or is NULL */
  /* Pasted behind the prelude: what all that calls its functions needs, and the functions, which
   * are the same for all programs and are compiled apart (text/cpu/conv_calls.h). Or NULL. */
  const char *const *text, *const *kernels;
  /* Writes the hooks of AmprtProgram: amp_open, amp_close, amp_describe. */
  void (*emit_hooks)(const Emitter *emit, FILE *out);
};

extern const CpuLibrary cpu_onednn; /* onednn.c */
extern const CpuLibrary cpu_own[];  /* own.c: by Winograd */
/* What their programs are linked with, as Backend.libraries. */
extern const char *const cpu_onednn_linked[], *const cpu_own_linked[];

/* The library of a CPU target. */
const CpuLibrary *cpu_library(const Target *target);

#endif
