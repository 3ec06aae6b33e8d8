/* Plans of cuDNN: those that the compiler made, if this cuDNN and this device accept them, else
 * plans that are made anew.
 *
 * A plan may want more workspace here than the compiler reserved for it in the arena; how much
 * depends on the GPU, for example on its clocks. The plan is kept all the same, since another might
 * give other bits. One allocation beside the arena serves all such plans, as they run one after the
 * other. */
#include "runtime/cuda/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Loaded {
  const CudaPlan *plan;
  CudnnObject object;
  bool spares; /* its planned workspace is too small, so it uses `spare` */
} Loaded;

static const CudnnApi *api;
static cudnnHandle_t handle;
static CudnnObject device; /* the GPU as cuDNN describes it, for planning */
static char profile[4096]; /* that description as text */
static Loaded *loaded;
static int n_loaded, n_anew, n_spares;
static char why_anew[300]; /* the reason for the first of the n_anew plans that were made anew */
static void *spare;
static int64_t spare_bytes; /* the most that one of the n_spares plans wants */

static Loaded *find_loaded(const CudaPlan *plan) {
  for (int i = 0; i < n_loaded; i++)
    if (loaded[i].plan == plan)
      return &loaded[i];
  return NULL;
}

int64_t cuda_rt_plan_workspace(CudnnObject plan) {
  int64_t bytes = INT64_MAX, n = 0;
  api->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                &n, &bytes);
  return bytes;
}

/* The text with the object called `name` replaced by `with`. The caller frees it. NULL with the
 * reason in `why`. */
static char *replaced(const char *json, size_t bytes, const char *name, const char *with, char *why,
                      size_t size) {
  size_t from, past, length = strlen(with);
  if (!cuda_conv_json_object(json, bytes, name, &from, &past))
    return snprintf(why, size, "it is damaged"), NULL;
  char *text = malloc(bytes - (past - from) + length + 1);
  if (!text)
    return snprintf(why, size, "no memory for it"), NULL;
  memcpy(text, json, from);
  memcpy(text + from, with, length);
  memcpy(text + from + length, json + past, bytes - past);
  text[bytes - (past - from) + length] = '\0';
  return text;
}

/* cuDNN compares the device in a plan's text with the one that is here, even the version of the
 * driver, although plans depend on the capability alone (cudnn-aot.md 3.2). So the description in
 * the text is replaced by that of this machine. */
CudnnObject cuda_rt_plan_load(const CudaPlan *plan, const char *engine, char *why, size_t size) {
  char *text = replaced(plan->json, plan->json_bytes, "GPUProfile", profile, why, size);
  if (text && engine) {
    char *own = text;
    text = replaced(own, strlen(own), "engine", engine, why, size);
    free(own);
  }
  CudnnObject object =
      text ? cuda_conv_plan_load(api, handle, text, strlen(text), why, size) : NULL;
  free(text);
  return object;
}

/* Plans the op of the key again, without taking more workspace than was planned if that can be had.
 * The plan is written to text and read back, so that all plans are run in the same way. */
static CudnnObject make_anew(const CudaPlan *plan, char *why, size_t size) {
  ConvPlan made;
  ConvOp op;
  if (!cuda_rt_cublaslt(why, size)) /* without it cuDNN ends the process */
    return NULL;
  if (!cuda_conv_key_parse(plan->key, &op))
    return snprintf(why, size, "its key is damaged"), NULL;
  if (!cuda_conv_plan_within(api, &op, device, (int64_t)plan->workspace_bytes, &made, why, size))
    return NULL;
  int64_t bytes = cuda_conv_plan_json(api, made.object, NULL, 0);
  char *text = bytes > 0 ? malloc((size_t)bytes + 1) : NULL;
  CudnnObject object = NULL;
  if (!text || cuda_conv_plan_json(api, made.object, text, bytes) != bytes)
    snprintf(why, size, "its text cannot be had");
  else
    object = cuda_conv_plan_load(api, handle, text, (size_t)bytes, why, size);
  free(text);
  cuda_conv_plan_free(api, &made);
  return object;
}

static int open_plan(const CudaPlan *plan, bool strict) {
  char refused[300] = "", why[300] = "";
  const CudaFound *found = &cuda_rt_found;
  Loaded *to = &loaded[n_loaded];
  *to = (Loaded){.plan = plan};
  if (found->capability == found->part->capability)
    to->object = cuda_rt_plan_load(plan, NULL, refused, sizeof refused);
  else
    snprintf(refused, sizeof refused, "made for compute capability %d.%d, this is %d.%d",
             found->part->capability / 10, found->part->capability % 10, found->capability / 10,
             found->capability % 10);
  if (!to->object && strict)
    return cuda_rt_fail("cuDNN refuses the plan of %s (%s), and --strict-plans was given",
                        plan->key, refused);
  if (!to->object) {
    if (!n_anew++)
      snprintf(why_anew, sizeof why_anew, "%s", refused);
    to->object = make_anew(plan, why, sizeof why);
  }
  if (!to->object)
    return cuda_rt_fail("cuDNN refuses the plan of %s (%s) and has no other (%s)", plan->key,
                        refused, why);
  n_loaded++;
  int64_t workspace = cuda_rt_plan_workspace(to->object);
  if (workspace == INT64_MAX)
    return cuda_rt_fail("cuDNN does not say how much workspace %s wants", plan->key);
  to->spares = workspace > (int64_t)plan->workspace_bytes;
  n_spares += to->spares;
  if (to->spares && workspace > spare_bytes)
    spare_bytes = workspace;
  return 0;
}

/* Allocates the workspace of the plans that want more than was planned. */
static int open_spare(void) {
  size_t free_bytes = 0, all = 0;
  if (!n_spares)
    return 0;
  if (CUDA(cudaMemGetInfo, &free_bytes, &all))
    return -1;
  if ((uint64_t)spare_bytes > free_bytes)
    return cuda_rt_fail("plans of cuDNN want %.1f MB of workspace on %s, more than was planned, of "
                        "its memory %.1f MB are free: end other programs, or compile with "
                        "--max-memory or a smaller --batch-size",
                        (double)spare_bytes / 1e6, cuda_rt_found.device, (double)free_bytes / 1e6);
  if (CUDA(cudaMalloc, &spare, (size_t)spare_bytes))
    return -1;
  fprintf(stderr,
          "%d of %d plans of cuDNN want more workspace on this machine than was planned: "
          "%.1f MB were added for them\n",
          n_spares, n_loaded, (double)spare_bytes / 1e6);
  return 0;
}

/* Returns the number of launches that run plans. With `opens` it opens each of these plans once,
 * and returns -1 if one of them fails. */
static int each_plan(bool opens, bool strict) {
  const CudaPart *part = cuda_rt_found.part;
  int n = 0;
  for (int g = 0; g < part->n_graphs; g++)
    for (int i = 0; i < part->graph[g].n_launches; i++) {
      const CudaLaunch *launch = &part->graph[g].launch[i];
      if (launch->kind != CUDA_PLAN)
        continue;
      n++;
      if (opens && !find_loaded(launch->plan) && open_plan(launch->plan, strict))
        return -1;
    }
  return n;
}

static int open_cudnn(cudaStream_t stream) {
  char why[300] = "";
  api = cuda_rt_cudnn(why, sizeof why);
  if (!api)
    return cuda_rt_fail("%s", why);
  cudnnStatus_t status = api->cudnnCreate(&handle);
  if (status == CUDNN_STATUS_SUCCESS)
    status = api->cudnnSetStream(handle, stream);
  if (status != CUDNN_STATUS_SUCCESS)
    return cuda_rt_fail("cuDNN does not start: %s", api->cudnnGetErrorString(status));
  device = cuda_conv_device(api, NULL, 0, why, sizeof why);
  int64_t bytes = device ? cuda_conv_device_json(api, device, profile, sizeof profile - 1) : -1;
  if (bytes < 0 || bytes >= (int64_t)sizeof profile)
    return cuda_rt_fail("cuDNN does not describe the GPU: %s", why);
  return 0;
}

int cuda_rt_plans_open(cudaStream_t stream, bool strict) {
  int n = each_plan(false, strict);
  if (!n)
    return 0;
  loaded = calloc((size_t)n, sizeof *loaded);
  if (!loaded)
    return cuda_rt_fail("no memory for the plans");
  if (open_cudnn(stream) || each_plan(true, strict) < 0 || open_spare())
    return -1;
  if (n_anew)
    fprintf(stderr, "%d of %d plans of cuDNN were made anew for this machine: %s\n", n_anew,
            n_loaded, why_anew);
  return 0;
}

void cuda_rt_plans_close(void) {
  for (int i = 0; i < n_loaded; i++)
    api->cudnnBackendDestroyDescriptor(loaded[i].object);
  if (device)
    api->cudnnBackendDestroyDescriptor(device);
  if (handle)
    api->cudnnDestroy(handle);
  if (spare)
    cudaFree(spare);
  free(loaded);
  loaded = NULL;
  spare = NULL;
  spare_bytes = 0;
  device = NULL;
  handle = NULL;
  n_loaded = n_anew = n_spares = 0;
}

CudnnObject cuda_rt_plan_pack(const CudaLaunch *launch, void *workspace) {
  const CudaPlan *plan = launch->plan;
  void *at[CUDA_MAX_OPERANDS];
  char why[300] = "";
  if (!workspace)
    workspace = find_loaded(plan)->spares ? spare : cuda_rt_at(CUDA_ARENA, launch->workspace);
  for (int i = 0; i < plan->n_operands; i++)
    at[i] = cuda_rt_at(launch->operand[i].block, launch->operand[i].at);
  CudnnObject pack =
      cuda_conv_pack(api, plan->n_operands, plan->uid, at, workspace, why, sizeof why);
  if (!pack)
    cuda_rt_fail("cuDNN: %s: %s", plan->key, why);
  return pack;
}

const char *cuda_rt_plan_execute(CudnnObject plan, CudnnObject pack) {
  cudnnStatus_t status = api->cudnnBackendExecute(handle, plan, pack);
  return status == CUDNN_STATUS_SUCCESS ? NULL : api->cudnnGetErrorString(status);
}

int cuda_rt_plan_run(const CudaPlan *plan, CudnnObject pack) {
  const char *why = cuda_rt_plan_execute(find_loaded(plan)->object, pack);
  return why ? cuda_rt_fail("cuDNN failed in %s: %s", plan->key, why) : 0;
}

void cuda_rt_cudnn_free(CudnnObject object) {
  if (object)
    api->cudnnBackendDestroyDescriptor(object);
}
