/* The launch that makes a graph's image port of bytes, against what the host makes of them: to the
 * bit. */
#ifndef AMPCC_TESTS_CUDA_PIXELS_H
#define AMPCC_TESTS_CUDA_PIXELS_H

#include "tests/cuda/shim/kernels.h"

/* In the blocks of `run`, which may hold anything: the port is written. Prints what was wrong and
 * returns how many launches that was; 0 if the graph has no such port. */
int pixels_check(Kernels *kernels, const ShimApi *shim, const CudaGraph *launches,
                 const AmprtGraph *graph, CudaRun run, uint64_t seed);

#endif
