/* GFLOP/s of the convolutions of ResNet-50, of the grouped ones of ResNeXt-50 (32x4d) and a
 * depthwise one, and of those of the CIFAR ResNet-20 and of fashion_resnet8: forward, data gradient
 * and filter's gradient. Our own kernels and oneDNN, called as ampcc calls it, run in turn. Where
 * our own use Winograd's method, our direct kernels run as well. GFLOP/s are always computed from
 * the number of products that a direct convolution makes.
 *
 *     cpu_layers [THREADS [BATCH [ROUNDS [LAYER [TYPE [KINDS]]]]]]
 *
 * LAYER is the number of a row of the table `layers`, or names a set of rows: `all` (ResNet-50 and
 * CIFAR), `groups` (convolutions of groups) or `fashion` (fashion_resnet8). TYPE is f32, f16 or
 * bf16. KINDS are some letters of `fdw`: f for forward, d for the data gradient, w for the filter's
 * gradient. A batch has BATCH images of ImageNet's size, and 16 * BATCH of CIFAR's and
 * Fashion-MNIST's. One thread is timed by its processor time, which other work of the machine does
 * not count to; more threads by the clock. */
#include "codegen/cpu/onednn.h"
#include "codegen/cpu/own_plan.h"
#include "codegen/text/cpu/conv_grad.h"
#include "codegen/text/cpu/conv_run.h"
#include "codegen/text/cpu/grouped_grad.h"
#include "codegen/text/cpu/wino_grad.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

unsigned char *amp_more_lanes; /* no more than AMP_TEAM threads */
int64_t amp_more_lanes_each;
int amp_amx, amp_pairs;

enum { CIFAR = 1, FASHION }; /* of small images */
typedef struct Layer {
  int64_t c, k, h, r, stride; /* h: height and width of x */
  int small;                  /* 0, or a batch is 16 times as large */
  int64_t groups;             /* 0 is 1 */
} Layer;

static const Layer layers[] = {
    {3, 64, 224, 7, 2, 0},       {64, 64, 56, 1, 1, 0},         {64, 64, 56, 3, 1, 0},
    {64, 256, 56, 1, 1, 0},      {256, 64, 56, 1, 1, 0},        {256, 128, 56, 1, 1, 0},
    {128, 128, 56, 3, 2, 0},     {128, 512, 28, 1, 1, 0},       {256, 512, 56, 1, 2, 0},
    {512, 128, 28, 1, 1, 0},     {128, 128, 28, 3, 1, 0},       {512, 256, 28, 1, 1, 0},
    {256, 256, 28, 3, 2, 0},     {256, 1024, 14, 1, 1, 0},      {512, 1024, 28, 1, 2, 0},
    {1024, 256, 14, 1, 1, 0},    {256, 256, 14, 3, 1, 0},       {1024, 512, 14, 1, 1, 0},
    {512, 512, 14, 3, 2, 0},     {512, 2048, 7, 1, 1, 0},       {1024, 2048, 14, 1, 2, 0},
    {2048, 512, 7, 1, 1, 0},     {512, 512, 7, 3, 1, 0},        {3, 16, 32, 3, 1, CIFAR},
    {16, 16, 32, 3, 1, CIFAR},   {16, 32, 32, 3, 2, CIFAR},     {32, 32, 16, 3, 1, CIFAR},
    {32, 64, 16, 3, 2, CIFAR},   {64, 64, 8, 3, 1, CIFAR},      {128, 128, 56, 3, 1, 0, 32},
    {256, 256, 56, 3, 2, 0, 32}, {256, 256, 28, 3, 1, 0, 32},   {512, 512, 28, 3, 2, 0, 32},
    {512, 512, 14, 3, 1, 0, 32}, {1024, 1024, 14, 3, 2, 0, 32}, {1024, 1024, 7, 3, 1, 0, 32},
    {96, 96, 56, 3, 1, 0, 96},   {512, 512, 32, 3, 1, 0, 8},    {1, 16, 28, 3, 1, FASHION},
    {16, 16, 28, 3, 1, FASHION}, {16, 32, 28, 3, 2, FASHION},   {32, 32, 14, 3, 1, FASHION},
    {32, 64, 14, 3, 2, FASHION}, {64, 64, 7, 3, 1, FASHION},
};
/* The set of rows to which a layer belongs. */
static const char *set_of(const Layer *layer) {
  return layer->groups ? "groups" : layer->small == FASHION ? "fashion" : "all";
}
enum { N_LAYERS = sizeof layers / sizeof *layers, MAX_ROUNDS = 101 };

static int threads = 1;
static const char *type_name = "f32";
static int type = AMPRT_F32, size = 4; /* of an element in bytes */

static double seconds(void) {
  struct timespec t;
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One op in all forms, each with operands and workspace in an arena of its own. */
typedef struct Contest {
  OwnPlan own, direct;
  DnnOp dnn;
  AmprtRun own_run, direct_run, dnn_run;
  uint64_t out; /* offset of the result in all arenas */
  int64_t out_count;
} Contest;

static unsigned char *arena(int64_t operands, int64_t workspace) {
  int64_t bytes = (operands + workspace + 4095) / 4096 * 4096;
  unsigned char *p = aligned_alloc(4096, (size_t)bytes);
  CHECK(p, "out of memory");
  uint64_t seed = 1;
  for (int64_t i = 0; i < bytes / size; i++) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    const float x = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    amp_write(type, p, i, 1, &x);
  }
  return p;
}

/* A node with the operands and results of a convolution, as own_plan reads it. */
static Node *make_node(Arena *memory, DnnKind kind, int64_t dim[3][4], const DnnOp *op) {
  static const OpKind of[] = {OP_CONV2D, OP_CONV2D_DGRAD, OP_CONV2D_WGRAD};
  static const char *const names[] = {"conv2d", "conv2d_dgrad", "conv2d_wgrad"};
  static const int order[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
  char text[600], shape[3][80];
  for (int i = 0; i < 3; i++) {
    const int64_t *d = dim[order[kind][i]];
    snprintf(shape[i], sizeof shape[i], "%lld,%lld,%lld,%lld", (long long)d[0], (long long)d[1],
             (long long)d[2], (long long)d[3]);
  }
  snprintf(text, sizeof text,
           "graph @g stage lowered {\n %%a = input {name=\"a\"} : %s[%s]\n"
           " %%b = input {name=\"b\"} : %s[%s]\n"
           " %%y = %s %%a, %%b {stride=[%d,%d], pad=[%d,%d,%d,%d], groups=%d%s%s%s} : %s[%s]\n"
           " output %%y {name=\"y\"}\n}\n",
           type_name, shape[0], type_name, shape[1], names[kind], (int)op->stride[0],
           (int)op->stride[1], (int)op->pad[0], (int)op->pad[1], (int)op->pad[2], (int)op->pad[3],
           (int)op->groups, kind == DNN_CONV ? "" : ", shape=[", kind == DNN_CONV ? "" : shape[2],
           kind == DNN_CONV ? "" : "]", type_name, shape[2]);
  Diag diag = {.out = stderr, .source = text};
  Module *module = module_parse(memory, "layer", text, &diag);
  CHECK(module, "the layer does not parse");
  for (int i = 0; i < module->graph[0]->n_nodes; i++)
    if (module->graph[0]->node[i]->op == of[kind])
      return module->graph[0]->node[i];
  BUG("no op");
}

/* Puts the operands of a convolution, or of a gradient of a filter, at `at`, and its workspace
 * behind `from`. */
#define PLACE(args, a, b, memory)                                                                  \
  ((args).a = at[0], (args).b = at[1], (args).out = at[2], (args).memory += from,                  \
   (args).lane += from)

/* Plans one of our own forms; operands lie at `at`, workspace begins at `from`. */
static OwnPlan open_own(Node *node, Winograd winograd, const AmpRef at[3], int64_t from,
                        AmprtRun *run) {
  OwnPlan plan = own_plan(&(Kernel){0, 1, &node}, winograd);
  run->arena = arena(from, plan.workspace);
  run->threads = &amprt_threads;
  PLACE(plan.conv, in, filter, packed);
  PLACE(plan.grad, x, dy, sums);
  PLACE(plan.grouped, in, filter, packed);
  PLACE(plan.grouped_grad, x, dy, sums);
  return plan;
}

static void contest_open(Contest *c, Arena *memory, const Layer *l, DnnKind kind, int64_t n) {
  char error[300];
  int64_t groups = l->groups ? l->groups : 1, pad = l->r / 2,
          ho = (l->h + 2 * pad - l->r) / l->stride + 1;
  int64_t dim[3][4] = {{n, l->h, l->h, l->c}, {l->k, l->r, l->r, l->c / groups}, {n, ho, ho, l->k}};
  int64_t at[4] = {0};
  for (int i = 0; i < 3; i++)
    at[i + 1] = (at[i] + dim[i][0] * dim[i][1] * dim[i][2] * dim[i][3] * size + 4095) / 4096 * 4096;
  const int order[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
  const int *o = order[kind];
  *c = (Contest){.dnn = {.kind = (uint8_t)kind,
                         .dtype = (uint8_t)type,
                         .n = n,
                         .h = l->h,
                         .w = l->h,
                         .c = l->c,
                         .k = l->k,
                         .groups = groups,
                         .r = l->r,
                         .s = l->r,
                         .ho = ho,
                         .wo = ho,
                         .stride = {l->stride, l->stride},
                         .pad = {pad, pad, pad, pad},
                         .a = {(uint64_t)at[o[0]], 0, NULL},
                         .b = {(uint64_t)at[o[1]], 0, NULL},
                         .out = {(uint64_t)at[o[2]], 0, NULL},
                         .workspace = (uint64_t)at[3]},
                 .out = (uint64_t)at[o[2]],
                 .out_count = (at[o[2] + 1] - at[o[2]]) / size};
  onednn_choose(&c->dnn);
  int64_t bytes = dnn_workspace(&c->dnn, error, sizeof error);
  CHECK(bytes >= 0, "%s", error);
  c->dnn.workspace_bytes = (uint64_t)bytes;
  c->dnn_run.arena = arena(at[3], bytes);
  const DnnOp *list[] = {&c->dnn};
  CHECK(dnn_open(list, 1, &c->dnn_run, error, sizeof error) == 0, "%s", error);

  AmpRef ref[3];
  for (int i = 0; i < 3; i++)
    ref[i] = (AmpRef){.at = at[o[i]], .where = AMP_ARENA, .dtype = (uint8_t)type};
  Node *node = make_node(memory, kind, dim, &c->dnn);
  c->own = open_own(node, WINOGRAD_AUTO, ref, at[3], &c->own_run);
  c->direct = open_own(node, WINOGRAD_OFF, ref, at[3], &c->direct_run);
}

static void run_plan(const OwnPlan *plan, const AmprtRun *run) {
  switch (plan->kind) {
  case OWN_CONV:
    amp_conv(run, &plan->conv);
    break;
  case OWN_GRAD:
    amp_conv_grad(run, &plan->grad);
    break;
  case OWN_GROUPED:
    amp_grouped(run, &plan->grouped);
    break;
  case OWN_GROUPED_GRAD:
    amp_grouped_grad(run, &plan->grouped_grad);
    break;
  }
}
static void run_own(Contest *c) {
  run_plan(&c->own, &c->own_run);
}
static void run_direct(Contest *c) {
  run_plan(&c->direct, &c->direct_run);
}
static void run_dnn(Contest *c) {
  dnn_run(&c->dnn_run, &c->dnn);
}

static double time_of(void (*run)(Contest *), Contest *c) {
  double start = seconds();
  run(c);
  return seconds() - start;
}

/* The largest difference, as a share of the largest element. */
static double difference(const Contest *c) {
  double most = 0, largest = 0;
  for (int64_t i = 0; i < c->out_count; i++) {
    float buf[2];
    const double a = (double)*amp_read(type, c->own_run.arena + c->out, i, 1, &buf[0]);
    const double b = (double)*amp_read(type, c->dnn_run.arena + c->out, i, 1, &buf[1]);
    most = fmax(most, fabs(a - b));
    largest = fmax(largest, fabs(b));
  }
  return most / largest;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_ratios(double *ratio, int rounds) {
  qsort(ratio, (size_t)rounds, sizeof *ratio, by_size);
  printf(" %.2f [%.2f..%.2f] |", ratio[rounds / 2], ratio[0], ratio[rounds - 1]);
}

enum { OWN, DIRECT, DNN, FORMS };

/* Prints the fastest run of each form and the median of the rounds' ratios; adds the fastest runs
 * to `total`. */
static void play(const Layer *l, DnnKind kind, int64_t n, int rounds, double total[FORMS]) {
  static const char *const names[] = {"forward", "data", "filter"};
  static void (*const form[FORMS])(Contest *) = {run_own, run_direct, run_dnn};
  Arena *memory = arena_new();
  Contest c;
  double best[FORMS] = {1e9, 1e9, 1e9}, now[FORMS], ratio[FORMS][MAX_ROUNDS];
  contest_open(&c, memory, l, kind, n);
  run_own(&c);
  run_dnn(&c);
  double wrong = difference(&c);
  CHECK(wrong < (type == AMPRT_F32 ? 1e-4 : 1e-2), "results differ by %g", wrong);
  for (int i = 0; i < rounds; i++) {
    for (int k = 0; k < FORMS; k++) {
      int f = i % 2 ? FORMS - 1 - k : k;
      if (f != DIRECT || c.own.winograd)
        now[f] = time_of(form[f], &c);
    }
    if (!c.own.winograd)
      now[DIRECT] = now[OWN];
    for (int f = 0; f < FORMS; f++) {
      best[f] = fmin(best[f], now[f]);
      ratio[f][i] = now[f] / now[OWN];
    }
  }
  double flop =
      2e-9 * (double)(n * c.dnn.ho * c.dnn.wo * l->k * l->c * l->r * l->r) / (double)c.dnn.groups;
  char groups[24] = "";
  if (l->groups)
    snprintf(groups, sizeof groups, " by %d", (int)l->groups);
  printf("| %dx%d%s %d->%d%s @%d | %s | %.0f | %.0f |", (int)l->r, (int)l->r,
         l->stride == 2 ? "/2" : "", (int)l->c, (int)l->k, groups, (int)l->h, names[kind],
         flop / best[OWN], flop / best[DNN]);
  print_ratios(ratio[DNN], rounds);
  if (c.own.winograd) {
    printf(" %.0f |", flop / best[DIRECT]);
    print_ratios(ratio[DIRECT], rounds);
  } else {
    printf(" | |");
  }
  printf("\n");
  fflush(stdout);
  for (int f = 0; f < FORMS; f++)
    total[f] += best[f];
  dnn_close();
  free(c.own_run.arena);
  free(c.direct_run.arena);
  free(c.dnn_run.arena);
  arena_free(memory);
}

static void choose_type(const char *name) {
  static const char *const names[] = {
      [AMPRT_F32] = "f32", [AMPRT_F16] = "f16", [AMPRT_BF16] = "bf16"};
  for (type = 0; type < (int)(sizeof names / sizeof *names); type++)
    if (names[type] && strcmp(names[type], name) == 0)
      break;
  CHECK(type < (int)(sizeof names / sizeof *names), "`%s` is not f32, f16 or bf16", name);
  type_name = name;
  size = type == AMPRT_F32 ? 4 : 2;
}

/* oneDNN computes with libgomp's threads. When they have nothing more to do they spin, by default
 * for so long that they keep our own threads from the processors. This makes them sleep after about
 * the time that ours do. libgomp reads GOMP_SPINCOUNT when it is loaded, so the program sets it and
 * starts itself again. */
static void let_threads_sleep(char **argv) {
  if (threads == 1 || getenv("GOMP_SPINCOUNT"))
    return;
  setenv("GOMP_SPINCOUNT", "2000", 1);
  execv("/proc/self/exe", argv);
  CHECK(0, "cannot start again: %s", strerror(errno));
}

int main(int argc, char **argv) {
  threads = argc > 1 ? atoi(argv[1]) : 1;
  let_threads_sleep(argv);
  int64_t batch = argc > 2 ? atoi(argv[2]) : 8;
  int rounds = argc > 3 ? atoi(argv[3]) : 9;
  CHECK(threads >= 1 && threads <= AMP_TEAM, "1 to %d threads", AMP_TEAM);
  const char *only = argc > 4 ? argv[4] : "all", *kinds = argc > 6 ? argv[6] : "fdw";
  const int only_row = strspn(only, "0123456789") == strlen(only) ? atoi(only) : -1;
  CHECK((only_row >= 0 && only_row < N_LAYERS) || !strcmp(only, "all") || !strcmp(only, "groups") ||
            !strcmp(only, "fashion"),
        "layer `%s`: 0 to %d, all, groups or fashion", only, N_LAYERS - 1);
  if (argc > 5)
    choose_type(argv[5]);
  CHECK(rounds >= 1 && rounds <= MAX_ROUNDS, "1 to %d rounds", MAX_ROUNDS);
  char error[200];
  omp_set_num_threads(threads);
  CHECK(amprt_threads.open(threads, error, sizeof error) == 0, "%s", error);
  amp_amx = amprt_amx();
  amp_pairs = amprt_bf16_pairs_pay();
  double total[FORMS] = {0};
  printf("| layer | | own GFLOP/s | oneDNN GFLOP/s | ratio | direct GFLOP/s | ratio |\n"
         "|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < N_LAYERS; i++)
    for (int kind = DNN_CONV; kind <= DNN_WGRAD; kind++)
      if ((strcmp(only, set_of(&layers[i])) == 0 || only_row == i) && strchr(kinds, "fdw"[kind]) &&
          !(kind == DNN_DGRAD && layers[i].c <= 3))
        play(&layers[i], (DnnKind)kind, layers[i].small ? 16 * batch : batch, rounds, total);
  printf("sums of the fastest runs: own %.1f ms, own direct %.1f ms, oneDNN %.1f ms\n",
         1e3 * total[OWN], 1e3 * total[DIRECT], 1e3 * total[DNN]);
  return 0;
}
