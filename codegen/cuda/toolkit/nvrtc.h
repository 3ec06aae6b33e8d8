/* Compiles CUDA C to machine code. */
#ifndef AMPCC_CODEGEN_CUDA_TOOLKIT_NVRTC_H
#define AMPCC_CODEGEN_CUDA_TOOLKIT_NVRTC_H

#include "codegen/cuda/toolkit/toolkit.h"

typedef struct NvrtcCode {
  const char *cubin, *ptx;       /* in the arena; ptx ends in a NUL */
  size_t cubin_bytes, ptx_bytes; /* ptx_bytes: without the NUL */
} NvrtcCode;

/* Compiles a whole text for one capability (90 for sm_90), or takes the result from the folder
 * `cache` (NULL: none). Equal text, capability and version of NVRTC give equal bytes. Returns false
 * with one line in `error`: no library, or the first error in the text.
 *
 * A product and a sum are not contracted to a fused multiply-add (--fmad=false), so that the bits
 * follow from the text and the same text gives the same values on the host. It costs no time,
 * because these kernels wait for memory. A kernel that wants a fused multiply-add calls fmaf. */
bool nvrtc_compile(Toolkit *toolkit, const char *cache, Arena *arena, const char *text,
                   int capability, NvrtcCode *out, char error[TOOLKIT_ERROR]);

#endif
