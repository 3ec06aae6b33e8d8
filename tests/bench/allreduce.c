/* allreduce ELEMENTS ROUNDS: milliseconds of a sum over all ranks, by MPI_Allreduce and by the
 * group, in turns. Started by mpirun; bench/allreduce runs it. */
#include "tests/bench/allreduce.h"

typedef enum Way { PLAIN, IN_PLACE, ONE_BUCKET, BUCKETS, N_WAYS } Way;
static const char *const names[] = {"allreduce", "in_place", "one_bucket", "buckets"};
enum { BUCKET = 2 << 20 /* elements: 8 MiB */ };

static void sum(const Bench *b, uint64_t bucket) {
  AmprtError error;
  int n = 0;
  for (uint64_t at = 0; at < b->n; at += bucket, n++)
    amprt_group_start(b->group, n, 4 * at, b->n - at < bucket ? b->n - at : bucket);
  for (int i = 0; i < n; i++)
    check(amprt_group_wait(b->group, i, &error), &error);
}

int main(int argc, char **argv) {
  int rounds = argc > 2 ? atoi(argv[2]) : 9;
  Bench b = bench_open(argc > 1 ? (uint64_t)atoll(argv[1]) : 25600000);
  float *from = malloc(4 * b.n), *to = malloc(4 * b.n);
  double *ms = malloc(sizeof *ms * (size_t)rounds * N_WAYS);
  if (!from || !to || !ms)
    return 3;
  for (uint64_t i = 0; i < b.n; i++)
    from[i] = (float)(i % 1000) * 0x1p-20f, to[i] = 0;
  for (int k = -1; k < rounds; k++) /* the first round is not counted */
    for (int w = 0; w < N_WAYS; w++) {
      memcpy(w == PLAIN ? from : w == IN_PLACE ? to : b.v, w == PLAIN ? to : from, 4 * b.n);
      bench_slowest(&b, 0);
      double began = amprt_seconds();
      if (w == PLAIN)
        bench_allreduce(&b, from, to, b.n);
      else if (w == IN_PLACE)
        bench_allreduce(&b, NULL, to, b.n);
      else
        sum(&b, w == ONE_BUCKET ? b.n : BUCKET);
      double took = bench_slowest(&b, (amprt_seconds() - began) * 1e3);
      if (k >= 0)
        ms[w * rounds + k] = took;
    }
  bench_print(&b, N_WAYS, names, ms, rounds);
  amprt_group_close(b.group, false);
  return 0;
}
