/* Memory that the ranks of one machine see of each other: the pages of every rank's arena that hold
 * the buckets, and flags. Each is a file without a name, which the others open through
 * /proc/PID/fd, so no file system and no limit of /dev/shm is involved. */
#ifndef AMPRT_WINDOW_H
#define AMPRT_WINDOW_H

#include "runtime/base/status.h"
#include "runtime/parallel/tree.h"

#include <stdbool.h>

typedef struct AmprtWindow AmprtWindow;

/* Where the others find a rank's pages. */
typedef struct AmprtWindowCard {
  uint64_t word; /* stands at the beginning of the file, too; 0: there is none */
  uint64_t bytes;
  int32_t pid, fd;
} AmprtWindowCard;

/* Puts shared pages under arena[at .. at+bytes), rounded to whole pages; the arena was mapped by
 * mmap and is still zero. A failure leaves the arena usable; card->word is then 0, and `error` says
 * why. */
AmprtStatus amprt_window_open(AmprtWindow **window, unsigned char *arena, uint64_t at,
                              uint64_t bytes, AmprtWindowCard *card, AmprtError *error);
/* Maps the pages of the `ranks` of this machine, of which this process is number `own`; card[] is
 * theirs, first[] the rank that names number 0. A rank's buckets lie at the same place in every
 * arena. */
AmprtStatus amprt_window_join(AmprtWindow *window, const AmprtWindowCard *card, int first,
                              int ranks, int own, AmprtError *error);
/* Forgets the others; the own pages stay under the arena. */
void amprt_window_close(AmprtWindow *window); /* NULL is fine */

/* A bucket passes through these on every rank. A rank tells the others that it has reached one, for
 * the `turn`-th time that this bucket is summed, and asks who has not. */
typedef enum AmprtReached { AMPRT_READY, AMPRT_SUMMED, AMPRT_N_REACHED } AmprtReached;
void amprt_window_tell(AmprtWindow *window, AmprtReached what, int bucket, uint32_t turn);
bool amprt_window_all(const AmprtWindow *window, AmprtReached what, int bucket, uint32_t turn);
int amprt_window_missing(const AmprtWindow *window, AmprtReached what, int bucket, uint32_t turn,
                         int *rank);

/* The slice of the bucket at arena+at becomes the sum of all ranks' slices, here or (`everywhere`)
 * in the memory of all of them. */
void amprt_window_sum(AmprtWindow *window, uint64_t at, AmprtSlice slice, bool everywhere);
/* Copies the slice to all others. */
void amprt_window_spread(AmprtWindow *window, uint64_t at, AmprtSlice slice);

#endif
