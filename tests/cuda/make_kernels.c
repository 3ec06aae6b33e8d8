/* make_kernels STEM: compiles STEM.cu, kernels of a CUDA part, for the host: STEM.so. */
#include "tests/cuda/shim/kernels.h"

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  Kernels *kernels = kernels_begin(argv[1], false);
  bool good = kernels_finish(kernels) != NULL;
  kernels_free(kernels);
  return !good;
}
