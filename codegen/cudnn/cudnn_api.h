/* cuDNN's graph API through a table of its functions, for ampcc and for libamprt_cuda: neither is
 * linked with cuDNN, so that both start where it is missing. */
#ifndef AMPCC_CODEGEN_CUDNN_CUDNN_API_H
#define AMPCC_CODEGEN_CUDNN_CUDNN_API_H

#include <cudnn_backend.h>

#include <stdbool.h>
#include <stddef.h>

typedef cudnnBackendDescriptor_t CudnnObject;

typedef struct CudnnApi {
#define CUDNN(result, name, arguments) result(*name) arguments;
#include "codegen/cudnn/cudnn_api.def"
} CudnnApi;

/* Fills the table with the functions of `library`, which dlopen gave. NULL, or the name of the
 * first that it lacks. */
const char *cuda_cudnn_bind(CudnnApi *api, void *library);

/* Objects of cuDNN under construction, which the draft owns. Begin with {.api = ...} and end with
 * cuda_draft_end, which destroys them all. After the first call that fails no other does anything:
 * `failed` is set, and `error` says in one line which call it was and why. */
enum { DRAFT_MOST = 384 };

typedef struct Draft {
  const CudnnApi *api;
  CudnnObject made[DRAFT_MOST];
  int n_made;
  bool failed;
  char error[300];
} Draft;

CudnnObject cuda_draft_new(Draft *draft, cudnnBackendDescriptorType_t type);
void cuda_draft_set(Draft *draft, CudnnObject object, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *from);
void cuda_draft_set_object(Draft *draft, CudnnObject object, cudnnBackendAttributeName_t name,
                           CudnnObject part);
void cuda_draft_set_int(Draft *draft, CudnnObject object, cudnnBackendAttributeName_t name,
                        int64_t value);
/* Finalizes an object that has all its attributes; `what` names it in an error. */
void cuda_draft_finish(Draft *draft, CudnnObject object, const char *what);
/* Notes a failure if it is the first: `what`, cuDNN's `status` and its last message. */
void cuda_draft_fail(Draft *draft, const char *what, cudnnStatus_t status);
/* Takes the object out of the draft: it is the caller's to destroy. */
CudnnObject cuda_draft_keep(Draft *draft, CudnnObject object);
void cuda_draft_end(Draft *draft);

#endif
