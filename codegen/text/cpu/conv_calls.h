/* How a program calls convolutions that are compiled apart from its other kernels: once for each
 * instruction set, as an object that is the same in all programs, so that the compiler's cache has
 * it. That object is compiled with the macro AMPCC_KERNELS, which is the name of its table of
 * functions (conv_run.h). The program's other objects are compiled with AMPCC_APART and call the
 * table that was chosen for the CPU (fits.c.in). A text that is compiled as a whole has neither. */
#ifndef AMP_CONV_CALLS_H
#define AMP_CONV_CALLS_H

#include "codegen/text/cpu/conv_args.h"
#include "codegen/text/cpu/prelude.h"

typedef struct AmpConvolutions {
  unsigned needs; /* AMP_NEEDS, where they were compiled */
  void (*conv_with)(const AmprtRun *run, const AmpConv *a, const AmpGrid *grid, AmpLoopFn *behind,
                    const void *args, const AmpRef *reads, uint64_t each);
  void (*conv)(const AmprtRun *run, const void *args);
  void (*conv_grad)(const AmprtRun *run, const void *args);
} AmpConvolutions;

#ifdef AMPCC_APART
extern const AmpConvolutions *amp_kernels;

AMP_FN void amp_conv_with(const AmprtRun *run, const AmpConv *a, const AmpGrid *grid,
                          AmpLoopFn *behind, const void *args, const AmpRef *reads, uint64_t each) {
  amp_kernels->conv_with(run, a, grid, behind, args, reads, each);
}

AMP_FN void amp_conv(const AmprtRun *run, const void *args) {
  amp_kernels->conv(run, args);
}

AMP_FN void amp_conv_grad(const AmprtRun *run, const void *args) {
  amp_kernels->conv_grad(run, args);
}
#endif

#endif
