#include "runtime/base/clock.h"
#include "runtime/core/parts.h"
#include "runtime/core/ranks.h"
#include "runtime/core/stop.h"
#include "runtime/core/train.h"
#include "runtime/data/classes.h"
#include "runtime/flags/official.h"
#include "runtime/report/report.h"
#include "runtime/state/init.h"
#include "runtime/watch/inject.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool only_evaluates(const AmprtOptions *options) {
  return options->eval_only || options->train_epochs == 0;
}

/* The model folder of this run; "" if it reads and writes no files. */
static void choose_dir(const AmprtSession *session, char out[AMPRT_PATH]) {
  const AmprtOptions *options = &session->options;
  bool reads = options->resume || (only_evaluates(options) && !*options->init_from);
  out[0] = '\0';
  if (*options->reproduce)
    return;
  if (options->given.model_dir)
    snprintf(out, AMPRT_PATH, "%s", options->model_dir);
  else if (reads || !(session->data.synthetic || only_evaluates(options)))
    snprintf(out, AMPRT_PATH, "%.200s_model", session->program->model);
  if (*options->dump_step && !reads)
    out[0] = '\0';
  for (char *c = out; !options->given.model_dir && *c; c++)
    if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
      *c = '_';
}

static void print_notes(AmprtSession *session, AmprtText *notes) {
  for (char *line = notes->data; line && *line;) {
    size_t n = strcspn(line, "\n");
    amprt_say(&session->log, "note: %.*s", (int)n, line);
    line += n + (line[n] == '\n');
  }
  amprt_text_free(notes);
}

static AmprtStatus fail_unreadable(const AmprtModelDir *dir, const char *newest,
                                   AmprtError *error) {
  char which[64] = "its only checkpoint cannot be read";
  if (dir->n > 1)
    snprintf(which, sizeof which, "none of its %d checkpoints can be read; the newest", dir->n);
  return amprt_fail(
      error, AMPRT_INPUT,
      "%s: %s: %.900s; nothing was changed: bring back a copy of the file or mend its "
      "permissions and --resume again, or start anew with another --model-dir (or "
      "with --clean, which deletes it)",
      dir->path, which, newest);
}

/* Loads one checkpoint, and prints notes and the differences between its recipe and this one.
 * *damaged: the file cannot be read, and another one may do. */
static AmprtStatus load_one(AmprtSession *session, const char *path, bool *damaged,
                            AmprtError *error) {
  AmprtResumed resumed;
  bool trains = !only_evaluates(&session->options) && !*session->options.reproduce;
  AmprtStatus status =
      amprt_ckpt_resume(path, &session->machine, &session->made, trains, &resumed, error);
  *damaged = resumed.damaged;
  int64_t shards = session->shards.n, had = resumed.progress.shards;
  if (!status) {
    session->progress = resumed.progress;
    session->progress.shards = shards;
    session->resumed = true;
    print_notes(session, &resumed.notes);
  }
  if (!status && trains && had != shards)
    amprt_warn(&session->log,
               "%s was made with steps of %" PRId64 " x %" PRId64 " images, this run takes %" PRId64
               " x %" PRId64 ": --shards=%" PRId64 " goes on as before",
               path, had, session->program->batch_size, shards, session->program->batch_size, had);
  if (!status && resumed.changed.size && !only_evaluates(&session->options))
    amprt_warn(&session->log, "%s was made with other settings: %s", path, resumed.changed.data);
  amprt_text_free(&resumed.notes);
  amprt_text_free(&resumed.changed);
  return status;
}

/* Loads the newest readable checkpoint. Newer ones that cannot be read are passed over with a
 * warning; *unreadable is their number. A checkpoint of another model is an error. So is a folder
 * of checkpoints none of which can be read, as a run that was told to resume must not silently
 * start anew. */
static AmprtStatus resume(AmprtSession *session, int *unreadable, AmprtError *error) {
  char newest[sizeof error->text] = "";
  for (int i = session->dir.n - 1; i >= 0; i--) {
    char path[AMPRT_PATH];
    bool damaged = false;
    AmprtStatus status = amprt_modeldir_ckpt(&session->dir, session->dir.step[i], path, error);
    if (!status)
      status = load_one(session, path, &damaged, error);
    if (!damaged) {
      *unreadable = session->dir.n - 1 - i;
      if (!status)
        amprt_say(&session->log, "resuming from %s", path);
      return status;
    }
    if (!*newest)
      snprintf(newest, sizeof newest, "%s", error->text);
    if (i)
      amprt_warn(&session->log, "%s; trying the checkpoint before it", error->text);
  }
  return session->dir.n ? fail_unreadable(&session->dir, newest, error) : AMPRT_OK;
}

static AmprtStatus load_state(AmprtSession *session, int *unreadable, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  AmprtStatus status = AMPRT_OK;
  bool evaluates = only_evaluates(options);
  bool damaged;
  if (*options->reproduce)
    status = load_one(session, options->reproduce, &damaged, error);
  else if (options->resume || (evaluates && !*options->init_from))
    status = resume(session, unreadable, error);
  else if (session->dir.n && !evaluates && !options->clean)
    status = amprt_fail(
        error, AMPRT_INPUT,
        "%s: already holds checkpoints; continue with --resume, start over with --clean, "
        "or name another --model-dir",
        session->dir.path);
  if (!status && evaluates && !session->resumed && !*options->init_from)
    status = amprt_fail(error, AMPRT_INPUT,
                        "%s: no checkpoint to evaluate; --model-dir or --init-from says "
                        "which",
                        session->dir.path);
  if (!status && options->resume && !session->resumed)
    amprt_say(&session->log, "no checkpoint in %s yet: starting", session->dir.path);
  if (!status && session->resumed && options->given.seed &&
      session->progress.seed != (uint64_t)options->seed)
    amprt_say(&session->log, "note: the checkpoint's seed %" PRIu64 " is used, not --seed",
              session->progress.seed);
  return status;
}

/* The file of the log; "" if there is none. */
static AmprtStatus choose_log(const AmprtSession *session, char out[AMPRT_PATH],
                              AmprtError *error) {
  const AmprtOptions *options = &session->options;
  out[0] = '\0';
  if (*options->log_file)
    snprintf(out, AMPRT_PATH, "%s", options->log_file);
  else if (*session->dir.path && !*options->dump_step)
    return amprt_path(out, session->dir.path, "log.jsonl", error);
  if (options->grad_histogram_every && !*out)
    return amprt_fail(error, AMPRT_USAGE,
                      "--grad-histogram-every writes to the log; --log-file or --model-dir says "
                      "where");
  return AMPRT_OK;
}

/* Opens the log to append to it. A new run first renames the log that an earlier run left in the
 * folder. An evaluation that cannot write its log goes on without one. */
static AmprtStatus open_log(AmprtSession *session, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  char path[AMPRT_PATH], old[AMPRT_PATH] = "";
  bool evaluates = only_evaluates(options), own = !*options->log_file;
  AmprtStatus status = choose_log(session, path, error);
  if (status || !*path)
    return status;
  if (own && !evaluates && !options->resume && !options->clean)
    status = amprt_modeldir_old_log(&session->dir, old, error);
  if (*old)
    amprt_say(&session->log, "note: the log of an earlier run is kept as %s", old);
  if (!status)
    status = amprt_log_open(&session->log, path, error);
  if (!status || !own || !evaluates)
    return status;
  amprt_say(&session->log, "note: %s; this evaluation is not logged", error->text);
  return AMPRT_OK;
}

/* The number of threads for --data-threads=0. Raw images need little work. To decode image files, a
 * program on a GPU uses every processor, which are idle otherwise; on a CPU the step itself needs
 * most of them. */
static int64_t choose_data_threads(const AmprtSession *session) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (session->group)
    processors /= amprt_group_info(session->group)->local_size;
  if (session->program->device && !session->data.train.height)
    return processors < 1 ? 1 : processors > 16 ? 16 : processors;
  return processors < 8 ? 1 : processors > 16 ? 4 : processors / 4;
}

/* An evaluation must find every parameter, and a training may draw what a file lacks. */
static AmprtStatus init_from(AmprtSession *session, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  AmprtText notes = {0};
  AmprtFit fit = options->init_from_strict ? AMPRT_FIT_STRICT
                 : only_evaluates(options) ? AMPRT_FIT_WHOLE
                                           : AMPRT_FIT_LOOSE;
  AmprtStatus status =
      amprt_ckpt_init_from(options->init_from, &session->machine, fit, &notes, error);
  print_notes(session, &notes);
  return status;
}

/* Rank 0 makes and locks the folder, and is the only one that writes there. */
static AmprtStatus open_dir(AmprtSession *session, AmprtError *error) {
  char path[AMPRT_PATH];
  choose_dir(session, path);
  if (only_evaluates(&session->options) && *path && access(path, F_OK) < 0)
    return amprt_fail(error, AMPRT_INPUT, "%s: no such folder; --model-dir says which", path);
  return session->rank ? amprt_modeldir_look(&session->dir, path, error)
                       : amprt_modeldir_open(&session->dir, path, error);
}

/* How many shards the newest checkpoint that can be read had; 0: there is none. */
static AmprtStatus shards_before(const AmprtSession *session, int64_t *shards, AmprtError *error) {
  AmprtModelDir dir;
  char path[AMPRT_PATH];
  choose_dir(session, path);
  AmprtStatus status = amprt_modeldir_look(&dir, path, error);
  for (int i = dir.n - 1; i >= 0 && !status && !*shards; i--) {
    status = amprt_modeldir_ckpt(&dir, dir.step[i], path, error);
    if (!status)
      *shards = amprt_ckpt_shards(path);
  }
  amprt_modeldir_close(&dir);
  return status;
}

/* --shards; without it as many as before, if this run can have them, or one for each process. */
static AmprtStatus choose_shards(AmprtSession *session, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  const AmprtProgram *program = session->program;
  int64_t n = options->shards;
  AmprtStatus status = AMPRT_OK;
  bool one_batch = *options->dump_step || *options->reproduce;
  if (one_batch && (n > 1 || session->size > 1))
    return amprt_fail(error, AMPRT_USAGE,
                      "--%s looks at one batch: start one process, without --shards",
                      *options->dump_step ? "dump-step" : "reproduce");
  if (only_evaluates(options) || one_batch)
    return AMPRT_OK;
  if (!n && options->resume)
    status = shards_before(session, &n, error);
  AmprtError ignored;
  bool before = !options->shards && n;
  if (!status && before &&
      amprt_shards_set(&session->shards, program, n, session->rank, session->size, &ignored))
    n = 0;
  if (!status)
    status = amprt_shards_set(&session->shards, program, n ? n : session->size, session->rank,
                              session->size, error);
  session->progress.shards = session->shards.n;
  return status;
}

/* Opens the data and fixes what a step is. */
static AmprtStatus open_data(AmprtSession *session, AmprtError *error) {
  AmprtOptions *options = &session->options;
  session->progress.seed = (uint64_t)options->seed;
  /* --reproduce has its batch in the file */
  options->use_synthetic_data |= *options->reproduce != '\0';
  AmprtStatus status = AMPRT_OK;
  bool needs_eval = options->eval_only || options->given.stop_threshold;
  if (options->skip_eval && needs_eval)
    status = amprt_fail(error, AMPRT_USAGE, "--skip-eval and --%s contradict each other",
                        options->eval_only ? "eval-only" : "stop-threshold");
  if (!status)
    status = amprt_data_open(&session->data, session->program, options, error);
  if (!options->data_threads)
    options->data_threads = choose_data_threads(session);
  if (!status)
    status = amprt_made_open(&session->made, session->program, options, error);
  if (!status)
    status = choose_shards(session, error);
  return status ? status : amprt_schedule_for(session, error);
}

/* Memory and target. What is collective here is done by all or by none. */
static AmprtStatus open_machine(AmprtSession *session, AmprtError *error) {
  AmprtMachinePlan plan = {.shards = session->shards.n > 1};
  AmprtStatus status = amprt_ranks_threads(session, error);
  if (!status)
    status = amprt_ranks_arena(session, &plan.arena, error);
  if (!status)
    status = amprt_ranks_device(session, error);
  plan.ranks = session->others.size ? &session->others : NULL;
  plan.shards |= plan.ranks != NULL;
  if (!status && plan.ranks && session->group)
    amprt_group_watch_begin(session->group, "the start of the devices");
  if (!status)
    status =
        amprt_machine_open(&session->machine, session->program, &session->options, &plan, error);
  if (plan.ranks && session->group)
    amprt_group_watch_end(session->group);
  return status ? status
                : amprt_shards_open(&session->shards, &session->machine, session->group, error);
}

/* Fills the state. *unreadable: how many of the newest checkpoints were passed over. */
static AmprtStatus open_state(AmprtSession *session, int *unreadable, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  AmprtInject inject = {0};
  AmprtStatus status = amprt_inject_open(&inject, &session->machine, options->inject, error);
  amprt_inject_close(&inject);
  amprt_init(session->program, session->machine.run.state, session->progress.seed,
             session->machine.run.threads);
  amprt_machine_push_state(&session->machine);
  if (!status && options->resume)
    status = open_dir(session, error);
  if (!status && *options->init_from && !session->dir.n) /* a checkpoint to resume wins */
    status = init_from(session, error);
  if (!status && !options->resume)
    status = open_dir(session, error);
  if (!status)
    status = amprt_report_check(session, error);
  if (!status)
    status = load_state(session, unreadable, error);
  if (!status && session->resumed && *session->dir.path)
    status = amprt_classes_check(session->dir.path, &session->data.train, error);
  return status ? status : amprt_machine_check(&session->machine, error);
}

/* Opens and checks everything that this run reads, and writes nothing. */
static AmprtStatus session_open(AmprtSession *session, int *unreadable, AmprtError *error) {
  AmprtStatus status = amprt_ranks_agree(session, open_data(session, error), error);
  if (!status) /* a failure of one process ends the others: they may wait for it in there */
    status = open_machine(session, error);
  if (status)
    return status;
  status = amprt_ranks_agree(session, open_state(session, unreadable, error), error);
  return status ? status : amprt_ranks_compare(session, true, error);
}

/* The first changes in the model folder, once everything has been checked: the log, then what
 * --clean and --resume do to the checkpoints that are there. */
static AmprtStatus begin_files(AmprtSession *session, int unreadable, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  AmprtStatus status = session->rank ? AMPRT_OK : open_log(session, error);
  bool trains = !only_evaluates(options) && !*options->dump_step && !*options->reproduce;
  if (status || session->rank || !*session->dir.path || !trains)
    return status;
  int log = session->log.json ? fileno(session->log.json) : -1;
  status = amprt_modeldir_begin(&session->dir, options->clean, log, error);
  for (int i = 0; i < unreadable && !status; i++) {
    char to[AMPRT_PATH];
    status = amprt_modeldir_set_aside(&session->dir, to, error);
    if (!status)
      amprt_warn(&session->log, "a checkpoint that cannot be read is kept as %s", to);
  }
  return status ? status : amprt_classes_write(session->dir.path, &session->data.train, error);
}

static void announce(AmprtSession *session) {
  const AmprtProgram *program = session->program;
  AmprtText event = {0};
  char runs_on[96];
  if (program->device)
    snprintf(runs_on, sizeof runs_on, "%s", program->target);
  else
    snprintf(runs_on, sizeof runs_on, "%d threads",
             program->threads ? program->threads->count() : 1);
  if (session->group) {
    size_t n = strlen(runs_on);
    const AmprtGroupInfo *info = amprt_group_info(session->group);
    snprintf(runs_on + n, sizeof runs_on - n, " in each of %d processes", info->size);
    n = strlen(runs_on);
    if (info->machines > 1)
      snprintf(runs_on + n, sizeof runs_on - n, " on %d machines", info->machines);
  }
  if (!session->options.quiet)
    amprt_say(&session->log,
              "%s, %s, %" PRId64 " parameters, batch %" PRId64 ", %" PRId64 " %simages, %s",
              program->model, program->dtype, amprt_count_parameters(program),
              amprt_step_examples(session), session->data.train.n,
              session->data.synthetic ? "synthetic " : "", runs_on);
  const AmprtDataset *train = &session->data.train;
  if (train->class_name && train->classes + session->data.first_label < program->n_classes)
    amprt_say(&session->log,
              "note: the data has %" PRId64 " classes, the model %" PRId64
              ": labels are 0 to %" PRId64,
              train->classes, program->n_classes, train->classes - 1);
  if (session->options.verbose && session->shards.n > 1)
    amprt_say(&session->log,
              "steps of %" PRId64 " shards of %" PRId64 " images, %" PRId64
              " of them here: arena %.1f MiB, sums put aside %.1f MiB",
              session->shards.n, program->batch_size, session->shards.local,
              (double)session->machine.arena_bytes / (1 << 20),
              (double)amprt_shards_room(&session->shards) / (1 << 20));
  if (session->options.verbose && program->describe)
    amprt_say(&session->log, "%s, %s", program->version, program->describe());
  amprt_event_begin(&event, "start");
  amprt_event_string(&event, "model", program->model);
  amprt_event_string(&event, "dtype", program->dtype);
  amprt_event_string(&event, "version", program->version);
  amprt_event_integer(&event, "batch_size", amprt_step_examples(session) / session->shards.n);
  if (amprt_parts(program) > 1)
    amprt_event_integer(&event, "accumulate", amprt_parts(program));
  if (session->group) {
    const AmprtGroupInfo *info = amprt_group_info(session->group);
    amprt_event_integer(&event, "ranks", info->size);
    amprt_event_integer(&event, "machines", info->machines);
    amprt_event_string(&event, "transport", info->transport);
  }
  if (session->shards.n > 1) {
    amprt_event_integer(&event, "shards", session->shards.n);
    amprt_event_integer(&event, "global_batch", amprt_step_examples(session));
  }
  amprt_event_integer(&event, "parameters", amprt_count_parameters(program));
  amprt_event_string(&event, "dataset", session->data.name);
  amprt_event_string(&event, "data_dir", session->data.dir);
  amprt_event_integer(&event, "images", session->data.train.n);
  amprt_event_integer(&event, "step", session->progress.step);
  amprt_event_integer(&event, "seed", (int64_t)session->progress.seed);
  amprt_event_end(&event, &session->log);
}

static AmprtStatus evaluate_only(AmprtSession *session, AmprtError *error) {
  AmprtScore score;
  AmprtStatus status = amprt_recompute_stats(session, error);
  return status ? status : amprt_evaluate(session, &score, error);
}

/* Refuses flags that save or dump a step: they hold one batch, without the gradient sums of the
 * batches before it. */
static AmprtStatus check_parts(const AmprtSession *session, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  const char *flag = *options->trap        ? "trap"
                     : *options->reproduce ? "reproduce"
                     : *options->dump_step ? "dump-step"
                                           : NULL;
  return amprt_parts(session->program) == 1 || !flag
             ? AMPRT_OK
             : amprt_fail(error, AMPRT_USAGE,
                          "--%s: this program was made with --accumulate=%" PRId64
                          ", whose steps are of several batches; make it without",
                          flag, amprt_parts(session->program));
}

/* What cannot be done by several processes. */
static AmprtStatus check_alone(const AmprtSession *session, AmprtError *error) {
  bool tunes = *session->options.tune != '\0';
  return session->size == 1 || !tunes
             ? AMPRT_OK
             : amprt_fail(error, AMPRT_USAGE, "--tune: start one process alone");
}

static AmprtStatus run(AmprtSession *session, int *stopped, AmprtError *error) {
  AmprtStatus fits = amprt_ranks_open(session, error);
  if (fits)
    return fits;
  fits = check_parts(session, error);
  if (!fits)
    fits = check_alone(session, error);
  fits = amprt_ranks_agree(session, fits, error);
  if (fits)
    return fits;
  if (!session->options.quiet)
    amprt_official_tell(&session->options, &session->log);
  if (*session->options.tune)
    return amprt_tune(session, session->options.tune, error);
  int unreadable = 0;
  AmprtStatus status = session_open(session, &unreadable, error);
  if (!status)
    status = amprt_ranks_agree(session, begin_files(session, unreadable, error), error);
  if (status)
    return status;
  if (*session->options.reproduce)
    return amprt_reproduce(session, session->options.reproduce, error);
  if (*session->options.dump_step)
    return amprt_dump_step(session, session->options.dump_step, NULL, error);
  status = session->rank ? AMPRT_OK : amprt_report_open(session, error);
  status = amprt_ranks_agree(session, status, error);
  if (status)
    return status;
  announce(session);
  amprt_stop_listen();
  if (only_evaluates(&session->options)) {
    session->log.silent = false;
    status = evaluate_only(session, error);
    if (!status)
      status = amprt_ranks_stopped(session, error);
  } else {
    amprt_warn_of_lag(session);
    session->log.silent = false;
    status = amprt_train(session, error);
  }
  *stopped = session->stopped;
  amprt_stop_forget();
  return status;
}

static void say_goodbye(AmprtSession *session, int stopped) {
  if (stopped && *session->dir.path && !only_evaluates(&session->options))
    amprt_say(&session->log, "stopped by %s at step %" PRId64 "; --resume continues",
              amprt_stop_name(stopped), session->progress.step);
  else if (stopped)
    amprt_say(&session->log, "stopped by %s", amprt_stop_name(stopped));
  if (!session->rank)
    amprt_profile_print(&session->machine, session->log.out);
}

static void print_error(int rank, const char *name, const AmprtError *error) {
  if (rank)
    amprt_print(stderr, "rank %d: ", rank);
  amprt_print(stderr, "%s: error: %s\n", name, error->text);
}

int amprt_run(const AmprtProgram *program, const AmprtOptions *options, const char *name) {
  AmprtError error = {0};
  int stopped = 0;
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  sigaction(SIGPIPE, &ignore, &before); /* a closed pipe must not end the run */
  AmprtSession *session = calloc(1, sizeof *session);
  AmprtStatus status = session ? AMPRT_OK : amprt_fail_memory(&error, sizeof *session, "anything");
  if (!status) {
    session->program = program;
    session->options = *options;
    session->began = amprt_wall_seconds();
    session->dir.lock = -1;
    session->shards = (AmprtShards){.n = 1, .local = 1};
    session->size = 1;
    amprt_log_begin(&session->log, options->quiet, options->verbose,
                    !strcmp(options->log_file, "-"));
    status = run(session, &stopped, &error);
    if (!status)
      say_goodbye(session, stopped);
    amprt_report_close(session, status, stopped);
    amprt_log_close(&session->log);
    if (status && *error.text)
      print_error(session->rank, name, &error);
    amprt_shards_close(&session->shards);
    amprt_machine_close(&session->machine);
    amprt_modeldir_close(&session->dir);
    amprt_made_close(&session->made);
    amprt_data_close(&session->data);
    amprt_ranks_close(session, status && !session->agreed);
  } else {
    print_error(0, name, &error);
  }
  free(session);
  sigaction(SIGPIPE, &before, NULL);
  return status ? (int)status : stopped ? 128 + stopped : 0;
}
