/* The processes that train one model together, started by a launcher (mpirun, srun, torchrun). All
 * functions are collective: every process of the group calls them in the same order. A process that
 * was started alone has no group.
 *
 * Sums are by a balanced tree over the ranks, ((0+1)+(2+3))+..., in f32, so their bits depend on
 * the number of ranks and on nothing else: not on where ranks run, nor on the size of a bucket.
 *
 * No function waits for ever: a thread that calls no library ends the process with status 3 and a
 * line that names the ranks waited for, once a wait has lasted --comm-timeout. */
#ifndef AMPRT_GROUP_H
#define AMPRT_GROUP_H

#include "runtime/amprt.h"
#include "runtime/base/status.h"

#include <stdbool.h>

typedef struct AmprtGroup AmprtGroup;

typedef struct AmprtGroupOptions {
  const char *mpi_library; /* --mpi-library: a file; "": the one that fits the launcher */
  double connect_timeout;  /* seconds until all processes must have come */
  double comm_timeout;     /* seconds that any later wait may last; 0: for ever */
} AmprtGroupOptions;

typedef struct AmprtGroupInfo {
  int rank, size;
  int local_rank, local_size; /* among the processes of this machine */
  int machines;
  const char *transport; /* "mpi: Open MPI 4.1.4", for people and the log; how sums are made is
                            added by amprt_group_arena: ", shared memory" */
} AmprtGroupInfo;

/* Logical processors, as the affinity masks of the ranks of this machine have them. A launcher may
 * bind each rank to a part of them (Open MPI binds to one core where there are two ranks at
 * most). */
typedef struct AmprtGroupCores {
  int mine;     /* that this rank may use */
  int together; /* that the ranks of this machine may use together */
  bool apart;   /* no other rank of this machine may use one of this rank's */
} AmprtGroupCores;

/* Reads the launcher's variables. *group is NULL if they say that this process is alone; then no
 * library is opened. Fails with AMPRT_ENV if the launcher and the library do not fit, or if
 * processes do not come: the text names both, or who is missing. */
AmprtStatus amprt_group_open(AmprtGroup **group, const AmprtGroupOptions *options,
                             AmprtError *error);
const AmprtGroupInfo *amprt_group_info(const AmprtGroup *group);

AmprtGroupCores amprt_group_cores(const AmprtGroup *group);

/* all[size][bytes] gets the `bytes` of every rank, in their order. */
AmprtStatus amprt_group_gather(AmprtGroup *group, const void *mine, void *all, size_t bytes,
                               AmprtError *error);

/* Memory for an arena, zeroed and aligned to 64 bytes, freed by close. Its bytes
 * shared_at .. shared_at+shared_bytes-1 hold the buckets; the ranks of one machine see these pages
 * of each other, and make sums in place. Called once at most, with the same numbers by all; a group
 * whose gradients are summed by other means needs no arena. AMPRT_ENV, besides a lack of memory:
 * there is no MPI (torchrun), and sums would have to travel. */
AmprtStatus amprt_group_arena(AmprtGroup *group, uint64_t bytes, uint64_t shared_at,
                              uint64_t shared_bytes, unsigned char **arena, AmprtError *error);

/* Begins to sum elements at..at+elements-1 (in f32, `at` in bytes) of the arena over all ranks.
 * `bucket` is its number in the step, 0 .. AMPRT_MAX_BUCKETS-1. Until amprt_group_wait has returned
 * for it, nobody may touch these elements. A failure is told by amprt_group_wait. */
enum { AMPRT_MAX_BUCKETS = 1024 };
void amprt_group_start(AmprtGroup *group, int bucket, uint64_t at, uint64_t elements);
/* Lets what was started go on; to be called between kernels. Costs nothing if nothing travels. */
void amprt_group_poll(AmprtGroup *group);
/* Waits until the sums of this bucket have taken its place. AMPRT_ENV: they never will, as another
 * process has ended or memory is short. */
AmprtStatus amprt_group_wait(AmprtGroup *group, int bucket, AmprtError *error);

/* For waits elsewhere, of a device: begin says what is waited for ("step 412"), end that it has
 * come. They are not collective. */
void amprt_group_watch_begin(AmprtGroup *group, const char *what);
void amprt_group_watch_end(AmprtGroup *group);

/* Seconds that this process has spent in amprt_group_wait so far. */
double amprt_group_waited(const AmprtGroup *group);

/* Ends the group, and waits until all have come here. `failed`: this process ends with an error,
 * and the others are ended, too; then it is not collective and may not return (with MPI it does
 * not, and the status is 3), so print before it what is to be read. NULL is fine. */
void amprt_group_close(AmprtGroup *group, bool failed);

/* to[i] = the sum of from[0..n-1][i] in the order of the tree; `to` may be any of from[]. */
void amprt_tree_sum(float *to, const float *const *from, int n, size_t elements);

#endif
