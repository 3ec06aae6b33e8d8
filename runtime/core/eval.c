#include "runtime/base/clock.h"
#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/core/progress.h"
#include "runtime/core/ranks.h"
#include "runtime/core/stop.h"
#include "runtime/core/train.h"
#include "runtime/report/report.h"

#include <math.h>
#include <stdlib.h>

/* The examples that an evaluation uses. */
static uint64_t test_examples(const AmprtSession *session) {
  uint64_t end = (uint64_t)session->data.test.n;
  uint64_t bound =
      (uint64_t)session->options.max_train_steps * (uint64_t)session->program->batch_size;
  /* as the official programs do; but a real test set is always used whole */
  return session->data.synthetic && bound && bound < end ? bound : end;
}

/* Process r of n has the batches r, r+n, r+2n, ... */
static AmprtStatus open_test_feed(AmprtSession *session, AmprtFeed **feed, AmprtError *error) {
  const AmprtProgram *program = session->program;
  const AmprtOptions *options = &session->options;
  AmprtFeedPlan plan = {.set = &session->data.test,
                        .first_label = session->data.first_label,
                        .batch_size = program->batch_size,
                        .seed = session->progress.seed,
                        .purpose = "test",
                        .position = (uint64_t)(session->rank * program->batch_size),
                        .row = 1,
                        .stride = session->size,
                        .end = test_examples(session),
                        .masks = true,
                        .max_bad = options->max_bad_examples,
                        .threads = (int)options->data_threads,
                        .pixels = amprt_machine_takes_pixels(&session->machine),
                        .log = &session->log,
                        .stopped = amprt_stop_signal};
  AmprtStatus status = amprt_example_spec(program, options, false, &plan.example, error);
  return status ? status : amprt_feed_open(feed, &plan, error);
}

/* Sums over one batch. */
typedef struct Sums {
  double loss, hits, hits5, examples;
} Sums;

/* Sum of the first `count` elements of an output; NaN if the graph has none of that name. */
static double sum_output(const AmprtMachine *machine, const AmprtGraph *graph, const char *name,
                         int64_t count, float *room) {
  const AmprtPort *port = amprt_port_find(graph->output, graph->n_outputs, name);
  double sum = port ? 0 : (double)NAN;
  if (port)
    amprt_to_f32(port->dtype, amprt_port_at(machine, port), room, (size_t)count);
  for (int64_t i = 0; port && i < count; i++)
    sum += room[i];
  return sum;
}

/* Evaluates this process's batches; sums[] has room for all of them. *n: how many, which is less
 * after a signal. */
static AmprtStatus run_own(AmprtSession *session, const AmprtGraph *graph, AmprtFeed *feed,
                           float *room, Sums *sums, int64_t *n, AmprtError *error) {
  const AmprtMachine *machine = &session->machine;
  int64_t seen = 0, all = (int64_t)test_examples(session);
  for (*n = 0; !amprt_stop_signal(); ++*n) {
    const AmprtBatch *batch;
    AmprtStatus status = amprt_feed_next(feed, &batch, error);
    if (status)
      return status;
    if (!batch)
      break;
    AmprtInputs inputs = {.batch = batch, .schedule = session->schedule};
    amprt_machine_run(&session->machine, graph, &inputs);
    sums[*n] = (Sums){sum_output(machine, graph, amprt_name_loss_each, batch->count, room),
                      sum_output(machine, graph, amprt_name_hit_each, batch->count, room),
                      sum_output(machine, graph, amprt_name_hit5_each, batch->count, room),
                      (double)batch->count};
    seen += batch->count * session->size;
    char text[256];
    if (!session->log.terminal)
      continue;
    amprt_progress_eval(seen < all ? seen : all, session->data.test.n,
                        amprt_log_columns(&session->log), text, sizeof text);
    amprt_log_progress(&session->log, text, false);
  }
  return amprt_machine_check(machine, error);
}

/* The sums are added batch by batch in the order of the set, so that the score has the same bits
 * whatever the number of processes. */
static AmprtStatus run_all(AmprtSession *session, const AmprtGraph *graph, AmprtFeed *feed,
                           float *room, AmprtScore *score, AmprtError *error) {
  int64_t batch_size = session->program->batch_size, size = session->size, n;
  int64_t batches = ((int64_t)test_examples(session) + batch_size - 1) / batch_size;
  int64_t each = (batches + size - 1) / size;
  size_t bytes = (size_t)each * sizeof(Sums);
  Sums *own = calloc((size_t)each + 1, sizeof *own), *all = own, total = {0};
  AmprtStatus status = own ? run_own(session, graph, feed, room, own, &n, error)
                           : amprt_fail_memory(error, bytes, "the evaluation");
  if (!status)
    status = amprt_ranks_stopped(session, error);
  if (!status && size > 1 && !(all = amprt_ranks_gather(session, own, bytes, error)))
    status = error->status;
  for (int64_t b = 0; b < batches && !status; b++) {
    const Sums *sums = &all[b % size * each + b / size];
    total.loss += sums->loss;
    total.hits += sums->hits;
    total.hits5 += sums->hits5;
    total.examples += sums->examples;
  }
  score->examples = (int64_t)total.examples;
  score->loss = total.loss / total.examples;
  score->accuracy = total.hits / total.examples;
  score->accuracy5 = total.hits5 / total.examples;
  if (all != own)
    free(all);
  free(own);
  return status;
}

static void report(AmprtSession *session, const AmprtScore *score, double seconds) {
  AmprtText event = {0};
  char top5[40] = "", when[40] = "";
  if (!isnan(score->accuracy5))
    snprintf(top5, sizeof top5, "  top 5 %.4f", amprt_shown(score->accuracy5));
  double epoch = (double)session->progress.examples / (double)session->epoch;
  if (session->progress.examples) /* a file of parameters has no epoch */
    snprintf(when, sizeof when, "  epoch %.2f", epoch);
  amprt_say(&session->log, "test accuracy %.4f%s  loss %.4f%s  (%lld images, %.1f s)",
            amprt_shown(score->accuracy), top5, amprt_shown(score->loss), when,
            (long long)score->examples, seconds);
  amprt_event_begin(&event, "eval");
  amprt_event_integer(&event, "step", session->progress.step);
  amprt_event_number(&event, "epoch", epoch);
  amprt_event_number(&event, "accuracy", score->accuracy);
  if (!isnan(score->accuracy5))
    amprt_event_number(&event, "accuracy_top_5", score->accuracy5);
  amprt_event_number(&event, "loss", score->loss);
  amprt_event_integer(&event, "images", score->examples);
  amprt_event_number(&event, "seconds", seconds);
  amprt_event_end(&event, &session->log);
  amprt_report_score(session->report, score);
}

AmprtStatus amprt_evaluate(AmprtSession *session, AmprtScore *score, AmprtError *error) {
  const AmprtGraph *graph = amprt_graph_find(session->program, "eval");
  AmprtFeed *feed = NULL;
  *score = (AmprtScore){NAN, NAN, NAN, 0};
  if (!graph) {
    amprt_warn(&session->log, "this program has no graph `eval`: no evaluation");
    return AMPRT_OK;
  }
  if (!session->options.quiet)
    amprt_say(&session->log, "Starting to evaluate.");
  double start = amprt_seconds();
  amprt_report_evaluate(session->report);
  float *room = malloc((size_t)session->program->batch_size * sizeof *room);
  AmprtStatus status = room ? open_test_feed(session, &feed, error)
                            : amprt_fail_memory(error, sizeof *room, "the evaluation");
  if (!status) {
    status = run_all(session, graph, feed, room, score, error);
    if (!status && !session->stopped)
      report(session, score, amprt_seconds() - start);
  }
  amprt_feed_close(feed);
  free(room);
  return status;
}

AmprtStatus amprt_recompute_stats(AmprtSession *session, AmprtError *error) {
  const AmprtGraph *graph = amprt_graph_find(session->program, "stats");
  AmprtFeed *feed = NULL;
  if (!session->options.recompute_bn_stats || !graph)
    return AMPRT_OK;
  /* A stream of its own that always starts at the same place, so that equal weights give equal
   * statistics. */
  bool pixels = amprt_machine_takes_pixels(&session->machine);
  AmprtStatus status = amprt_train_feed(session, "stats", 0, pixels, &feed, error);
  /* No signal ends this loop, because half-renewed statistics must not be saved. */
  for (int64_t k = 0; !status && k < session->options.recompute_bn_stats; k++) {
    const AmprtBatch *batch;
    status = amprt_feed_next(feed, &batch, error);
    AmprtInputs inputs = {batch, session->schedule, (float)((double)k / (k + 1.0))};
    if (!status)
      amprt_machine_run(&session->machine, graph, &inputs);
  }
  amprt_feed_close(feed);
  if (!status)
    status = amprt_machine_check(&session->machine, error);
  if (!status && session->options.verbose)
    amprt_say(&session->log, "moving statistics renewed over %lld batches",
              (long long)session->options.recompute_bn_stats);
  return status;
}

void amprt_warn_of_lag(AmprtSession *session) {
  double momentum = session->program->bn_momentum;
  /* every batch of an accumulated step updates the statistics, and all shards of a step once */
  int64_t batch = session->shards.n * session->program->batch_size;
  double steps = (double)amprt_schedule_cycle(&session->options, 0, session->epoch, batch).batches;
  double most = (double)(session->options.max_train_steps * amprt_parts(session->program));
  if (most > 0 && most < steps)
    steps = most;
  if (momentum <= 0 || momentum >= 1 || session->data.synthetic ||
      session->options.recompute_bn_stats || session->options.skip_eval ||
      steps * (1 - momentum) >= 5)
    return;
  amprt_warn(
      &session->log,
      "batch normalisation averages over about %.0f steps (momentum %g), the first evaluation "
      "comes after %.0f, with %.0f %% of the initial statistics left: test accuracy will be below "
      "the model's own; --recompute-bn-stats=50 cures that",
      1 / (1 - momentum), momentum, steps, 100 * pow(momentum, steps));
}
