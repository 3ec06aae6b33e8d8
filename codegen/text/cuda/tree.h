/* Adds what ranks have sent each other in the order of amprt_tree_sum, ((0+1)+(2+3))+..., so that
 * each element has the bits that processes on CPUs give it. */
#ifndef AMP_PRELUDE_TREE_H
#define AMP_PRELUDE_TREE_H

#include "codegen/text/cuda/prelude.h"

enum { AMP_TREE_DEPTH = 12, AMP_TREE_WIDTH = 4 }; /* at most 2^12 ranks; elements of a load */

/* Ranks are taken in their order, and partial sums are carried like the ones of a binary counter:
 * open[l] is the sum over an aligned block of 2^l ranks that waits for the block after it. */
AMP_INLINE void amp_tree(const AmpTree *a) {
  const int64_t n = a->n_slice + a->n_rest;
  for (int64_t i = ((int64_t)blockIdx.x * AMP_THREADS + threadIdx.x) * AMP_TREE_WIDTH; i < n;
       i += (int64_t)gridDim.x * AMP_THREADS * AMP_TREE_WIDTH) {
    float *own = i < a->n_slice ? a->slice + i : a->rest + (i - a->n_slice);
    float open[AMP_TREE_DEPTH][AMP_TREE_WIDTH], v[AMP_TREE_WIDTH];
    for (int r = 0; r < a->ranks; r++) {
      amp_fetch(v, r == a->rank ? own : a->arrived + r * n + i, sizeof v);
      AMP_UNROLL
      for (int l = 0; l < AMP_TREE_DEPTH; l++) {
        const int ones = (1 << l) - 1;
        AMP_UNROLL
        for (int k = 0; k < AMP_TREE_WIDTH; k++) {
          if ((r & (ones + (1 << l))) == ones) /* r ends in a zero and l ones */
            open[l][k] = v[k];
          else if ((r & ones) == ones)
            v[k] = open[l][k] + v[k];
        }
      }
    }
    /* The blocks that are left have no other half; the last ranks are added first. */
    int first = 1;
    AMP_UNROLL
    for (int l = 0; l < AMP_TREE_DEPTH; l++) {
      if (!(a->ranks >> l & 1))
        continue;
      AMP_UNROLL
      for (int k = 0; k < AMP_TREE_WIDTH; k++)
        v[k] = first ? open[l][k] : open[l][k] + v[k];
      first = 0;
    }
    amp_put(own, v, sizeof v);
  }
}

#endif
