/* The threads of programs whose kernels oneDNN computes: OpenMP's, because oneDNN uses them too. */
#include "runtime/cpu/dnn_rt.h"

#include <omp.h>
#include <stdio.h>

static int open_threads(int n, char *error, size_t error_size) {
  (void)error, (void)error_size;
  if (n > 0) /* otherwise OpenMP decides: all processors, or OMP_NUM_THREADS */
    omp_set_num_threads(n);
  return 0;
}

static void close_threads(void) {}

/* OpenMP binds threads before it starts them. */
static int pin(char *error, size_t error_size) {
  snprintf(error, error_size, "the threads of oneDNN are OpenMP's: set OMP_PROC_BIND=true instead");
  return -1;
}

static int count(void) {
  return omp_get_max_threads();
}

static int number(void) {
  return omp_get_thread_num();
}

/* A static schedule gives a thread the same chunks in each kernel, which keeps caches warm. */
static void loop(int64_t n, AmprtChunk *chunk, const AmprtRun *run, const void *args) {
#pragma omp parallel for schedule(static) if (n > 1)
  for (int64_t i = 0; i < n; i++)
    chunk(run, args, i);
}

const AmprtThreads dnn_threads = {.open = open_threads,
                                  .close = close_threads,
                                  .pin = pin,
                                  .count = count,
                                  .number = number,
                                  .loop = loop};
