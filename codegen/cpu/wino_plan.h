/* When our own kernels compute by Winograd's method, and in which pieces. */
#ifndef AMPCC_CODEGEN_CPU_WINO_PLAN_H
#define AMPCC_CODEGEN_CPU_WINO_PLAN_H

#include "codegen/codegen.h"
#include "codegen/text/cpu/conv_args.h"

/* Is the convolution or data gradient computed so? */
bool wino_takes(const AmpConv *a, Winograd winograd);
/* Chooses its pieces: whole images, or some rows of one. With `has_tiles` they are the tiles that
 * were chosen for the direct kernel, of whole rows of one image, which CPUs that multiply bf16 use.
 * Returns the bytes of its workspace. */
int64_t wino_plan(AmpConv *a, bool has_tiles);
/* The same of a filter's gradient, which is planned directly already: that is what computes it
 * where a result is not finite. */
bool wino_takes_grad(const AmpConvGrad *a, Winograd winograd);
int64_t wino_plan_grad(AmpConvGrad *a);

#endif
