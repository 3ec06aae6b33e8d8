/* Who sends what to whom, and in which order sums are made: functions of numbers alone.
 *
 * A bucket is summed in two levels. The `block` ranks of one machine that see each other's memory
 * cut it into as many slices, and each rank adds up its slice of all of them. Ranks with the same
 * place in their machines then cut that slice again, one part for each machine: every rank gets the
 * others' parts, adds them, and sends the sum back to them. Last, the whole slice goes to the
 * others of the machine. With block = 1 all of it is messages, with block = size none is.
 *
 * Blocks are aligned and powers of two unless there is but one, so that the sum of a block is a
 * whole branch of the tree, and the bits are those of one level. */
#ifndef AMPRT_TREE_H
#define AMPRT_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct AmprtSlice {
  uint64_t at, count; /* elements */
} AmprtSlice;

/* Slice i of n: whole cache lines, as equal as may be; the last one ends where the elements do. */
AmprtSlice amprt_slice(uint64_t elements, int i, int n);

typedef struct AmprtPlace {
  int rank, size;
  int block; /* ranks per machine that join inside it first; a divisor of size */
} AmprtPlace;

/* May `block` ranks per machine join first? machine[r] is the lowest rank on the machine of rank
 * r. Returns their number, or 1. */
int amprt_place_block(const int *machine, int size);

static inline int amprt_place_machines(AmprtPlace place) {
  return place.size / place.block;
}

/* The rank with this one's place in machine i. */
static inline int amprt_place_peer(AmprtPlace place, int i) {
  return i * place.block + place.rank % place.block;
}

/* The slice of a bucket that this rank adds up inside its machine. */
AmprtSlice amprt_place_slice(AmprtPlace place, uint64_t elements);
/* The part of that slice, within the bucket, whose sum machine i's peer makes. */
AmprtSlice amprt_place_part(AmprtPlace place, uint64_t elements, int i);

/* In turn t = 1 .. machines-1 a rank sends to machine `to` and receives from machine `from`. In no
 * turn do two ranks send to the same one. First the parts: it sends amprt_place_part(to) and gets
 * its own part as `from` has it. Then the sums: it sends its own part, and gets that of `from`. */
typedef struct AmprtTurn {
  int to, from;
} AmprtTurn;
AmprtTurn amprt_place_turn(AmprtPlace place, int t);

/* A gather by doubling: in round k = 0, 1, .. a rank that holds the pieces of `blocks` ranks from
 * its own on (cyclically) sends them, or as many as are missing, to `to`, and gets those of `from`.
 * Returns false after the last round. */
typedef struct AmprtRound {
  int to, from;
  int have, get; /* pieces: held before the round, sent and received in it */
} AmprtRound;
bool amprt_gather_round(int rank, int size, int k, AmprtRound *round);

#endif
