/* What sums over shards (op all_reduce) ask of the order of nodes. A sum is final if no other sum
 * waits for it, as gradients are; those of synchronised batch normalisation are not. A node is late
 * if it runs once in a step rather than once for every shard: if it depends on a final sum, if it
 * changes state, or if only such nodes read what it makes. All late kernels come behind all
 * others. (check-plan finds all this by code of its own, on purpose.) */
#ifndef AMPCC_PASSES_MEMORY_SHARDS_H
#define AMPCC_PASSES_MEMORY_SHARDS_H

#include "passes/memory/storage.h"

typedef struct Shards {
  bool *late, *final; /* per node (order) */
} Shards;

/* NULL if the graph has no sums. */
Shards *shards_of(Arena *arena, const Graph *graph);

/* May the sum take the place of its operand? Only if a kernel makes that, and nothing else reads it
 * or what it is a view of. Looks at uses. */
bool sum_may_replace(const Node *sum);

/* One operand of a sum, and where it goes. */
typedef struct Member {
  Node *sum;
  int storage;    /* its operand's */
  int made, read; /* the kernels that make it and first read the sum; read: their number if none */
  int bucket;     /* the buckets are numbered in the order in which they become whole */
  int64_t at;     /* from the beginning of the first bucket */
} Member;

typedef struct Buckets {
  Member *member; /* by bucket, and in each by the kernels that make them */
  int n;
  int64_t bytes;
  int first, last; /* the kernels from the first that makes a member to the last that reads a sum */
} Buckets;

/* Puts what is summed into buckets of about `limit` bytes. A bucket is closed once it has that
 * many, and also at the last member that is there when 85 % of the backward pass's multiplications
 * are done, so that the last bucket, which nothing hides, is small. last[i] is the last kernel that
 * reads storage i. */
Buckets buckets_choose(Arena *arena, Graph *graph, const Storages *storages, const int *last,
                       int64_t align, int64_t limit);

#endif
