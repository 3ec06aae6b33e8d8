#include "codegen/program/jobserver.h"
#include "frontend/batch/batch.h"
#include "ir/base/clock.h"
#include "ir/base/exit.h"
#include "ir/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char *batch_file(const Batch *batch, const BatchProgram *program, const char *what) {
  return arena_printf(batch->arena, "%s/%s.%s", batch->workplace, program->name, what);
}

const char *batch_place(const Batch *batch, const BatchProgram *program) {
  return arena_printf(batch->arena, "%s/%s", batch->folder, program->name);
}

/* ---- one process ---- */

static const char **command_of(const Batch *batch, const BatchProgram *program) {
  Arena *arena = batch->arena;
  const char **argv = arena_alloc(arena, (size_t)(program->n_words + 7) * sizeof *argv);
  int n = 0;
  argv[n++] = "ampcc";
  for (int i = 0; i < program->n_words; i++)
    argv[n++] = program->word[i].text;
  argv[n++] = arena_printf(arena, "--figures=%s", batch_file(batch, program, "figures"));
  argv[n++] = arena_printf(arena, "--output=%s", batch_file(batch, program, "program"));
  argv[n++] = "--";
  argv[n++] = program->model;
  return argv;
}

/* What the new process does. It leads a process group, to which signals are sent; it gets one by
 * itself if its parent is killed. */
static void become(const char *const *argv, const char *log, const sigset_t *mask, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigprocmask(SIG_SETMASK, mask, NULL);
  int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (getppid() == parent && in >= 0 && out >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 &&
      dup2(out, 2) >= 0)
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
  text_say("ampcc: cannot run ampcc again: %s\n", strerror(errno));
  _exit(EXIT_ENVIRONMENT);
}

/* False if no process could be made. */
static bool start(const Batch *batch, BatchProgram *program, const sigset_t *mask) {
  const char *const *argv = command_of(batch, program);
  const char *log = batch_file(batch, program, "log");
  program->start = clock_seconds();
  program->result = BATCH_RUNNING;
  unlink(batch_file(batch, program, "figures"));
  fflush(NULL); /* else the child would write what is in the buffers a second time */
  pid_t parent = getpid();
  program->pid = fork();
  if (program->pid == 0)
    become(argv, log, mask, parent);
  if (program->pid > 0)
    setpgid(program->pid, program->pid); /* by both, so that it is done whichever runs first */
  return program->pid > 0;
}

/* The first line of the log that is an error, else its last line. */
static const char *log_reason(const Batch *batch, const BatchProgram *program) {
  char *line = NULL;
  size_t size = 0;
  const char *reason = NULL;
  FILE *log = fopen(batch_file(batch, program, "log"), "r");
  bool telling = false;
  while (log && !telling && getline(&line, &size, log) > 0) {
    size_t length = strcspn(line, "\n");
    telling = strstr(line, "error[") != NULL;
    if (length)
      reason = arena_strdup(batch->arena, line, length);
  }
  free(line);
  if (log)
    fclose(log);
  return reason ? reason : "without a message";
}

static void fail(BatchProgram *program, int status, const char *why) {
  program->result = BATCH_FAILED;
  program->status = status;
  program->message = why;
}

/* Moves the program to its place, where only a regular file is replaced. */
static void put_in_place(Batch *batch, BatchProgram *program) {
  const char *made = batch_file(batch, program, "program"), *place = batch_place(batch, program);
  json_t *figures = json_load_file(batch_file(batch, program, "figures"), 0, NULL);
  struct stat st;
  if (!figures_read(batch->arena, figures, &program->figures))
    fail(program, EXIT_BUG, "it wrote no figures");
  else if (lstat(place, &st) == 0 && !S_ISREG(st.st_mode))
    fail(program, EXIT_ENVIRONMENT,
         arena_printf(batch->arena, "cannot write %s: it exists and is no regular file", place));
  else if (stat(made, &st) != 0 || rename(made, place) != 0)
    fail(program, EXIT_ENVIRONMENT,
         arena_printf(batch->arena, "cannot write %s: %s", place, strerror(errno)));
  else
    program->result = BATCH_MADE;
  json_decref(figures);
  if (program->result != BATCH_MADE)
    return;
  program->bytes = st.st_size;
  if (!record_keep(batch, program))
    fail(program, EXIT_ENVIRONMENT, "what is to be remembered of it cannot be written");
}

static void ended(Batch *batch, BatchProgram *program, int status, bool stopping) {
  program->pid = 0;
  program->seconds = clock_seconds() - program->start;
  program->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (!program->status)
    put_in_place(batch, program);
  else if (stopping)
    program->result = BATCH_WAITING;
  else if (WIFSIGNALED(status))
    fail(program, program->status,
         arena_printf(batch->arena, "ended by signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status))));
  else
    fail(program, program->status, log_reason(batch, program));
  unlink(batch_file(batch, program, "figures"));
  unlink(batch_file(batch, program, "program"));
  if (program->result == BATCH_WAITING)
    return;
  if (program->result == BATCH_FAILED)
    record_forget(batch, program);
  batch->n_done++;
  batch->n_made++;
  batch_print_done(batch, program);
}

/* ---- all of them ---- */

typedef struct Making {
  Batch *batch;
  sigset_t before; /* the signal mask */
  int signals;     /* a signalfd, from which all that concerns us is read */
  int next, n_running;
  int stopped_by; /* a signal; 0: none yet */
  Jobserver jobserver;
  bool owns_jobserver; /* make has none for us */
  bool needs_token;    /* a program could be started if the jobserver had a token */
} Making;

/* Blocks the signals that the loop reads one by one, so that none interrupts it. What the caller
 * has set to be ignored, as nohup does, stays ignored. */
static bool watch_signals(Making *making) {
  static const int wanted[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    struct sigaction now;
    sigaction(wanted[i], NULL, &now);
    if (wanted[i] == SIGCHLD || now.sa_handler != SIG_IGN)
      sigaddset(&set, wanted[i]);
  }
  signal(SIGCHLD, SIG_DFL); /* were it ignored, no status of a child would be kept */
  sigprocmask(SIG_BLOCK, &set, &making->before);
  making->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (making->signals < 0)
    text_say("ampcc: cannot wait for signals: %s\n", strerror(errno));
  return making->signals >= 0;
}

/* The first process needs no token: this command itself has one, and waits meanwhile. Nor need it
 * fit into memory, or nothing would ever be made. */
static bool may_start(Making *making) {
  making->needs_token = false;
  if (making->next >= making->batch->n || making->n_running >= making->batch->jobs ||
      making->stopped_by)
    return false;
  if (making->n_running && !memory_suffices(&making->batch->memory, making->n_running + 1))
    return false;
  if (making->jobserver.n >= making->n_running)
    return true;
  making->needs_token = !jobserver_take(making->batch->arena, &making->jobserver);
  return !making->needs_token;
}

/* Keeps as many tokens as there are programs beside the first and, of a jobserver of our own, those
 * that stand for jobs that do not fit into memory; gives the others back. */
static void settle_tokens(Making *making) {
  Batch *batch = making->batch;
  int keep = making->n_running > 1 ? making->n_running - 1 : 0;
  if (making->owns_jobserver) {
    keep += batch->jobs - memory_room(&batch->memory, batch->jobs);
    while (making->jobserver.n < keep && jobserver_take(batch->arena, &making->jobserver))
      ;
  }
  jobserver_give(&making->jobserver, keep);
}

static void start_next(Making *making) {
  Batch *batch = making->batch;
  BatchProgram *program = &batch->program[making->next++];
  program->key = record_key(batch, program);
  if (record_holds(batch, program)) {
    program->result = BATCH_UNCHANGED;
    batch->n_done++;
    batch_print_done(batch, program);
    return;
  }
  if (start(batch, program, &making->before)) {
    making->n_running++;
    return;
  }
  fail(program, EXIT_ENVIRONMENT,
       arena_printf(batch->arena, "cannot make a process: %s", strerror(errno)));
  batch->n_done++;
  batch_print_done(batch, program);
}

/* The first signal asks everything to end, which removes what is half written; a second one does
 * not wait for that. */
static void stop(Making *making, int number) {
  for (int i = 0; i < making->next; i++)
    if (making->batch->program[i].pid > 0)
      kill(-making->batch->program[i].pid, making->stopped_by ? SIGKILL : SIGTERM);
  making->stopped_by = making->stopped_by ? making->stopped_by : number;
}

static void reap(Making *making) {
  int status;
  pid_t pid;
  struct rusage used;
  while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0)
    for (int i = 0; i < making->next; i++)
      if (making->batch->program[i].pid == pid) {
        making->n_running--;
        memory_learn(&making->batch->memory, used.ru_maxrss * (int64_t)1024);
        ended(making->batch, &making->batch->program[i], status, making->stopped_by != 0);
      }
}

/* Waits until something has happened, or until the progress is to be drawn again. */
static void wait_for_something(Making *making) {
  enum { REDRAW = 500 }; /* milliseconds */
  struct pollfd events[] = {{.fd = making->signals, .events = POLLIN},
                            {.fd = making->jobserver.read, .events = POLLIN}};
  poll(events, making->needs_token ? 2 : 1, isatty(STDERR_FILENO) ? REDRAW : -1);
  struct signalfd_siginfo info;
  while (read(making->signals, &info, sizeof info) == (ssize_t)sizeof info)
    if (info.ssi_signo != SIGCHLD)
      stop(making, (int)info.ssi_signo);
  reap(making);
}

int batch_make(Batch *batch) {
  Making making = {.batch = batch};
  if (!watch_signals(&making))
    return SIGTERM;
  if (!jobserver_open(batch->arena, &making.jobserver)) {
    batch->jobs = 1;
  } else if (!making.jobserver.present) {
    making.owns_jobserver = true;
    if (!jobserver_make(batch->arena, batch->jobs, &making.jobserver))
      return SIGTERM;
  }
  while (making.n_running || (making.next < batch->n && !making.stopped_by)) {
    while (may_start(&making))
      start_next(&making);
    settle_tokens(&making); /* some programs are done, or needed no process */
    batch_print_progress(batch);
    if (making.n_running)
      wait_for_something(&making);
  }
  jobserver_give(&making.jobserver, 0); /* the last processes may have ended at the same time */
  batch_print_clear(batch);
  jobserver_close(&making.jobserver);
  close(making.signals);
  sigprocmask(SIG_SETMASK, &making.before, NULL);
  return making.stopped_by;
}
