/* make_kernels STEM: compiles STEM.cu, kernels of a CUDA part, for the host: STEM.so. */
#include "tests/cuda/shim/kernels.h"

int main(int argc, char **argv) {
  return argc != 2 || !kernels_finish(kernels_begin(argv[1], false));
}
