/* libamprt_cuda on the fakes: a part made by hand, with the three convolutions, a product and two
 * kernels. Steps are started ahead, their scalars collected later, and their results compared. Its
 * plans are damaged on purpose, so that they are made anew. */
#include "tests/cuda/hand.h"
#include "tests/cuda/shim/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
  N = 2,
  H = 5,
  W = 4,
  C = 3,
  K = 4,
  R = 3,
  S = 2,
  HO = 3,
  WO = 4
}; /* stride 2,1 pad 1,1,0,1 */
enum { X_SIZE = N * H * W * C, F_SIZE = K * R * S * C, Y_SIZE = N * HO * WO * K };
enum { STEPS = 40, AHEAD = AMPRT_AHEAD };

/* Offsets in the arena. The product multiplies x, as [6,20], by y's start, as [4,20]^T. */
enum {
  X = 0,
  FILTER = 1024,
  Y = 2048,
  DX = 3072,
  DF = 4096,
  PRODUCT = 5120,
  SUM = 6144,
  SUMS = 6400,
  SQUARES = 6656,
  BIASED = 6912
};
enum { ARENA = 8192, STATE = 64, ROWS = X_SIZE / 20, COLUMNS = 4, INNER = 20 };

#define KEY(form) form " f32 n2 h5 w4 c3 k4 r3 s2 u2,1 p1,1,0,1"
static const CudaPlan plans[] = {
    {.json = "{}", .json_bytes = 2, .n_operands = 3, .uid = {1, 2, 3}, .key = KEY("fprop")},
    {.json = "{}", .json_bytes = 2, .n_operands = 3, .uid = {1, 2, 3}, .key = KEY("dgrad")},
    {.json = "{}", .json_bytes = 2, .n_operands = 3, .uid = {1, 2, 3}, .key = KEY("wgrad")},
    {.json = "{}",
     .json_bytes = 2,
     .n_operands = 5,
     .uid = {1, 2, 3, 4, 5},
     .key = KEY("fprop_stats")},
};
static const CudaMatmul product = {
    .dtype = AMPRT_F32, .trans_b = 1, .rows = ROWS, .columns = COLUMNS, .inner = INNER};
static const CudaMatmul biased = {
    .dtype = AMPRT_F32, .trans_b = 1, .bias = 1, .rows = ROWS, .columns = COLUMNS, .inner = INNER};

static const Args add_args = {.x = DX, .y = X, .n = X_SIZE};
static const Args sum_args = {.x = X, .y = SUM, .n = X_SIZE};

static const CudaLaunch launches[] = {
    {.kind = CUDA_PLAN, .kernel = 0, .plan = &plans[0], .operand = {AT(X), AT(FILTER), AT(Y)}},
    {.kind = CUDA_PLAN,
     .kernel = 0,
     .plan = &plans[3],
     .operand = {AT(X), AT(FILTER), AT(Y), AT(SUMS), AT(SQUARES)}},
    {.kind = CUDA_PLAN, .kernel = 1, .plan = &plans[1], .operand = {AT(Y), AT(FILTER), AT(DX)}},
    {.kind = CUDA_PLAN, .kernel = 2, .plan = &plans[2], .operand = {AT(X), AT(Y), AT(DF)}},
    {.kind = CUDA_MATMUL, .kernel = 3, .matmul = &product, .operand = {AT(X), AT(Y), AT(PRODUCT)}},
    {.kind = CUDA_MATMUL,
     .kernel = 3,
     .matmul = &biased,
     .operand = {AT(X), AT(Y), AT(BIASED), AT(SUMS)}},
    LAUNCH(4, "add_constant", add_args, 2),
    LAUNCH(5, "sum_all", sum_args, 1),
};
enum { N_LAUNCHES = sizeof launches / sizeof *launches };

static const AmprtKernel kernels[] = {
    {.name = "k0_conv", .layer = "conv"},  {.name = "k1_dgrad", .layer = "conv"},
    {.name = "k2_wgrad", .layer = "conv"}, {.name = "k3_matmul", .layer = "fc"},
    {.name = "k4_add", .layer = "add"},    {.name = "k5_sum", .layer = ""}};
static const AmprtPort inputs[] = {
    {.name = "image", .dtype = AMPRT_F32, .rank = 1, .dim = {X_SIZE}, .at = X},
    {.name = "filter", .dtype = AMPRT_F32, .rank = 1, .dim = {F_SIZE}, .at = FILTER}};
static const AmprtGraph graph = {.name = "train",
                                 .kernel = kernels,
                                 .input = inputs,
                                 .n_kernels = sizeof kernels / sizeof *kernels,
                                 .n_inputs = 2,
                                 .arena_bytes = ARENA};
static const AmprtProgram program = {
    .abi = AMPRT_ABI, .graph = &graph, .n_graphs = 1, .state_bytes = STATE, .device = &cuda_device};
static const CudaGraph cuda_graph = {launches, N_LAUNCHES};
static CudaImage image = {ptx, sizeof ptx, 1, 0};
static const CudaPart part = PART(&image, &cuda_graph);
static int failed;

static void expect(int ok, const char *what) {
  if (!ok)
    printf("FAIL %s%s%s\n", what, cuda_device.error() ? ": " : "",
           cuda_device.error() ? cuda_device.error() : "");
  failed += !ok;
}

/* ---- the same computed in double precision ---- */

typedef struct Numbers {
  double x[X_SIZE], f[F_SIZE], y[Y_SIZE], dx[X_SIZE], df[F_SIZE], product[ROWS * COLUMNS], sum;
} Numbers;

static void join(Numbers *v, int n, int p, int q, int k, int r, int s, int c, int form) {
  int i = 2 * p - 1 + r, j = q + s;
  if (i < 0 || i >= H || j >= W)
    return;
  double *x = &v->x[((n * H + i) * W + j) * C + c], *dx = &v->dx[x - v->x];
  double *f = &v->f[((k * R + r) * S + s) * C + c], *df = &v->df[f - v->f];
  double *y = &v->y[((n * HO + p) * WO + q) * K + k];
  *(form == 0 ? y : form == 1 ? dx : df) += form == 0 ? *x * *f : form == 1 ? *y * *f : *x * *y;
}

static void convolve(Numbers *v, int form) {
  for (int n = 0; n < N; n++)
    for (int p = 0; p < HO; p++)
      for (int q = 0; q < WO; q++)
        for (int k = 0; k < K; k++)
          for (int tap = 0; tap < R * S * C; tap++)
            join(v, n, p, q, k, tap / C / S, tap / C % S, tap % C, form);
}

static void fill(int step, float *x, float *f) {
  for (int i = 0; i < X_SIZE; i++)
    x[i] = (float)((i * 7 + step * 3) % 11) / 8 - 0.5f;
  for (int i = 0; i < F_SIZE; i++)
    f[i] = (float)((i * 5 + step) % 13) / 16 - 0.25f;
}

static void compute(int step, Numbers *v) {
  float x[X_SIZE], f[F_SIZE];
  memset(v, 0, sizeof *v);
  fill(step, x, f);
  for (int i = 0; i < X_SIZE; i++)
    v->x[i] = x[i];
  for (int i = 0; i < F_SIZE; i++)
    v->f[i] = f[i];
  for (int form = 0; form < 3; form++)
    convolve(v, form);
  for (int i = 0; i < ROWS * COLUMNS; i++)
    for (int k = 0; k < INNER; k++)
      v->product[i] += v->x[i / COLUMNS * INNER + k] * v->y[i % COLUMNS * INNER + k];
  for (int i = 0; i < X_SIZE; i++)
    v->sum += v->x[i] += v->dx[i] + constant[0];
}

/* ---- checks ---- */

static void check_read(uint64_t at, const double *want, int n, const char *what) {
  float got[X_SIZE];
  int wrong = cuda_device.read(AMPRT_ARENA, at, got, (uint64_t)n * sizeof *got);
  for (int i = 0; i < n; i++)
    wrong += !(fabs(got[i] - want[i]) <= 1e-4);
  expect(!wrong, what);
}

static void check_collect(int step) {
  unsigned char kept[16];
  float sum;
  int count;
  Numbers want;
  int status = cuda_device.collect(kept);
  memcpy(&sum, kept, sizeof sum);
  memcpy(&count, kept + 8, sizeof count);
  compute(step, &want);
  if (status || !(fabs(sum - want.sum) <= 1e-3) || count != step + 1)
    printf("step %d: sum %g, not %g; count %d\n", step, sum, want.sum, count);
  expect(!status && fabs(sum - want.sum) <= 1e-3 && count == step + 1, "collected scalars");
}

static void start(int step) {
  float x[X_SIZE], f[F_SIZE];
  const AmprtInput from[] = {{.data = x}, {.data = f}};
  fill(step, x, f);
  expect(cuda_device.start(0, from) == 0, "start");
  memset(x, 0xff, sizeof x); /* by now the device has copied the inputs */
}

/* Starts as many steps ahead as are allowed. Some results are collected late; all are compared. */
static void check_steps(void) {
  const AmprtBlock block[] = {AMPRT_ARENA, AMPRT_STATE};
  expect(cuda_device.watch(0, block, (uint64_t[]){SUM, 0}, (uint32_t[]){4, 4}, 2) == 0, "watch");
  int collected = 0;
  for (int step = 0; step < STEPS; step++) {
    if (step - collected == AHEAD)
      check_collect(collected++);
    start(step);
  }
  while (collected < STEPS)
    check_collect(collected++);
  Numbers want;
  compute(STEPS - 1, &want);
  check_read(Y, want.y, Y_SIZE, "fprop");
  double sums[K] = {0}, squares[K] = {0};
  for (int i = 0; i < Y_SIZE; i++) {
    sums[i % K] += want.y[i];
    squares[i % K] += want.y[i] * want.y[i];
  }
  check_read(SUMS, sums, K, "sums");
  check_read(SQUARES, squares, K, "squares");
  check_read(DX, want.dx, X_SIZE, "dgrad");
  check_read(DF, want.df, F_SIZE, "wgrad");
  check_read(PRODUCT, want.product, ROWS * COLUMNS, "product");
  for (int i = 0; i < ROWS * COLUMNS; i++)
    want.product[i] += sums[i % COLUMNS];
  check_read(BIASED, want.product, ROWS * COLUMNS, "product with bias");
  check_read(X, want.x, X_SIZE, "kernel");
}

static void check_pieces(void) {
  double seconds[N_LAUNCHES] = {0}, want = 0;
  float x[X_SIZE], sum = 0;
  for (int i = 0; i < X_SIZE; i++)
    want += x[i] = (float)i;
  expect(cuda_device.write(AMPRT_ARENA, X, x, sizeof x) == 0, "write");
  expect(cuda_device.kernels(0, 5, 6, seconds) == 0 && seconds[0] > 0, "kernels");
  expect(cuda_device.read(AMPRT_ARENA, SUM, &sum, sizeof sum) == 0 && sum == want, "sum");
  expect(cuda_device.kernels(0, 4, 6, NULL) == 0, "kernels, not timed");
}

int main(int argc, char **argv) {
  char why[300] = "", path[400];
  if (argc != 2)
    return 2;
  Kernels *text = kernels_begin(argv[1], false);
  if (!kernels_finish(text))
    return 1;
  snprintf(path, sizeof path, "%s.so", argv[1]);
  setenv("FAKE_CUDA_KERNELS", path, 1);
  image.check = (uint32_t)crc32_z(0, (const unsigned char *)ptx, sizeof ptx);
  expect(cuda_fits(&part, &program, why, sizeof why) == 0, why);
  expect(cuda_device.open(&program, STATE, ARENA, 0, NULL) == 0, "open");
  if (!failed) {
    check_steps();
    check_pieces();
  }
  cuda_device.close();
  expect(cuda_device.open(&program, STATE, ARENA, 1, NULL) != 0, "strict");
  expect(cuda_device.error() && strstr(cuda_device.error(), "--strict-plans"), "why strict");
  cuda_device.close();
  kernels_free(text);
  printf("%s\n%d failures\n", cuda_describe(), failed);
  return failed != 0;
}
