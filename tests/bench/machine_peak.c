/* What a machine reaches, for cpu_stages: machine_peak THREADS CACHE prints GFLOP/s of f32 and of
 * bf16 (0: no such instruction), and GB/s of reading from memory and from the last cache, which has
 * CACHE bytes. The best of many short tries, each of all threads at once. */
#define _GNU_SOURCE
#include "codegen/text/cpu/lanes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* SUMS: more than wait for one another, and with both factors no more than 16 registers hold. */
enum { MOST_THREADS = 256, SUMS = 12, TRIES = 50 };
static const size_t LARGE = 256 << 20; /* bytes, all threads together */

typedef enum Work { F32, BF16, READ_MEMORY, READ_CACHE, N_WORK } Work;

static struct {
  Work work;
  int threads;
  size_t cache;
  char *bytes;
  pthread_barrier_t barrier;
} job;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float multiply(long times, const int pairs) {
  AmpV sum[SUMS], a = amp_v_all(1e-3F), b = amp_v_all(1.5F), all = amp_v_all(0);
  AMP_UNROLL(12)
  for (int i = 0; i < SUMS; i++)
    sum[i] = amp_v_all((float)i); /* or the compiler would compute equal sums once */
  for (long t = 0; t < times; t++) {
    AMP_UNROLL(12)
    for (int i = 0; i < SUMS; i++)
#ifdef __AVX512BF16__
      sum[i] = pairs ? amp_v_dot(a, b, sum[i]) : amp_v_fma(a, b, sum[i]);
#else
      sum[i] = amp_v_fma(a, b, sum[i]);
#endif
  }
  (void)pairs;
  AMP_UNROLL(12)
  for (int i = 0; i < SUMS; i++)
    all += sum[i];
  return all[0];
}

static float read_bytes(const char *from, size_t bytes) {
  AmpV sum[4] = {amp_v_all(0), amp_v_all(0), amp_v_all(0), amp_v_all(0)};
  for (size_t at = 0; at + 4 * sizeof(AmpV) <= bytes; at += 4 * sizeof(AmpV)) {
    AMP_UNROLL(4)
    for (int i = 0; i < 4; i++)
      sum[i] += amp_v_load((const float *)(const void *)(from + at) + i * AMP_WIDE);
  }
  return (sum[0] + sum[1] + sum[2] + sum[3])[0];
}

/* The work of one thread: GFLOP or GB. */
static double do_work(long number) {
  static _Thread_local volatile float sink;
  const long times = 500000;
  const size_t all = job.work == READ_CACHE ? job.cache / 2 : LARGE,
               mine = all / (size_t)job.threads;
  const int again = (int)(LARGE / all);
  if (job.work == F32 || job.work == BF16) {
    sink += multiply(times, job.work == BF16);
    return 2e-9 * (double)times * SUMS * AMP_WIDE * (job.work == BF16 ? 2 : 1);
  }
  for (int i = 0; i < again; i++)
    sink += read_bytes(job.bytes + (size_t)number * mine, mine);
  return 1e-9 * (double)mine * again;
}

static void *thread(void *number) {
  double *result = malloc(sizeof *result);
  if (!result)
    exit(3);
  *result = 0;
  do_work((long)number); /* warms up */
  for (int i = 0; i < TRIES; i++) {
    pthread_barrier_wait(&job.barrier);
    double start = seconds(), done = do_work((long)number);
    pthread_barrier_wait(&job.barrier);
    double rate = done / (seconds() - start);
    *result = rate > *result ? rate : *result;
  }
  return result;
}

static double rate(Work work) {
  pthread_t all[MOST_THREADS];
  double sum = 0;
  job.work = work;
  for (long i = 0; i < job.threads; i++)
    if (pthread_create(&all[i], NULL, thread, (void *)i))
      exit(3);
  for (int i = 0; i < job.threads; i++) {
    void *result;
    pthread_join(all[i], &result);
    sum += *(double *)result;
    free(result);
  }
  return sum;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  job.threads = atoi(argv[1]);
  job.cache = (size_t)atol(argv[2]);
  job.bytes = aligned_alloc(4096, LARGE);
  if (job.threads < 1 || job.threads > MOST_THREADS || job.cache < 1 << 20 || !job.bytes)
    return 2;
  memset(job.bytes, 0, LARGE);
  pthread_barrier_init(&job.barrier, NULL, (unsigned)job.threads);
  double reached[N_WORK];
  for (Work work = 0; work < N_WORK; work++)
    reached[work] = work == BF16 && !AMP_PAIRS ? 0 : rate(work);
  printf("f32 %.0f bf16 %.0f memory %.1f cache %.1f\n", reached[F32], reached[BF16],
         reached[READ_MEMORY], reached[READ_CACHE]);
  free(job.bytes);
  return 0;
}
