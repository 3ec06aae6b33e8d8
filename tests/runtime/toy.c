#include "tests/runtime/toy.h"

#include "ir/recipe/lr_schedule.def"
#include "runtime/base/convert.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = TOY_BATCH, P = TOY_PIXELS, K = TOY_CLASSES };

typedef struct State {
  float w[K * P], b[K], wm[K * P], bm[K], mean;
  float scale;
  int32_t good;
  int64_t step;
  uint16_t low[K * P];
} State;

typedef struct Arena {
  float image[N * P], schedule[64], bn_momentum, logits[N * K];
  _Alignas(64) float gw[K * P]; /* bucket 0 of train_dp */
  _Alignas(64) float gb[K];     /* bucket 1 begins */
  float sum[12];                /* and ends; sums over shards: loss, accuracy, votes, mean */
  float loss, accuracy, lr, loss_each[N], hit_each[N];
  float shard_factor, stop_vote, stop_votes;
  int32_t label[N];
  unsigned char finite;
} Arena;
enum { LOSS, ACCURACY, VOTES, MEAN }; /* of Arena.sum */
_Static_assert(offsetof(Arena, sum) == offsetof(Arena, gb) + 16, "bucket 1");

typedef struct Args {
  int low, nan, shards;
} Args;

int toy_signal, toy_signal_at;

static State *state_of(const AmprtRun *run) {
  return (State *)(void *)run->state;
}
static Arena *arena_of(const AmprtRun *run) {
  return (Arena *)(void *)run->arena;
}

/* logits, loss_each, hit_each */
static void forward(const AmprtRun *run, const void *args) {
  State *s = state_of(run);
  Arena *a = arena_of(run);
  const Args *how = args;
  for (int n = 0; n < N; n++) {
    float *z = a->logits + n * K, most = -INFINITY, sum = 0;
    int best = 0;
    for (int k = 0; k < K; k++) {
      z[k] = s->b[k];
      for (int i = 0; i < P; i++)
        z[k] +=
            a->image[n * P + i] * (how->low ? amprt_f16_to(s->low[k * P + i]) : s->w[k * P + i]);
      if (z[k] > most)
        most = z[k], best = k;
    }
    for (int k = 0; k < K; k++)
      sum += expf(z[k] - most);
    a->loss_each[n] = how->nan ? NAN : logf(sum) + most - z[a->label[n]];
    a->hit_each[n] = best == a->label[n];
  }
}

static float mean_of(const Arena *a) {
  float mean = 0;
  for (int i = 0; i < N * P; i++)
    mean += a->image[i] / (N * P);
  return mean;
}

static void follow_mean(State *s, float mean) {
  s->mean = .99f * s->mean + .01f * mean;
}

/* Computes the gradients times the loss scale. Where there is no finite test to wait for, the
 * moving mean follows at once, which is how the compiler orders kernels. */
static void backward(const AmprtRun *run, const void *args) {
  State *s = state_of(run);
  Arena *a = arena_of(run);
  const Args *how = args;
  if (!how->low && !how->shards)
    follow_mean(s, mean_of(a));
  for (int i = 0; i < K * P; i++)
    a->gw[i] = 0;
  for (int k = 0; k < K; k++)
    a->gb[k] = 0;
  a->loss = a->accuracy = 0;
  for (int n = 0; n < N; n++) {
    float sum = 0, most = -INFINITY, *z = a->logits + n * K;
    for (int k = 0; k < K; k++)
      most = z[k] > most ? z[k] : most;
    for (int k = 0; k < K; k++)
      sum += expf(z[k] - most);
    for (int k = 0; k < K; k++) {
      float d = (expf(z[k] - most) / sum - (k == a->label[n])) / N;
      if (how->low)
        d = amprt_f16_to(amprt_f16_of(d * s->scale));
      a->gb[k] += d;
      for (int i = 0; i < P; i++)
        a->gw[k * P + i] += d * a->image[n * P + i];
    }
    a->loss += a->loss_each[n] / N;
    a->accuracy += a->hit_each[n] / N;
  }
}

static float rate(const State *s, const float *v) {
  double t = (double)s->step, w = v[AMP_LR_WARMUP], total = v[AMP_LR_TOTAL];
  if (t < w)
    return (float)(v[AMP_LR_BASE] * t / w);
  if (v[AMP_LR_KIND] != AMP_LR_COSINE)
    return v[AMP_LR_BASE];
  return (float)(v[AMP_LR_END] + (v[AMP_LR_BASE] - v[AMP_LR_END]) *
                                     (1 + cos(acos(-1) * fmin(1, (t - w) / fmax(1, total - w)))) /
                                     2);
}

static bool is_finite(const Arena *a) {
  bool finite = true;
  for (int i = 0; i < K * P; i++)
    finite &= isfinite(a->gw[i]) != 0;
  for (int k = 0; k < K; k++)
    finite &= isfinite(a->gb[k]) != 0;
  return finite;
}

/* What a shard adds to bucket 1 beside its gradient. */
static void report(const AmprtRun *run, const void *args) {
  Arena *a = arena_of(run);
  (void)args;
  a->sum[LOSS] = a->loss;
  a->sum[ACCURACY] = a->accuracy;
  a->sum[VOTES] = a->stop_vote;
  a->sum[MEAN] = mean_of(a);
  a->loss = a->accuracy = -1; /* nobody may read them before the sums */
}

static void read_sums(const AmprtRun *run, const void *args) {
  Arena *a = arena_of(run);
  (void)args;
  a->loss = a->sum[LOSS] * a->shard_factor;
  a->accuracy = a->sum[ACCURACY] * a->shard_factor;
  a->stop_votes = a->sum[VOTES];
}

static void update(const AmprtRun *run, const void *args) {
  State *s = state_of(run);
  Arena *a = arena_of(run);
  const Args *how = args;
  float factor = how->shards ? a->shard_factor : 1;
  float unscale = factor / (how->low ? s->scale : 1);
  float mean = how->shards ? a->sum[MEAN] * factor : mean_of(a);
  a->lr = rate(s, a->schedule);
  a->finite = !how->low || is_finite(a);
  if (!a->finite) {
    s->scale /= s->scale > 1 ? 2 : 1;
    s->good = 0;
    return;
  }
  for (int i = 0; i < K * P; i++) {
    s->wm[i] = .9f * s->wm[i] + a->gw[i] * unscale;
    s->w[i] -= a->lr * s->wm[i];
    s->low[i] = amprt_f16_of(s->w[i]);
  }
  for (int k = 0; k < K; k++) {
    s->bm[k] = .9f * s->bm[k] + a->gb[k] * unscale;
    s->b[k] -= a->lr * s->bm[k];
  }
  if (how->low || how->shards)
    follow_mean(s, mean);
  if (how->low && ++s->good == 5) {
    s->scale *= s->scale < 0x1p16f ? 2 : 1;
    s->good = 0;
  }
  s->step++;
}

static void interrupt(const AmprtRun *run, const void *args) {
  (void)run, (void)args;
  const char *text = getenv("TOY_SLEEP_US");
  struct timespec pause = {.tv_nsec = text ? 1000 * strtol(text, NULL, 10) : 0};
  if (text)
    nanosleep(&pause, NULL);
  if (toy_signal_at && --toy_signal_at == 0)
    raise(toy_signal);
}

static void stats(const AmprtRun *run, const void *args) {
  (void)args;
  Arena *a = arena_of(run);
  float mean = 0;
  for (int i = 0; i < N * P; i++)
    mean += a->image[i] / (N * P);
  state_of(run)->mean = state_of(run)->mean * a->bn_momentum + mean * (1 - a->bn_momentum);
}

#define AT(field) offsetof(Arena, field)
static const AmprtPort inputs[] = {
    {"image", AMPRT_F32, 4, .pixels = 1, .dim = {N, TOY_SIDE, TOY_SIDE, 1}, .at = AT(image)},
    {"label", AMPRT_I32, 1, .dim = {N}, .at = AT(label)},
    {"schedule", AMPRT_F32, 1, .dim = {64}, .at = AT(schedule)},
    {"bn_momentum", AMPRT_F32, 0, .at = AT(bn_momentum)},
    {"shard_factor", AMPRT_F32, 0, .at = AT(shard_factor)}, /* these two: of train_dp alone */
    {"stop_vote", AMPRT_F32, 0, .at = AT(stop_vote)},
};
static const AmprtPort outputs[] = {
    {"loss", AMPRT_F32, 0, .at = AT(loss), .after = 1},
    {"accuracy", AMPRT_F32, 0, .at = AT(accuracy)},
    {"logits", AMPRT_F32, 2, .dim = {N, K}, .at = AT(logits)},
    {"learning_rate", AMPRT_F32, 0, .at = AT(lr)},
    {"finite", AMPRT_BOOL, 0, .at = AT(finite)},
};
static const AmprtPort dp_outputs[] = {
    {"loss", AMPRT_F32, 0, .at = AT(loss), .after = 3},
    {"accuracy", AMPRT_F32, 0, .at = AT(accuracy)},
    {"logits", AMPRT_F32, 2, .dim = {N, K}, .at = AT(logits)},
    {"learning_rate", AMPRT_F32, 0, .at = AT(lr)},
    {"stop_votes", AMPRT_F32, 0, .at = AT(stop_votes)},
    {"finite", AMPRT_BOOL, 0, .at = AT(finite)},
};
static const AmprtPort eval_outputs[] = {
    {"loss_each", AMPRT_F32, 1, .dim = {N}, .at = AT(loss_each)},
    {"hit_each", AMPRT_F32, 1, .dim = {N}, .at = AT(hit_each)},
};
#define TAPS(is_scaled)                                                                            \
  {                                                                                                \
    {"fc.weight.grad", AMPRT_F32, 4, .scaled = is_scaled, .dim = {K, TOY_SIDE, TOY_SIDE, 1},       \
     .at = AT(gw),     .after = 1},                                                                \
    {                                                                                              \
      "fc.bias.grad", AMPRT_F32, 1, .scaled = is_scaled, .dim = {K}, .at = AT(gb), .after = 1      \
    }                                                                                              \
  }
static const AmprtPort taps[] = TAPS(0), scaled_taps[] = TAPS(1);

static const Args plain = {0, 0, 0}, low = {1, 0, 0}, nans = {0, 1, 0};
static const Args plain_dp = {0, 0, 1}, low_dp = {1, 0, 1}, nans_dp = {0, 1, 1};
#define TRAIN(args)                                                                                \
  {                                                                                                \
    {&args, "k0_forward", "fc"}, {&args, "k1_backward", "fc"}, {&args, "k2_update", ""}, {         \
      &args, "k3_interrupt", ""                                                                    \
    }                                                                                              \
  }
/* Kernels 0 to 2 run for every shard. */
#define TRAIN_DP(args)                                                                             \
  {                                                                                                \
    {&args, "k0_forward", "fc"}, {&args, "k1_backward", "fc"}, {&args, "k2_report", ""},           \
        {&args, "k3_sums", ""}, {&args, "k4_update", ""}, {                                        \
      &args, "k5_interrupt", ""                                                                    \
    }                                                                                              \
  }
static const AmprtKernel dp_plain[] = TRAIN_DP(plain_dp), dp_low[] = TRAIN_DP(low_dp),
                         dp_nan[] = TRAIN_DP(nans_dp);
static const AmprtBucket buckets[] = {{AT(gw), K *P, 1, 4}, {AT(gb), 16, 2, 3}};
static const AmprtKernel train_plain[] = TRAIN(plain), train_low[] = TRAIN(low);
static const AmprtKernel train_nan[] = TRAIN(nans), stats_kernel[] = {{NULL, "k0", "bn"}};
static const AmprtKernel eval_plain[] = {{&plain, "k0_forward", "fc"}};
static const AmprtKernel eval_low[] = {{&low, "k0_forward", "fc"}};

static AmprtFunction *const dp_run[] = {forward, backward, report, read_sums, update, interrupt};
static AmprtFunction *const train_run[] = {forward, backward, update, interrupt};
static AmprtFunction *const eval_run[] = {forward}, *const stats_run[] = {stats};

static const AmprtValue values[] = {
    {"logits", "matmul", "fc", NULL, AT(logits), N *K, 0, AMPRT_F32},
    {"loss_each", "softmax_xent", "loss", "exp of loss or log of loss", AT(loss_each), N, 0,
     AMPRT_F32},
    {"fc.weight.grad", "matmul", "fc", NULL, AT(gw), K *P, 1, AMPRT_F32},
    {"fc.bias.grad", "bias_grad", "fc", NULL, AT(gb), K, 1, AMPRT_F32},
};

/* fp32 programs have no finite test, the last output. */
#define GRAPHS(train, eval, tap, outs, dp)                                                         \
  {                                                                                                \
    {"train", train, train_run, inputs, outputs, tap, 4, 4, outs, 2, sizeof(Arena), values, 4, 2}, \
        {"eval", eval, eval_run, inputs, eval_outputs, NULL, 1, 3, 2, 0, sizeof(Arena)},           \
        {"stats", stats_kernel, stats_run, inputs, NULL, NULL, 1, 4, 0, 0, sizeof(Arena)}, {       \
      "train_dp", dp, dp_run, inputs, dp_outputs, tap, 6, 6, outs + 1, 2, sizeof(Arena), values,   \
          4, 4, buckets, 2, 3                                                                      \
    }                                                                                              \
  }
static const AmprtGraph graphs[] = GRAPHS(train_plain, eval_plain, taps, 4, dp_plain);
static const AmprtGraph low_graphs[] = GRAPHS(train_low, eval_low, scaled_taps, 5, dp_low);
static const AmprtGraph nan_graphs[] = GRAPHS(train_nan, eval_plain, taps, 4, dp_nan);

#define IN(field) offsetof(State, field)
static const AmprtVariable variables[] = {
    {"fc.weight",
     AMPRT_F32,
     4,
     AMPRT_PARAM,
     AMPRT_TRUNCATED_NORMAL,
     {K, TOY_SIDE, TOY_SIDE, 1},
     IN(w),
     NULL,
     {0, .05}},
    {"fc.bias", AMPRT_F32, 1, AMPRT_PARAM, AMPRT_ZEROS, {K}, IN(b), .layer = "fc"},
    {"fc.weight.momentum",
     AMPRT_F32,
     4,
     AMPRT_SLOT,
     AMPRT_ZEROS,
     {K, TOY_SIDE, TOY_SIDE, 1},
     IN(wm),
     "fc.weight"},
    {"fc.bias.momentum", AMPRT_F32, 1, AMPRT_SLOT, AMPRT_ZEROS, {K}, IN(bm), "fc.bias"},
    {"bn.running_mean", AMPRT_F32, 0, AMPRT_STAT, AMPRT_ZEROS, .at = IN(mean)},
    {"global_step", AMPRT_I64, 0, AMPRT_COUNTER, AMPRT_ZEROS, .at = IN(step)},
    {"loss_scale", AMPRT_F32, 0, AMPRT_SCALE, AMPRT_CONSTANT, .at = IN(scale), .init_arg = {1024}},
    {"good_steps", AMPRT_I32, 0, AMPRT_SCALE, AMPRT_ZEROS, .at = IN(good)},
    {"fc.weight.f16",
     AMPRT_F16,
     4,
     AMPRT_COPY,
     AMPRT_ZEROS,
     {K, TOY_SIDE, TOY_SIDE, 1},
     IN(low),
     "fc.weight"},
};
static const AmprtVariable other_variables[] = {
    {"fc.weight", AMPRT_F32, 4, AMPRT_PARAM, AMPRT_ZEROS, {K, TOY_SIDE, TOY_SIDE / 2, 2}, IN(w)},
    {"fc.scale", AMPRT_F32, 1, AMPRT_PARAM, AMPRT_ZEROS, {K}, IN(b)},
};

static const AmprtSetting recipe[] = {{"dataset", "fashion_mnist"}, {"learning-rate", "0.05"},
                                      {"lr-schedule", "cosine"},    {"train-epochs", "4"},
                                      {"augment_pad", "1"},         {"augment-flip", "0"}};

static const AmprtSetting made[] = {
    {"batch-size", "8"}, {"optimizer", "momentum"}, {"weight-decay", "0.0"}};

static const char *describe(void) {
  return "a toy";
}

/* "the    plan\n" and "the precision\n", compressed by zlib. */
static const char plan[] =
    "\170\234\053\311\110\125\000\202\202\234\304\074\056\000\027\217\003\167";
static const char precision[] =
    "\170\234\053\311\110\125\050\050\112\115\316\054\316\314\317\343\002\000\050\225\005\070";

#define PROGRAM(name, type, print, vars, n_vars, graph_table)                                      \
  {                                                                                                \
    AMPRT_ABI, name, "ampcc 0.1.0", "cpu", type, print, N, K, TOY_SIDE, TOY_SIDE, 1, vars, n_vars, \
        graph_table, 4, sizeof(State), recipe, 6, .99, {plan, sizeof plan - 1, 12},                \
        {precision, sizeof precision - 1, 14}, .describe = describe, .made = made, .n_made = 3,    \
                                               .head = "fc"                                        \
  }
const AmprtProgram toy_fp32 = PROGRAM("toy", "fp32", "abc", variables, 6, graphs);
const AmprtProgram toy_fp16 = PROGRAM("toy", "fp16", "abc", variables, 9, low_graphs);
const AmprtProgram toy_nan = PROGRAM("toy", "fp32", "abc", variables, 6, nan_graphs);
const AmprtProgram toy_other = PROGRAM("other", "fp32", "abd", other_variables, 2, graphs);

int toy_open_fails(const AmprtRun *run, char *error, size_t error_size) {
  (void)run;
  snprintf(error, error_size, "this processor is too old");
  return -1;
}

static void put32(FILE *out, unsigned v) {
  for (int shift = 24; shift >= 0; shift -= 8)
    fputc((int)(v >> shift & 255), out);
}

static FILE *create(const char *dir, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *out = fopen(path, "wb");
  if (!out)
    abort();
  return out;
}

static void write_part(const char *dir, const char *part, int n, unsigned seed) {
  char name[64];
  snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
  FILE *images = create(dir, name);
  snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
  FILE *labels = create(dir, name);
  put32(images, 0x803), put32(images, (unsigned)n), put32(images, 6), put32(images, 6);
  put32(labels, 0x801), put32(labels, (unsigned)n);
  for (int i = 0; i < n; i++) {
    int label = (int)((seed = seed * 1103515245 + 12345) >> 16 & 3);
    fputc(label, labels);
    for (int y = 0; y < 6; y++)
      for (int x = 0; x < 6; x++) {
        seed = seed * 1103515245 + 12345;
        fputc((int)(seed >> 16 & 127) + ((y / 3 * 2 + x / 3) == label ? 100 : 0), images);
      }
  }
  fclose(images);
  fclose(labels);
}

void toy_write_data(const char *dir, int n_train, int n_test) {
  write_part(dir, "train", n_train, 1);
  write_part(dir, "t10k", n_test, 2);
}
