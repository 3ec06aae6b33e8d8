/* Stands for backend.c in an ampcc that was built without CUDA. */
#include "codegen/codegen.h"

const bool codegen_has_cuda = false;

const char *codegen_cuda_versions(Arena *arena, const char *cuda_path) {
  (void)arena, (void)cuda_path;
  return "none";
}

const Backend *backend_cuda(Arena *arena, const struct Device *device, const CudaOptions *options,
                            const char **error) {
  (void)arena, (void)device, (void)options;
  *error =
      "this ampcc was built without CUDA; build it with -Dcuda=enabled, and -Dtoolkit= if CUDA is "
      "in no usual place";
  return NULL;
}
