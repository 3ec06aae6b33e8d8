#include "runtime/watch/watch.h"

#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/core/ranks.h"
#include "runtime/core/stop.h"
#include "runtime/report/report.h"
#include "runtime/watch/histogram.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const AmprtPort *output_of(const AmprtGraph *graph, const char *name) {
  return amprt_port_find(graph->output, graph->n_outputs, name);
}

/* Steps may run ahead on a device unless a flag examines them from inside. */
static bool may_run_ahead(const AmprtSession *session) {
  const AmprtOptions *options = &session->options;
  return session->program->device && !*options->trap && !*options->inject &&
         !options->grad_histogram_every && !options->profile && !amprt_report_looks_inside(options);
}

AmprtStatus amprt_watch_open(AmprtWatch *watch, AmprtSession *session, AmprtError *error) {
  const AmprtGraph *graph = session->machine.train;
  const AmprtPort *loss = output_of(graph, amprt_name_loss);
  *watch = (AmprtWatch){.session = session,
                        .graph = graph,
                        .loss_after = -1,
                        .gated = output_of(graph, amprt_name_finite) != NULL,
                        .trap = *session->options.trap,
                        .ahead = may_run_ahead(session)};
  if (loss && loss->after < graph->first_update)
    watch->loss_after = loss->after;
  if (session->program->device && session->group && !watch->ahead)
    return amprt_fail(error, AMPRT_USAGE,
                      "--trap, --inject, --grad-histogram-every, --profile and ProfilerHook look "
                      "into a step, which GPUs that train together do not let them: start one "
                      "process, or use --device=cpu");
  if (watch->ahead)
    amprt_result_watch(&session->machine);
  amprt_result_read(&session->machine, &watch->result);
  AmprtStatus status = amprt_kept_open(&watch->kept, session->program,
                                       watch->trap ? AMPRT_KEEP_ALL : AMPRT_KEEP_SCALE, error);
  if (!status)
    status = amprt_inject_open(&watch->inject, &session->machine, session->options.inject, error);
  return status;
}

void amprt_watch_close(AmprtWatch *watch) {
  amprt_feed_close(watch->again);
  amprt_inject_close(&watch->inject);
  amprt_kept_close(&watch->kept);
}

/* In a program without a finite test, --trap tests the gradients by this hook. */
typedef struct Gradients {
  const AmprtMachine *machine;
  const AmprtGraph *graph;
  bool *bad;
} Gradients;

static void test_gradients(void *context, int kernel) {
  Gradients *gradients = context;
  for (int i = 0; i < gradients->graph->n_taps; i++) {
    const AmprtPort *port = &gradients->graph->tap[i];
    if (port->after != kernel || *gradients->bad)
      continue;
    AmprtTally tally = amprt_tally((AmprtDType)port->dtype, amprt_port_at(gradients->machine, port),
                                   amprt_port_elements(port));
    *gradients->bad = tally.inf || tally.nan;
  }
}

/* The number of the batch of a local shard in the step that runs, counted from the start of the
 * stream; without shards that of the step's batch. */
static int64_t shard_number(const AmprtSession *session, int64_t index) {
  int64_t batch = amprt_step_examples(session) / session->shards.n;
  return (int64_t)(session->progress.examples / (uint64_t)batch) + session->shards.first + index;
}

static AmprtInputs inputs_of(const AmprtWatch *watch, const AmprtBatch *batch) {
  const AmprtSession *session = watch->session;
  return (AmprtInputs){.batch = batch,
                       .schedule = session->schedule,
                       .bn_momentum = (float)session->program->bn_momentum,
                       .shard_factor = 1 / (float)session->shards.n,
                       .stop_vote = amprt_stop_signal() ? 1 : 0};
}

/* Runs graph 0 on one batch again. */
static void find(AmprtWatch *watch, int past, int64_t number, const AmprtInputs *inputs) {
  AmprtMachine *machine = &watch->session->machine;
  const AmprtGraph *graph = &watch->session->program->graph[0];
  const AmprtHook inject = {amprt_inject_after, &watch->inject};
  watch->batch_number = number;
  watch->batch = inputs->batch;
  watch->inject.again = true;
  if (!amprt_find(machine, graph, past, inputs, &watch->kept, &inject, watch->inject.n > 0,
                  &watch->finding))
    amprt_warn(&watch->session->log, "no memory to run a bad step again: its origin is not known");
  watch->inject.again = false;
}

/* Runs this process's shards again until one has something that is not finite. `last` is the batch
 * of the last one; those before it are read again. */
static AmprtStatus find_in_shards(AmprtWatch *watch, int past, const AmprtBatch *last,
                                  AmprtError *error) {
  AmprtSession *session = watch->session;
  int64_t n = session->shards.local;
  AmprtStatus status = AMPRT_OK;
  amprt_feed_close(watch->again);
  watch->again = NULL;
  if (n > 1)
    status =
        amprt_train_feed(session, "train", session->progress.examples, false, &watch->again, error);
  for (int64_t i = 0; i < n && !status && !watch->finding.found; i++) {
    const AmprtBatch *batch = last;
    if (n > 1)
      status = amprt_feed_next(watch->again, &batch, error);
    if (status || !batch) /* a signal has ended the wait for data */
      break;
    int64_t number = shard_number(session, i);
    AmprtInputs inputs = inputs_of(watch, amprt_inject_begin(&watch->inject, number, batch));
    find(watch, past, number, &inputs);
    amprt_inject_end(&watch->inject);
  }
  return status;
}

/* What a process tells of its search. */
typedef struct Found {
  bool found;
  int place;
  AmprtTally tally;
  int64_t batch_number;
} Found;

/* The lowest rank that has found something: its finding becomes that of all. */
static AmprtStatus share_finding(AmprtWatch *watch, AmprtError *error) {
  AmprtSession *session = watch->session;
  const AmprtFinding *own = &watch->finding;
  Found mine = {own->found, own->place, own->tally, watch->batch_number};
  Found *all = amprt_ranks_gather(session, &mine, sizeof mine, error);
  if (!all)
    return error->status;
  int rank = 0;
  while (rank < session->size && !all[rank].found)
    rank++;
  if (rank < session->size) {
    watch->finding = amprt_finding_at(session->program, &session->program->graph[0],
                                      all[rank].place, &all[rank].tally);
    watch->batch_number = all[rank].batch_number;
    watch->finder = rank;
  } else {
    watch->batch_number = shard_number(session, 0) - session->shards.first;
  }
  free(all);
  return AMPRT_OK;
}

/* Looks for the first result that is not finite in kernels of graph 0 before `past`. */
static AmprtStatus look_again(AmprtWatch *watch, int past, const AmprtInputs *inputs,
                              AmprtError *error) {
  AmprtSession *session = watch->session;
  if (session->shards.n > 1) {
    AmprtStatus status = find_in_shards(watch, past, inputs->batch, error);
    return status || !session->group ? status : share_finding(watch, error);
  }
  find(watch, past, shard_number(session, 0), inputs);
  return AMPRT_OK;
}

/* The same in the middle of a step, which goes on afterwards: what graph 0 puts into the arena is
 * replaced by what was there. */
static AmprtStatus look_early(AmprtWatch *watch, const AmprtInputs *inputs, AmprtError *error) {
  AmprtMachine *machine = &watch->session->machine;
  const AmprtGraph *first = &watch->session->program->graph[0];
  const AmprtPort *loss = output_of(first, amprt_name_loss);
  if (machine->train == first)
    return look_again(watch, watch->loss_after + 1, inputs, error);
  AmprtStatus status = amprt_shards_settle(&watch->session->shards, error);
  if (status)
    return status;
  unsigned char *held = malloc(machine->arena_bytes + 1);
  if (!held || !loss) {
    free(held);
    return amprt_fail_memory(error, machine->arena_bytes, "running a bad step again");
  }
  memcpy(held, amprt_machine_pull(machine, AMPRT_ARENA, 0, machine->arena_bytes),
         machine->arena_bytes);
  status = look_again(watch, loss->after + 1, inputs, error);
  memcpy(machine->run.arena, held, machine->arena_bytes);
  amprt_machine_push(machine, AMPRT_ARENA, 0, machine->arena_bytes);
  free(held);
  return status;
}

static bool is_due(int64_t every, int64_t number) {
  return every && number % every == 0;
}

static void judge(AmprtWatch *watch) {
  watch->skipped = watch->result.finite == 0;
  watch->bad = watch->skipped || !isfinite(watch->result.loss) || watch->bad_gradients;
  watch->bad_gradients = false;
}

/* Gradients are tested before they are summed, so each process knows of its own. */
static AmprtStatus share_bad_gradients(AmprtWatch *watch, AmprtError *error) {
  AmprtSession *session = watch->session;
  unsigned char mine = watch->bad_gradients, *all = amprt_ranks_gather(session, &mine, 1, error);
  if (!all)
    return error->status;
  for (int r = 0; r < session->size; r++)
    watch->bad_gradients |= all[r];
  free(all);
  return AMPRT_OK;
}

/* The hooks that every shard needs; returns how many. */
static int shard_hooks(AmprtWatch *watch, Gradients *test, AmprtHook hook[2]) {
  int n = 0;
  *test = (Gradients){&watch->session->machine, watch->graph, &watch->bad_gradients};
  if (watch->inject.n)
    hook[n++] = (AmprtHook){amprt_inject_after, &watch->inject};
  if (watch->trap && !watch->gated)
    hook[n++] = (AmprtHook){test_gradients, test};
  return n;
}

void amprt_watch_shard(AmprtWatch *watch, int64_t index, const AmprtBatch *batch) {
  AmprtSession *session = watch->session;
  AmprtInputs inputs =
      inputs_of(watch, amprt_inject_begin(&watch->inject, shard_number(session, index), batch));
  Gradients test;
  AmprtHook hook[2];
  int n = shard_hooks(watch, &test, hook);
  amprt_machine_fill(&session->machine, watch->graph, &inputs);
  amprt_machine_kernels(&session->machine, watch->graph, 0, watch->graph->n_local, hook, n);
  amprt_inject_end(&watch->inject);
  amprt_shards_put_aside(&session->shards, index);
}

static AmprtStatus run_kernels(AmprtWatch *watch, int first, int past, const AmprtHook *hook, int n,
                               AmprtError *error) {
  AmprtSession *session = watch->session;
  if (session->shards.n > 1)
    return amprt_shards_kernels(&session->shards, first, past, hook, n, error);
  amprt_machine_kernels(&session->machine, watch->graph, first, past, hook, n);
  return AMPRT_OK;
}

/* How many kernels of graph 0 are run again after a bad step. A step is skipped because the finite
 * test of its gradients failed. So what is not finite was there before the test; and if the test
 * comes before all updates, the kernels before the first of these are enough. */
static int past_of_search(const AmprtWatch *watch) {
  const AmprtGraph *first = &watch->session->program->graph[0];
  const AmprtPort *finite = output_of(first, amprt_name_finite);
  bool tested = watch->skipped && finite && finite->after <= first->first_update;
  return tested ? first->first_update : first->n_kernels;
}

static AmprtStatus run_step(AmprtWatch *watch, const AmprtInputs *inputs, int64_t number,
                            AmprtError *error) {
  AmprtSession *session = watch->session;
  AmprtMachine *machine = &session->machine;
  const AmprtGraph *graph = watch->graph;
  Gradients test;
  AmprtGradients histograms = {machine, graph, &session->log, amprt_report_events(session->report),
                               session->progress.step};
  AmprtHook hook[5];
  int n = shard_hooks(watch, &test, hook), early = watch->trap ? 0 : watch->loss_after + 1;
  int done = session->shards.n > 1 ? graph->n_local : 0;
  if (is_due(session->options.grad_histogram_every, number))
    hook[n++] = (AmprtHook){amprt_gradients_after, &histograms};
  n += amprt_report_hooks(session->report, hook + n, 2);
  amprt_machine_fill(machine, graph, inputs);
  AmprtStatus status = run_kernels(watch, 0, done, hook, n, error);
  if (done) /* what follows may change the parameters */
    amprt_inject_end(&watch->inject);
  if (!status && early > done) {
    status = run_kernels(watch, done, early, hook, n, error);
    done = early;
    /* Kernels after these may change the parameters, so the step must be run again now. */
    if (!status && !isfinite(amprt_machine_scalar(machine, graph, amprt_name_loss, 0)))
      status = look_early(watch, inputs, error);
  }
  if (!status)
    status = run_kernels(watch, done, graph->n_kernels, hook, n, error);
  if (status)
    return status;
  amprt_result_read(machine, &watch->result);
  if (session->group && watch->trap && !watch->gated)
    status = share_bad_gradients(watch, error);
  if (status)
    return status;
  judge(watch);
  if (watch->bad && !watch->finding.found && (watch->skipped || watch->trap))
    status = look_again(watch, past_of_search(watch), inputs, error);
  return status;
}

static void log_finding(const AmprtWatch *watch) {
  AmprtSession *session = watch->session;
  const AmprtFinding *finding = &watch->finding;
  AmprtText event = {0};
  amprt_event_begin(&event, "nonfinite");
  amprt_event_integer(&event, "step", session->progress.step);
  amprt_event_integer(&event, "batch", watch->batch_number);
  if (session->group && finding->found)
    amprt_event_integer(&event, "rank", watch->finder);
  amprt_event_integer(&event, "skipped", watch->skipped);
  amprt_event_number(&event, "loss", watch->result.loss);
  if (watch->loss_scale)
    amprt_event_number(&event, "loss_scale", watch->loss_scale);
  if (finding->found) {
    amprt_event_string(&event, "op", finding->op);
    amprt_event_string(&event, "value", finding->value);
    amprt_event_string(&event, "layer", finding->layer);
    if (finding->makers)
      amprt_event_string(&event, "makers", finding->makers);
    amprt_event_string(&event, "dtype", amprt_dtype_name(finding->dtype));
    amprt_event_integer(&event, "elements", finding->tally.elements);
    amprt_event_integer(&event, "inf", finding->tally.inf);
    amprt_event_integer(&event, "nan", finding->tally.nan);
    amprt_event_number(&event, "largest_finite", finding->tally.largest);
  }
  amprt_event_end(&event, &session->log);
}

/* Adds what went wrong, as far as it is known. */
static void describe(const AmprtWatch *watch, AmprtText *text) {
  if (watch->finding.found) {
    amprt_text_add(text, "first not finite: ");
    amprt_finding_text(&watch->finding, text);
  } else if (watch->ahead) {
    amprt_text_add(text, "the device had gone on when this was seen, so the step cannot be run "
                         "again; --trap=first-nonfinite goes step by step and keeps it");
  } else if (watch->skipped || watch->trap) {
    amprt_text_add(text, "run again, every result was finite");
  } else {
    amprt_text_add(text,
                   "the step has changed the parameters, so it cannot be run again to see why; "
                   "--trap=first-nonfinite keeps what that takes");
  }
}

/* Was the step before bad for the same reason, so that a line for people would say nothing new? */
static bool is_repeated(const AmprtWatch *watch, bool again, const char *value) {
  const char *now = watch->finding.found ? watch->finding.value : NULL;
  return again && (now ? value && !strcmp(now, value) : !value);
}

/* ", loss scale 1024"; empty in a program without a loss scale. */
static void format_scale(const AmprtWatch *watch, char *out, size_t size) {
  *out = '\0';
  if (watch->loss_scale)
    snprintf(out, size, ", loss scale %g", watch->loss_scale);
}

static void report(const AmprtWatch *watch) {
  AmprtSession *session = watch->session;
  AmprtText text = {0};
  char scale[40], rank[24] = "";
  format_scale(watch, scale, sizeof scale);
  if (session->group && watch->finding.found)
    snprintf(rank, sizeof rank, " of rank %d", watch->finder);
  describe(watch, &text);
  if (!text.failed)
    amprt_say(&session->log, "%s step %" PRId64 ", batch %" PRId64 "%s%s: %s",
              watch->skipped ? "skipped" : "loss is not finite in", session->progress.step,
              watch->batch_number, rank, scale, text.data);
  amprt_text_free(&text);
}

static AmprtStatus spring_trap(AmprtWatch *watch, AmprtError *error) {
  AmprtSession *session = watch->session;
  AmprtText text = {0};
  char path[AMPRT_PATH], scale[40];
  format_scale(watch, scale, sizeof scale);
  if (watch->finder != session->rank) /* which saves its batch, and says so */
    return amprt_ranks_agree(session, AMPRT_OK, error);
  amprt_kept_put_back(&watch->kept, &session->machine);
  AmprtStatus status = amprt_reproducer_save(session, watch->batch, path, error);
  describe(watch, &text);
  if (!status && text.failed)
    status = amprt_fail_memory(error, text.room, "an error text");
  if (!status)
    status = amprt_fail(error, AMPRT_INPUT,
                        "stopped by --trap=first-nonfinite in step %" PRId64 "%s: %s; "
                        "--reproduce=%s runs the step again",
                        session->progress.step, scale, text.data, path);
  amprt_text_free(&text);
  return amprt_ranks_agree(session, status, error);
}

/* The number of the step's batch, all shards together. */
static int64_t next_number(const AmprtSession *session) {
  return (int64_t)(session->progress.examples / (uint64_t)amprt_step_examples(session));
}

/* Logs a bad step, and prints a line about it unless that would repeat the last one. */
static void tell(const AmprtWatch *watch, bool again, const char *before) {
  if (!watch->bad)
    return;
  log_finding(watch);
  if (!watch->trap && !watch->session->log.quiet && !is_repeated(watch, again, before))
    report(watch);
}

AmprtStatus amprt_watch_step(AmprtWatch *watch, const AmprtBatch *batch, AmprtError *error) {
  AmprtSession *session = watch->session;
  int64_t number = shard_number(session, session->shards.local - 1);
  bool again = watch->bad;
  const char *before = watch->finding.found ? watch->finding.value : NULL;
  watch->finding = (AmprtFinding){0};
  watch->finder = 0;
  watch->loss_scale = amprt_machine_variable(&session->machine, amprt_name_loss_scale, 0);
  AmprtInputs inputs = inputs_of(watch, amprt_inject_begin(&watch->inject, number, batch));
  watch->batch_number = shard_number(session, 0);
  watch->batch = inputs.batch;
  amprt_kept_take(&watch->kept, &session->machine);
  AmprtStatus status = run_step(watch, &inputs, next_number(session), error);
  if (!status)
    status = amprt_machine_check(&session->machine, error);
  if (status)
    return status;
  tell(watch, again, before);
  if (watch->bad && watch->trap)
    status = spring_trap(watch, error);
  amprt_inject_end(&watch->inject);
  return status;
}

AmprtStatus amprt_watch_start(AmprtWatch *watch, const AmprtBatch *batch, AmprtError *error) {
  AmprtSession *session = watch->session;
  AmprtInputs inputs = inputs_of(watch, batch);
  /* A device takes a batch only once it has made room, that is after some step before. */
  char what[40];
  snprintf(what, sizeof what, "a step before step %" PRId64,
           session->progress.step + watch->running + 1);
  if (session->group)
    amprt_group_watch_begin(session->group, what);
  amprt_machine_start(&session->machine, watch->graph, &inputs);
  if (session->group)
    amprt_group_watch_end(session->group);
  watch->running++;
  return amprt_machine_check(&session->machine, error);
}

AmprtStatus amprt_watch_collect(AmprtWatch *watch, AmprtError *error) {
  const AmprtMachine *machine = &watch->session->machine;
  bool again = watch->bad;
  watch->loss_scale = watch->result.loss_scale;
  char what[40];
  snprintf(what, sizeof what, "step %" PRId64, watch->session->progress.step);
  if (watch->session->group)
    amprt_group_watch_begin(watch->session->group, what);
  amprt_result_collect(machine, &watch->result);
  if (watch->session->group)
    amprt_group_watch_end(watch->session->group);
  watch->running--;
  AmprtStatus status = amprt_machine_check(machine, error);
  if (status)
    return status;
  judge(watch);
  watch->batch_number = shard_number(watch->session, 0) - watch->session->shards.first;
  tell(watch, again, NULL);
  return AMPRT_OK;
}
