#include "codegen/cudnn/api.h"
#include "runtime/cuda/inner.h"

#include <dlfcn.h>
#include <stdio.h>

static CudnnApi cudnn;
static CublasLtApi cublaslt;
static NcclApi nccl;
static bool have_cudnn, have_cublaslt, have_nccl;

/* `file` has a version in its name. Names without one are links that only come with packages for
 * building programs. */
static void *open_library(const char *file, char *why, size_t size) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const char *text = library ? "" : dlerror();
  if (!library)
    snprintf(why, size, "%.200s (LD_LIBRARY_PATH can name its folder)", text ? text : file);
  return library;
}

const CudnnApi *cuda_rt_cudnn(char *why, size_t size) {
  void *library = have_cudnn ? NULL : open_library("libcudnn_graph.so.9", why, size);
  const char *missing = library ? cuda_cudnn_bind(&cudnn, library) : NULL;
  if (missing)
    snprintf(why, size, "libcudnn_graph.so.9 has no %s", missing);
  have_cudnn = have_cudnn || (library && !missing);
  return have_cudnn ? &cudnn : NULL;
}

const CublasLtApi *cuda_rt_cublaslt(char *why, size_t size) {
  static const ApiEntry entry[] = {
#define CUBLASLT(result, name, arguments) {#name, offsetof(CublasLtApi, name)},
#include "runtime/cuda/cublaslt_api.def"
  };
  enum { N_ENTRIES = sizeof entry / sizeof *entry };
  void *library = have_cublaslt ? NULL : open_library("libcublasLt.so.13", why, size);
  const char *missing = library ? cuda_api_bind(&cublaslt, library, entry, N_ENTRIES) : NULL;
  if (missing)
    snprintf(why, size, "libcublasLt.so.13 has no %s", missing);
  have_cublaslt = have_cublaslt || (library && !missing);
  return have_cublaslt ? &cublaslt : NULL;
}

const NcclApi *cuda_rt_nccl(char *why, size_t size) {
  static const ApiEntry entry[] = {
#define NCCL(result, name, arguments) {#name, offsetof(NcclApi, name)},
#define NCCL_VALUE(type, name, number)
#include "runtime/cuda/nccl_api.def"
  };
  enum { N_ENTRIES = sizeof entry / sizeof *entry };
  void *library = have_nccl ? NULL : open_library("libnccl.so.2", why, size);
  const char *missing = library ? cuda_api_bind(&nccl, library, entry, N_ENTRIES) : NULL;
  if (missing)
    snprintf(why, size, "libnccl.so.2 has no %s", missing);
  have_nccl = have_nccl || (library && !missing);
  return have_nccl ? &nccl : NULL;
}
