/* What a graph keeps in its arena between kernels, for the passes that order kernels and place
 * storages. (check-plan has its own idea of all this, on purpose.) */
#ifndef AMPCC_PASSES_MEMORY_STORAGE_H
#define AMPCC_PASSES_MEMORY_STORAGE_H

#include "ir/ir.h"
#include "ir/kernel.h"

/* One stored value: an input, or a result with a reader outside its kernel (an output and a view
 * are such readers), or any result of a main op, whose library call writes it even if nobody reads
 * it. */
typedef struct Storage {
  Value *value;
  int64_t bytes; /* of the value, not rounded */
  int maker;     /* kernel (place in the list); -1 for inputs */
  bool output;   /* needed to the end */
  int n_readers; /* kernels, each counted once */
} Storage;

typedef struct IntList {
  int n, cap, *v;
} IntList;

typedef struct Storages {
  KernelList kernels;
  int n;
  Storage *storage;
  IntList *makes, *reads; /* per kernel: indices of storages; reads without doubles */
  const int *index_of;    /* see storage_index */
  int *kernel;            /* per node (order): its kernel's place in the list, -1 without code */
} Storages;

Storages *storages_new(Arena *arena, Graph *graph);
/* The storage of a value (views looked through); -1 if it has none in the arena. */
int storage_index(const Storages *storages, const Value *value);
/* May the kernel write `made` over `old`, if that dies in it? It reads each element of `old` on the
 * way to the same element of `made`. */
bool storage_may_replace(const Kernel *kernel, const Storage *made, const Storage *old);
int64_t round_up(int64_t bytes, int64_t align);

#endif
