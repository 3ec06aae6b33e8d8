#include "runtime/cuda/cuda_rt.h"

#include "runtime/cuda/inner.h"

#include <stdlib.h>

static cudaStream_t stream;

static int device_open(const AmprtProgram *program, uint64_t state_bytes, uint64_t arena_bytes,
                       int strict, const AmprtRanks *ranks) {
  (void)program, (void)state_bytes, (void)arena_bytes; /* cuda_fits was given the program */
  cuda_rt_forgive();
  if (!cuda_rt_found.image)
    return cuda_rt_fail("no GPU was found for this program");
  if (ranks && cuda_rt_choose_device(ranks))
    return -1;
  CUDA(cudaSetDevice, cuda_rt_found.index);
  if (cuda_rt_memory_open(ranks) ||
      CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking) ||
      cuda_rt_plans_open(stream, strict) || cuda_rt_products_open() || cuda_rt_launches_open() ||
      (ranks && cuda_rt_ranks_open(ranks)))
    return -1;
  return cuda_rt_steps_open(stream);
}

static void device_close(void) {
  if (stream)
    cuda_rt_ranks_end(stream);
  cuda_rt_steps_close();
  cuda_rt_ranks_close();
  cuda_rt_launches_close();
  cuda_rt_products_close();
  cuda_rt_plans_close();
  if (stream)
    cudaStreamDestroy(stream);
  stream = NULL;
  cuda_rt_memory_close();
}

static unsigned char *device_at(AmprtBlock block, uint64_t at) {
  return cuda_rt_at(block == AMPRT_STATE ? CUDA_STATE : CUDA_ARENA, at);
}

static int device_write(AmprtBlock block, uint64_t at, const void *from, uint64_t bytes) {
  cuda_rt_wait_stream(stream); /* a copy of memory that is not pinned can block */
  CUDA(cudaMemcpyAsync, device_at(block, at), from, bytes, cudaMemcpyHostToDevice, stream);
  return cuda_rt_wait_stream(stream);
}

static int device_read(AmprtBlock block, uint64_t at, void *to, uint64_t bytes) {
  cuda_rt_wait_stream(stream); /* a copy of memory that is not pinned can block */
  CUDA(cudaMemcpyAsync, to, device_at(block, at), bytes, cudaMemcpyDeviceToHost, stream);
  return cuda_rt_wait_stream(stream);
}

/* Runs the kernels one by one. Adds to seconds[i] the time of kernel first + i, from an event in
 * front of it to the one behind it. */
static int time_kernels(int graph, int first, int past, double *seconds) {
  size_t n = (size_t)(past - first) + 1;
  cudaEvent_t *event = calloc(n, sizeof *event);
  if (!event)
    return cuda_rt_fail("no memory for the profile");
  for (size_t i = 0; i < n; i++) {
    int kernel = first + (int)i;
    CUDA(cudaEventCreateWithFlags, &event[i], cudaEventDefault);
    CUDA(cudaEventRecord, event[i], stream);
    if (kernel < past)
      cuda_rt_run_kernels(graph, kernel, kernel + 1, stream);
  }
  cuda_rt_wait_stream(stream);
  for (size_t i = 0; i + 1 < n; i++) {
    float ms = 0;
    CUDA(cudaEventElapsedTime, &ms, event[i], event[i + 1]);
    seconds[i] += ms / 1e3;
  }
  for (size_t i = 0; i < n; i++)
    if (event[i])
      cudaEventDestroy(event[i]);
  free(event);
  return cuda_rt_failed() ? -1 : 0;
}

static int device_kernels(int graph, int first, int past, double *seconds) {
  if (seconds && past > first)
    return time_kernels(graph, first, past, seconds);
  cuda_rt_run_kernels(graph, first, past, stream);
  return cuda_rt_wait_stream(stream);
}

static char *device_tune(int quiet) {
  return cuda_rt_tune(stream, quiet);
}

const AmprtDevice cuda_device = {
    .make_id = cuda_rt_make_id,
    .open = device_open,
    .close = device_close,
    .write = device_write,
    .read = device_read,
    .start = cuda_rt_start,
    .watch = cuda_rt_watch,
    .collect = cuda_rt_collect,
    .kernels = device_kernels,
    .tune = device_tune,
    .error = cuda_rt_error,
};
