/* What a graph keeps in its arena between kernels, for the passes that order kernels and plan
 * memory. (check-plan finds all this by code of its own, on purpose.) */
#ifndef AMPCC_PASSES_MEMORY_STORAGE_H
#define AMPCC_PASSES_MEMORY_STORAGE_H

#include "ir/ir.h"
#include "ir/kernel.h"
#include "passes/target.h"

/* One stored value: an input; a result with a reader outside its kernel, such as an output or a
 * view; or a result of a main op that nothing reads, which its library call writes all the same. */
typedef struct Storage {
  Value *value;
  int64_t bytes; /* of the value, not rounded */
  int maker;     /* the kernel that makes it, an index into the list; -1 for inputs */
  bool output;   /* an output, so alive to the end of the step */
  int n_readers; /* the number of kernels that read it */
} Storage;

typedef struct IntList {
  int n, cap, *v;
} IntList;

typedef struct Storages {
  KernelList kernels;
  int n;
  Storage *storage;
  IntList *makes, *reads; /* per kernel: indices of storages, each once */
  const int *index_of;    /* see storage_index */
  int *kernel;            /* per node (order): its kernel's place in the list, -1 without code */
} Storages;

Storages *storages_new(Arena *arena, Graph *graph);
/* The storage of a value (views looked through); -1 if it has none in the arena. */
int storage_index(const Storages *storages, const Value *value);
/* May the kernel write `made` over `old`, provided that `old` dies in it? True if it reads each
 * element of `old` only to compute the same element of its results. */
bool storage_may_replace(const Target *target, const Kernel *kernel, const Storage *made,
                         const Storage *old);
int64_t round_up(int64_t bytes, int64_t align);

#endif
