#include "tests/runtime/device.h"

#include "runtime/base/convert.h"
#include "runtime/core/machine.h"
#include "tests/runtime/team.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 8, POISON = 0xa5 };

typedef struct Pending { /* a run that was started and is not done yet */
  int graph;
  void *input[MOST_INPUTS]; /* copies */
} Pending;

static const AmprtProgram *program;
static AmprtRun run;
static Pending pending[AMPRT_AHEAD];
static int n_pending;
static void *last_input[MOST_INPUTS]; /* of the last start, in its graph's order */
static int last_graph;
static unsigned char kept[AMPRT_AHEAD][AMPRT_MAX_WATCHED][8]; /* oldest first */
static int n_kept;
static struct {
  AmprtBlock block;
  uint64_t at;
  uint32_t bytes;
} watched[AMPRT_MAX_WATCHED];
static int n_watched, watched_graph;
static char failure[128];
static bool in_team;

int test_device_lag, test_device_pixels;
const char *test_device_fails;
int test_device_fails_at;

static int fail(const char *text) {
  if (!*failure)
    snprintf(failure, sizeof failure, "%s", text);
  return -1;
}

/* Every function of the device begins with this. */
static bool refuses(const char *function) {
  bool counts = test_device_fails && !strcmp(test_device_fails, function);
  if (counts && --test_device_fails_at == 0)
    fail("the test device fails, as it was told");
  return *failure;
}

static unsigned char *at(AmprtBlock block, uint64_t offset) {
  return (block == AMPRT_STATE ? run.state : run.arena) + offset;
}

static int open(const AmprtProgram *of, uint64_t state_bytes, uint64_t arena_bytes, int strict,
                const AmprtRanks *ranks) {
  *failure = '\0';
  program = of;
  n_pending = n_kept = n_watched = 0;
  run.state = calloc(state_bytes + 1, 1);
  run.arena = aligned_alloc(64, (arena_bytes / 64 + 1) * 64);
  if (!run.state || !run.arena)
    return fail("no memory");
  memset(run.arena, POISON, arena_bytes); /* it may hold anything between steps */
  in_team = ranks != NULL;
  if (ranks && team_open(ranks, arena_bytes))
    return fail("no shared memory");
  if (strict)
    return fail("the test device has no plans to be strict about");
  return refuses("open") ? -1 : 0;
}

static void run_kernels(int graph, int first, int past) {
  const AmprtGraph *g = &program->graph[graph];
  for (int i = first; i < past; i++)
    g->run[i](&run, g->kernel[i].args);
}

static int make_id(unsigned char *id) {
  team_make_id(id);
  return 0;
}

/* Between the kernels of a shard and those that read sums. */
static void sum_buckets(const AmprtGraph *graph) {
  for (int i = 0; i < graph->n_buckets; i++)
    team_sum((float *)(void *)(run.arena + graph->bucket[i].at), graph->bucket[i].elements);
}

static void keep(void) {
  if (n_kept == AMPRT_AHEAD)
    fail("too many steps were started and not collected");
  for (int i = 0; i < n_watched && !*failure; i++)
    memcpy(kept[n_kept][i], at(watched[i].block, watched[i].at), watched[i].bytes);
  n_kept++;
}

static void do_oldest(void) {
  Pending *p = &pending[0];
  const AmprtGraph *graph = &program->graph[p->graph];
  for (int i = 0; i < graph->n_inputs; i++) {
    const AmprtPort *port = &graph->input[i];
    size_t bytes = (size_t)amprt_port_elements(port) * amprt_dtype_size((AmprtDType)port->dtype);
    memcpy(at(port->in_state ? AMPRT_STATE : AMPRT_ARENA, port->at), p->input[i], bytes);
    free(p->input[i]);
  }
  int local = in_team && graph->n_buckets ? graph->n_local : 0;
  run_kernels(p->graph, 0, local);
  if (local)
    sum_buckets(graph);
  run_kernels(p->graph, local, graph->n_kernels);
  if (p->graph == watched_graph && n_watched)
    keep();
  memmove(pending, pending + 1, (size_t)--n_pending * sizeof *pending);
}

static void do_all_but(int n) {
  while (n_pending > n)
    do_oldest();
}

static void forget_inputs(void) {
  for (int i = 0; i < MOST_INPUTS; i++) {
    free(last_input[i]);
    last_input[i] = NULL;
  }
}

static void close(void) {
  for (; n_pending; n_pending--)
    for (int i = 0; i < program->graph[pending[n_pending - 1].graph].n_inputs; i++)
      free(pending[n_pending - 1].input[i]);
  forget_inputs();
  team_close();
  free(run.state);
  free(run.arena);
  run = (AmprtRun){0};
}

static int write(AmprtBlock block, uint64_t offset, const void *from, uint64_t bytes) {
  if (refuses("write"))
    return -1;
  do_all_but(0);
  memcpy(at(block, offset), from, bytes);
  return 0;
}

static int read(AmprtBlock block, uint64_t offset, void *to, uint64_t bytes) {
  if (refuses("read"))
    return -1;
  do_all_but(0);
  memcpy(to, at(block, offset), bytes);
  return 0;
}

/* A copy in place of what is there; NULL: no memory. */
static void *replace(void **at, const void *from, size_t bytes) {
  void *copy = malloc(bytes + 1);
  if (copy)
    memcpy(copy, from, bytes);
  free(*at);
  return *at = copy;
}

/* Replaces bytes by the numbers that they stand for. */
static int make_of_pixels(const AmprtPort *port, const AmprtInput *from, void **to) {
  size_t n = (size_t)amprt_port_elements(port), each = n / (size_t)program->batch_size;
  size_t channels = (size_t)program->channels;
  float *image = malloc(n * sizeof *image);
  if (!image || !replace(to, image, n * amprt_dtype_size((AmprtDType)port->dtype)))
    return fail("no memory");
  for (size_t i = 0; i < n; i++) {
    AmprtScaling s = from->scaling[i / each * channels + i % channels];
    image[i] = (float)((((const unsigned char *)from->data)[i] - s.offset) / s.scale);
  }
  amprt_from_f32(port->dtype, image, *to, n);
  free(image);
  return 0;
}

static int take_input(int i, const AmprtPort *port, const AmprtInput *from, void **to) {
  size_t bytes = (size_t)amprt_port_elements(port) * amprt_dtype_size((AmprtDType)port->dtype);
  if (!from->data && !last_input[i])
    return fail("an input is to be as in a start that was not there");
  if (from->scaling && !port->pixels)
    return fail("a port that is not made of pixels was given some");
  *to = NULL;
  test_device_pixels += from->scaling != NULL;
  if (from->scaling && make_of_pixels(port, from, &last_input[i]))
    return -1;
  if ((from->data && !from->scaling && !replace(&last_input[i], from->data, bytes)) ||
      !replace(to, last_input[i], bytes))
    return fail("no memory");
  return 0;
}

static int start(int graph, const AmprtInput *inputs) {
  const AmprtGraph *g = &program->graph[graph];
  if (refuses("start"))
    return -1;
  do_all_but(AMPRT_AHEAD - 1);
  Pending *p = &pending[n_pending];
  if (graph != last_graph)
    forget_inputs();
  p->graph = last_graph = graph;
  for (int i = 0; i < g->n_inputs; i++)
    if (take_input(i, &g->input[i], &inputs[i], &p->input[i]))
      return -1;
  n_pending++;
  do_all_but(test_device_lag);
  return 0;
}

static int watch(int graph, const AmprtBlock *block, const uint64_t *offset, const uint32_t *bytes,
                 int n) {
  if (refuses("watch") || n > AMPRT_MAX_WATCHED)
    return fail("too many scalars");
  for (int i = 0; i < n; i++) {
    watched[i].block = block[i];
    watched[i].at = offset[i];
    watched[i].bytes = bytes[i];
  }
  n_watched = n;
  watched_graph = graph;
  return 0;
}

static int collect(void *to) {
  if (refuses("collect"))
    return -1;
  while (!n_kept && n_pending)
    do_oldest();
  if (!n_kept)
    return fail("no step is left to collect");
  memcpy(to, kept[0], sizeof kept[0]);
  memmove(kept[0], kept[1], (size_t)--n_kept * sizeof kept[0]);
  return 0;
}

static int kernels(int graph, int first, int past, double *seconds) {
  if (refuses("kernels"))
    return -1;
  do_all_but(0);
  run_kernels(graph, first, past);
  for (int i = 0; seconds && i < past - first; i++)
    seconds[i] += 1e-3;
  return 0;
}

static const char *error(void) {
  return *failure ? failure : NULL;
}

const AmprtDevice test_device = {.make_id = make_id,
                                 .open = open,
                                 .close = close,
                                 .write = write,
                                 .read = read,
                                 .start = start,
                                 .watch = watch,
                                 .collect = collect,
                                 .kernels = kernels,
                                 .error = error};
