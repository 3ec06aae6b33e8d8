/* The benchmark logger and the hooks of the official programs. */
#include "runtime/report/hooks.h"
#include "runtime/report/logger.h"
#include "runtime/report/sink.h"
#include "runtime/report/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The intervals of the official programs: those of ProfilerHook and LoggingTensorHook are in steps
 * of this run, those of ExamplesPerSecondHook in global steps. */
enum { TENSOR_STEPS = 100, RATE_STEPS = 100, WARM_STEPS = 5, PROFILE_STEPS = 1000 };
static const double metric_seconds = 600;

typedef struct Benchmark {
  AmprtSession *session;
  AmprtLogger logger;
  bool wanted[AMPRT_N_HOOKS];
  AmprtRate rate;
  AmprtTimer tensors, metrics, profiles;
  AmprtTimeline timeline;
  int64_t steps; /* of this run, that have ended */
  bool profiling;
} Benchmark;

static bool is_asked_for(const AmprtOptions *options) {
  return *options->hooks || options->given.benchmark_logger_type || *options->benchmark_log_dir ||
         *options->benchmark_test_id;
}

static AmprtStatus benchmark_check(const AmprtSession *session, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  bool wanted[AMPRT_N_HOOKS];
  amprt_hooks_wanted(options->hooks, wanted);
  AmprtStatus status = amprt_logger_check(options, error);
  if (!status && wanted[AMPRT_HOOK_PROFILER] && !*session->dir.path)
    status = amprt_fail(error, AMPRT_USAGE,
                        "--hooks=ProfilerHook writes to the model folder; --model-dir says where");
  return status;
}

static AmprtStatus benchmark_open(AmprtSession *session, void **state, AmprtError *error) {
  if (!is_asked_for(&session->options))
    return AMPRT_OK;
  Benchmark *benchmark = calloc(1, sizeof *benchmark);
  if (!benchmark)
    return amprt_fail_memory(error, sizeof *benchmark, "the benchmark logger");
  *state = benchmark;
  benchmark->session = session;
  benchmark->rate = (AmprtRate){.timer = {.every_steps = RATE_STEPS},
                                .warm = WARM_STEPS,
                                .batch_size = amprt_step_examples(session)};
  benchmark->tensors.every_steps = TENSOR_STEPS;
  benchmark->metrics.every_seconds = metric_seconds;
  benchmark->profiles.every_steps = PROFILE_STEPS;
  amprt_hooks_wanted(session->options.hooks, benchmark->wanted);
  AmprtStatus status = AMPRT_OK;
  if (benchmark->wanted[AMPRT_HOOK_PROFILER])
    status = amprt_timeline_open(&benchmark->timeline, &session->machine, error);
  if (!status)
    status = amprt_logger_open(&benchmark->logger, session, error);
  if (!status)
    amprt_logger_run(&benchmark->logger, "running");
  return status;
}

/* As TensorFlow's ProfilerHook: never the first step, then the second, and so on. */
static bool benchmark_hook(void *state, AmprtHook *hook) {
  Benchmark *benchmark = state;
  benchmark->profiling = benchmark->wanted[AMPRT_HOOK_PROFILER] && benchmark->steps > 0 &&
                         amprt_timer_due(&benchmark->profiles, benchmark->steps, 0);
  if (benchmark->profiling)
    amprt_timeline_begin(&benchmark->timeline, hook);
  return benchmark->profiling;
}

static void write_timeline(Benchmark *benchmark, int64_t step) {
  AmprtError error;
  char name[64], path[AMPRT_PATH];
  int64_t steps;
  double seconds;
  amprt_timer_fire(&benchmark->profiles, benchmark->steps, 0, &steps, &seconds);
  snprintf(name, sizeof name, "timeline-%" PRId64 ".json", step);
  if (amprt_path(path, benchmark->session->dir.path, name, &error) ||
      amprt_timeline_write(&benchmark->timeline, path, &error))
    amprt_warn(&benchmark->session->log, "%s; the run goes on", error.text);
}

/* "cross_entropy = 2.3, learning_rate = 0.1, train_accuracy = 0.25 (12.345 sec)"; the time since
 * the line before. */
static void say_tensors(Benchmark *benchmark, const AmprtStepEnd *end) {
  AmprtText text = {0};
  int64_t steps;
  double seconds;
  amprt_text_add(&text, "cross_entropy = %.7g, learning_rate = %.7g, train_accuracy = %.7g",
                 end->result->loss, end->result->learning_rate, end->result->accuracy);
  if (amprt_timer_fire(&benchmark->tensors, benchmark->steps, end->seconds, &steps, &seconds))
    amprt_text_add(&text, " (%.3f sec)", seconds);
  if (!text.failed)
    amprt_say(&benchmark->session->log, "%s", text.data);
  amprt_text_free(&text);
}

static void log_metrics(Benchmark *benchmark, const AmprtStepEnd *end) {
  AmprtLogger *logger = &benchmark->logger;
  int64_t steps;
  double seconds;
  amprt_timer_fire(&benchmark->metrics, benchmark->steps, end->seconds, &steps, &seconds);
  amprt_logger_metric(logger, "cross_entropy", end->result->loss, end->step);
  amprt_logger_metric(logger, "learning_rate", end->result->learning_rate, end->step);
  amprt_logger_metric(logger, "train_accuracy", end->result->accuracy, end->step);
}

static void benchmark_step(void *state, const AmprtStepEnd *end) {
  Benchmark *benchmark = state;
  const bool *wanted = benchmark->wanted;
  double average, current;
  if (wanted[AMPRT_HOOK_LOGGING_TENSOR] &&
      amprt_timer_due(&benchmark->tensors, benchmark->steps, end->seconds))
    say_tensors(benchmark, end);
  if (benchmark->profiling)
    write_timeline(benchmark, end->step);
  benchmark->profiling = false;
  if (wanted[AMPRT_HOOK_EXAMPLES_PER_SECOND] &&
      amprt_rate_step(&benchmark->rate, end->step, end->seconds, &average, &current)) {
    amprt_logger_metric(&benchmark->logger, "average_examples_per_sec", average, end->step);
    amprt_logger_metric(&benchmark->logger, "current_examples_per_sec", current, end->step);
  }
  if (wanted[AMPRT_HOOK_LOGGING_METRIC] &&
      amprt_timer_due(&benchmark->metrics, benchmark->steps, end->seconds))
    log_metrics(benchmark, end);
  benchmark->steps++;
}

/* Sorted by name. */
static void benchmark_score(void *state, const AmprtScore *score) {
  Benchmark *benchmark = state;
  int64_t step = benchmark->session->progress.step;
  amprt_logger_metric(&benchmark->logger, "accuracy", score->accuracy, step);
  if (!isnan(score->accuracy5))
    amprt_logger_metric(&benchmark->logger, "accuracy_top_5", score->accuracy5, step);
  amprt_logger_metric(&benchmark->logger, "loss", score->loss, step);
}

static void benchmark_close(void *state, AmprtStatus status, int stopped) {
  Benchmark *benchmark = state;
  if (benchmark->logger.session)
    amprt_logger_run(&benchmark->logger, status || stopped ? "failure" : "success");
  amprt_timeline_close(&benchmark->timeline);
  free(benchmark);
}

const AmprtSink amprt_benchmark = {.check = benchmark_check,
                                   .open = benchmark_open,
                                   .hook = benchmark_hook,
                                   .step = benchmark_step,
                                   .score = benchmark_score,
                                   .close = benchmark_close};
