/* Kernels of the hand-made part in test_ranks.c, and the one that every program with ranks has. */
#define AMPRT_H /* machine.h repeats what kernels need of it */
#include "codegen/text/cuda/tree.h"

typedef struct Args {
  int64_t x, y;
  int n;
  float factor;
} Args;

/* y = factor * x. */
AMP_KERNEL(scale, Args) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < a.n)
    ((float *)(run.arena + a.y))[i] = a.factor * ((const float *)(run.arena + a.x))[i];
}

AMP_KERNEL(ranks, AmpTree) {
  amp_tree(&a);
}
