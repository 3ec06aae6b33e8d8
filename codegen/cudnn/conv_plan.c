/* From an operation graph to plans: heuristics, which engines will do, and plans as text. */
#include "codegen/cudnn/conv_graph.h"

#include <stdio.h>
#include <string.h>

static bool report(const Draft *draft, char *error, size_t size) {
  if (draft->failed)
    snprintf(error, size, "%s", draft->error);
  return !draft->failed;
}

static int64_t read_int(const CudnnApi *api, CudnnObject object, cudnnBackendAttributeName_t name) {
  int64_t value = -1, n = 0;
  if (api->cudnnBackendGetAttribute(object, name, CUDNN_TYPE_INT64, 1, &n, &value) !=
      CUDNN_STATUS_SUCCESS)
    return -1;
  return value;
}

CudnnObject cuda_conv_device(const CudnnApi *api, const char *json, int number, char *error,
                             size_t size) {
  Draft draft = {.api = api};
  int32_t id = number;
  CudnnObject device = cuda_draft_new(&draft, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  if (json)
    cuda_draft_set(&draft, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                   (int64_t)strlen(json) + 1, json);
  else
    cuda_draft_set(&draft, device, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
  cuda_draft_finish(&draft, device, "device description");
  if (report(&draft, error, size))
    cuda_draft_keep(&draft, device);
  cuda_draft_end(&draft);
  return draft.failed ? NULL : device;
}

/* ---- which engines will do ---- */

enum { NOTE_LIMIT = 32 };

/* The numerical notes of a configuration's engine as bits, its behaviour notes likewise in
 * *behaviour, and its number in *id. Of engines that say nothing, as those of fused forms on sm_90,
 * all bits are clear: what they do not say no filter can see. */
static uint32_t engine_notes(Draft *draft, CudnnObject config, uint32_t *behaviour, int64_t *id) {
  const CudnnApi *api = draft->api;
  CudnnObject engine = cuda_draft_new(draft, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendNumericalNote_t numerical[NOTE_LIMIT];
  cudnnBackendBehaviorNote_t behaves[NOTE_LIMIT];
  int64_t n = 0;
  uint32_t notes = 0;
  *behaviour = 0, *id = -1;
  if (draft->failed || api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                                                     &engine) != CUDNN_STATUS_SUCCESS)
    return 0;
  *id = read_int(api, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  if (api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                    CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n,
                                    numerical) == CUDNN_STATUS_SUCCESS)
    for (int64_t i = 0; i < n; i++)
      notes |= 1u << numerical[i];
  if (api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                    CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n,
                                    behaves) == CUDNN_STATUS_SUCCESS)
    for (int64_t i = 0; i < n; i++)
      *behaviour |= 1u << behaves[i];
  return notes;
}

/* NULL, or why an engine will not do. */
static const char *refusal(const ConvOp *op, uint32_t notes, uint32_t behaviour) {
  static const struct {
    cudnnBackendNumericalNote_t note;
    bool f32_only; /* in 16 bits, or where TF32 is allowed, it does no harm */
    const char *reason;
  } unwanted[] = {
      {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, false, "its engine gives other bits every time"},
      {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, false, "its engine sums in less than f32"},
      {CUDNN_NUMERICAL_NOTE_FFT, false, "its engine is less exact (FFT)"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD, false, "its engine is less exact (Winograd)"},
      {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, true, "its engine computes f32 as tf32"},
      {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, true, "its engine narrows its operands"},
  };
  for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
    if (notes >> unwanted[i].note & 1 &&
        (!unwanted[i].f32_only || (op->dtype == CONV_F32 && !op->tf32)))
      return unwanted[i].reason;
  if (behaviour >> CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION & 1)
    return "its engine compiles when it is loaded";
  return NULL;
}

/* ---- plans ---- */

enum { CONFIG_MOST = 64 }; /* cuDNN 9.19 offered at most 43 */

/* Configurations that the heuristic offers, best first, as objects of the draft. */
static int configs_of(Draft *draft, CudnnObject graph, CudnnObject device,
                      cudnnBackendHeurMode_t mode, CudnnObject *config, int most) {
  CudnnObject heuristic = cuda_draft_new(draft, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  cuda_draft_set_object(draft, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  cuda_draft_set(draft, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  cuda_draft_set_object(draft, heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  cuda_draft_finish(draft, heuristic, "heuristic");
  int64_t announced = 0, given = 0;
  if (draft->failed || draft->api->cudnnBackendGetAttribute(
                           heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                           0, &announced, NULL) != CUDNN_STATUS_SUCCESS)
    return 0;
  int n = announced < most ? (int)announced : most;
  for (int i = 0; i < n; i++)
    config[i] = cuda_draft_new(draft, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  /* only those that can run come, fewer than were announced */
  if (n == 0 || draft->failed ||
      draft->api->cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &given,
                                           config) != CUDNN_STATUS_SUCCESS)
    return 0;
  return given < n ? (int)given : n;
}

static bool plan_finish(const CudnnApi *api, CudnnObject config, CudnnObject device, ConvPlan *out,
                        char *error, size_t size) {
  Draft draft = {.api = api};
  CudnnObject plan = cuda_draft_new(&draft, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  cuda_draft_set_object(&draft, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  cuda_draft_set_object(&draft, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  cuda_draft_finish(&draft, plan, "plan");
  if (report(&draft, error, size)) {
    out->object = cuda_draft_keep(&draft, plan);
    out->workspace = read_int(api, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  }
  cuda_draft_end(&draft);
  return !draft.failed;
}

typedef struct Search {
  const ConvOp *op;
  CudnnObject device;
  ConvPlan *out;
  int most, found;
  int64_t enough; /* bytes of workspace: a plan that wants no more ends the search; -1: none does */
  char *error;    /* why the last one that does not suit does not */
  size_t error_bytes;
} Search;

static bool is_over(const Search *s) {
  return s->found == s->most || (s->found && s->out[s->found - 1].workspace <= s->enough);
}

/* Adds the plans of one heuristic that suit. */
static void search_mode(Search *s, Draft *draft, CudnnObject graph, cudnnBackendHeurMode_t mode) {
  CudnnObject config[CONFIG_MOST];
  int n = configs_of(draft, graph, s->device, mode, config, CONFIG_MOST);
  for (int i = 0; i < n && !is_over(s); i++) {
    uint32_t behaviour;
    ConvPlan plan = {0};
    plan.notes = engine_notes(draft, config[i], &behaviour, &plan.engine);
    const char *reason = refusal(s->op, plan.notes, behaviour);
    if (reason)
      snprintf(s->error, s->error_bytes, "%s", reason);
    else if (plan_finish(draft->api, config[i], s->device, &plan, s->error, s->error_bytes))
      s->out[s->found++] = plan;
  }
}

static int search(const CudnnApi *api, Search *s) {
  static const cudnnBackendHeurMode_t mode[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  Draft draft = {.api = api};
  snprintf(s->error, s->error_bytes, "no engine of cuDNN takes it");
  CudnnObject graph = cuda_conv_graph(&draft, s->op);
  for (int i = 0; i < 2 && !is_over(s) && !draft.failed; i++)
    search_mode(s, &draft, graph, mode[i]);
  if (s->found == 0)
    report(&draft, s->error, s->error_bytes);
  cuda_draft_end(&draft);
  return s->found;
}

int cuda_conv_plans(const CudnnApi *api, const ConvOp *op, CudnnObject device, ConvPlan *out,
                    int most, char *error, size_t size) {
  Search s = {op, device, out, .most = most, .enough = -1, .error = error, .error_bytes = size};
  return search(api, &s);
}

bool cuda_conv_plan_within(const CudnnApi *api, const ConvOp *op, CudnnObject device,
                           int64_t workspace, ConvPlan *out, char *error, size_t size) {
  ConvPlan built[2 * CONFIG_MOST];
  Search s = {op,
              device,
              built,
              .most = 2 * CONFIG_MOST,
              .enough = workspace,
              .error = error,
              .error_bytes = size};
  int n = search(api, &s);
  if (!n)
    return false;
  int chosen = built[n - 1].workspace <= workspace ? n - 1 : 0;
  *out = built[chosen];
  for (int i = 0; i < n; i++)
    if (i != chosen)
      cuda_conv_plan_free(api, &built[i]);
  return true;
}

void cuda_conv_plan_free(const CudnnApi *api, ConvPlan *plan) {
  if (plan->object)
    api->cudnnBackendDestroyDescriptor(plan->object);
  plan->object = NULL;
}

/* ---- running ---- */

CudnnObject cuda_conv_plan_load(const CudnnApi *api, cudnnHandle_t handle, const char *json,
                                size_t bytes, char *why, size_t size) {
  Draft draft = {.api = api};
  CudnnObject plan = cuda_draft_new(&draft, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  cuda_draft_set(&draft, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  cuda_draft_set(&draft, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 (int64_t)bytes, json);
  cuda_draft_finish(&draft, plan, "plan");
  if (report(&draft, why, size))
    cuda_draft_keep(&draft, plan);
  cuda_draft_end(&draft);
  return draft.failed ? NULL : plan;
}

CudnnObject cuda_conv_pack(const CudnnApi *api, int n, const int64_t *uid, void *const *at,
                           void *workspace, char *why, size_t size) {
  Draft draft = {.api = api};
  CudnnObject pack = cuda_draft_new(&draft, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  cuda_draft_set(&draft, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uid);
  cuda_draft_set(&draft, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at);
  cuda_draft_set(&draft, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                 &workspace);
  cuda_draft_finish(&draft, pack, "operands");
  if (report(&draft, why, size))
    cuda_draft_keep(&draft, pack);
  cuda_draft_end(&draft);
  return draft.failed ? NULL : pack;
}

/* ---- text ---- */

static int64_t read_text(const CudnnApi *api, CudnnObject object, cudnnBackendAttributeName_t name,
                         char *to, int64_t size) {
  int64_t n = 0, given = 0;
  if (api->cudnnBackendGetAttribute(object, name, CUDNN_TYPE_CHAR, 0, &n, NULL) !=
      CUDNN_STATUS_SUCCESS)
    return -1;
  if (size >= n && api->cudnnBackendGetAttribute(object, name, CUDNN_TYPE_CHAR, n, &given, to) !=
                       CUDNN_STATUS_SUCCESS)
    return -1;
  return n;
}

int64_t cuda_conv_plan_json(const CudnnApi *api, CudnnObject plan, char *to, int64_t size) {
  return read_text(api, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, to, size);
}

int64_t cuda_conv_device_json(const CudnnApi *api, CudnnObject device, char *to, int64_t size) {
  return read_text(api, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, to, size);
}

bool cuda_conv_json_object(const char *json, size_t bytes, const char *name, size_t *from,
                           size_t *past) {
  const size_t len = strlen(name);
  int depth = 0;
  for (size_t i = 0; i + len + 4 <= bytes; i++) {
    if (json[i] != '"' || memcmp(json + i + 1, name, len) != 0 ||
        memcmp(json + i + 1 + len, "\":{", 3) != 0)
      continue;
    *from = i + len + 3;
    for (size_t at = *from; at < bytes; at++) { /* its strings have no braces */
      depth += (json[at] == '{') - (json[at] == '}');
      if (depth == 0) {
        *past = at + 1;
        return true;
      }
    }
    return false;
  }
  return false;
}
