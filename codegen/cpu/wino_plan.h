/* When our own kernels compute by Winograd's method, and in which pieces. */
#ifndef AMPCC_CODEGEN_CPU_WINO_PLAN_H
#define AMPCC_CODEGEN_CPU_WINO_PLAN_H

#include "codegen/codegen.h"
#include "codegen/text/cpu/conv_args.h"

/* The form (AmpWinoForm) with which the convolution or data gradient is computed; 0 if it is not.
 * It becomes a->winograd. */
int wino_takes(const AmpConv *a, Winograd winograd);
/* Is that faster on CPUs that multiply pairs of bf16, but have no AMX? a->over_pairs, which is 0
 * where nothing is bf16. */
bool wino_beats_pairs(const AmpConv *a, Winograd winograd);
/* Chooses the tiles, which are whole images or some rows of one, and the blocks that they are cut
 * into. */
void wino_choose_tile(AmpConv *a);
/* Chooses the blocks of tiles that are chosen, of whole rows of one image. */
void wino_cut(AmpConv *a);
/* The memory; a direct kernel's is there already where a program runs either, as the CPU demands.
 * Returns the bytes of the workspace. */
int64_t wino_finish(AmpConv *a, Winograd winograd);
/* The same of a filter's gradient. The direct kernel must have been planned already, as it computes
 * the result again where that is not finite. */
int wino_takes_grad(const AmpConvGrad *a, Winograd winograd);
bool wino_beats_pairs_grad(const AmpConvGrad *a, Winograd winograd);
int64_t wino_plan_grad(AmpConvGrad *a, Winograd winograd);

#endif
