/* Sums over the GPUs of several processes. Buckets travel on a stream of their own, one after the
 * other, beside the kernels that follow:
 *
 *   stream `compute`   kernel `ready` | record |     kernels ...        | wait | kernel `reader`
 *   stream `travel`                    wait | NCCL sums the bucket | record
 *
 * Both streams are captured together, so that a step stays one CUDA graph.
 *
 * In AMPRT_ORDER_PLACEMENT each rank owns a slice of the bucket. All send each other their parts of
 * the slices (ncclSend, ncclRecv), the owner adds them in the order of amprt_tree_sum, and
 * ncclAllGather brings the sums to all. As slices are whole groups of 16 elements, up to 16 for
 * each rank are left over. Everybody sends those to everybody, who adds them too.
 *
 * No call of NCCL blocks, and nothing here waits in a call that does: a rank that has died leaves
 * the kernels of the others waiting, and only ncclCommGetAsyncError says so. */
#include "runtime/cuda/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GROUP = 16, RING_SINCE = 22400 };
enum { CONNECT_TIMEOUT = 300, CLOSE_TIMEOUT = 20 }; /* seconds */

static const NcclApi *nccl;
static AmprtRanks ranks;
static ncclComm_t comm; /* NULL: this process sums over nobody */
static cudaStream_t travel;
static cudaEvent_t ready, *done; /* done: one per bucket */
static int n_done;
static double limit;   /* seconds that a call may take */
static bool is_ending; /* what a GPU still does may not take longer either */

/* ---- how a bucket is shared out ---- */

typedef struct Slices {
  uint64_t each, rest; /* elements of each rank's slice, and behind all slices */
} Slices;

static Slices slices_of(const AmprtBucket *bucket, int size) {
  uint64_t each = bucket->elements / GROUP / (uint64_t)size * GROUP;
  return (Slices){each, bucket->elements - each * (uint64_t)size};
}

static const AmprtGraph *summing_graph(void) {
  const AmprtProgram *program = cuda_rt_found.program;
  for (int i = 0; i < program->n_graphs; i++)
    if (program->graph[i].n_buckets)
      return &program->graph[i];
  return NULL;
}

uint64_t cuda_rt_arrived_bytes(const AmprtRanks *of) {
  const AmprtGraph *graph = summing_graph();
  uint64_t most = GROUP; /* for the comparison of versions */
  for (int i = 0; graph && of->order == AMPRT_ORDER_PLACEMENT && i < graph->n_buckets; i++) {
    Slices s = slices_of(&graph->bucket[i], of->size);
    most = s.each + s.rest > most ? s.each + s.rest : most;
  }
  return most * (uint64_t)of->size * sizeof(float);
}

/* ---- calls that do not block ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_briefly(void) {
  nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* Ends what the GPUs still wait for, so that this process can end. */
static void abort_comm(void) {
  if (comm)
    nccl->ncclCommAbort(comm);
  comm = NULL;
}

static int fail(const char *function, ncclResult_t status) {
  const char *last = comm ? nccl->ncclGetLastError(comm) : NULL;
  int n = last ? (int)strcspn(last, "\n") : 0;
  cuda_rt_fail("NCCL failed on rank %d: %s: %s%s%.*s%s", ranks.rank, function,
               nccl->ncclGetErrorString(status), n ? " (" : "", n, last ? last : "", n ? ")" : "");
  abort_comm();
  return -1;
}

/* Waits until the communicator has done what `function` has begun. */
static int settle(const char *function, ncclResult_t status) {
  double end = now() + limit;
  while (status == ncclInProgress) {
    pause_briefly();
    ncclResult_t asked = nccl->ncclCommGetAsyncError(comm, &status);
    if (asked != ncclSuccess)
      return fail("ncclCommGetAsyncError", asked);
    if (status == ncclInProgress && now() > end) {
      cuda_rt_fail("NCCL: rank %d has waited %g s for the others in %s", ranks.rank, limit,
                   function);
      abort_comm();
      return -1;
    }
  }
  return status == ncclSuccess ? 0 : fail(function, status);
}

/* NCCL(ncclAllReduce, ...) calls the function unless something has failed: 0 or -1. */
#define NCCL(function, ...)                                                                        \
  (cuda_rt_failed() || !comm ? -1 : settle(#function, nccl->function(__VA_ARGS__)))

/* Waits for an event, or else for all of a stream. */
static int wait_for(cudaEvent_t event, cudaStream_t stream) {
  if (!comm)
    return event ? CUDA(cudaEventSynchronize, event) : CUDA(cudaStreamSynchronize, stream);
  for (double end = now() + limit; !cuda_rt_failed();) {
    cudaError_t status = event ? cudaEventQuery(event) : cudaStreamQuery(stream);
    if (status != cudaErrorNotReady)
      return cuda_rt_status(status, event ? "cudaEventQuery" : "cudaStreamQuery");
    ncclResult_t state = ncclSuccess, asked = nccl->ncclCommGetAsyncError(comm, &state);
    if (asked != ncclSuccess || (state != ncclSuccess && state != ncclInProgress))
      return fail("a sum over ranks", asked != ncclSuccess ? asked : state);
    if (is_ending && now() > end)
      return cuda_rt_fail("rank %d has waited %g s for sums that never came", ranks.rank, limit);
    pause_briefly();
  }
  return -1;
}

int cuda_rt_wait_event(cudaEvent_t event) {
  return wait_for(event, NULL);
}

int cuda_rt_wait_stream(cudaStream_t stream) {
  return wait_for(NULL, stream);
}

/* ---- opening ---- */

int cuda_rt_make_id(unsigned char *id) {
  char why[300];
  ncclUniqueId made;
  cuda_rt_forgive();
  nccl = cuda_rt_nccl(why, sizeof why);
  if (!nccl)
    return cuda_rt_fail("training on several GPUs needs NCCL: %s", why);
  ncclResult_t status = nccl->ncclGetUniqueId(&made);
  if (status != ncclSuccess)
    return cuda_rt_fail("NCCL failed: ncclGetUniqueId: %s", nccl->ncclGetErrorString(status));
  _Static_assert(sizeof made == AMPRT_ID_BYTES, "amprt.h");
  memcpy(id, &made, sizeof made);
  return 0;
}

static int check_buckets(const AmprtGraph *graph) {
  for (int i = 0; i < graph->n_buckets; i++) {
    const AmprtBucket *b = &graph->bucket[i];
    if (b->at % 64 || b->elements % GROUP || b->ready < 0 || b->reader <= b->ready ||
        b->reader > graph->n_kernels || b->at + b->elements * sizeof(float) > graph->arena_bytes)
      return cuda_rt_fail("this program is damaged: bucket %d of graph %s", i, graph->name);
  }
  return 0;
}

/* A ring adds in an order that the machines alone decide. Other algorithms of NCCL do not promise
 * that (NVIDIA/nccl issues 1497 and 2360). */
static void choose_algorithm(int version) {
  const char *given = getenv("NCCL_ALGO");
  if (ranks.order != AMPRT_ORDER_RUN)
    return;
  if (!given || !*given)
    setenv("NCCL_ALGO", version < RING_SINCE ? "Ring" : "allreduce:ring", 1);
  else if (ranks.rank == 0)
    fprintf(stderr,
            "NCCL_ALGO=%s is used as it is; whether another run has the same bits depends "
            "on it\n",
            given);
}

/* Every rank must have the same version: kernels and messages of others may not fit together. */
static int compare_versions(int mine) {
  int *on_gpu = (int *)(void *)cuda_rt_arrived();
  int *all = calloc((size_t)ranks.size, sizeof *all), wrong = 0;
  if (!all)
    return cuda_rt_fail("no memory for %d ranks", ranks.size);
  CUDA(cudaMemcpyAsync, on_gpu + ranks.rank, &mine, sizeof mine, cudaMemcpyHostToDevice, travel);
  NCCL(ncclAllGather, on_gpu + ranks.rank, on_gpu, 1, ncclInt32, comm, travel);
  cuda_rt_wait_stream(travel);
  CUDA(cudaMemcpyAsync, all, on_gpu, (size_t)ranks.size * sizeof *all, cudaMemcpyDeviceToHost,
       travel);
  cuda_rt_wait_stream(travel);
  while (!cuda_rt_failed() && wrong < ranks.size && all[wrong] == all[0])
    wrong++;
  if (!cuda_rt_failed() && wrong < ranks.size)
    cuda_rt_fail("rank %d has NCCL %d.%d.%d and rank 0 has %d.%d.%d: all must have the same", wrong,
                 all[wrong] / 10000, all[wrong] / 100 % 100, all[wrong] % 100, all[0] / 10000,
                 all[0] / 100 % 100, all[0] % 100);
  free(all);
  return cuda_rt_failed() ? -1 : 0;
}

int cuda_rt_ranks_open(const AmprtRanks *given) {
  const AmprtGraph *graph = summing_graph();
  NcclConfig config = {.size = sizeof config,
                       .magic = nccl_config_magic,
                       .version = NCCL_CONFIG_VERSION,
                       .blocking = 0,
                       .cluster = NCCL_CONFIG_NONE,
                       .min_blocks = NCCL_CONFIG_NONE,
                       .max_blocks = NCCL_CONFIG_NONE,
                       .split_share = NCCL_CONFIG_NONE};
  char why[300];
  ncclUniqueId id;
  int version = 0;
  if (!graph || check_buckets(graph))
    return cuda_rt_fail("this program has no graph that sums over ranks");
  nccl = cuda_rt_nccl(why, sizeof why);
  if (!nccl)
    return cuda_rt_fail("training on several GPUs needs NCCL: %s", why);
  ranks = *given;
  ranks.id = NULL; /* not kept */
  limit = ranks.timeout > 0 ? ranks.timeout : CONNECT_TIMEOUT;
  memcpy(&id, given->id, sizeof id);
  nccl->ncclGetVersion(&version);
  choose_algorithm(version);
  done = calloc((size_t)graph->n_buckets, sizeof *done);
  if (!done)
    return cuda_rt_fail("no memory for %d buckets", graph->n_buckets);
  n_done = graph->n_buckets;
  CUDA(cudaStreamCreateWithFlags, &travel, cudaStreamNonBlocking);
  CUDA(cudaEventCreateWithFlags, &ready, cudaEventDisableTiming);
  for (int i = 0; i < n_done; i++)
    CUDA(cudaEventCreateWithFlags, &done[i], cudaEventDisableTiming);
  if (cuda_rt_failed())
    return -1;
  ncclResult_t status = nccl->ncclCommInitRankConfig(&comm, ranks.size, id, ranks.rank, &config);
  if (settle("ncclCommInitRankConfig", status))
    return -1;
  return compare_versions(version);
}

void cuda_rt_ranks_end(cudaStream_t compute) {
  is_ending = comm != NULL;
  limit = limit < CLOSE_TIMEOUT ? limit : CLOSE_TIMEOUT;
  cuda_rt_wait_stream(compute);
  if (cuda_rt_failed())
    abort_comm();
  cudaStreamSynchronize(compute); /* also after a failure */
}

void cuda_rt_ranks_close(void) {
  if (comm && !NCCL(ncclCommFinalize, comm) && comm)
    nccl->ncclCommDestroy(comm);
  is_ending = false;
  comm = NULL;
  for (int i = 0; i < n_done; i++)
    if (done[i])
      cudaEventDestroy(done[i]);
  free(done);
  if (ready)
    cudaEventDestroy(ready);
  if (travel)
    cudaStreamDestroy(travel);
  done = NULL;
  n_done = 0;
  ready = NULL;
  travel = NULL;
}

/* ---- sums ---- */

static int send_slices(float *bucket, Slices s) {
  float *arrived = (float *)(void *)cuda_rt_arrived();
  uint64_t row = s.each + s.rest, rest = s.each * (uint64_t)ranks.size;
  if (cuda_rt_failed() || !comm)
    return -1;
  ncclResult_t status = nccl->ncclGroupStart();
  for (int r = 0; r < ranks.size; r++) {
    float *from = arrived + (uint64_t)r * row;
    if (r == ranks.rank)
      continue;
    if (s.each && status == ncclSuccess)
      status = nccl->ncclSend(bucket + (uint64_t)r * s.each, s.each, ncclFloat32, r, comm, travel);
    if (s.each && status == ncclSuccess)
      status = nccl->ncclRecv(from, s.each, ncclFloat32, r, comm, travel);
    if (s.rest && status == ncclSuccess)
      status = nccl->ncclSend(bucket + rest, s.rest, ncclFloat32, r, comm, travel);
    if (s.rest && status == ncclSuccess)
      status = nccl->ncclRecv(from + s.each, s.rest, ncclFloat32, r, comm, travel);
  }
  ncclResult_t end = nccl->ncclGroupEnd(); /* also after a failure */
  return settle("ncclSend and ncclRecv", status == ncclSuccess ? end : status);
}

static int sum_in_tree_order(int graph, float *bucket, Slices s) {
  float *mine = bucket + (uint64_t)ranks.rank * s.each;
  AmpTree args = {.slice = mine,
                  .rest = bucket + (uint64_t)ranks.size * s.each,
                  .arrived = (const float *)(const void *)cuda_rt_arrived(),
                  .n_slice = (int64_t)s.each,
                  .n_rest = (int64_t)s.rest,
                  .rank = ranks.rank,
                  .ranks = ranks.size};
  if (send_slices(bucket, s) || cuda_rt_launch_ranks(graph, &args, travel))
    return -1;
  return s.each ? NCCL(ncclAllGather, mine, bucket, s.each, ncclFloat32, comm, travel) : 0;
}

int cuda_rt_sum_start(int graph, int bucket, cudaStream_t compute) {
  const AmprtBucket *b = &cuda_rt_found.program->graph[graph].bucket[bucket];
  float *at = (float *)(void *)cuda_rt_at(CUDA_ARENA, b->at);
  if (!comm && !cuda_rt_failed())
    return cuda_rt_fail("this program was not opened to sum over ranks");
  CUDA(cudaEventRecord, ready, compute);
  CUDA(cudaStreamWaitEvent, travel, ready, 0);
  if (ranks.order == AMPRT_ORDER_PLACEMENT)
    sum_in_tree_order(graph, at, slices_of(b, ranks.size));
  else
    NCCL(ncclAllReduce, at, at, b->elements, ncclFloat32, ncclSum, comm, travel);
  return CUDA(cudaEventRecord, done[bucket], travel);
}

int cuda_rt_sum_wait(int bucket, cudaStream_t compute) {
  return CUDA(cudaStreamWaitEvent, compute, done[bucket], 0);
}
