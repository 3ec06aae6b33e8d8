/* Whole graphs, started without waiting for their end. A run takes these steps:
 *
 *   the host           fills one of two pinned buffers, and then goes on
 *   stream `copies`    copies the buffer to the staging place, while the run before still computes
 *   stream `stream`    copies the inputs from there to their ports; images that are bytes are
 *                      converted by a kernel instead
 *                      runs the graph: its kernels, then copies of the watched scalars to `kept`
 *                      copies `kept` to a slot of the pinned ring
 *   the host           collects the slot when its event says that it is filled
 *
 * The first run of a graph goes launch by launch, since libraries may allocate memory then. The
 * second run is captured, and from then on the graph is one CUDA graph. */
#include "runtime/core/machine.h"
#include "runtime/cuda/inner.h"

#include <string.h>

enum { MOST_GRAPHS = 8, BUFFERS = 2 };

typedef struct Watched {
  CudaPlace place;
  uint32_t bytes;
} Watched;

static cudaStream_t stream, copies;
static unsigned char *pinned[BUFFERS]; /* batches that the host has filled in */
static cudaEvent_t copied[BUFFERS];    /* this pinned buffer may be filled again */
static cudaEvent_t taken;              /* the staging place may be filled again */
static unsigned char *ring;            /* the scalars of AMPRT_AHEAD runs */
static cudaEvent_t ended[AMPRT_AHEAD]; /* this slot of the ring is filled */
static uint64_t n_started;             /* runs of all graphs */
static uint64_t n_kept,
    n_collected; /* runs of that graph: scalars kept, and collected by the host */
static cudaGraphExec_t captured[MOST_GRAPHS];
static int n_runs[MOST_GRAPHS];
static Watched watched[AMPRT_MAX_WATCHED];
static int n_watched, watched_graph;

static const AmprtGraph *graph_at(int graph) {
  return &cuda_rt_found.program->graph[graph];
}

static int make_event(cudaEvent_t *event) {
  return CUDA(cudaEventCreateWithFlags, event, cudaEventDisableTiming);
}

static int make_pinned(unsigned char **to, uint64_t bytes) {
  void *made = NULL;
  CUDA(cudaMallocHost, &made, bytes);
  *to = made;
  return made ? 0 : -1;
}

int cuda_rt_steps_open(cudaStream_t compute) {
  const AmprtProgram *program = cuda_rt_found.program;
  uint64_t staging = 1;
  if (program->n_graphs > MOST_GRAPHS)
    return cuda_rt_fail("this program is damaged: %d graphs", program->n_graphs);
  for (int i = 0; i < program->n_graphs; i++)
    if (cuda_rt_staging_bytes(graph_at(i)) > staging)
      staging = cuda_rt_staging_bytes(graph_at(i));
  stream = compute;
  CUDA(cudaStreamCreateWithFlags, &copies, cudaStreamNonBlocking);
  for (int i = 0; i < BUFFERS; i++) {
    make_pinned(&pinned[i], staging);
    make_event(&copied[i]);
  }
  make_event(&taken);
  make_pinned(&ring, AMPRT_AHEAD * CUDA_KEPT_BYTES);
  for (int i = 0; i < AMPRT_AHEAD; i++)
    make_event(&ended[i]);
  return cuda_rt_failed() ? -1 : 0;
}

static void free_event(cudaEvent_t *event) {
  if (*event)
    cudaEventDestroy(*event);
  *event = NULL;
}

static void free_pinned(unsigned char **at) {
  if (*at)
    cudaFreeHost(*at);
  *at = NULL;
}

void cuda_rt_steps_close(void) {
  for (int i = 0; i < MOST_GRAPHS; i++) {
    if (captured[i])
      cudaGraphExecDestroy(captured[i]);
    captured[i] = NULL;
    n_runs[i] = 0;
  }
  for (int i = 0; i < BUFFERS; i++) {
    free_pinned(&pinned[i]);
    free_event(&copied[i]);
  }
  for (int i = 0; i < AMPRT_AHEAD; i++)
    free_event(&ended[i]);
  free_event(&taken);
  free_pinned(&ring);
  if (copies)
    cudaStreamDestroy(copies);
  copies = NULL;
  n_started = n_kept = n_collected = 0;
  n_watched = 0;
}

/* From the batch through a pinned buffer to the staging place. */
static void send(unsigned char *buffer, uint64_t at, const void *data, uint64_t bytes) {
  if (cuda_rt_failed())
    return;
  memcpy(buffer + at, data, bytes);
  CUDA(cudaMemcpyAsync, cuda_rt_staging() + at, buffer + at, bytes, cudaMemcpyHostToDevice, copies);
}

/* Puts copies of the graph's inputs, from the host to their ports, into the two streams. */
static int bring_inputs(int graph, const AmprtInput *inputs) {
  const AmprtGraph *g = graph_at(graph);
  int buffer = (int)(n_started % BUFFERS);
  cuda_rt_wait_event(copied[buffer]);
  CUDA(cudaStreamWaitEvent, copies, taken, 0);
  uint64_t at = 0;
  for (int i = 0; i < g->n_inputs; i++) {
    const AmprtPort *port = &g->input[i];
    if (inputs[i].scaling) {
      send(pinned[buffer], at, inputs[i].data, (uint64_t)amprt_port_elements(port));
      send(pinned[buffer], at + cuda_rt_scaling_at(port), inputs[i].scaling,
           cuda_rt_scaling_bytes());
    } else if (inputs[i].data) {
      send(pinned[buffer], at, inputs[i].data, cuda_rt_port_bytes(port));
    }
    at = cuda_rt_staging_next(at, port);
  }
  CUDA(cudaEventRecord, copied[buffer], copies);
  CUDA(cudaStreamWaitEvent, stream, copied[buffer], 0);
  at = 0;
  for (int i = 0; i < g->n_inputs; i++) {
    const AmprtPort *port = &g->input[i];
    const unsigned char *from = cuda_rt_staging() + at;
    const void *scaling = from + cuda_rt_scaling_at(port);
    if (inputs[i].scaling)
      cuda_rt_launch_pixels(graph, from, (const AmprtScaling *)scaling, stream);
    else
      CUDA(cudaMemcpyAsync, cuda_rt_at(port->in_state ? CUDA_STATE : CUDA_ARENA, port->at), from,
           cuda_rt_port_bytes(port), cudaMemcpyDeviceToDevice, stream);
    at = cuda_rt_staging_next(at, port);
  }
  return CUDA(cudaEventRecord, taken, stream);
}

/* The first launch that belongs to kernel `kernel` or to a later one. */
static int launch_of(int graph, int kernel) {
  const CudaGraph *g = &cuda_rt_found.part->graph[graph];
  int i = 0;
  while (i < g->n_launches && g->launch[i].kernel < kernel)
    i++;
  return i;
}

/* Several kernels may share a launch, and one may have several. A bucket is started behind the
 * launches of the kernel that completes it, and waited for in front of the first launch that reads
 * it, in any case before this returns. */
int cuda_rt_run_kernels(int graph, int first, int past, cudaStream_t on) {
  const AmprtGraph *g = graph_at(graph);
  const CudaGraph *c = &cuda_rt_found.part->graph[graph];
  int started = -1, waited = -1; /* the last bucket of each kind */
  int end = launch_of(graph, past);
  for (int i = launch_of(graph, first), next; i < end && !cuda_rt_failed(); i = next) {
    int from = c->launch[i].kernel;
    next = launch_of(graph, from + 1);
    int to = next < c->n_launches ? c->launch[next].kernel : g->n_kernels;
    for (int b = waited + 1; b <= started; b++)
      if (g->bucket[b].reader < to && !cuda_rt_sum_wait(b, on))
        waited = b;
    cuda_rt_launch(graph, i, next, on);
    for (int b = 0; b < g->n_buckets; b++)
      if (g->bucket[b].ready >= from && g->bucket[b].ready < to && !cuda_rt_sum_start(graph, b, on))
        started = b;
  }
  if (started > waited)
    cuda_rt_sum_wait(started, on);
  return cuda_rt_failed() ? -1 : 0;
}

/* The part of a run that is captured. */
static int run_body(int graph) {
  cuda_rt_run_kernels(graph, 0, graph_at(graph)->n_kernels, stream);
  for (int i = 0; i < n_watched && graph == watched_graph; i++)
    CUDA(cudaMemcpyAsync, cuda_rt_kept() + 8 * i,
         cuda_rt_at(watched[i].place.block, watched[i].place.at), watched[i].bytes,
         cudaMemcpyDeviceToDevice, stream);
  return cuda_rt_failed() ? -1 : 0;
}

static int capture(int graph) {
  cudaGraph_t made = NULL;
  if (CUDA(cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal))
    return -1;
  run_body(graph);
  /* A capture must be ended after a failure too, so this call is not left to CUDA(). */
  cuda_rt_status(cudaStreamEndCapture(stream, &made), "cudaStreamEndCapture");
  CUDA(cudaGraphInstantiate, &captured[graph], made, 0);
  if (made)
    cudaGraphDestroy(made);
  return cuda_rt_failed() ? -1 : 0;
}

int cuda_rt_start(int graph, const AmprtInput *inputs) {
  if (bring_inputs(graph, inputs))
    return -1;
  if (n_runs[graph]++ == 0) {
    if (run_body(graph))
      return -1;
  } else if ((!captured[graph] && capture(graph)) ||
             CUDA(cudaGraphLaunch, captured[graph], stream)) {
    return -1;
  }
  n_started++;
  if (graph != watched_graph || !n_watched)
    return 0;
  if (n_kept - n_collected == AMPRT_AHEAD)
    return cuda_rt_fail("more than %d steps were started and not collected", AMPRT_AHEAD);
  int slot = (int)(n_kept % AMPRT_AHEAD);
  CUDA(cudaMemcpyAsync, ring + slot * CUDA_KEPT_BYTES, cuda_rt_kept(), CUDA_KEPT_BYTES,
       cudaMemcpyDeviceToHost, stream);
  n_kept++;
  return CUDA(cudaEventRecord, ended[slot], stream);
}

int cuda_rt_watch(int graph, const AmprtBlock *block, const uint64_t *at, const uint32_t *bytes,
                  int n) {
  if (cuda_rt_failed() || n > AMPRT_MAX_WATCHED || captured[graph])
    return cuda_rt_fail("scalars are named before the first step, at most %d", AMPRT_MAX_WATCHED);
  for (int i = 0; i < n; i++)
    watched[i] = (Watched){{at[i], block[i] == AMPRT_STATE ? CUDA_STATE : CUDA_ARENA}, bytes[i]};
  n_watched = n;
  watched_graph = graph;
  return 0;
}

int cuda_rt_collect(void *to) {
  int slot = (int)(n_collected % AMPRT_AHEAD);
  if (n_collected == n_kept)
    return cuda_rt_fail("no step is left to collect");
  if (cuda_rt_wait_event(ended[slot]))
    return -1;
  memcpy(to, ring + slot * CUDA_KEPT_BYTES, 8 * (size_t)n_watched);
  n_collected++;
  return 0;
}
