/* Microseconds of a loop whose chunks do nothing: the runtime's threads against OpenMP's, with and
 * without a rest of some microseconds between two loops, in which threads may fall asleep.
 *
 *     fork_join [THREADS [ROUNDS]]
 *
 * OMP_WAIT_POLICY=active or passive chooses how OpenMP's threads wait. */
#include "runtime/amprt.h"
#include "runtime/base/clock.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int64_t sink[64 * 64];

static void touch(const AmprtRun *run, const void *args, int64_t chunk) {
  (void)run, (void)args;
  sink[chunk % 64 * 64] = chunk;
}

static void ours(int64_t n) {
  amprt_threads.loop(n, touch, NULL, NULL);
}

static void openmp(int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++)
    touch(NULL, NULL, i);
}

static void rest(double seconds) {
  for (double end = amprt_seconds() + seconds; amprt_seconds() < end;)
    ;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(void (*loop)(int64_t), int64_t n, double between, int rounds) {
  double *time = malloc((size_t)rounds * sizeof *time);
  for (int i = 0; time && i < rounds; i++) {
    rest(between);
    double start = amprt_seconds();
    loop(n);
    time[i] = amprt_seconds() - start;
  }
  if (time)
    qsort(time, (size_t)rounds, sizeof *time, by_size);
  double middle = time ? time[rounds / 2] : 0;
  free(time);
  return 1e6 * middle;
}

int main(int argc, char **argv) {
  static const double between[] = {0, 5e-6, 50e-6, 500e-6};
  int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 2001;
  char error[200];
  omp_set_num_threads(threads);
  if (threads < 1 || rounds < 1 || amprt_threads.open(threads, error, sizeof error))
    return 2;
  printf("| chunks | rest, us | ours, us | OpenMP, us |\n|---|---|---|---|\n");
  for (int many = 0; many < 2; many++)
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
      int64_t n = many ? 64 : threads;
      median(ours, n, between[i], 50);
      double mine = median(ours, n, between[i], rounds);
      median(openmp, n, between[i], 50);
      double theirs = median(openmp, n, between[i], rounds);
      printf("| %d | %.0f | %.2f | %.2f |\n", (int)n, 1e6 * between[i], mine, theirs);
    }
  amprt_threads.close();
  return 0;
}
