#include "codegen/cudnn/cudnn_api.h"

#include "codegen/cudnn/api.h"

#include <stdio.h>

const char *cuda_cudnn_bind(CudnnApi *api, void *library) {
  static const ApiEntry entry[] = {
#define CUDNN(result, name, arguments) {#name, offsetof(CudnnApi, name)},
#include "codegen/cudnn/cudnn_api.def"
  };
  return cuda_api_bind(api, library, entry, sizeof entry / sizeof *entry);
}

void cuda_draft_fail(Draft *draft, const char *what, cudnnStatus_t status) {
  if (draft->failed)
    return;
  draft->failed = true;
  char message[1024] = "";
  draft->api->cudnnGetLastErrorString(message, sizeof message);
  message[sizeof message - 1] = '\0';
  for (char *c = message; *c; c++)
    if (*c == '\n' || *c == '\t')
      *c = ' ';
  snprintf(draft->error, sizeof draft->error, "%s: %s%s%.200s", what,
           draft->api->cudnnGetErrorString(status), message[0] ? ": " : "", message);
}

CudnnObject cuda_draft_new(Draft *draft, cudnnBackendDescriptorType_t type) {
  CudnnObject object = NULL;
  if (draft->failed)
    return NULL;
  if (draft->n_made == DRAFT_MOST) {
    cuda_draft_fail(draft, "too many descriptors", CUDNN_STATUS_INTERNAL_ERROR);
    return NULL;
  }
  cudnnStatus_t status = draft->api->cudnnBackendCreateDescriptor(type, &object);
  if (status != CUDNN_STATUS_SUCCESS) {
    cuda_draft_fail(draft, "new descriptor", status);
    return NULL;
  }
  draft->made[draft->n_made++] = object;
  return object;
}

void cuda_draft_set(Draft *draft, CudnnObject object, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *from) {
  if (draft->failed)
    return;
  cudnnStatus_t status = draft->api->cudnnBackendSetAttribute(object, name, type, count, from);
  if (status != CUDNN_STATUS_SUCCESS) {
    char what[40];
    snprintf(what, sizeof what, "attribute %d", (int)name);
    cuda_draft_fail(draft, what, status);
  }
}

void cuda_draft_set_object(Draft *draft, CudnnObject object, cudnnBackendAttributeName_t name,
                           CudnnObject part) {
  cuda_draft_set(draft, object, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

void cuda_draft_set_int(Draft *draft, CudnnObject object, cudnnBackendAttributeName_t name,
                        int64_t value) {
  cuda_draft_set(draft, object, name, CUDNN_TYPE_INT64, 1, &value);
}

void cuda_draft_finish(Draft *draft, CudnnObject object, const char *what) {
  if (draft->failed)
    return;
  cudnnStatus_t status = draft->api->cudnnBackendFinalize(object);
  if (status != CUDNN_STATUS_SUCCESS)
    cuda_draft_fail(draft, what, status);
}

CudnnObject cuda_draft_keep(Draft *draft, CudnnObject object) {
  for (int i = 0; i < draft->n_made; i++)
    if (draft->made[i] == object) {
      draft->made[i] = draft->made[--draft->n_made];
      break;
    }
  return object;
}

void cuda_draft_end(Draft *draft) {
  while (draft->n_made > 0)
    draft->api->cudnnBackendDestroyDescriptor(draft->made[--draft->n_made]);
}
