/* When our own kernels compute by Winograd's method, and in which pieces. */
#ifndef AMPCC_CODEGEN_CPU_WINO_PLAN_H
#define AMPCC_CODEGEN_CPU_WINO_PLAN_H

#include "codegen/codegen.h"
#include "codegen/text/cpu/conv_args.h"

/* The results of its tiles along each axis, 2 or 4, with which the convolution or data gradient is
 * computed; 0 if it is not. They become a->winograd before wino_plan. */
int wino_takes(const AmpConv *a, Winograd winograd);
/* Chooses the tiles, which are whole images or some rows of one, and the blocks that they are cut
 * into. With `has_tiles` the tiles stay as the direct kernel has them, whole rows of one image: a
 * program for bf16 runs either kernel, as the CPU demands. Returns the bytes of its workspace. */
int64_t wino_plan(AmpConv *a, bool has_tiles);
/* The same of a filter's gradient. The direct kernel must have been planned already, as it computes
 * the result again where that is not finite. */
int wino_takes_grad(const AmpConvGrad *a, Winograd winograd);
int64_t wino_plan_grad(AmpConvGrad *a);

#endif
