/* What the processes of a run settle together, beside the sums of a step. All functions but the
 * first and the last are collective: every process calls them in the same order. For a process that
 * is alone they cost nothing. */
#ifndef AMPRT_RANKS_H
#define AMPRT_RANKS_H

#include "runtime/core/train.h"

/* Joins the other processes that a launcher has started, and makes this one's log silent unless its
 * rank is 0. */
AmprtStatus amprt_ranks_open(AmprtSession *session, AmprtError *error);
/* Without --threads: how many threads compute, the same number in all processes. Warns if the
 * launcher leaves much of a machine unused. */
AmprtStatus amprt_ranks_threads(AmprtSession *session, AmprtError *error);
/* Memory for the arena of the graphs that this run uses; *arena is NULL if the machine is to make
 * it. */
AmprtStatus amprt_ranks_arena(AmprtSession *session, unsigned char **arena, AmprtError *error);
/* What the device is to know of the others, in session->others. */
AmprtStatus amprt_ranks_device(AmprtSession *session, AmprtError *error);

/* `status` and *error are those of what each process has just done by itself. If one of them has
 * failed, all return the status of the lowest such rank; the error of the others is then empty. */
AmprtStatus amprt_ranks_agree(AmprtSession *session, AmprtStatus status, AmprtError *error);
/* Fails on all alike if a process is at another step or has another state than rank 0; at the
 * `start` of a run also if it runs another program, flags or data, which do not change later. */
AmprtStatus amprt_ranks_compare(AmprtSession *session, bool start, AmprtError *error);
/* The `bytes` of every process, by rank, for the caller to free; NULL and an error if that fails.
 * Only where there is a group. */
void *amprt_ranks_gather(AmprtSession *session, const void *mine, size_t bytes, AmprtError *error);
/* Sets session->stopped: the signal that wants one of them to stop, or 0. */
AmprtStatus amprt_ranks_stopped(AmprtSession *session, AmprtError *error);

/* Ends the group; `failed`: with an error of this process alone, which ends the others. */
void amprt_ranks_close(AmprtSession *session, bool failed);

#endif
