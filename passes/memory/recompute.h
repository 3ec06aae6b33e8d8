/* What the files of pass recompute share. Time is counted in slots: kernel k runs in slot 2k + 1,
 * what is made again for it in slot 2k. */
#ifndef AMPCC_PASSES_MEMORY_RECOMPUTE_H
#define AMPCC_PASSES_MEMORY_RECOMPUTE_H

#include "passes/kernels/fuse.h"
#include "passes/memory/storage.h"

/* How a stored value is made a second time from other stored ones. */
typedef struct Remake {
  int n;
  const Node *node[MAX_GROUP]; /* of GEN_POINT, makers before readers; the last makes the value */
  IntList leaf;                /* storages that they read */
  int until;                   /* a kernel that updates what they read; past the last if none */
  int64_t moved;               /* bytes read and written */
  bool wide;                   /* a library made it, in f32 up to the last rounding */
} Remake;

/* The first copy of a storage, or the second, which is made again. */
typedef struct Copy {
  int storage; /* -1: none */
  bool again;
} Copy;

typedef struct Recompute {
  Arena *arena;
  Graph *graph;
  const Target *target;
  Storages *storages;
  int64_t *workspace; /* per kernel */
  /* per storage */
  IntList *reader; /* kernels, ascending */
  Remake **remake; /* NULL: cannot be made again */
  int *split;      /* kernels behind this one read a second copy; -1: there is none */
  /* what follows from the splits, per storage */
  int *last;       /* slot in which the first copy dies */
  int *place;      /* kernel in front of which the second is made; past the last if none */
  int *again_last; /* slot in which it dies */
  Copy *over;      /* whose place it takes over */
  int64_t *live;   /* per slot: bytes */
} Recompute;

/* recompute_remake.c: all that can be made again by pointwise ops from what is stored. */
void recompute_find_remakes(Recompute *r);
/* recompute_choose.c: sets `split`, and all that follows from it, until the graph fits into `limit`
 * bytes or nothing is left that would help. */
void recompute_choose(Recompute *r, int64_t limit);

#endif
