/* --log-steps: the lines of the official custom training loop (specs/resnet.md 1.7),
 * "BenchmarkMetric" every so many steps of this run and "Run stats" at its end. */
#include "runtime/base/clock.h"
#include "runtime/report/sink.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef struct Stamp {
  int64_t step;
  double at; /* seconds since 1970 */
} Stamp;

typedef struct Stats {
  AmprtSession *session;
  int64_t steps; /* of this run, that have begun */
  double start;  /* of the window */
  Stamp *stamp;  /* the start, and the end of each window */
  size_t n_stamps, room;
  double loss, accuracy; /* sums over this cycle, of so many steps */
  int64_t cycle_steps;
  AmprtScore score;
  double trained; /* when the last step ended */
} Stats;

static AmprtStatus stats_open(AmprtSession *session, void **state, AmprtError *error) {
  if (!session->options.log_steps)
    return AMPRT_OK;
  Stats *stats = calloc(1, sizeof *stats);
  if (!stats)
    return amprt_fail_memory(error, sizeof *stats, "--log-steps");
  *state = stats;
  stats->session = session;
  stats->score.loss = stats->score.accuracy = (double)NAN;
  return AMPRT_OK;
}

/* The list of stamps is for the end; a run without memory for it goes on. */
static void add_stamp(Stats *stats, int64_t step, double at) {
  if (stats->n_stamps == stats->room) {
    size_t room = stats->room ? 2 * stats->room : 64;
    Stamp *more = realloc(stats->stamp, room * sizeof *more);
    if (!more)
      return;
    stats->stamp = more;
    stats->room = room;
  }
  stats->stamp[stats->n_stamps++] = (Stamp){step, at};
}

static void stats_cycle(void *state, double epochs) {
  Stats *stats = state;
  (void)epochs;
  stats->loss = stats->accuracy = 0;
  stats->cycle_steps = 0;
}

static bool stats_begin(void *state, int64_t number, const AmprtBatch *batch) {
  Stats *stats = state;
  (void)number, (void)batch;
  if (!stats->start) {
    stats->start = amprt_wall_seconds();
    add_stamp(stats, 1, stats->start);
  }
  return false;
}

static void stats_step(void *state, const AmprtStepEnd *end) {
  Stats *stats = state;
  int64_t every = stats->session->options.log_steps;
  stats->loss += end->result->loss;
  stats->accuracy += end->result->accuracy;
  stats->cycle_steps++;
  stats->trained = amprt_wall_seconds();
  if (++stats->steps % every)
    return;
  double taken = stats->trained - stats->start;
  add_stamp(stats, stats->steps, stats->trained);
  amprt_say(&stats->session->log,
            "BenchmarkMetric: {'global step':%" PRId64
            ", 'time_taken': %f,'examples_per_second': %f}",
            stats->steps, taken, (double)(amprt_step_examples(stats->session) * every) / taken);
  stats->start = stats->trained;
}

static void stats_score(void *state, const AmprtScore *score) {
  Stats *stats = state;
  stats->score = *score;
}

static void add_number(AmprtText *text, const char *name, double value) {
  amprt_text_add(text, "\"%s\": ", name);
  amprt_text_double(text, value);
  amprt_text_add(text, ", ");
}

static void say_stats(Stats *stats) {
  AmprtText text = {0};
  int64_t every = stats->session->options.log_steps;
  amprt_text_add(&text, "{");
  if (!isnan(stats->score.accuracy)) { /* as in the official program */
    add_number(&text, "eval_loss", stats->score.loss);
    add_number(&text, "eval_acc", stats->score.accuracy);
    add_number(&text, "train_loss", stats->loss / (double)stats->cycle_steps);
    add_number(&text, "train_acc", stats->accuracy / (double)stats->cycle_steps);
  }
  amprt_text_add(&text, "\"step_timestamp_log\": [");
  for (size_t i = 0; i < stats->n_stamps; i++)
    amprt_text_add(&text, "%s\"BatchTimestamp<batch_index: %" PRId64 ", timestamp: %.6f>\"",
                   i ? ", " : "", stats->stamp[i].step, stats->stamp[i].at);
  amprt_text_add(&text, "], \"train_finish_time\": %.6f", stats->trained);
  if (stats->n_stamps > 1) {
    double images =
        (double)(amprt_step_examples(stats->session) * every) * (double)(stats->n_stamps - 1);
    amprt_text_add(&text, ", \"avg_exp_per_second\": %f",
                   images / (stats->stamp[stats->n_stamps - 1].at - stats->stamp[0].at));
  }
  if (!text.failed)
    amprt_say(&stats->session->log, "Run stats:\n%s}", text.data);
  amprt_text_free(&text);
}

static void stats_close(void *state, AmprtStatus status, int stopped) {
  Stats *stats = state;
  (void)stopped;
  if (!status && stats->steps)
    say_stats(stats);
  free(stats->stamp);
  free(stats);
}

const AmprtSink amprt_run_stats = {.open = stats_open,
                                   .cycle = stats_cycle,
                                   .begin = stats_begin,
                                   .step = stats_step,
                                   .score = stats_score,
                                   .close = stats_close};
