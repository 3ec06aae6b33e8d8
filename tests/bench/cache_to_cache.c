/* GB/s at which a thread reads what another one wrote just before, on the first two processors that
 * the process may use: the median of many tries, or nothing if there is only one processor. A
 * virtual machine cannot tell otherwise whether its processors share a cache at the moment: where
 * the host moves them, this rate changes from minute to minute, and with it the speed of whatever
 * one thread writes and another reads. */
#define _GNU_SOURCE
#include "codegen/text/cpu/lanes.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BYTES = 4 << 20, FLOATS = BYTES / (int)sizeof(float), TRIES = 40 };

static float *data;
static pthread_barrier_t turn;
static double rate[TRIES];
static cpu_set_t place[2]; /* the processors */

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *writer(void *unused) {
  pthread_setaffinity_np(pthread_self(), sizeof *place, &place[0]);
  for (int t = 0; t < TRIES; t++) {
    for (int i = 0; i < FLOATS; i += AMP_WIDE)
      amp_v_store(data + i, amp_v_all((float)t));
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
  }
  return unused;
}

static void *reader(void *unused) {
  static volatile float sink;
  pthread_setaffinity_np(pthread_self(), sizeof *place, &place[1]);
  for (int t = 0; t < TRIES; t++) {
    AmpV sum[4] = {amp_v_all(0), amp_v_all(0), amp_v_all(0), amp_v_all(0)};
    pthread_barrier_wait(&turn);
    const double start = seconds();
    for (int i = 0; i < FLOATS; i += 4 * AMP_WIDE) {
      AMP_UNROLL(4)
      for (int v = 0; v < 4; v++)
        sum[v] += amp_v_load(data + i + v * AMP_WIDE);
    }
    sink = (sum[0] + sum[1] + sum[2] + sum[3])[0];
    rate[t] = BYTES / (seconds() - start) * 1e-9;
    pthread_barrier_wait(&turn);
  }
  (void)sink;
  return unused;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  pthread_t thread[2];
  cpu_set_t all;
  int n = 0;
  if (sched_getaffinity(0, sizeof all, &all))
    return 1;
  for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
    if (CPU_ISSET(i, &all)) {
      CPU_ZERO(&place[n]);
      CPU_SET(i, &place[n++]);
    }
  if (n < 2)
    return 0;
  data = aligned_alloc(4096, BYTES);
  if (!data || pthread_barrier_init(&turn, NULL, 2) ||
      pthread_create(&thread[0], NULL, writer, NULL) ||
      pthread_create(&thread[1], NULL, reader, NULL))
    return 1;
  for (int i = 0; i < 2; i++)
    pthread_join(thread[i], NULL);
  qsort(rate, TRIES, sizeof *rate, by_size);
  printf("%.0f\n", rate[TRIES / 2]);
  free(data);
  return 0;
}
