#include "runtime/core/shards.h"

#include "runtime/state/ckpt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_power_of_2(int64_t n) {
  return n > 0 && !(n & (n - 1));
}

/* Does a bucket join shards before the last local kernel? Then no shard can run without the others
 * beside it. */
static bool joins_in_mid_pass(const AmprtGraph *graph) {
  for (int i = 0; i < graph->n_buckets; i++)
    if (graph->bucket[i].reader < graph->n_local)
      return true;
  return false;
}

static AmprtStatus check(const AmprtProgram *program, int64_t n, int size, AmprtError *error) {
  const AmprtGraph *graph = amprt_graph_find(program, "train_dp");
  if (n % size || !is_power_of_2(n / size))
    return amprt_fail(error, AMPRT_USAGE,
                      "--shards=%" PRId64 ": with %d process%s a step can have %d, %d, %d, %d ... "
                      "shards: the number of processes times a power of two",
                      n, size, size > 1 ? "es" : "", size, 2 * size, 4 * size, 8 * size);
  if (n > AMPRT_MAX_SHARDS)
    return amprt_fail(error, AMPRT_USAGE, "--shards must be at most %d", AMPRT_MAX_SHARDS);
  if (amprt_parts(program) > 1)
    return amprt_fail(error, AMPRT_USAGE,
                      "this program was made with --accumulate=%" PRId64
                      ": its steps cannot have shards; make it without --accumulate, as "
                      "--shards=%" PRId64 " does the same without another build",
                      amprt_parts(program), n * amprt_parts(program));
  if (!graph)
    return amprt_fail(error, AMPRT_USAGE,
                      "this program's steps cannot have %" PRId64
                      " shards: it was made without graph @train_dp (ampcc --distributed)",
                      n);
  if (graph->n_buckets > AMPRT_MAX_BUCKETS)
    return amprt_fail(error, AMPRT_ENV, "this program has %d buckets, and room is for %d",
                      graph->n_buckets, AMPRT_MAX_BUCKETS);
  if (n > size && program->device)
    return amprt_fail(error, AMPRT_USAGE,
                      "--shards=%" PRId64 ": a GPU takes one shard of a step; start %" PRId64
                      " processes, one for each GPU, or use --device=cpu",
                      n, n);
  if (n > size && joins_in_mid_pass(graph))
    return amprt_fail(error, AMPRT_USAGE,
                      "--shards=%" PRId64 ": this program joins shards in the middle of a step "
                      "(synchronised batch normalisation), so each needs a process of its own: "
                      "start %" PRId64 " of them",
                      n, n);
  return AMPRT_OK;
}

AmprtStatus amprt_shards_set(AmprtShards *shards, const AmprtProgram *program, int64_t n, int rank,
                             int size, AmprtError *error) {
  AmprtStatus status = n > 1 ? check(program, n, size, error) : AMPRT_OK;
  if (!status)
    *shards = (AmprtShards){.n = n, .first = rank * (n / size), .local = n / size};
  return status;
}

uint64_t amprt_buckets_bytes(const AmprtGraph *graph, uint64_t *at) {
  const AmprtBucket *first = graph->bucket, *last = first + graph->n_buckets - 1;
  *at = graph->n_buckets ? first->at : 0;
  return graph->n_buckets ? last->at - first->at + last->elements * sizeof(float) : 0;
}

/* All buckets, as one range of floats. */
static float *range(const AmprtShards *shards, uint64_t *elements) {
  uint64_t at;
  *elements = amprt_buckets_bytes(shards->machine->train, &at) / sizeof(float);
  return (float *)(void *)(shards->machine->run.arena + at);
}

static void add(float *restrict to, const float *restrict from, uint64_t elements) {
  for (uint64_t i = 0; i < elements; i++)
    to[i] += from[i];
}

AmprtStatus amprt_shards_open(AmprtShards *shards, AmprtMachine *machine, AmprtGroup *group,
                              AmprtError *error) {
  uint64_t elements;
  shards->machine = machine;
  shards->group = group;
  if (shards->local < 2)
    return AMPRT_OK;
  range(shards, &elements);
  while ((int64_t)1 << shards->levels < shards->local)
    shards->levels++;
  shards->carry = calloc((size_t)shards->levels, sizeof *shards->carry);
  bool good = shards->carry != NULL;
  for (int i = 0; i < shards->levels && good; i++)
    good = (shards->carry[i] = malloc(elements * sizeof(float) + 1)) != NULL;
  return good ? AMPRT_OK
              : amprt_fail_memory(error, amprt_shards_room(shards), "the sums of several shards");
}

uint64_t amprt_shards_room(const AmprtShards *shards) {
  uint64_t elements = 0;
  if (shards->levels)
    range(shards, &elements);
  return (uint64_t)shards->levels * elements * sizeof(float);
}

void amprt_shards_close(AmprtShards *shards) {
  for (int i = 0; shards->carry && i < shards->levels; i++)
    free(shards->carry[i]);
  free(shards->carry);
  shards->carry = NULL;
}

/* As a binary counter carries: the shard's sums join carry[0], carry[1] ... as long as those hold
 * something, that is for the ones at the end of `index`, and stay on the level after them. */
void amprt_shards_put_aside(AmprtShards *shards, int64_t index) {
  uint64_t elements;
  float *sum = range(shards, &elements);
  int level = 0;
  for (; index >> level & 1; level++)
    add(sum, shards->carry[level], elements);
  memcpy(shards->carry[level], sum, elements * sizeof *sum);
}

/* The last local shard's bucket becomes the sum over all local shards. */
static void add_carries(AmprtShards *shards, const AmprtBucket *bucket) {
  const AmprtGraph *graph = shards->machine->train;
  uint64_t offset = (bucket->at - graph->bucket[0].at) / sizeof(float);
  float *sum = (float *)(void *)(shards->machine->run.arena + bucket->at);
  for (int level = 0; level < shards->levels; level++)
    add(sum, shards->carry[level] + offset, bucket->elements);
}

/* Before a kernel: the sums that it reads. */
static AmprtStatus wait_for_sums(AmprtShards *shards, int kernel, AmprtError *error) {
  const AmprtGraph *graph = shards->machine->train;
  AmprtStatus status = AMPRT_OK;
  for (int i = 0; i < graph->n_buckets && shards->group && !status; i++)
    if (graph->bucket[i].reader == kernel)
      status = amprt_group_wait(shards->group, i, error);
  return status;
}

/* After a kernel: the buckets that are ready now. */
static void send_buckets(AmprtShards *shards, int kernel) {
  const AmprtGraph *graph = shards->machine->train;
  for (int i = 0; i < graph->n_buckets; i++) {
    const AmprtBucket *bucket = &graph->bucket[i];
    if (bucket->ready != kernel)
      continue;
    add_carries(shards, bucket);
    if (shards->group)
      amprt_group_start(shards->group, i, bucket->at, bucket->elements);
  }
  if (shards->group)
    amprt_group_poll(shards->group);
}

AmprtStatus amprt_shards_kernels(AmprtShards *shards, int first, int past, const AmprtHook *hook,
                                 int n_hooks, AmprtError *error) {
  const AmprtGraph *graph = shards->machine->train;
  AmprtStatus status = AMPRT_OK;
  for (int kernel = first; kernel < past && !status; kernel++) {
    status = wait_for_sums(shards, kernel, error);
    if (!status)
      amprt_machine_kernels(shards->machine, graph, kernel, kernel + 1, hook, n_hooks);
    if (!status)
      send_buckets(shards, kernel);
  }
  return status ? status : amprt_machine_check(shards->machine, error);
}

AmprtStatus amprt_shards_settle(AmprtShards *shards, AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  for (int i = 0; i < shards->machine->train->n_buckets && shards->group && !status; i++)
    status = amprt_group_wait(shards->group, i, error);
  return status;
}
