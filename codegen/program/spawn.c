#include "codegen/program/build.h"
#include "codegen/program/jobserver.h"
#include "ir/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_ENDING = sizeof ending / sizeof *ending };
static struct sigaction before[N_ENDING];
static volatile sig_atomic_t caught;

/* The commands of commands_run, for the signal handler. Each command leads a process group of its
 * own, to which signals are sent: a compiler driver that is killed alone leaves the compiler that
 * it started behind. */
static Command *volatile running;
static volatile sig_atomic_t n_running;

static void on_signal(int signal_number) {
  caught = signal_number;
  for (int i = 0; i < n_running; i++)
    if (running[i].pid > 0)
      kill(-running[i].pid, SIGTERM);
}

void spawn_begin(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&action.sa_mask);
  caught = 0;
  for (int i = 0; i < N_ENDING; i++) {
    sigaction(ending[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN) /* nohup ignores SIGHUP, and it stays ignored */
      sigaction(ending[i], &action, NULL);
  }
}

void spawn_end(void) {
  for (int i = 0; i < N_ENDING; i++)
    sigaction(ending[i], &before[i], NULL);
  if (caught)
    raise(caught);
}

bool spawn_goes_on(void) {
  return !caught;
}

char *scratch_pattern(Arena *arena, const char *prefix) {
  const char *tmp = getenv("TMPDIR");
  return arena_printf(arena, "%s/%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", prefix);
}

const char *scratch_folder(Arena *arena, const char *prefix) {
  char *folder = scratch_pattern(arena, prefix);
  if (mkdtemp(folder))
    return folder;
  text_say("ampcc: cannot make a temporary folder %s: %s\n", folder, strerror(errno));
  return NULL;
}

enum {
  NOT_READY = 125,   /* exit status of a process whose Command.before failed */
  FEWEST_AT_ONCE = 4 /* commands that run at a time, or one for each processor if that is more */
};

/* Starts a command behind `before`, which needs the memory of this process: so it forks. */
static int start_after(Command *command) {
  fflush(NULL); /* else the child would write what is in the buffers a second time */
  int pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    int in = open("/dev/null", O_RDONLY),
        out = open(command->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < N_ENDING; i++)
      sigaction(ending[i], &before[i], NULL);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
        !command->before(command->user))
      _exit(NOT_READY);
    execvp(command->argv[0], (char *const *)command->argv);
    text_say("ampcc: cannot run `%s`: %s\n", command->argv[0], strerror(errno));
    _exit(NOT_READY);
  }
  if (pid > 0)
    setpgid(pid, pid); /* by parent and child, so that it is done whichever runs first */
  command->pid = pid < 0 ? 0 : pid;
  return pid < 0 ? errno : 0;
}

static int start_plain(Command *command) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, command->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_init(&attr);
  posix_spawnattr_setpgroup(&attr, 0);
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
  int pid = 0;
  int error =
      posix_spawnp(&pid, command->argv[0], &actions, &attr, (char *const *)command->argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attr);
  command->pid = error ? 0 : pid;
  return error;
}

/* The first line of the log with "error" in it, else its first line. */
static void log_reason(const char *path, char *reason, size_t size) {
  char line[300];
  reason[0] = '\0';
  FILE *log = fopen(path, "r");
  while (log && fgets(line, sizeof line, log)) {
    line[strcspn(line, "\n")] = '\0';
    bool telling = strstr(line, "error") || strstr(line, "undefined") || strstr(line, "cannot");
    if (reason[0] == '\0' || telling)
      snprintf(reason, size, "%s", line);
    if (telling)
      break;
  }
  if (log)
    fclose(log);
}

static double seconds_of(struct timeval t) {
  return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Waits for the command. False if it failed, after one line on stderr unless `quiet`. */
static bool finish(Command *command, const char *what, bool quiet) {
  int status = 0;
  struct rusage used = {0};
  while (wait4(command->pid, &status, 0, &used) < 0 && errno == EINTR)
    ;
  command->pid = 0;
  command->seconds += seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  struct stat made;
  bool wrote = !command->makes || (stat(command->makes, &made) == 0 && made.st_size > 0);
  if (succeeded && wrote)
    return true;
  if (quiet || caught)
    return false;
  if (succeeded) {
    text_say("ampcc: %s: `%s` reported success but wrote nothing; is it a C compiler?\n", what,
             command->argv[0]);
    return false;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_READY && command->before) {
    char line[600]; /* `before` has said in the log why it failed */
    FILE *log = fopen(command->log, "r");
    while (log && fgets(line, sizeof line, log))
      fputs(line, stderr);
    if (log)
      fclose(log);
    return false;
  }
  char reason[300];
  log_reason(command->log, reason, sizeof reason);
  if (WIFSIGNALED(status))
    text_say("ampcc: %s: `%s` was ended by signal %d\n", what, command->argv[0], WTERMSIG(status));
  else
    text_say("ampcc: %s: `%s` failed: %s; -v shows the command, --save-temps keeps its input\n",
             what, command->argv[0], reason[0] ? reason : "without a message");
  return false;
}

/* Some commands of which several run at a time. */
typedef struct Crowd {
  Command *command;
  const char *what;
  int most, n_running;
  Jobserver jobserver; /* if there is one, all but the first that run have a token of it */
  bool good;
} Crowd;

static void end_one(Crowd *crowd, Command *command) {
  crowd->good &= finish(command, crowd->what, !crowd->good || !crowd->what);
  crowd->n_running--;
  jobserver_give(&crowd->jobserver, crowd->n_running > 1 ? crowd->n_running - 1 : 0);
}

static bool may_start(Arena *arena, Crowd *crowd) {
  return crowd->n_running < crowd->most &&
         (crowd->n_running == 0 || !crowd->jobserver.present ||
          crowd->jobserver.n >= crowd->n_running || jobserver_take(arena, &crowd->jobserver));
}

static bool has_ended(const Command *command) {
  siginfo_t info = {.si_pid = 0};
  return waitid(P_PID, (id_t)command->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid;
}

/* Waits for something before command `next` can be started: a token of the jobserver, or the end of
 * any of those that run; without a jobserver the end of the oldest. */
static void wait_for_room(Crowd *crowd, int next) {
  enum { MILLISECONDS = 10 }; /* no descriptor tells of the end of a process on every kernel */
  bool by_token = crowd->jobserver.present && crowd->n_running < crowd->most;
  struct pollfd token = {.fd = crowd->jobserver.read, .events = POLLIN};
  if (by_token)
    poll(&token, 1, MILLISECONDS);
  for (int i = 0; i < next; i++)
    if (crowd->command[i].pid && (!by_token || has_ended(&crowd->command[i]))) {
      end_one(crowd, &crowd->command[i]);
      return;
    }
}

static void start(Crowd *crowd, Command *command, bool verbose) {
  if (verbose) {
    fputs("ampcc:", stderr);
    for (int k = 0; command->argv[k]; k++)
      text_say(" %s", command->argv[k]);
    fputc('\n', stderr);
  }
  int error = command->before ? start_after(command) : start_plain(command);
  if (caught && command->pid > 0) /* the signal came before the handler could know the pid */
    kill(-command->pid, SIGTERM);
  if (error && crowd->what)
    text_say("ampcc: %s: cannot run `%s`: %s; install gcc or name a compiler with --cc\n",
             crowd->what, command->argv[0], strerror(error));
  crowd->n_running += !error;
  crowd->good &= error == 0;
}

bool commands_run(Command *command, int n, const char *what, bool verbose) {
  Arena *arena = arena_new();
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  Crowd crowd = {.command = command, .what = what, .good = true};
  crowd.most = cpus > FEWEST_AT_ONCE ? (int)cpus : FEWEST_AT_ONCE;
  if (n > 1 && !jobserver_open(arena, &crowd.jobserver))
    crowd.most = 1;
  running = command;
  n_running = n;
  for (int i = 0; i < n && crowd.good && !caught;)
    if (!command[i].argv)
      i++;
    else if (may_start(arena, &crowd))
      start(&crowd, &command[i++], verbose);
    else
      wait_for_room(&crowd, i);
  for (int i = 0; i < n; i++)
    if (command[i].pid)
      end_one(&crowd, &command[i]);
  n_running = 0;
  if (n > 1)
    jobserver_close(&crowd.jobserver);
  arena_free(arena);
  return crowd.good && !caught;
}
