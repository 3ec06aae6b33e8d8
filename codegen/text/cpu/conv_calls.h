/* How a program calls convolutions that are compiled apart from its other kernels: once for each
 * instruction set, as an object that is the same in all programs, so that the compiler's cache has
 * it. There AMPCC_KERNELS names the table of functions (conv_run.h); where they are called,
 * AMPCC_APART names the same table. A text that is compiled as a whole has neither. */
#ifndef AMP_CONV_CALLS_H
#define AMP_CONV_CALLS_H

#include "codegen/text/cpu/conv_args.h"
#include "codegen/text/cpu/prelude.h"

typedef struct AmpConvolutions {
  void (*conv_with)(const AmprtRun *run, const AmpConv *a, const AmpGrid *grid, AmpLoopFn *behind,
                    const void *args, const AmpRef *reads, uint64_t each);
  void (*conv)(const AmprtRun *run, const void *args);
  void (*conv_grad)(const AmprtRun *run, const void *args);
} AmpConvolutions;

#ifdef AMPCC_APART
extern const AmpConvolutions AMPCC_APART;

AMP_FN void amp_conv_with(const AmprtRun *run, const AmpConv *a, const AmpGrid *grid,
                          AmpLoopFn *behind, const void *args, const AmpRef *reads, uint64_t each) {
  AMPCC_APART.conv_with(run, a, grid, behind, args, reads, each);
}

AMP_FN void amp_conv(const AmprtRun *run, const void *args) {
  AMPCC_APART.conv(run, args);
}

AMP_FN void amp_conv_grad(const AmprtRun *run, const void *args) {
  AMPCC_APART.conv_grad(run, args);
}
#endif

#endif
