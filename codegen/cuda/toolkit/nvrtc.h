/* CUDA C to machine code. */
#ifndef AMPCC_CODEGEN_CUDA_TOOLKIT_NVRTC_H
#define AMPCC_CODEGEN_CUDA_TOOLKIT_NVRTC_H

#include "codegen/cuda/toolkit/toolkit.h"

typedef struct NvrtcCode {
  const char *cubin, *ptx;       /* in the arena; ptx ends in a NUL */
  size_t cubin_bytes, ptx_bytes; /* ptx_bytes: without the NUL */
} NvrtcCode;

/* Compiles a whole text for one capability (90 for sm_90), or takes what the cache folder (NULL:
 * none) holds of it. Equal text, capability and NVRTC give equal bytes. False with one line in
 * `error`: no library, or the first error in the text.
 *
 * Products and sums are not contracted (--fmad=false): bits follow from the text, so the same text
 * on the host gives the same values; these kernels wait for memory, not for arithmetic. Kernels
 * that want a fused multiply-add say fmaf. */
bool nvrtc_compile(Toolkit *toolkit, const char *cache, Arena *arena, const char *text,
                   int capability, NvrtcCode *out, char error[TOOLKIT_ERROR]);

#endif
