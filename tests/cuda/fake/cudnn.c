/* The fake libcudnn_graph.so.9: objects with attributes, and plans that graph.h runs on the
 * host. */
#include "cudnn.h"

#include <stdarg.h>
#include <stdio.h>

struct cudnnContext {
  FakeStream *stream;
};

static char last_error[400];

#define BEGIN FAKE_FAILS(cudnnStatus_t, CUDNN_STATUS_INTERNAL_ERROR)

cudnnStatus_t fake_cudnn_fail(cudnnStatus_t status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof last_error, format, args);
  va_end(args);
  return status;
}

size_t cudnnGetVersion(void) {
  return (size_t)fake_number("FAKE_CUDNN_VERSION", 91900);
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    return "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH";
  case CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH:
    return "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH";
  default:
    return "CUDNN_STATUS_INTERNAL_ERROR";
  }
}

void cudnnGetLastErrorString(char *message, size_t size) {
  snprintf(message, size, "%s", last_error);
  *last_error = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  BEGIN;
  *handle = calloc(1, sizeof **handle);
  return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  BEGIN;
  free(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  BEGIN;
  handle->stream = (FakeStream *)(void *)stream;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- objects ---- */

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *made) {
  BEGIN;
  Object *object = calloc(1, sizeof *object);
  if (!object)
    return CUDNN_STATUS_ALLOC_FAILED;
  object->type = type;
  *made = object;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  BEGIN;
  Object *object = descriptor;
  for (int i = 0; i < object->n_attributes; i++)
    free(object->attribute[i].bytes);
  free(object->json);
  free(object);
  return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_CHAR:
  case CUDNN_TYPE_BOOLEAN:
    return 1;
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
    return 8;
  default: /* enumerations, INT32, FLOAT */
    return 4;
  }
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *from) {
  BEGIN;
  Object *object = descriptor;
  size_t bytes = (size_t)count * size_of(type);
  if (object->is_finished || object->n_attributes == MOST_ATTRIBUTES)
    return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "attribute %d comes too late", (int)name);
  Attribute *a = &object->attribute[object->n_attributes++];
  *a = (Attribute){name, count, calloc(1, bytes + 1)};
  if (!a->bytes)
    return CUDNN_STATUS_ALLOC_FAILED;
  memcpy(a->bytes, from, bytes);
  return CUDNN_STATUS_SUCCESS;
}

const Attribute *attribute_find(const Object *object, cudnnBackendAttributeName_t name) {
  for (int i = 0; i < object->n_attributes; i++)
    if (object->attribute[i].name == name)
      return &object->attribute[i];
  return NULL;
}

int64_t attribute_int(const Object *object, cudnnBackendAttributeName_t name, int i) {
  const Attribute *a = attribute_find(object, name);
  int64_t value = 0;
  if (a && i < a->count)
    memcpy(&value, a->bytes + 8 * i, sizeof value);
  return value;
}

Object *attribute_object(const Object *object, cudnnBackendAttributeName_t name, int i) {
  return (Object *)(uintptr_t)attribute_int(object, name, i);
}

/* ---- finishing ---- */

static cudnnStatus_t finish_device(Object *device) {
  if (!attribute_find(device, CUDNN_ATTR_DEVICEPROP_DEVICE_ID))
    return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "the fake describes its own device only");
  device->json = plan_profile();
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_heuristic(Object *heuristic) {
  heuristic->graph = attribute_object(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
  return heuristic->graph ? CUDNN_STATUS_SUCCESS
                          : fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "heuristic of no graph");
}

static cudnnStatus_t finish_plan(Object *plan) {
  const Attribute *json = attribute_find(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  const Object *config = attribute_object(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
  if (!attribute_find(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE) &&
      !attribute_find(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP))
    abort(); /* as in cuDNN */
  if (json)
    return plan_read(plan, (const char *)json->bytes, (size_t)json->count);
  if (!config)
    return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a plan of neither text nor engine");
  if (getenv("FAKE_CUDNN_PLANS"))
    fprintf(stderr, "fake cuDNN: builds a plan\n");
  return plan_write(plan, config->graph);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  BEGIN;
  Object *object = descriptor;
  object->is_finished = true;
  switch (object->type) {
  case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
    return finish_device(object);
  case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    return finish_heuristic(object);
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    return finish_plan(object);
  default:
    return CUDNN_STATUS_SUCCESS;
  }
}

/* ---- reading ---- */

static cudnnStatus_t give_text(const Object *object, int64_t most, int64_t *count, char *to) {
  *count = (int64_t)strlen(object->json);
  if (most > 0)
    memcpy(to, object->json, (size_t)(most < *count ? most : *count));
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_number(int64_t value, int64_t *count, void *to) {
  *count = 1;
  memcpy(to, &value, sizeof value);
  return CUDNN_STATUS_SUCCESS;
}

/* Gives the engine of a configuration, or as many equal configurations of a heuristic as are asked
 * for. They refer to the graph that was asked about. */
static cudnnStatus_t give_objects(const Object *object, int64_t there, int64_t most, int64_t *count,
                                  void *to) {
  *count = most && most < there ? most : there;
  for (int64_t i = 0; i < *count && most; i++) {
    Object *made = NULL;
    memcpy(&made, (char *)to + 8 * i, sizeof made); /* the caller's own, to be filled */
    made->graph = object->graph;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most,
                                       int64_t *count, void *to) {
  BEGIN;
  const Object *object = descriptor;
  (void)type;
  *count = 0;
  switch (name) {
  case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
  case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
    return give_text(object, most, count, to);
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    return give_number(fake_number("FAKE_CUDNN_WORKSPACE", 0), count, to);
  case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    return give_number(0, count, to);
  case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    return give_objects(object, fake_number("FAKE_CUDNN_ENGINES", 1), most, count, to);
  case CUDNN_ATTR_ENGINECFG_ENGINE:
    return give_objects(object, 1, most, count, to);
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
  case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
    return CUDNN_STATUS_SUCCESS; /* none */
  default:
    return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "attribute %d is unknown to the fake",
                           (int)name);
  }
}

/* ---- running ---- */

typedef struct Call {
  FakeStream *slow; /* NULL: plans take no pretended time */
  FakeGraph graph;
  void *at[FAKE_MOST_TENSORS];
  void *workspace;
} Call;

/* Fills all of the workspace that the plan asked for, so that results are wrong if it is too small
 * or overlaps something else. */
static void work_graph(void *data) {
  const Call *call = data;
  memset(call->workspace, 0xa5, (size_t)fake_number("FAKE_CUDNN_WORKSPACE", 0));
  fake_graph_run(&call->graph, call->at);
  if (call->slow)
    call->slow->ahead += 1;
}

/* The address of the tensor with this uid; NULL if the variant pack has none. */
static void *pack_find(const Object *pack, int64_t uid) {
  const Attribute *uids = attribute_find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  for (int i = 0; uids && i < uids->count; i++)
    if (attribute_int(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == uid)
      return attribute_object(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
  return NULL;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_descriptor,
                                  cudnnBackendDescriptor_t pack) {
  BEGIN;
  const Object *plan = plan_descriptor;
  const char *fast = getenv("FAKE_CUDNN_FAST");
  Call call = {.graph = plan->computes,
               .workspace = attribute_object(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0)};
  for (int i = 0; i < call.graph.n_tensors; i++) {
    const FakeTensor *tensor = &call.graph.tensor[i];
    call.at[i] = tensor->is_virtual ? NULL : pack_find(pack, tensor->uid);
    if (!tensor->is_virtual && !call.at[i])
      return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "no operand %lld", (long long)tensor->uid);
    if ((uintptr_t)call.at[i] % 16 != 0)
      return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "an operand is not 16 bytes aligned");
  }
  if (!plan->is_finished || !handle->stream)
    return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "no plan or no stream");
  if (fast && !strstr(plan->json, fast))
    call.slow = handle->stream;
  handle->stream->add(handle->stream, work_graph, &call, sizeof call);
  return CUDNN_STATUS_SUCCESS;
}
