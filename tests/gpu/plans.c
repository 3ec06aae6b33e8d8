/* Runs cuDNN's plans by themselves, with the true library on a GPU. It takes keys of convolutions
 * (conv_op.h) and tells of every plan that suits a key whether its results are the same bytes in
 * each run, and how far they are from what plain loops compute.
 *
 *   plans RUNS PART PARTS <keys     a key a line; of these those whose number is PART modulo PARTS
 *
 * Loops are slow: where an operand has more than MOST_EXACT elements, plans are compared with
 * themselves alone, at most SEEN_BYTES of each result. One line of JSON for each plan:
 *
 *   {"key":"relu_wgrad f16 ...","plan":0,"engine":{...},"workspace":0,
 *    "results":[{"name":"dw","equal":true,"apart":0.0002},...]}
 *
 * apart: |plan - loops| / |loops| in the Euclidean norm. Exit status 3 where CUDA or cuDNN
 * fails. */
#include "runtime/cuda/inner.h"
#include "tests/cuda/fake/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLANS = 12, MOST_EXACT = 1 << 22, SEEN_BYTES = 1 << 22, JSON_BYTES = 1 << 20 };

typedef struct Operand {
  char name[16];
  const FakeTensor *tensor;
  int64_t n; /* elements */
  size_t bytes;
  bool is_result;
  void *gpu, *given, *exact; /* exact: what the loops made of it */
  void *first, *seen;        /* a result of the first run and of the last, at most SEEN_BYTES */
} Operand;

static const CudnnApi *api;
static cudnnHandle_t handle;
static CudnnObject device;
static cudaStream_t stream;

static void demand(bool good, const char *what, const char *why) {
  if (good)
    return;
  fprintf(stderr, "plans: %s: %s\n", what, why);
  exit(3);
}

static void cuda(cudaError_t status, const char *what) {
  demand(status == cudaSuccess, what, cudaGetErrorString(status));
}

static void finish(const char *what) {
  cuda(cudaStreamSynchronize(stream), what);
}

static void copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  cuda(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
  finish("a copy");
}

static void *zeroed(size_t bytes) {
  void *p = calloc(1, bytes + 1);
  demand(p != NULL, "memory", "there is none");
  return p;
}

/* A normal deviate, near enough: the sum of four uniform numbers. */
static float normal(void) {
  static uint32_t bits = 1;
  float sum = 0;
  for (int i = 0; i < 4; i++) {
    bits = bits * 1664525u + 1013904223u;
    sum += (float)(bits >> 8) / (1 << 24) - .5f;
  }
  return sum * 1.732f;
}

static const char *const names_of[CONV_FORM_COUNT] = {
#define CONV_FORM(id, name, build, operands) [CONV_##id] = operands,
#include "codegen/cudnn/conv_forms.def"
};

static bool is_one_of(const char *name, const char *const *set) {
  for (; *set; set++)
    if (strcmp(name, *set) == 0)
      return true;
  return false;
}

static bool is_result(const char *name) {
  static const char *const results[] = {"dx", "dw", "sum", "squares", "dscale", "dbias",
                                        "a",  "b",  "c",   "y",       "out",    NULL};
  return is_one_of(name, results);
}

/* Numbers like those of a training. */
static float number(const char *name, const ConvOp *op) {
  static const char *const around_one[] = {"scale", "scale2", "invstd", NULL};
  if (is_one_of(name, around_one))
    return 1 + .2f * normal();
  if (strcmp(name, "w") == 0)
    return normal() / sqrtf((float)(op->r * op->s * op->c / op->groups));
  return strcmp(name, "mean") == 0 || strncmp(name, "bias", 4) == 0 ? .3f * normal() : normal();
}

static void operand_fill(Operand *o, const ConvOp *op, bool is_exact) {
  int64_t block = is_exact ? o->n : o->n < 1 << 20 ? o->n : 1 << 20;
  float *numbers = zeroed((size_t)block * sizeof *numbers);
  size_t size = o->bytes / (size_t)o->n, some = (size_t)block * size;
  for (int64_t i = 0; i < block; i++)
    numbers[i] = number(o->name, op);
  o->given = zeroed(some);
  amprt_from_f32(o->tensor->type, numbers, o->given, (size_t)block);
  free(numbers);
  for (size_t at = 0; at < o->bytes; at += some)
    copy((char *)o->gpu + at, o->given, o->bytes - at < some ? o->bytes - at : some,
         cudaMemcpyHostToDevice);
}

static size_t seen_bytes(const Operand *o) {
  return o->bytes < SEEN_BYTES ? o->bytes : SEEN_BYTES;
}

static int operands_open(Operand *operand, const ConvOp *op, const FakeGraph *graph,
                         bool *is_exact) {
  int n = cuda_conv_operands(op->form);
  const char *names = names_of[op->form];
  *is_exact = true;
  for (int i = 0; i < n; i++) {
    Operand *o = &operand[i];
    *o = (Operand){.n = 1};
    int length = (int)strcspn(names, " ");
    snprintf(o->name, sizeof o->name, "%.*s", length, names);
    names += length + (names[length] == ' ');
    for (int t = 0; t < graph->n_tensors; t++)
      if (graph->tensor[t].uid == i + 1)
        o->tensor = &graph->tensor[t];
    demand(o->tensor != NULL, o->name, "the plan's text has no such tensor");
    o->n = o->tensor->n * o->tensor->h * o->tensor->w * o->tensor->c;
    o->bytes = (size_t)o->n * amprt_dtype_size(o->tensor->type);
    o->is_result = is_result(o->name);
    *is_exact = *is_exact && o->n <= MOST_EXACT;
  }
  for (int i = 0; i < n; i++) {
    Operand *o = &operand[i];
    cuda(cudaMalloc(&o->gpu, o->bytes), "cudaMalloc");
    if (o->is_result) {
      o->first = zeroed(seen_bytes(o));
      o->seen = zeroed(seen_bytes(o));
      o->exact = *is_exact ? zeroed(o->bytes) : NULL;
    } else {
      operand_fill(o, op, *is_exact);
    }
  }
  return n;
}

static void operands_close(Operand *operand, int n) {
  for (int i = 0; i < n; i++) {
    cudaFree(operand[i].gpu);
    free(operand[i].given);
    free(operand[i].exact);
    free(operand[i].first);
    free(operand[i].seen);
  }
}

static void compute_exact(Operand *operand, int n, const FakeGraph *graph) {
  void *at[FAKE_MOST_TENSORS] = {NULL};
  for (int t = 0; t < graph->n_tensors; t++) {
    int64_t uid = graph->tensor[t].uid; /* those of operands are 1 to n */
    if (uid <= n)
      at[t] = operand[uid - 1].is_result ? operand[uid - 1].exact : operand[uid - 1].given;
  }
  fake_graph_run(graph, at);
}

/* Fills results and workspace with the byte `poison`, and runs the plan once. Returns NULL, or why
 * that failed. */
static const char *execute(CudnnObject plan, Operand *operand, int n, void *workspace,
                           size_t workspace_bytes, int poison) {
  char error[300];
  int64_t uid[CONV_MAX_OPERANDS];
  void *at[CONV_MAX_OPERANDS];
  for (int i = 0; i < n; i++) {
    uid[i] = i + 1, at[i] = operand[i].gpu;
    if (operand[i].is_result)
      cuda(cudaMemsetAsync(operand[i].gpu, poison, operand[i].bytes, stream), "cudaMemsetAsync");
  }
  cuda(cudaMemsetAsync(workspace, poison, workspace_bytes, stream), "cudaMemsetAsync");
  CudnnObject pack = cuda_conv_pack(api, n, uid, at, workspace, error, sizeof error);
  demand(pack != NULL, "operands", error);
  cudnnStatus_t status = api->cudnnBackendExecute(handle, plan, pack);
  finish("a plan");
  api->cudnnBackendDestroyDescriptor(pack);
  return status == CUDNN_STATUS_SUCCESS ? NULL : api->cudnnGetErrorString(status);
}

static double apart(const Operand *o) {
  double square = 0, size = 0;
  float *a = zeroed((size_t)o->n * sizeof *a), *b = zeroed((size_t)o->n * sizeof *b);
  void *all = zeroed(o->bytes);
  copy(all, o->gpu, o->bytes, cudaMemcpyDeviceToHost);
  amprt_to_f32(o->tensor->type, all, a, (size_t)o->n);
  amprt_to_f32(o->tensor->type, o->exact, b, (size_t)o->n);
  for (int64_t i = 0; i < o->n; i++) {
    square += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    size += (double)b[i] * b[i];
  }
  free(all);
  free(a);
  free(b);
  return sqrt(square / size);
}

static void report(const char *key, int number, const char *json, size_t bytes,
                   int64_t workspace_bytes, CudnnObject plan, Operand *operand, int n, int runs,
                   bool is_exact) {
  bool equal[CONV_MAX_OPERANDS];
  size_t from = 0, past = 0;
  void *workspace;
  const char *why = NULL;
  memset(equal, true, sizeof equal);
  cuda(cudaMalloc(&workspace, (size_t)workspace_bytes + 256), "cudaMalloc");
  static const int poison[] = {0, 0x3c, 0xff}; /* zeros, numbers around 1 in f16, NaNs */
  for (int run = 0; run < runs && !why; run++) {
    why = execute(plan, operand, n, workspace, (size_t)workspace_bytes, poison[run % 3]);
    for (int i = 0; i < n && !why; i++) {
      Operand *o = &operand[i];
      if (!o->is_result)
        continue;
      copy(run ? o->seen : o->first, o->gpu, seen_bytes(o), cudaMemcpyDeviceToHost);
      equal[i] = equal[i] && (!run || memcmp(o->seen, o->first, seen_bytes(o)) == 0);
    }
  }
  cuda_conv_json_object(json, bytes, "engine", &from, &past);
  printf("{\"key\":\"%s\",\"plan\":%d,\"engine\":%.*s,\"workspace\":%lld,", key, number,
         (int)(past - from), json + from, (long long)workspace_bytes);
  printf(why ? "\"failed\":\"%s\"}\n" : "\"results\":[", why);
  const char *comma = "";
  for (int i = 0; i < n && !why; i++)
    if (operand[i].is_result) {
      printf("%s{\"name\":\"%s\",\"equal\":%s", comma, operand[i].name,
             equal[i] ? "true" : "false");
      if (is_exact) {
        double distance = apart(&operand[i]);
        printf(isfinite(distance) ? ",\"apart\":%.3g" : ",\"apart\":1e99", distance);
      }
      printf("}");
      comma = ",";
    }
  printf("%s", why ? "" : "]}\n");
  fflush(stdout);
  cudaFree(workspace);
}

static void plans_of(const char *key, const ConvOp *op, int runs) {
  static char json[JSON_BYTES], error[300];
  ConvPlan plan[MOST_PLANS];
  Operand operand[CONV_MAX_OPERANDS];
  int n_operands = 0, n = cuda_conv_plans(api, op, device, plan, MOST_PLANS, error, sizeof error);
  bool is_exact = false;
  FakeGraph graph;
  if (!n)
    printf("{\"key\":\"%s\",\"plan\":0,\"failed\":\"%s\"}\n", key, error);
  for (int i = 0; i < n; i++) {
    int64_t bytes = cuda_conv_plan_json(api, plan[i].object, json, JSON_BYTES - 1);
    demand(bytes > 0 && bytes < JSON_BYTES, key, "no text of its plan");
    json[bytes] = '\0';
    if (i == 0) {
      demand(fake_graph_read(&graph, json, (size_t)bytes, error, sizeof error), key, error);
      n_operands = operands_open(operand, op, &graph, &is_exact);
      if (is_exact)
        compute_exact(operand, n_operands, &graph);
    }
    CudnnObject loaded = cuda_conv_plan_load(api, handle, json, (size_t)bytes, error, sizeof error);
    demand(loaded != NULL, key, error);
    report(key, i, json, (size_t)bytes, plan[i].workspace, loaded, operand, n_operands, runs,
           is_exact);
    api->cudnnBackendDestroyDescriptor(loaded);
    cuda_conv_plan_free(api, &plan[i]);
  }
  operands_close(operand, n_operands);
}

int main(int argc, char **argv) {
  char line[CONV_KEY_BYTES + 2], error[300];
  demand(argc == 4, "usage", "plans RUNS PART PARTS <keys");
  int runs = atoi(argv[1]), part = atoi(argv[2]), parts = atoi(argv[3]);
  api = cuda_rt_cudnn(error, sizeof error);
  demand(api && cuda_rt_cublaslt(error, sizeof error), "libraries", error);
  cuda(cudaSetDevice(0), "cudaSetDevice");
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  demand(api->cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS, "cudnnCreate", "it failed");
  demand(api->cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS, "cudnnSetStream",
         "it failed");
  device = cuda_conv_device(api, NULL, 0, error, sizeof error);
  demand(device != NULL, "the GPU's description", error);
  for (int i = 0; fgets(line, sizeof line, stdin); i++) {
    ConvOp op;
    line[strcspn(line, "\n")] = '\0';
    if (i % parts != part)
      continue;
    demand(cuda_conv_key_parse(line, &op), line, "no key");
    plans_of(line, &op, runs);
  }
  return 0;
}
