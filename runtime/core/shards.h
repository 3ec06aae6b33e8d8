/* Steps of several shards, each a batch of its own: global step g takes batches g*n .. g*n+n-1 of
 * the stream. Graph train_dp runs forward and back for every shard, the buckets are summed over all
 * shards, and one update reads the sums. A process has `local` of the shards in a row.
 *
 * Sums are by a balanced tree over the shards, ((0+1)+(2+3))+..., in f32. So a step has the same
 * bits whatever the number of processes. */
#ifndef AMPRT_SHARDS_H
#define AMPRT_SHARDS_H

#include "runtime/core/machine.h"
#include "runtime/parallel/group.h"

typedef struct AmprtShards {
  int64_t n;            /* of a step; 1: graph 0 trains, and nothing here is used */
  int64_t first, local; /* those of this process: first .. first+local-1 */
  AmprtMachine *machine;
  AmprtGroup *group; /* the processes that have the other shards; NULL: there are none */
  /* Sums of whole subtrees of the shards before the one that runs: carry[l] of 2^l of them. */
  float **carry;
  int levels;
} AmprtShards;

/* Sets n, first and local for process `rank` of `size`. AMPRT_USAGE if steps of this program cannot
 * have so many shards on so many processes; the text says which numbers fit. */
AmprtStatus amprt_shards_set(AmprtShards *shards, const AmprtProgram *program, int64_t n, int rank,
                             int size, AmprtError *error);
/* Once the machine is open: memory for the sums that are put aside. */
AmprtStatus amprt_shards_open(AmprtShards *shards, AmprtMachine *machine, AmprtGroup *group,
                              AmprtError *error);
void amprt_shards_close(AmprtShards *shards);
uint64_t amprt_shards_room(const AmprtShards *shards); /* bytes of that memory */
/* The size of all buckets of the graph, which begin at *at in its arena and have no gaps. */
uint64_t amprt_buckets_bytes(const AmprtGraph *graph, uint64_t *at);

/* After kernels 0 .. n_local-1 have run for local shard `index`, which is not the last: puts its
 * buckets aside. */
void amprt_shards_put_aside(AmprtShards *shards, int64_t index);
/* Runs kernels of train_dp for the last local shard, as amprt_machine_kernels does. As soon as a
 * bucket is ready, what was put aside is added to it, and it sets out to be summed over the group;
 * its sums have come before a kernel reads them. */
AmprtStatus amprt_shards_kernels(AmprtShards *shards, int first, int past, const AmprtHook *hook,
                                 int n_hooks, AmprtError *error);
/* Waits for all buckets that are on their way. */
AmprtStatus amprt_shards_settle(AmprtShards *shards, AmprtError *error);

#endif
