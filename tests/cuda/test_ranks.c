/* Sums over the GPUs of several processes, on the fakes: a part made by hand, whose step has three
 * buckets. One of them is read while another is not yet complete, two are read by one launch, and
 * sizes are no multiples of 16 for each rank. Each case forks its ranks. */
#include "codegen/text/common/args.h"
#include "runtime/cuda/cuda_rt.h"
#include "tests/cuda/shim/kernels.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

typedef struct Args { /* as in ranks.cu */
  int64_t x, y;
  int n;
  float factor;
} Args;

enum { N0 = 1008, N1 = 16, N2 = 512, N = N0 + N1 + N2, STEPS = 7, AHEAD = 3, MOST_RANKS = 5 };
enum { X = 0, B0 = 8192, B1 = B0 + 4 * N0, B2 = B1 + 4 * N1, Z = 16384, Z1 = 24576, W = 28672 };
enum { ARENA = 36864, STATE = 64 };

static const Args to_b0 = {X, B0, N0, 3}, to_b1 = {X + 64, B1, N1, 5}, between = {X, W, N, 7},
                  from_b1 = {B1, Z1, N1, 1}, to_b2 = {W, B2, N2, 2}, from_all = {B0, Z, N, .5f},
                  last = {Z, W, N, 1}, intruder = {W, B0, N0, 1};
static const AmpTree no_ranks;

#define LAUNCH(number, its_args)                                                                   \
  {                                                                                                \
    .kernel = number, .function = "scale", .args = &its_args, .args_bytes = sizeof(Args),          \
    .grid = {(N + 63) / 64, 1, 1}, .block = {                                                      \
      64,                                                                                          \
      1,                                                                                           \
      1                                                                                            \
    }                                                                                              \
  }
/* Kernels 5 and 6 share a launch. */
static CudaLaunch launches[] = {LAUNCH(0, to_b0),   LAUNCH(1, to_b1), LAUNCH(2, between),
                                LAUNCH(3, from_b1), LAUNCH(4, to_b2), LAUNCH(5, from_all),
                                LAUNCH(7, last)};
static const CudaLaunch sum = {.kernel = -1,
                               .function = "ranks",
                               .args = &no_ranks,
                               .args_bytes = sizeof no_ranks,
                               .grid = {1, 1, 1},
                               .block = {256, 1, 1}};
static AmprtBucket buckets[] = {{B0, N0, 0, 5}, {B1, N1, 1, 3}, {B2, N2, 4, 6}};
static const AmprtKernel kernels[8] = {{.name = "k0"}, {.name = "k1"}, {.name = "k2"},
                                       {.name = "k3"}, {.name = "k4"}, {.name = "k5"},
                                       {.name = "k6"}, {.name = "k7"}};
static const AmprtPort inputs[] = {{.name = "x", .dtype = AMPRT_F32, .rank = 1, .dim = {N}}};
static const AmprtGraph graphs[] = {{.name = "train_dp",
                                     .kernel = kernels,
                                     .input = inputs,
                                     .n_kernels = 8,
                                     .n_inputs = 1,
                                     .arena_bytes = ARENA,
                                     .bucket = buckets,
                                     .n_buckets = 3,
                                     .n_local = 5}};
static const AmprtProgram program = {
    .abi = AMPRT_ABI, .graph = graphs, .n_graphs = 1, .state_bytes = STATE, .device = &cuda_device};
static const CudaGraph cuda_graph = {launches, 7, .ranks = &sum};
static const char ptx[] = "// .visible .entry scale() .visible .entry ranks()";
static CudaImage image = {ptx, sizeof ptx, 1, 0};
static const CudaPart part = {.name = "cuda:sm_90",
                              .capability = 90,
                              .image = &image,
                              .n_images = 1,
                              .graph = &cuda_graph,
                              .n_graphs = 1,
                              .cuda_version = 13000};

/* ---- what must come out ---- */

static float input(int step, int rank, int i) {
  unsigned k = (unsigned)(i * 37 + step * 11 + rank * 101) * 2654435761u;
  return ldexpf((float)(k >> 8) - (1 << 23), (int)(k % 7) - 24); /* all 24 bits are used */
}

/* Element i of all buckets, as rank `rank` computes it before sums are made. */
static float gradient(int step, int rank, int i) {
  return i < N0        ? 3 * input(step, rank, i)
         : i < N0 + N1 ? 5 * input(step, rank, i - N0 + 16)
                       : 2 * (7 * input(step, rank, i - N0 - N1));
}

/* The same added up pair by pair, as amprt_tree_sum is specified. */
static float tree(int step, int i, int first, int past) {
  int half = 1;
  if (past - first == 1)
    return gradient(step, first, i);
  while (2 * half < past - first)
    half *= 2;
  return tree(step, i, first, first + half) + tree(step, i, first + half, past);
}

/* ---- a rank ---- */

typedef struct Case {
  const char *name;
  int size;
  AmprtOrder order;
  const char *says;             /* part of the error that every rank must end with; NULL: none */
  const char *variable, *value; /* set in the environment of rank `odd`, or of all if that is -1 */
  int odd;
  const char *odd_says; /* the error of that rank, if it is another one */
  int present;          /* as many ranks come; 0: all */
  bool eager, other_bucket, intrudes, one_gpu_each;
  bool leaves; /* rank 1 ends after open, rank 0 after the start of a step */
} Case;

static int wrong(const Case *c, int rank, const char *what, double got, double want) {
  printf("FAIL %s: rank %d: %s: %g, not %g\n", c->name, rank, what, got, want);
  return 1;
}

static int check(const Case *c, int rank, int step) {
  static float z[N], z1[N1];
  int differ = 0;
  if (cuda_device.read(AMPRT_ARENA, Z, z, sizeof z) ||
      cuda_device.read(AMPRT_ARENA, Z1, z1, sizeof z1))
    return 0; /* the error is looked at elsewhere */
  for (int i = 0; i < N; i++) {
    float want = tree(step, i, 0, c->size) * .5f;
    double scale = 0;
    for (int r = 0; r < c->size; r++)
      scale += fabs(gradient(step, r, i));
    differ += memcmp(&z[i], &want, sizeof want) != 0;
    if (!(fabs(z[i] - want) <= 1e-6 * scale) ||
        (c->order == AMPRT_ORDER_PLACEMENT && memcmp(&z[i], &want, sizeof want)))
      return wrong(c, rank, "a sum", z[i], want);
  }
  for (int i = 0; i < N1; i++)
    if (memcmp(&(float){.5f * z1[i]}, &z[N0 + i], sizeof *z))
      return wrong(c, rank, "what was read early", z1[i], 2 * z[N0 + i]);
  /* Else nobody could see that the order was another one. */
  if (c->order == AMPRT_ORDER_ANY && c->size > 2 && !differ)
    return wrong(c, rank, "sums in another order with other bits", 0, 1);
  return 0;
}

static int collect(const Case *c, int rank, int step) {
  float kept[2];
  if (cuda_device.collect(kept))
    return 0;
  float want = tree(step, 0, 0, c->size) * .5f;
  return fabs(kept[0] - want) <= 1e-5 * fabs(want) + 1e-3
             ? 0
             : wrong(c, rank, "the watched scalar", kept[0], want);
}

static int start(int step, int rank) {
  float x[N];
  for (int i = 0; i < N; i++)
    x[i] = input(step, rank, i);
  return cuda_device.start(0, &(AmprtInput){.data = x});
}

static int run_rank(const Case *c, int rank, const unsigned char *id) {
  char why[300] = "";
  AmprtRanks ranks = {rank, c->size, rank, c->order, id, .timeout = c->says ? .5 : 30};
  int failed = 0, collected = 0;
  if (c->variable && (c->odd < 0 || c->odd == rank))
    setenv(c->variable, c->value, 1);
  if (!getenv("FAKE_CUDA_DEVICES") && !c->one_gpu_each) {
    snprintf(why, sizeof why, "%d", c->size);
    setenv("FAKE_CUDA_DEVICES", why, 1);
  } else if (c->one_gpu_each && !getenv("CUDA_VISIBLE_DEVICES")) {
    snprintf(why, sizeof why, "%d", rank);
    setenv("CUDA_VISIBLE_DEVICES", why, 1);
  }
  if (c->eager)
    setenv("FAKE_CUDA_EAGER", "1", 1);
  if (c->other_bucket && rank == 1)
    buckets[2].elements -= 16;
  if (c->intrudes && rank == c->odd)
    launches[2].args = &intruder;
  if (cuda_fits(&part, &program, why, sizeof why))
    printf("FAIL %s: %s\n", c->name, why), failed++;
  if (c->leaves) {
    ranks.timeout = .5;
    if (!cuda_device.open(&program, STATE, ARENA, 0, &ranks) && !rank)
      start(0, rank);
  } else if (!cuda_device.open(&program, STATE, ARENA, 0, &ranks) &&
             !cuda_device.watch(0, (AmprtBlock[]){AMPRT_ARENA}, (uint64_t[]){Z}, (uint32_t[]){4},
                                1)) {
    for (int step = 0; step < STEPS && !cuda_device.error(); step++) {
      /* so that rank 1 waits in mid-air, and goes on with other kernels */
      if (c->intrudes && rank == 0)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
      start(step, rank);
      if (step - collected == AHEAD)
        failed += collect(c, rank, collected++);
      if (step % 3 == 2 || step == STEPS - 1)
        failed += check(c, rank, step);
    }
    while (collected < STEPS && !cuda_device.error())
      failed += collect(c, rank, collected++);
    /* kernel by kernel, beside a graph that was captured */
    double seconds[8] = {0};
    cuda_device.kernels(0, 0, 3, NULL);
    cuda_device.kernels(0, 3, 8, seconds);
    if (!cuda_device.error())
      failed += check(c, rank, STEPS - 1);
  }
  if (c->intrudes) /* its sums are wrong until it is found */
    failed = 0;
  const char *says = rank == c->odd && c->odd_says ? c->odd_says : c->says;
  const char *error = cuda_device.error();
  if (!error != !says || (error && !strstr(error, says))) {
    printf("FAIL %s: rank %d says `%s`, not `%s`\n", c->name, rank, error ? error : "nothing",
           says ? says : "nothing");
    failed++;
  }
  cuda_device.close();
  fflush(stdout);
  return failed;
}

/* ---- cases ---- */

#define BITS AMPRT_ORDER_PLACEMENT
static const Case cases[] = {
    {"one rank", 1, BITS},
    {"one rank, library's order", 1, AMPRT_ORDER_ANY},
    {"two ranks", 2, BITS},
    {"two ranks, early", 2, BITS, .eager = true},
    {"three ranks", 3, BITS},
    {"four ranks", 4, BITS, .one_gpu_each = true},
    {"four ranks, early", 4, BITS, .eager = true},
    {"five ranks", 5, BITS},
    {"four ranks, library's order", 4, AMPRT_ORDER_ANY},
    {"four ranks, library's order, early", 4, AMPRT_ORDER_ANY, .eager = true},
    {"four ranks, a ring", 4, AMPRT_ORDER_RUN},
    {"four ranks, an algorithm of the user's", 4, AMPRT_ORDER_RUN, .variable = "NCCL_ALGO",
     .value = "Tree", .odd = -1},
    {"a rank that never comes", 3, BITS,
     "has waited 0.5 s for the others in ncclCommInitRankConfig", .present = 2},
    {"another version", 2, BITS, "rank 1 has NCCL 2.27.3 and rank 0 has 2.28.9",
     "FAKE_NCCL_VERSION", "22703", 1},
    {"a network that breaks", 2, BITS,
     "NCCL failed on rank 0: a sum over ranks: remote process exited or there was a network error",
     "FAKE_NCCL_BREAK", "1:9", 1, "unhandled system error"},
    {"a network that breaks in a graph", 3, AMPRT_ORDER_ANY, "remote process exited",
     "FAKE_NCCL_BREAK", "2:12", 2, "(the network of rank 2 is gone)"},
    {"a call that fails", 1, AMPRT_ORDER_ANY,
     "NCCL failed on rank 0: ncclAllReduce: unhandled system", "FAKE_CUDA_FAIL",
     "ncclAllReduce:2=2", -1},
    {"a group that fails", 1, BITS, "ncclSend and ncclRecv: internal error", "FAKE_CUDA_FAIL",
     "ncclGroupEnd:4", -1},
    {"a capture that fails", 1, BITS, "the GPU failed: cudaStreamEndCapture: ", "FAKE_CUDA_FAIL",
     "cudaStreamEndCapture:1", -1},
    {"one GPU for two ranks", 2, BITS, "Duplicate GPU detected : rank 0 and rank 1",
     "CUDA_VISIBLE_DEVICES", "3", -1, .one_gpu_each = true},
    {"too few GPUs", 3, BITS, "has waited 0.5 s", "FAKE_CUDA_DEVICES", "2", 2,
     "rank 2 is process 3 of its machine, which has 2 GPUs: start one process for each GPU"},
    {"an old GPU", 2, BITS, "has waited 0.5 s", "FAKE_CUDA_CAPABILITY", "90,80", 1,
     "GPU 1, of rank 1: Fake GPU has compute capability 8.0, this is for 9.0"},
    {"other buckets", 2, AMPRT_ORDER_ANY, "a sum over ranks", .other_bucket = true},
    {"a kernel that writes to a bucket", 2, AMPRT_ORDER_ANY, "remote process exited", NULL, NULL, 1,
     "wrote to its numbers meanwhile", .eager = true, .intrudes = true},
    {"a rank that leaves", 2, BITS, .leaves = true},
};

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ranks that are still there after LIMIT seconds hang. */
static int run_case(const Case *c) {
  enum { LIMIT = 40 };
  unsigned char id[AMPRT_ID_BYTES];
  pid_t pid[MOST_RANKS];
  int n = c->present ? c->present : c->size, failed = 0;
  double end = seconds() + LIMIT;
  if (cuda_device.make_id(id))
    return printf("FAIL %s: %s\n", c->name, cuda_device.error()), 1;
  fflush(stdout);
  for (int r = 0; r < n; r++)
    if ((pid[r] = fork()) == 0)
      _exit(run_rank(c, r, id) != 0);
  for (int r = 0; r < n; r++) {
    int status = 0, ended;
    while ((ended = waitpid(pid[r], &status, WNOHANG)) == 0 && seconds() < end)
      nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (!ended) {
      printf("FAIL %s: rank %d hangs\n", c->name, r);
      kill(pid[r], SIGKILL);
      waitpid(pid[r], &status, 0);
    }
    failed |= !ended || status != 0;
  }
  return failed;
}

int main(int argc, char **argv) {
  char path[400];
  int failed = 0, n = sizeof cases / sizeof *cases;
  if (argc < 3)
    return 2;
  snprintf(path, sizeof path, "%s:%s/runtime", argv[2], argv[2]);
  setenv("CPATH", path, 1); /* for what ranks.cu includes */
  Kernels *text = kernels_begin(argv[1], false);
  if (!kernels_finish(text))
    return 1;
  snprintf(path, sizeof path, "%s.so", argv[1]);
  setenv("FAKE_CUDA_KERNELS", path, 1);
  image.check = (uint32_t)crc32_z(0, (const unsigned char *)ptx, sizeof ptx);
  for (int i = 0; i < n; i++)
    if (argc == 3 || strcmp(argv[3], cases[i].name) == 0)
      failed += run_case(&cases[i]);
  kernels_free(text);
  printf("%d of %d cases failed\n", failed, n);
  return failed != 0;
}
