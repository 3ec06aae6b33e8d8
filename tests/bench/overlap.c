/* overlap ELEMENTS BUCKETS COMPUTE_MS ROUNDS [idle]: how much of the time of sums is left when they
 * travel while the ranks compute. A step makes its buckets ready one after the other, with 16
 * kernels for each; kernels take time of a processor, or with `idle` time alone, as a GPU's do.
 * Started by mpirun; bench/overlap runs it. */
#include "tests/bench/allreduce.h"

typedef enum Way { COMPUTE, MPI_AFTER, AFTER, POLLED, N_WAYS } Way;
static const char *const names[] = {"compute", "mpi_after", "after", "polled"};
enum { KERNELS = 16, WORK = 4096 };

static float work[WORK];

static double own_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Works for so long by this thread's own clock: what other processes take does not count. */
static void kernel(double seconds, bool idle) {
  if (idle) {
    struct timespec nap = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&nap, NULL);
    return;
  }
  for (double end = own_seconds() + seconds; own_seconds() < end;)
    for (int i = 0; i < WORK; i++)
      work[i] = work[i] * 0.999f + 0.001f;
}

static void step(const Bench *b, Way way, int buckets, double seconds, bool idle) {
  AmprtError error;
  uint64_t size = b->n / (uint64_t)buckets;
  for (int i = 0; i < buckets; i++) {
    for (int k = 0; k < KERNELS; k++) {
      kernel(seconds / buckets / KERNELS, idle);
      if (way == POLLED)
        amprt_group_poll(b->group);
    }
    if (way == POLLED)
      amprt_group_start(b->group, i, 4 * size * (uint64_t)i, size);
  }
  for (int i = 0; i < buckets && way == MPI_AFTER; i++)
    bench_allreduce(b, NULL, b->v + size * (uint64_t)i, size);
  for (int i = 0; i < buckets && way == AFTER; i++)
    amprt_group_start(b->group, i, 4 * size * (uint64_t)i, size);
  for (int i = 0; i < buckets && (way == AFTER || way == POLLED); i++)
    check(amprt_group_wait(b->group, i, &error), &error);
}

int main(int argc, char **argv) {
  uint64_t n = argc > 1 ? (uint64_t)atoll(argv[1]) : 4 << 20;
  int buckets = argc > 2 ? atoi(argv[2]) : 8, rounds = argc > 4 ? atoi(argv[4]) : 9;
  double seconds = (argc > 3 ? atof(argv[3]) : 150) * 1e-3;
  Bench b = bench_open(n);
  double *ms = malloc(sizeof *ms * (size_t)rounds * N_WAYS);
  if (!ms)
    return 3;
  for (int k = -1; k < rounds; k++) /* the first round is not counted */
    for (int w = 0; w < N_WAYS; w++) {
      memset(b.v, 0, 4 * n);
      bench_slowest(&b, 0);
      double began = amprt_seconds();
      step(&b, w, buckets, seconds, argc > 5);
      double took = bench_slowest(&b, (amprt_seconds() - began) * 1e3);
      if (k >= 0)
        ms[w * rounds + k] = took;
    }
  bench_print(&b, N_WAYS, names, ms, rounds);
  amprt_group_close(b.group, false);
  return 0;
}
