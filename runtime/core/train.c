#include "runtime/core/train.h"

#include "runtime/base/clock.h"
#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/core/progress.h"
#include "runtime/core/ranks.h"
#include "runtime/core/stop.h"
#include "runtime/report/report.h"
#include "runtime/watch/watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums since the last line of the log, of which it gives the means. */
typedef struct Window {
  double loss, accuracy, l2_loss, seconds_at_start;
  double waited_at_start; /* seconds of waiting for data before this window */
  double sums_at_start;   /* seconds of waiting for sums, likewise */
  double trained_at_start;
  int64_t steps, skipped;
} Window;

typedef struct Loop {
  AmprtSession *session;
  const AmprtGraph *graph;
  AmprtFeed *feed;
  AmprtWatch watch;
  Window window;
  double seconds, shown; /* training time of this run; time of the last progress line */
  /* of this run; those in a row that were skipped or had no finite loss */
  int64_t steps, bad_steps;
  bool alone; /* the step that runs must end before another one begins */
  /* With other processes: `steps` after which all of them stop, as one of them voted for it. */
  int64_t last_step;
  int slow; /* reports in a row of which one process was much slower than the others */
} Loop;

int64_t amprt_step_examples(const AmprtSession *session) {
  return session->shards.n * amprt_parts(session->program) * session->program->batch_size;
}

AmprtStatus amprt_schedule_for(AmprtSession *session, AmprtError *error) {
  const AmprtGraph *graph = &session->program->graph[0];
  const AmprtPort *port = amprt_port_find(graph->input, graph->n_inputs, amprt_name_schedule);
  int64_t n = port ? amprt_port_elements(port) : AMPRT_SCHEDULE;
  if (n > AMPRT_SCHEDULE)
    return amprt_fail(error, AMPRT_ENV,
                      "the program's schedule has %" PRId64 " entries, room is for %d", n,
                      AMPRT_SCHEDULE);
  int64_t examples = amprt_step_examples(session);
  session->epoch = session->data.train.n;
  if (session->options.drop_remainder)
    session->epoch -= session->epoch % examples;
  if (!session->epoch)
    return amprt_fail(error, AMPRT_INPUT,
                      "--drop-remainder=1 leaves nothing of %" PRId64
                      " training images in batches of %" PRId64,
                      session->data.train.n, examples);
  return amprt_schedule_fill(&session->options, session->epoch, examples, session->schedule, n,
                             error);
}

/* Does the program mix examples, if the options want it? */
static AmprtStatus check_mix(const AmprtProgram *program, const AmprtMixSpec *mix,
                             AmprtError *error) {
  const AmprtGraph *graph = &program->graph[0];
  const char *flag = mix->mixup > 0 ? "mixup" : mix->cutmix > 0 ? "cutmix" : NULL;
  if (!flag || amprt_port_find(graph->input, graph->n_inputs, amprt_name_mix))
    return AMPRT_OK;
  return amprt_fail(error, AMPRT_USAGE,
                    "--%s: this program does not mix its examples; `ampcc --%s=%g` makes one that "
                    "does, and that takes any number here",
                    flag, flag, mix->mixup > 0 ? mix->mixup : mix->cutmix);
}

AmprtStatus amprt_train_feed(AmprtSession *session, const char *purpose, uint64_t position,
                             bool pixels, AmprtFeed **feed, AmprtError *error) {
  const AmprtProgram *program = session->program;
  const AmprtOptions *options = &session->options;
  AmprtFeedPlan plan = {.set = &session->data.train,
                        .first_label = session->data.first_label,
                        .batch_size = program->batch_size,
                        .seed = session->progress.seed,
                        .purpose = purpose,
                        .shuffle = !options->no_shuffle,
                        .shuffle_buffer = options->shuffle_buffer,
                        .epoch = session->epoch,
                        .position = position,
                        .end = UINT64_MAX,
                        .max_bad = options->max_bad_examples,
                        .threads = (int)options->data_threads,
                        .pixels = pixels,
                        .log = &session->log};
  if (!strcmp(purpose, "train")) {
    /* A signal must not stop the feed of @stats halfway, nor this one while others go on. */
    plan.stopped = session->group ? NULL : amprt_stop_signal;
    plan.mix = (AmprtMixSpec){options->mixup, options->cutmix};
    plan.row = session->shards.local;
    plan.stride = session->shards.n;
    plan.position += (uint64_t)(session->shards.first * program->batch_size);
  }
  AmprtStatus status = check_mix(program, &plan.mix, error);
  if (!status)
    status = amprt_example_spec(program, options, true, &plan.example, error);
  return status ? status : amprt_feed_open(feed, &plan, error);
}

static bool at_last_step(const AmprtSession *session) {
  int64_t most = session->options.max_train_steps;
  return most && session->progress.step >= most;
}

/* May another step begin before those that are running have ended? Not if they may be the last ones
 * of the run, which depends on how many are skipped, nor if a checkpoint is due after them. */
static bool may_begin(const Loop *loop, uint64_t end) {
  const AmprtSession *session = loop->session;
  const AmprtOptions *options = &session->options;
  int64_t running = loop->watch.running, every = options->checkpoint_every;
  uint64_t taken = (uint64_t)(running * amprt_step_examples(session));
  bool stops = session->group ? loop->steps + running >= loop->last_step : amprt_stop_signal();
  if (stops || running == AMPRT_AHEAD || (loop->alone && running) ||
      session->progress.examples + taken >= end)
    return false;
  if (options->max_train_steps && session->progress.step + running >= options->max_train_steps)
    return false;
  return !(running && every && (loop->steps + running) % every == 0);
}

/* How many steps this run still has to do. */
static double steps_left(const AmprtSession *session) {
  const AmprtOptions *options = &session->options;
  double batch = (double)amprt_step_examples(session);
  double left = ceil(options->train_epochs * (double)session->epoch / batch) -
                (double)session->progress.examples / batch;
  double bound = (double)(options->max_train_steps - session->progress.step);
  return options->max_train_steps && bound < left ? bound : left;
}

/* Share of the window's time that training waited for data. */
static double waiting(const Loop *loop, double span) {
  return (amprt_feed_waited(loop->feed) - loop->window.waited_at_start) / span;
}

/* On a terminal with a bar; what stays there is plain, as in files. */
static void show_progress(Loop *loop, double rate, double span, bool keep) {
  AmprtSession *session = loop->session;
  AmprtLog *log = &session->log;
  const Window *window = &loop->window;
  const AmprtResult *result = &loop->watch.result;
  char text[256];
  AmprtStanding standing = {.epoch = (double)session->progress.examples / (double)session->epoch,
                            .epochs = session->options.train_epochs,
                            .step = session->progress.step,
                            .loss = amprt_shown(window->loss / (double)window->steps),
                            .accuracy = amprt_shown(window->accuracy / (double)window->steps),
                            .learning_rate = amprt_shown(result->learning_rate),
                            .loss_scale = result->loss_scale,
                            .rate = rate,
                            .waiting = waiting(loop, span),
                            .seconds_left =
                                steps_left(session) * loop->seconds / (double)loop->steps};
  if (log->terminal && !keep)
    amprt_progress_drawn(&standing, amprt_log_columns(log), text, sizeof text);
  else
    amprt_progress_plain(&standing, text, sizeof text);
  amprt_log_progress(log, text, keep);
}

/* What a process tells of its time since the last line of the log. */
typedef struct Times {
  double computed, exposed; /* seconds of training without waiting for sums; the share of waiting */
} Times;

/* What is logged of all of them. */
typedef struct Spread {
  double exposed; /* mean */
  int slowest;    /* the rank that computed longest */
  double excess;  /* by how much: its time / the median - 1 */
} Spread;

static int by_computed(const void *a, const void *b) {
  double x = ((const Times *)a)->computed, y = ((const Times *)b)->computed;
  return (x > y) - (x < y);
}

static AmprtStatus gather_times(Loop *loop, Spread *spread, AmprtError *error) {
  AmprtSession *session = loop->session;
  size_t n = (size_t)session->size;
  double trained = loop->seconds - loop->window.trained_at_start;
  double waited = amprt_group_waited(session->group) - loop->window.sums_at_start;
  Times mine = {trained - waited, trained > 0 ? waited / trained : 0};
  Times *all = amprt_ranks_gather(session, &mine, sizeof mine, error);
  if (!all)
    return error->status;
  *spread = (Spread){0};
  for (int r = 0; r < session->size; r++) {
    spread->exposed += all[r].exposed / session->size;
    spread->slowest = all[r].computed > all[spread->slowest].computed ? r : spread->slowest;
  }
  double most = all[spread->slowest].computed;
  qsort(all, n, sizeof *all, by_computed);
  double median = (all[(n - 1) / 2].computed + all[n / 2].computed) / 2;
  spread->excess = median > 0 ? most / median - 1 : 0;
  free(all);
  return AMPRT_OK;
}

/* Warns once a process has been much slower than the others in three reports in a row. */
static void warn_of_slowest(Loop *loop, const Spread *spread) {
  loop->slow = spread->excess > .15 ? loop->slow + 1 : 0;
  if (loop->slow == 3 && !loop->session->rank)
    amprt_warn(&loop->session->log,
               "rank %d takes %.0f %% longer than the median of the processes for a step; all wait "
               "for it",
               spread->slowest, 100 * spread->excess);
}

static void log_window(Loop *loop, double rate, double span, const Spread *spread) {
  AmprtSession *session = loop->session;
  const Window *window = &loop->window;
  AmprtText event = {0};
  double steps = (double)window->steps;
  const AmprtResult *result = &loop->watch.result;
  amprt_event_begin(&event, "train");
  amprt_event_integer(&event, "step", session->progress.step);
  amprt_event_number(&event, "epoch", (double)session->progress.examples / (double)session->epoch);
  amprt_event_number(&event, "loss", window->loss / steps);
  if (!isnan(window->l2_loss)) {
    amprt_event_number(&event, "cross_entropy", window->loss / steps);
    amprt_event_number(&event, "l2_loss", window->l2_loss / steps);
    amprt_event_number(&event, "total_loss", (window->loss + window->l2_loss) / steps);
  }
  amprt_event_number(&event, "accuracy", window->accuracy / steps);
  amprt_event_number(&event, "learning_rate", result->learning_rate);
  if (result->loss_scale)
    amprt_event_number(&event, "loss_scale", result->loss_scale);
  if (amprt_port_find(loop->graph->output, loop->graph->n_outputs, amprt_name_gradient_norm))
    amprt_event_number(&event, "gradient_norm", result->gradient_norm);
  amprt_event_integer(&event, "skipped_steps", window->skipped);
  amprt_event_number(&event, "images_per_second", rate);
  amprt_event_number(&event, "waiting_for_data", waiting(loop, span));
  if (session->group) {
    amprt_event_number(&event, "comm_exposed", spread->exposed);
    amprt_event_integer(&event, "slowest_rank", spread->slowest);
    amprt_event_number(&event, "slowest_excess", spread->excess);
  }
  amprt_event_end(&event, &session->log);
}

static Window begin_window(const Loop *loop) {
  const AmprtSession *session = loop->session;
  return (Window){.seconds_at_start = amprt_seconds(),
                  .waited_at_start = amprt_feed_waited(loop->feed),
                  .sums_at_start = session->group ? amprt_group_waited(session->group) : 0,
                  .trained_at_start = loop->seconds};
}

/* Shows the progress line. With `whole` also writes a line of the log and begins a new window,
 * which all processes do together; with `last` the progress line stays on the terminal. */
static AmprtStatus report(Loop *loop, bool whole, bool last, AmprtError *error) {
  double now = amprt_seconds(), span = now - loop->window.seconds_at_start;
  double rate = (double)(loop->window.steps * amprt_step_examples(loop->session)) / span;
  Spread spread = {0};
  if (!loop->window.steps)
    return AMPRT_OK;
  if (whole || (loop->session->log.terminal && now - loop->shown > .2)) {
    show_progress(loop, rate, span, last);
    loop->shown = now;
  }
  if (!whole)
    return AMPRT_OK;
  AmprtStatus status = loop->session->group ? gather_times(loop, &spread, error) : AMPRT_OK;
  if (status)
    return status;
  warn_of_slowest(loop, &spread);
  log_window(loop, rate, span, &spread);
  loop->window = begin_window(loop);
  return AMPRT_OK;
}

/* The number of the next step's batch, counted from the start of the stream. */
static int64_t next_number(const Loop *loop) {
  const AmprtSession *session = loop->session;
  return (int64_t)(session->progress.examples / (uint64_t)amprt_step_examples(session)) +
         loop->watch.running;
}

/* Runs all batches of the next step but the last: with --accumulate by @accumulate, with several
 * shards in this process as watch.h has it. *whole: the stream had that many. */
static AmprtStatus run_parts(Loop *loop, bool *whole, AmprtError *error) {
  AmprtSession *session = loop->session;
  const AmprtGraph *graph = amprt_graph_find(session->program, "accumulate");
  int64_t before_last = amprt_parts(session->program) * session->shards.local - 1;
  AmprtStatus status = AMPRT_OK;
  *whole = true;
  for (int64_t i = 0; i < before_last && *whole && !status; i++) {
    AmprtInputs inputs = {.schedule = session->schedule, .first_part = i == 0};
    status = amprt_feed_next(loop->feed, &inputs.batch, error);
    *whole = inputs.batch != NULL;
    if (!status && *whole && session->shards.n > 1)
      amprt_watch_shard(&loop->watch, i, inputs.batch);
    else if (!status && *whole)
      amprt_machine_run(&session->machine, graph, &inputs);
  }
  return status;
}

/* Begins the next step, or waits for the oldest that is running. *ended: a step has ended, whose
 * results are in loop->watch. */
static AmprtStatus advance(Loop *loop, bool begin, bool *ended, AmprtError *error) {
  AmprtWatch *watch = &loop->watch;
  double start = amprt_seconds();
  const AmprtBatch *batch = NULL;
  bool whole = begin;
  AmprtStatus status = begin ? run_parts(loop, &whole, error) : AMPRT_OK;
  if (!status && whole)
    status = amprt_feed_next(loop->feed, &batch, error);
  *ended = !begin || (batch && !watch->ahead);
  if (batch)
    loop->alone = amprt_report_begin(loop->session->report, next_number(loop), batch);
  if (!begin)
    status = amprt_watch_collect(watch, error);
  else if (batch && watch->ahead)
    status = amprt_watch_start(watch, batch, error);
  else if (batch)
    status = amprt_watch_step(watch, batch, error);
  loop->seconds += amprt_seconds() - start;
  return status;
}

/* Adds the results of the step that has ended to counters and means. */
static void count_step(Loop *loop) {
  AmprtSession *session = loop->session;
  const AmprtWatch *watch = &loop->watch;
  int64_t step = (int64_t)watch->result.step;
  session->progress.examples += (uint64_t)amprt_step_examples(session);
  session->progress.step = step >= 0 ? step : session->progress.step + 1;
  loop->window.loss += watch->result.loss;
  loop->window.accuracy += watch->result.accuracy;
  loop->window.l2_loss += watch->result.l2_loss;
  loop->window.steps++;
  loop->window.skipped += watch->skipped;
  loop->bad_steps = watch->bad ? loop->bad_steps + 1 : 0;
  loop->steps++;
  /* No process has started more than this many steps, whatever each saw of the votes before. */
  if (watch->result.stop_votes > 0 && loop->last_step == INT64_MAX)
    loop->last_step = loop->steps + (watch->ahead ? AMPRT_AHEAD - 1 : 0);
  amprt_report_step(session->report, &watch->result, loop->seconds);
}

/* Have --max-skipped-steps steps in a row been bad? */
static bool is_stuck(const Loop *loop) {
  int64_t most = loop->session->options.max_skipped_steps;
  return most && loop->bad_steps >= most;
}

/* The error says what was wrong in the last of these steps and what may help. A lower loss scale
 * helps only where the loss itself is finite. */
static AmprtStatus fail_stuck(const Loop *loop, AmprtError *error) {
  const AmprtModelDir *dir = &loop->session->dir;
  const AmprtWatch *watch = &loop->watch;
  AmprtText first = {0}, scale = {0};
  amprt_finding_text(&watch->finding, &first);
  if (watch->loss_scale)
    amprt_text_add(&scale, ", at loss scale %g", watch->loss_scale);
  bool low = watch->loss_scale > 1 && isfinite(watch->result.loss);
  AmprtStatus status =
      amprt_fail(error, AMPRT_INPUT,
                 "loss or gradients have not been finite for %" PRId64
                 " steps%s%s%s; training cannot recover: "
                 "try %s%s%s",
                 loop->bad_steps, scale.data ? scale.data : "",
                 first.data ? "; first of the last step: " : "", first.data ? first.data : "",
                 low ? "a lower loss scale (ampcc --loss-scale=dynamic:init=..)"
                     : "a smaller --learning-rate or a longer --warmup-epochs",
                 dir->n ? "; earlier checkpoints are in " : "", dir->n ? dir->path : "");
  amprt_text_free(&first);
  amprt_text_free(&scale);
  return status;
}

/* The error for a training that cannot recover; `what` says what is not finite. */
static AmprtStatus fail_diverged(const Loop *loop, const char *what, AmprtError *error) {
  const AmprtSession *session = loop->session;
  const AmprtModelDir *dir = &session->dir;
  AmprtText since = {0}, newest = {0};
  char path[AMPRT_PATH];
  if (loop->bad_steps)
    amprt_text_add(&since, "; the loss has not been finite since step %" PRId64,
                   session->progress.step - loop->bad_steps);
  if (dir->n && !amprt_modeldir_ckpt(dir, dir->step[dir->n - 1], path, error))
    amprt_text_add(&newest, "; the newest checkpoint is %.500s", path);
  AmprtStatus status = amprt_fail(error, AMPRT_INPUT,
                                  "the training has diverged after step %" PRId64
                                  ": %.600s%s; this state is not saved%s; try a "
                                  "smaller --learning-rate or a longer --warmup-epochs",
                                  session->progress.step, what, since.data ? since.data : "",
                                  newest.data ? newest.data : "");
  amprt_text_free(&since);
  amprt_text_free(&newest);
  return status;
}

/* A state with Inf or NaN is not saved, as no run could go on from it. A program with a finite test
 * skips such steps, so its state stays finite. */
static AmprtStatus check_state(const Loop *loop, AmprtError *error) {
  AmprtFinding finding;
  AmprtText what = {0};
  if (amprt_state_is_finite(&loop->session->machine, &finding))
    return AMPRT_OK;
  amprt_finding_text(&finding, &what);
  AmprtStatus status = fail_diverged(loop, what.data ? what.data : finding.value, error);
  amprt_text_free(&what);
  return status;
}

/* At the end of a run of a program without a finite test: fails if the last loss is not finite. */
static AmprtStatus check_loss(const Loop *loop, AmprtError *error) {
  char what[64];
  if (loop->watch.gated || !loop->bad_steps || !loop->session->options.max_skipped_steps)
    return AMPRT_OK;
  snprintf(what, sizeof what, "its loss is %g", amprt_shown(loop->watch.result.loss));
  return fail_diverged(loop, what, error);
}

/* At the end of a run of a program with a finite test: have the last ten or more steps been skipped
 * although the loss scale could not fall any further? */
static bool ends_stuck(const Loop *loop) {
  enum { MANY = 10 };
  const AmprtWatch *watch = &loop->watch;
  return watch->gated && loop->bad_steps >= MANY && loop->session->options.max_skipped_steps &&
         !(watch->result.loss_scale < watch->loss_scale);
}

static AmprtStatus write_checkpoint(AmprtSession *session, AmprtError *error) {
  char path[AMPRT_PATH];
  AmprtText event = {0};
  AmprtStatus status = amprt_modeldir_ckpt(&session->dir, session->progress.step, path, error);
  if (!status)
    status =
        amprt_ckpt_save(path, &session->machine, &session->progress, &session->made, NULL, error);
  if (status)
    return status;
  amprt_modeldir_keep(&session->dir, session->progress.step, session->options.keep_checkpoints);
  if (session->options.verbose)
    amprt_say(&session->log, "saved %s", path);
  amprt_event_begin(&event, "checkpoint");
  amprt_event_integer(&event, "step", session->progress.step);
  amprt_event_string(&event, "file", path);
  amprt_event_end(&event, &session->log);
  return AMPRT_OK;
}

/* Saves a checkpoint if there is a model folder. Fails if the state is not finite. Rank 0 writes,
 * and the others go on once it is there. */
static AmprtStatus save(const Loop *loop, AmprtError *error) {
  AmprtSession *session = loop->session;
  AmprtStatus status = amprt_ranks_agree(session, check_state(loop, error), error);
  if (!status)
    status = amprt_ranks_compare(session, false, error);
  if (status || !*session->dir.path)
    return status;
  status = session->rank ? AMPRT_OK : write_checkpoint(session, error);
  return amprt_ranks_agree(session, status, error);
}

/* After each step: fails if training is stuck, prints a line or saves a checkpoint when one is
 * due. */
static AmprtStatus follow_up(Loop *loop, uint64_t end, AmprtError *error) {
  AmprtSession *session = loop->session;
  const AmprtOptions *options = &session->options;
  AmprtError ignored;
  bool stuck = is_stuck(loop);
  AmprtStatus status =
      report(loop, loop->window.steps == options->log_every, false, stuck ? &ignored : error);
  if (stuck) /* in all processes alike */
    return amprt_ranks_agree(session, fail_stuck(loop, error), error);
  bool more = session->progress.examples < end && !at_last_step(session);
  bool due = options->checkpoint_every && loop->steps % options->checkpoint_every == 0;
  return !status && more && due ? save(loop, error) : status;
}

/* Trains until the stream has reached `end`, or a signal, a bound or an error ends the training. */
static AmprtStatus train_until(Loop *loop, uint64_t end, AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  AmprtError later = {0};
  loop->window = begin_window(loop);
  for (bool begin, ended; !status;) {
    begin = may_begin(loop, end);
    if (!begin && !loop->watch.running)
      break;
    status = advance(loop, begin, &ended, error);
    if (!status && ended) {
      count_step(loop);
      status = follow_up(loop, end, error);
    }
  }
  if (status && loop->session->group) /* nobody else may be there to report with */
    return status;
  AmprtStatus reported = report(loop, true, true, &later);
  if (!status && reported)
    *error = later;
  return status ? status : reported;
}

/* One cycle of training and evaluation; `last`: the last one of the schedule. *done: this run ends
 * after it. */
static AmprtStatus run_cycle(Loop *loop, uint64_t end, bool last, bool *done, AmprtError *error) {
  AmprtSession *session = loop->session;
  AmprtScore score = {NAN, NAN, NAN, 0};
  amprt_report_cycle(session->report, (double)end / (double)session->epoch);
  bool trained = session->progress.examples < end;
  AmprtStatus status = train_until(loop, end, error);
  bool whole = session->progress.examples >= end || at_last_step(session);
  bool ends = trained && ((whole && last) || at_last_step(session));
  if (!status && ends)
    status = amprt_ranks_agree(session, check_loss(loop, error), error);
  if (!status && whole)
    status = amprt_recompute_stats(session, error);
  if (!status && trained)
    status = save(loop, error);
  if (!status && ends && ends_stuck(loop))
    status = amprt_ranks_agree(session, fail_stuck(loop, error), error);
  if (!status)
    status = amprt_ranks_stopped(session, error);
  if (!status && whole && !session->options.skip_eval && !session->stopped)
    status = amprt_evaluate(session, &score, error);
  if (!status)
    status = amprt_ranks_stopped(session, error);
  *done = status || session->stopped || at_last_step(session) ||
          (whole && amprt_past_stop_threshold(session->options.stop_threshold, score.accuracy));
  return status;
}

static void say_waited(const Loop *loop) {
  double waited = amprt_feed_waited(loop->feed);
  int64_t bad = amprt_feed_bad(loop->feed);
  if (loop->session->options.quiet)
    return;
  amprt_say(&loop->session->log, "training waited %.1f s for data, %.1f %% of its %.1f s", waited,
            loop->seconds > 0 ? 100 * waited / loop->seconds : 0, loop->seconds);
  if (bad)
    amprt_say(&loop->session->log, "%" PRId64 " examples could not be read", bad);
}

AmprtStatus amprt_train(AmprtSession *session, AmprtError *error) {
  Loop loop = {.session = session, .graph = session->machine.train, .last_step = INT64_MAX};
  int64_t cycles = amprt_schedule_cycles(&session->options);
  AmprtStatus status = amprt_watch_open(&loop.watch, session, error);
  bool pixels = loop.watch.ahead && amprt_machine_takes_pixels(&session->machine);
  if (!status)
    status =
        amprt_train_feed(session, "train", session->progress.examples, pixels, &loop.feed, error);
  status = amprt_ranks_agree(session, status, error);
  bool done = status != AMPRT_OK;
  for (int64_t i = 0; i < cycles && !done; i++) {
    AmprtCycle cycle =
        amprt_schedule_cycle(&session->options, i, session->epoch, amprt_step_examples(session));
    uint64_t end = cycle.batches * (uint64_t)amprt_step_examples(session);
    /* A checkpoint is saved before the evaluation, so a resumed run repeats that evaluation, and
     * stops after it if the first run would have. */
    if (session->progress.examples > end && i + 1 < cycles)
      continue;
    if (!session->options.quiet)
      amprt_say(&session->log, "Starting cycle: %" PRId64 "/%" PRId64, i, cycles);
    status = run_cycle(&loop, end, i + 1 == cycles, &done, error);
  }
  if (!status && loop.steps && !session->data.synthetic)
    say_waited(&loop);
  amprt_feed_close(loop.feed);
  amprt_watch_close(&loop.watch);
  return status ? status : amprt_ranks_stopped(session, error);
}
