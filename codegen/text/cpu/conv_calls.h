/* How a program calls kernels that are compiled apart from its loops: once for each instruction
 * set, as an object that is the same in all programs, so that the compiler's cache has it. These
 * are convolutions, rows, reductions, optimizers and pooling. The macro AMPCC_KERNELS gives that
 * object a name: its table has the name (conv_run.h), and the names of its kernels begin with it. A
 * program links those kernels that it calls. The program's other objects are compiled with
 * AMPCC_APART and call what was chosen for the CPU (fits.c.in). A text that is compiled as a whole
 * has neither. */
#ifndef AMP_CONV_CALLS_H
#define AMP_CONV_CALLS_H

#include "codegen/text/cpu/grouped_args.h"
#include "codegen/text/cpu/prelude.h"

typedef struct AmpConvolutions {
  unsigned needs; /* AMP_NEEDS, where they were compiled */
  void (*conv_with)(const AmprtRun *run, const AmpConv *a, const AmpGrid *grid, AmpLoopFn *behind,
                    const void *args, const AmpRef *reads, uint64_t each);
} AmpConvolutions;

/* The args of amp_grouped_behind: a grouped convolution and a loop that runs on each tile of its
 * result. */
typedef struct AmpGroupedBehind {
  const AmpGrouped *a;
  const AmpGrid *grid; /* how the loop is cut, */
  AmpLoopFn *behind;   /* its function, */
  const void *args;    /* and its args */
} AmpGroupedBehind;

extern AmprtFunction *amp_grouped_chosen; /* amp_grouped_behind, as it was compiled for this CPU */

AMP_FN void amp_grouped_with(const AmprtRun *run, const AmpGrouped *a, const AmpGrid *grid,
                             AmpLoopFn *behind, const void *args) {
  const AmpGroupedBehind all = {a, grid, behind, args};
  amp_grouped_chosen(run, &all);
}

#ifdef AMPCC_APART
extern const AmpConvolutions *amp_kernels;

AMP_FN void amp_conv_with(const AmprtRun *run, const AmpConv *a, const AmpGrid *grid,
                          AmpLoopFn *behind, const void *args, const AmpRef *reads, uint64_t each) {
  amp_kernels->conv_with(run, a, grid, behind, args, reads, each);
}
#endif

#endif
