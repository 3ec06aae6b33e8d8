/* The launches of one kernel of the graph, or of some that share a launch: what they may touch, and
 * what the evaluator makes of them. */
#ifndef AMPCC_TESTS_CUDA_GROUP_H
#define AMPCC_TESTS_CUDA_GROUP_H

#include "ir/eval/eval.h"
#include "runtime/cuda/cuda_rt.h"
#include "tests/cuda/shim/run.h"

#include <stdbool.h>

typedef struct Range {
  unsigned char *at;
  size_t bytes;
  ShimMark mark;
  const char *name; /* of a value that the kernel must write whole; else NULL */
} Range;

typedef struct Group {
  Arena *arena;
  const Graph *graph;
  CudaRun run;
  int first, past; /* ids of its kernels */
  Range *range;
  int n, cap;
} Group;

/* A step by the evaluator. */
typedef struct Truth {
  EvalEnv *trace, *after; /* every result by its %name; variables as the step leaves them */
} Truth;

Group group_new(const Graph *graph, int first, int past, CudaRun run);
void group_free(Group *group);
/* Lets kernels touch it, or nothing of it. */
void group_mark(const Group *group, const ShimApi *shim, bool allow);
/* A library writes results whole. */
void group_written(const Group *group, const ShimApi *shim);
/* Prints and counts results that `function` (NULL: a library) has left out bytes of. */
int group_unwritten(const Group *group, const ShimApi *shim, const char *function);
/* Prints and counts results whose relative L2 distance from the evaluator's is above `tolerance`.
 */
int group_compare(const Group *group, const Truth *truth, double tolerance, const char *function);
/* Puts the evaluator's numbers in the places of all results. */
void group_put(const Group *group, const Truth *truth);

#endif
