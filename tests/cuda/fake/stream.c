#include "stream.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { MOST_BRANCHES = 8 };

/* One of: work; attempt; in a captured graph, a wait until `position` pieces of work of `branch`
 * are done. */
typedef struct Work {
  struct Work *next;
  FakeWork *work;
  FakeTry *attempt;
  void *data;
  int branch;
  uint64_t position;
} Work;

typedef struct List {
  Work *first, **end;
  uint64_t n; /* that were ever added */
} List;

struct CUstream_st {
  FakeStream base; /* the first member, as libraries see only this one */
  List list;
  uint64_t done; /* pieces of its work since the start; list.n were added */
  struct CUgraph_st *capture;
  int branch; /* of that graph */
  struct CUstream_st *next;
};

struct CUevent_st {
  cudaStream_t stream; /* NULL: never recorded */
  /* the event has happened when this many pieces of the stream's work are done */
  uint64_t position;
  double time;
  struct CUgraph_st *capture; /* recorded while this was captured: the same of a branch of it */
  int branch;
};

/* Every stream that is captured becomes a branch, the one that began the first. */
struct CUgraph_st {
  List list[MOST_BRANCHES];
  int n_branches;
  uint64_t joined[MOST_BRANCHES]; /* how much of a branch the first one waits for */
};

static struct CUstream_st *streams;

/* ---- lists of work ---- */

static void *copy_of(const void *data, size_t bytes) {
  void *copy = malloc(bytes + 1);
  if (!copy)
    abort();
  if (bytes)
    memcpy(copy, data, bytes);
  return copy;
}

static void append(List *list, Work what, const void *data, size_t bytes) {
  Work *w = calloc(1, sizeof *w);
  if (!w)
    abort();
  *w = what;
  w->data = copy_of(data, bytes);
  if (!list->end)
    list->end = &list->first;
  *list->end = w;
  list->end = &w->next;
  list->n++;
}

static void free_list(List *list) {
  for (Work *w = list->first, *next; w; w = next) {
    next = w->next;
    free(w->data);
    free(w);
  }
  *list = (List){0};
}

/* False if the work must be tried again. */
static bool run(const Work *w) {
  bool ended = true;
  if (fake_sticky != cudaSuccess)
    return true;
  memory_open();
  if (w->work)
    w->work(w->data);
  else
    ended = w->attempt(w->data);
  memory_close();
  return ended;
}

/* Other processes must come first. */
static void wait_a_little(void) {
  nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* ---- streams ---- */

static void add(FakeStream *stream, FakeWork *work, const void *data, size_t bytes);
static void add_try(FakeStream *stream, FakeTry *work, const void *data, size_t bytes);
static int is_capturing(const FakeStream *stream);
static const FakeStream base = {.add = add, .add_try = add_try, .is_capturing = is_capturing};
static struct CUstream_st default_stream = {
    .base = {.add = add, .add_try = add_try, .is_capturing = is_capturing}};

static cudaStream_t resolve(cudaStream_t stream) {
  return stream ? stream : &default_stream;
}

/* Works until `until` pieces are done; false if one of them must wait for another process. */
static bool drain(cudaStream_t stream, uint64_t until) {
  while (stream->done < until && stream->list.first) {
    Work *w = stream->list.first;
    if (!run(w))
      return false;
    stream->list.first = w->next;
    if (!w->next)
      stream->list.end = &stream->list.first;
    stream->done++;
    free(w->data);
    free(w);
  }
  return true;
}

static void finish(cudaStream_t stream, uint64_t until) {
  while (!drain(stream, until))
    wait_a_little();
}

void stream_drain_all(void) {
  finish(&default_stream, UINT64_MAX);
  for (cudaStream_t s = streams; s; s = s->next)
    finish(s, UINT64_MAX);
}

int stream_is_capturing(void) {
  for (cudaStream_t s = streams; s; s = s->next)
    if (s->capture)
      return 1;
  return 0;
}

static int is_capturing(const FakeStream *stream) {
  return ((const struct CUstream_st *)(const void *)stream)->capture != NULL;
}

static void add_work(cudaStream_t s, Work what, const void *data, size_t bytes) {
  append(s->capture ? &s->capture->list[s->branch] : &s->list, what, data, bytes);
  if (!s->capture && fake_number("FAKE_CUDA_EAGER", 0))
    drain(s, s->list.n);
}

static void add(FakeStream *stream, FakeWork *work, const void *data, size_t bytes) {
  add_work((cudaStream_t)(void *)stream, (Work){.work = work}, data, bytes);
}

static void add_try(FakeStream *stream, FakeTry *work, const void *data, size_t bytes) {
  add_work((cudaStream_t)(void *)stream, (Work){.attempt = work}, data, bytes);
}

void stream_add(cudaStream_t stream, FakeWork *work, const void *data, size_t bytes) {
  add(&resolve(stream)->base, work, data, bytes);
}

#define BEGIN                                                                                      \
  FAKE_FAILS(cudaError_t, cudaErrorUnknown);                                                       \
  if (fake_sticky != cudaSuccess)                                                                  \
  return fake_sticky
/* Waiting is forbidden while a graph is captured. */
#define BEGIN_WAIT                                                                                 \
  BEGIN;                                                                                           \
  if (stream_is_capturing())                                                                       \
  return cudaErrorStreamCaptureUnsupported

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned flags) {
  BEGIN;
  (void)flags;
  cudaStream_t s = calloc(1, sizeof *s);
  if (!s)
    abort();
  s->base = base;
  s->next = streams;
  streams = s;
  *made = s;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  BEGIN;
  stream_drain_all();
  cudaStream_t *at = &streams;
  while (*at && *at != stream)
    at = &(*at)->next;
  if (!*at)
    return cudaErrorInvalidResourceHandle;
  *at = stream->next;
  free_list(&stream->list);
  free(stream);
  return fake_sticky;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  BEGIN_WAIT;
  cudaStream_t s = resolve(stream);
  finish(s, s->list.n);
  return fake_sticky;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  BEGIN_WAIT;
  cudaStream_t s = resolve(stream);
  bool ended = drain(s, s->list.n);
  return fake_sticky != cudaSuccess || ended ? fake_sticky : cudaErrorNotReady;
}

/* ---- events ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work_stamp(void *data) {
  cudaEvent_t event = *(cudaEvent_t *)data;
  event->time = now() + event->stream->base.ahead;
}

static int try_wait(void *data) {
  const struct CUevent_st *event = data;
  return drain(event->stream, event->position);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *made, unsigned flags) {
  BEGIN;
  (void)flags;
  *made = calloc(1, sizeof **made);
  return *made ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  BEGIN;
  stream_drain_all();
  free(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  BEGIN;
  cudaStream_t s = resolve(stream);
  event->capture = s->capture;
  event->branch = s->branch;
  event->stream = s;
  if (!s->capture)
    stream_add(s, work_stamp, &event, sizeof event);
  event->position = s->capture ? s->capture->list[s->branch].n : s->list.n;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  BEGIN_WAIT;
  if (event->capture)
    return cudaErrorCapturedEvent;
  if (event->stream)
    finish(event->stream, event->position);
  return fake_sticky;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  BEGIN_WAIT;
  if (event->capture)
    return cudaErrorCapturedEvent;
  bool ended = !event->stream || drain(event->stream, event->position);
  return fake_sticky != cudaSuccess || ended ? fake_sticky : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  BEGIN;
  if (!from->stream || !to->stream)
    return cudaErrorInvalidResourceHandle;
  if (from->stream->done < from->position || to->stream->done < to->position)
    return cudaErrorNotReady;
  *ms = (float)((to->time - from->time) * 1e3);
  return cudaSuccess;
}

/* A stream that waits for an event of a capture is captured from then on. */
static cudaError_t wait_captured(cudaStream_t s, cudaEvent_t event) {
  struct CUgraph_st *graph = event->capture;
  if (!graph || (s->capture && s->capture != graph) || graph->n_branches == MOST_BRANCHES)
    return cudaErrorStreamCaptureIsolation;
  if (!s->capture) {
    s->capture = graph;
    s->branch = graph->n_branches++;
  }
  if (s->branch == 0 && graph->joined[event->branch] < event->position)
    graph->joined[event->branch] = event->position;
  append(&graph->list[s->branch], (Work){.branch = event->branch, .position = event->position},
         NULL, 0);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  BEGIN;
  (void)flags;
  cudaStream_t s = resolve(stream);
  if (event->capture || s->capture)
    return wait_captured(s, event);
  if (event->stream) /* a copy of the event as it is now, since it may be recorded again */
    add_try(&s->base, try_wait, event, sizeof *event);
  return cudaSuccess;
}

/* ---- graphs ---- */

struct CUgraphExec_st {
  struct CUgraph_st graph;
};

typedef struct Launched { /* how far a run of a graph is */
  const struct CUgraph_st *graph;
  const Work *at[MOST_BRANCHES];
  uint64_t done[MOST_BRANCHES];
} Launched;

static bool advance(Launched *run_of, int branch, uint64_t until);

/* Branches beside the first run as late as they can, when that waits for them; or as early as they
 * can. */
static bool reached(Launched *l, int branch, const Work *w) {
  return branch == 0 ? advance(l, w->branch, w->position) : l->done[w->branch] >= w->position;
}

static void hurry(Launched *l) {
  for (int b = 1; b < l->graph->n_branches; b++)
    advance(l, b, UINT64_MAX);
}

static bool advance(Launched *l, int branch, uint64_t until) {
  bool eager = branch == 0 && fake_number("FAKE_CUDA_EAGER", 0);
  while (l->done[branch] < until && l->at[branch]) {
    const Work *w = l->at[branch];
    if (eager)
      hurry(l);
    if (w->work || w->attempt ? !run(w) : !reached(l, branch, w))
      return false;
    l->at[branch] = w->next;
    l->done[branch]++;
  }
  return true;
}

static int try_graph(void *data) {
  Launched *l = data;
  return advance(l, 0, UINT64_MAX);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  BEGIN;
  (void)mode;
  if (!stream || stream->capture)
    return cudaErrorStreamCaptureUnsupported;
  stream->capture = calloc(1, sizeof *stream->capture);
  if (!stream->capture)
    return cudaErrorMemoryAllocation;
  stream->capture->n_branches = 1;
  stream->branch = 0;
  return cudaSuccess;
}

static void free_graph(struct CUgraph_st *graph) {
  for (int b = 0; b < graph->n_branches; b++)
    free_list(&graph->list[b]);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  struct CUgraph_st *captured = stream->capture;
  *graph = NULL;
  for (cudaStream_t s = streams; s; s = s->next)
    if (s->capture == captured)
      s->capture = NULL;
  bool joined = captured != NULL;
  for (int b = 1; captured && b < captured->n_branches; b++)
    joined &= captured->joined[b] == captured->list[b].n;
  int failure = 0;
  static int calls;
  if (fake_sticky != cudaSuccess)
    failure = (int)fake_sticky;
  else if (!(failure = fake_failure(__func__, &calls, cudaErrorUnknown)) && !joined)
    failure = captured ? cudaErrorStreamCaptureUnjoined : cudaErrorStreamCaptureUnsupported;
  if (failure && captured) {
    free_graph(captured);
    free(captured);
  }
  *graph = failure ? NULL : captured;
  return (cudaError_t)failure;
}

/* Takes the work out of the graph, which is instantiated only once in these programs. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph,
                                 unsigned long long flags) {
  BEGIN;
  (void)flags;
  *made = calloc(1, sizeof **made);
  if (!*made)
    abort();
  (*made)->graph = *graph;
  *graph = (struct CUgraph_st){0};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  BEGIN;
  Launched launched = {.graph = &exec->graph};
  for (int b = 0; b < exec->graph.n_branches; b++)
    launched.at[b] = exec->graph.list[b].first;
  add_try(&resolve(stream)->base, try_graph, &launched, sizeof launched);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  BEGIN;
  stream_drain_all();
  free_graph(&exec->graph);
  free(exec);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  BEGIN;
  free_graph(graph);
  free(graph);
  return cudaSuccess;
}
