/* --mlperf-log: the lines that MLPerf's tools read from the log of a training of ResNet
 * (specs/resnet.md 6.2). Who submits a result adds what a program cannot know: the submission's own
 * keys and cache_clear. */
#include "ir/recipe/lr_schedule.def"
#include "runtime/base/clock.h"
#include "runtime/report/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double official_target = .759;

typedef struct Mllog {
  AmprtSession *session;
  int fd; /* -1: standard output */
  bool told, started, in_block, reached;
  double first;          /* epoch of the block, counted from the start of training */
  double seconds, block; /* of training, now and when the block began */
  uint64_t examples;     /* at its begin */
} Mllog;

static void write_line(Mllog *mllog, AmprtText *text) {
  amprt_text_add(text, "}}%s", mllog->fd < 0 ? "" : "\n");
  if (mllog->fd < 0 && !text->failed)
    amprt_say(&mllog->session->log, "%s", text->data);
  else if (!mllog->told && (text->failed || write(mllog->fd, text->data, text->size) < 0)) {
    amprt_warn(&mllog->session->log, "%s: cannot be written: %s; the run goes on",
               mllog->session->options.mlperf_log, text->failed ? "no memory" : strerror(errno));
    mllog->told = true;
  }
  amprt_text_free(text);
}

/* A line up to its metadata, to which more may be added before write_line. `value` is JSON. */
#define begin_line(text, type, key, value)                                                         \
  begin_line_at(text, amprt_wall_seconds(), type, key, value, __LINE__)
static void begin_line_at(AmprtText *text, double seconds, const char *type, const char *key,
                          const char *value, int line) {
  amprt_text_add(text,
                 ":::MLLOG {\"namespace\": \"\", \"time_ms\": %" PRId64
                 ", \"event_type\": \"%s\", \"key\": \"%s\", \"value\": %s, "
                 "\"metadata\": {\"file\": \"runtime/report/mllog.c\", \"lineno\": %d",
                 (int64_t)(1e3 * seconds), type, key, value, line);
}

static void point(Mllog *mllog, const char *key, const char *value) {
  AmprtText text = {0};
  begin_line(&text, "POINT_IN_TIME", key, value);
  write_line(mllog, &text);
}

static void point_text(Mllog *mllog, const char *key, const char *value) {
  AmprtText quoted = {0};
  amprt_text_string(&quoted, value);
  point(mllog, key, quoted.failed ? "null" : quoted.data);
  amprt_text_free(&quoted);
}

static void point_number(Mllog *mllog, const char *key, double value) {
  AmprtText number = {0};
  amprt_text_double(&number, value);
  point(mllog, key, number.failed ? "null" : number.data);
  amprt_text_free(&number);
}

static const char *made(const AmprtSession *session, const char *flag) {
  for (int i = 0; i < session->made.n; i++)
    if (!strcmp(session->made.field[i].key, flag))
      return session->made.field[i].value;
  return NULL;
}

/* Under the names that MLPerf has for LARS and for SGD with momentum; other optimizers get
 * `opt_`. */
static void add_optimizer(Mllog *mllog) {
  const AmprtSession *session = mllog->session;
  const float *schedule = session->schedule;
  const char *name = made(session, "optimizer"), *decay = made(session, "weight-decay");
  const char *momentum = made(session, "momentum"), *epsilon = made(session, "optimizer-epsilon");
  name = name ? name : "unknown";
  bool lars = !strcmp(name, "lars");
  bool sgd = !strcmp(name, "sgd") || strstr(name, "momentum") || strstr(name, "nesterov");
  const char *prefix = lars ? "lars_opt_" : sgd ? "sgd_opt_" : "opt_";
  char key[64];
#define key_of(suffix) (snprintf(key, sizeof key, "%s%s", prefix, suffix), key)
  point_text(mllog, "opt_name", sgd ? "sgd" : name);
  point_number(mllog, key_of("base_learning_rate"), schedule[AMP_LR_BASE]);
  point_number(mllog, key_of("learning_rate_warmup_epochs"), session->options.warmup_epochs);
  if (schedule[AMP_LR_KIND] == AMP_LR_POLYNOMIAL) {
    point_number(mllog, key_of("end_learning_rate"), schedule[AMP_LR_END]);
    point_number(mllog, key_of("learning_rate_decay_poly_power"), schedule[AMP_LR_POWER]);
    point_number(mllog, key_of("learning_rate_decay_steps"),
                 (double)schedule[AMP_LR_TOTAL] - (double)schedule[AMP_LR_WARMUP] + 1);
  }
  if (momentum)
    point(mllog, key_of("momentum"), momentum);
  if (decay)
    point(mllog, key_of("weight_decay"), decay);
  if (lars && epsilon)
    point(mllog, "lars_epsilon", epsilon);
#undef key_of
}

static AmprtStatus mllog_open(AmprtSession *session, void **state, AmprtError *error) {
  const char *path = session->options.mlperf_log;
  if (!*path)
    return AMPRT_OK;
  Mllog *mllog = calloc(1, sizeof *mllog);
  if (!mllog)
    return amprt_fail_memory(error, sizeof *mllog, "--mlperf-log");
  *state = mllog;
  mllog->session = session;
  mllog->fd = -1;
  if (strcmp(path, "-") != 0)
    mllog->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  if (mllog->fd < 0 && strcmp(path, "-") != 0)
    return amprt_fail(error, AMPRT_ENV, "%s: cannot be written: %s", path, strerror(errno));
  AmprtText text = {0};
  begin_line_at(&text, session->began, "INTERVAL_START", "init_start", "null", __LINE__);
  write_line(mllog, &text);
  point_text(mllog, "submission_benchmark", "resnet");
  point_number(mllog, "seed", (double)session->progress.seed);
  point_number(mllog, "global_batch_size", (double)amprt_step_examples(session));
  point_number(mllog, "train_samples", (double)session->data.train.n);
  point_number(mllog, "eval_samples", (double)session->data.test.n);
  add_optimizer(mllog);
  begin_line(&text, "INTERVAL_END", "init_stop", "null");
  write_line(mllog, &text);
  return AMPRT_OK;
}

static double epochs_done(const Mllog *mllog) {
  return (double)mllog->session->progress.examples / (double)mllog->session->epoch;
}

static void mllog_cycle(void *state, double epochs) {
  Mllog *mllog = state;
  AmprtText text = {0};
  if (!mllog->started)
    begin_line(&text, "INTERVAL_START", "run_start", "null");
  if (!mllog->started)
    write_line(mllog, &text);
  mllog->started = mllog->in_block = true;
  mllog->first = epochs_done(mllog);
  mllog->block = mllog->seconds;
  mllog->examples = mllog->session->progress.examples;
  begin_line(&text, "INTERVAL_START", "block_start", "null");
  amprt_text_add(&text, ", \"first_epoch_num\": %g, \"epoch_count\": %g", mllog->first + 1,
                 epochs - mllog->first);
  write_line(mllog, &text);
}

static void mllog_step(void *state, const AmprtStepEnd *end) {
  ((Mllog *)state)->seconds = end->seconds;
}

static void end_block(Mllog *mllog) {
  AmprtText text = {0}, rate = {0};
  double seconds = mllog->seconds - mllog->block;
  if (!mllog->in_block)
    return;
  mllog->in_block = false;
  begin_line(&text, "INTERVAL_END", "block_stop", "null");
  amprt_text_add(&text, ", \"first_epoch_num\": %g", mllog->first + 1);
  write_line(mllog, &text);
  if (!(seconds > 0))
    return;
  amprt_text_add(&rate, "{\"throughput\": ");
  amprt_text_double(&rate, (double)(mllog->session->progress.examples - mllog->examples) / seconds);
  amprt_text_add(&rate, "}");
  begin_line(&text, "POINT_IN_TIME", "tracked_stats", rate.failed ? "null" : rate.data);
  amprt_text_add(&text, ", \"step\": %g", epochs_done(mllog));
  write_line(mllog, &text);
  amprt_text_free(&rate);
}

static void mllog_evaluate(void *state) {
  Mllog *mllog = state;
  AmprtText text = {0};
  end_block(mllog);
  begin_line(&text, "INTERVAL_START", "eval_start", "null");
  amprt_text_add(&text, ", \"epoch_num\": %g", epochs_done(mllog));
  write_line(mllog, &text);
}

static void mllog_score(void *state, const AmprtScore *score) {
  Mllog *mllog = state;
  AmprtText text = {0}, value = {0};
  double target = mllog->session->options.stop_threshold;
  mllog->reached |= score->accuracy >= (isnan(target) ? official_target : target);
  amprt_text_double(&value, score->accuracy);
  begin_line(&text, "POINT_IN_TIME", "eval_accuracy", value.failed ? "null" : value.data);
  amprt_text_add(&text, ", \"epoch_num\": %g", epochs_done(mllog));
  write_line(mllog, &text);
  begin_line(&text, "INTERVAL_END", "eval_stop", "null");
  amprt_text_add(&text, ", \"epoch_num\": %g", epochs_done(mllog));
  write_line(mllog, &text);
  amprt_text_free(&value);
}

static void mllog_close(void *state, AmprtStatus status, int stopped) {
  Mllog *mllog = state;
  AmprtText text = {0};
  if (mllog->started) {
    end_block(mllog);
    begin_line(&text, "INTERVAL_END", "run_stop", "null");
    amprt_text_add(&text, ", \"status\": \"%s\", \"epoch_num\": %g",
                   !status && !stopped && mllog->reached ? "success" : "aborted",
                   epochs_done(mllog));
    write_line(mllog, &text);
  }
  if (mllog->fd >= 0)
    close(mllog->fd);
  free(mllog);
}

const AmprtSink amprt_mllog = {.open = mllog_open,
                               .cycle = mllog_cycle,
                               .step = mllog_step,
                               .evaluate = mllog_evaluate,
                               .score = mllog_score,
                               .close = mllog_close};
