/* Kernels of the hand-made part in test_device.c. */
typedef struct CudaRun {
  unsigned char *arena, *state;
  const unsigned char *constant;
} CudaRun;

typedef struct Args {
  int64_t x, y;
  int n;
} Args;

/* y += x + the first constant; the state's counter goes up by one. */
AMP_KERNEL(add_constant, Args) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const float *x = (const float *)(run.arena + a.x);
  float *y = (float *)(run.arena + a.y);
  if (i < a.n)
    y[i] += x[i] + *(const float *)run.constant;
  if (i == 0)
    ++*(int *)run.state;
}

/* y[0] = the sum of x. */
AMP_KERNEL(sum_all, Args) {
  AMP_SHARED(float, part, 64);
  const float *x = (const float *)(run.arena + a.x);
  float sum = 0;
  for (int i = threadIdx.x; i < a.n; i += 64)
    sum += x[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 64; i++)
      sum += part[i];
    *(float *)(run.arena + a.y) = sum;
  }
}
