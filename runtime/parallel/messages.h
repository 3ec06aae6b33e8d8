/* The part of a sum that travels between machines as messages of MPI, and gathers over MPI. Nothing
 * here waits: MPI libraries move bytes only while they are called, so whoever waits polls. */
#ifndef AMPRT_MESSAGES_H
#define AMPRT_MESSAGES_H

#include "runtime/parallel/mpi.h"
#include "runtime/parallel/tree.h"

/* So many sums travel at once. The others queue: memory is that of the arrivals of these. */
enum { AMPRT_TRAVELLING = 4 };

typedef struct AmprtTravel AmprtTravel; /* one sum on its way; used again by later ones */

typedef struct AmprtMessages {
  const AmprtMpi *mpi;
  AmprtPlace place;
  AmprtTravel *travel[AMPRT_TRAVELLING];
} AmprtMessages;

AmprtStatus amprt_messages_open(AmprtMessages *messages, const AmprtMpi *mpi, AmprtPlace place,
                                AmprtError *error);
void amprt_messages_close(AmprtMessages *messages); /* also one that is all zeros */

/* *travel is NULL if so many travel that this one must queue. `data` is the bucket, of which only
 * this rank's slice (amprt_place_slice) is read and written. All ranks begin in the same order. */
AmprtStatus amprt_messages_begin(AmprtMessages *messages, AmprtTravel **travel, int bucket,
                                 float *data, uint64_t elements, AmprtError *error);
/* Has the slice become the sum? Then the travel is over. Sets *moved if anything has happened. */
bool amprt_messages_poll(AmprtMessages *messages, AmprtTravel *travel, bool *moved);
/* Ranks whose messages have not come: their number, the ranks in rank[0..machines-1]. *behind: they
 * may wait for others in turn. */
int amprt_messages_missing(const AmprtMessages *messages, const AmprtTravel *travel, int *rank,
                           bool *behind);

/* A gather of `bytes` of every rank, under way. */
typedef struct AmprtGather AmprtGather;
AmprtStatus amprt_gather_begin(AmprtGather **gather, const AmprtMpi *mpi, int rank, int size,
                               const void *mine, size_t bytes, AmprtError *error);
bool amprt_gather_poll(AmprtGather *gather);
int amprt_gather_missing(const AmprtGather *gather, int *rank, bool *behind);
/* Copies piece r to all + r * stride unless `all` is NULL, and frees. */
void amprt_gather_end(AmprtGather *gather, unsigned char *all, size_t stride);

#endif
