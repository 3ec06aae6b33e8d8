/* What both measurements of sums over processes use: a group with one arena, MPI_Allreduce of the
 * library that the group has opened, and medians. */
#ifndef BENCH_ALLREDUCE_H
#define BENCH_ALLREDUCE_H

#include "runtime/base/clock.h"
#include "runtime/parallel/group.h"
#include "runtime/parallel/mpi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct Bench {
  AmprtGroup *group;
  const AmprtGroupInfo *info;
  AmprtMpi mpi;
  intptr_t sum, in_place;
  int (*allreduce)(const void *from, void *to, int n, intptr_t type, intptr_t op, intptr_t comm);
  float *v; /* the arena's buckets */
  uint64_t n;
} Bench;

static inline void check(AmprtStatus status, const AmprtError *error) {
  if (!status)
    return;
  fprintf(stderr, "%s\n", error->text);
  exit(1);
}

static inline Bench bench_open(uint64_t n) {
  Bench b = {.n = n};
  AmprtError error;
  unsigned char *arena;
  check(amprt_group_open(&b.group, &(AmprtGroupOptions){"", 60, 60}, &error), &error);
  if (!b.group) {
    fprintf(stderr, "to be started by mpirun\n");
    exit(2);
  }
  b.info = amprt_group_info(b.group);
  check(amprt_group_arena(b.group, 4 * n, 0, 4 * n, &arena, &error), &error);
  b.v = (float *)(void *)arena;
  /* The group has opened one library; its name is asked for again, which opens the same. */
  AmprtMpiKind kind = strstr(b.info->transport, "Open MPI") ? AMPRT_MPI_OMPI : AMPRT_MPI_MPICH;
  check(amprt_mpi_open(&b.mpi, "", kind, &error), &error);
  const void *symbol = dlsym(b.mpi.library, "MPI_Allreduce");
  memcpy(&b.allreduce, &symbol, sizeof symbol);
  bool ompi = b.mpi.kind == AMPRT_MPI_OMPI;
  b.sum = ompi ? (intptr_t)dlsym(b.mpi.library, "ompi_mpi_op_sum") : 0x58000003;
  b.in_place = ompi ? 1 : -1;
  return b;
}

static inline void bench_allreduce(const Bench *b, const float *from, float *to, uint64_t n) {
  b->allreduce(from ? (const void *)from : (const void *)b->in_place, to, (int)n, b->mpi.f32,
               b->sum, b->mpi.comm_world);
}

/* The longest time of all ranks. */
static inline double bench_slowest(const Bench *b, double mine) {
  AmprtError error;
  double all[64], most = 0;
  check(amprt_group_gather(b->group, &mine, all, sizeof mine, &error), &error);
  for (int r = 0; r < b->info->size; r++)
    most = all[r] > most ? all[r] : most;
  return most;
}

static inline int bench_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline double bench_median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, bench_order);
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* The medians of all ways; ms[way * rounds + round] is put in order. */
static inline void bench_print(const Bench *b, int n_ways, const char *const *names, double *ms,
                               int rounds) {
  if (b->info->rank)
    return;
  printf("%s\n", b->info->transport);
  for (int w = 0; w < n_ways; w++)
    printf("%s %.2f\n", names[w], bench_median(ms + w * rounds, rounds));
}

#endif
