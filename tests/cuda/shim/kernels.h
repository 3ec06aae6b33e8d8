/* A kernel text as code of the host: compiled with the shim into a shared object, called by name.
 */
#ifndef AMPCC_TESTS_SHIM_KERNELS_H
#define AMPCC_TESTS_SHIM_KERNELS_H

#include "run.h"
#include "runtime/cuda/cuda_rt.h"

#include <stdbool.h>

typedef struct Kernels Kernels;

/* Starts to compile `stem`.cu to `stem`.so; several may be begun before one is finished. Checked:
 * every access is looked at (in a build with AddressSanitizer: by that); else fast. Both with
 * UndefinedBehaviorSanitizer if checked. */
Kernels *kernels_begin(const char *stem, bool is_checked);
/* Waits and loads. NULL where the text does not compile: the compiler has said why. */
const ShimApi *kernels_finish(Kernels *kernels);
/* Runs the kernel `name`. NULL, or what was wrong, in one line with the place in the text if it is
 * known. */
const char *kernels_launch(Kernels *kernels, const CudaLaunch *launch, CudaRun run, uint64_t seed);
void kernels_free(Kernels *kernels);

#endif
