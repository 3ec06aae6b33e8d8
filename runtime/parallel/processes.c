#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "runtime/parallel/processes.h"

#include "runtime/parallel/launch.h"
#include "runtime/system/system.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PROCESSES = 4096 };

/* ---- how many ---- */

/* The number of GPUs that the driver shows to this process, which CUDA_VISIBLE_DEVICES limits. */
static int count_gpus(void) {
  char why[16];
  void *driver = amprt_library_open("libcuda.so.1", false, why, sizeof why);
  int n = 0;
  if (!driver)
    return 0;
  int (*init)(unsigned) = NULL, (*count)(int *) = NULL;
  *(void **)&init = amprt_library_symbol(driver, "cuInit");
  *(void **)&count = amprt_library_symbol(driver, "cuDeviceGetCount");
  return init && count && !init(0) && !count(&n) ? n : 0;
}

static AmprtStatus choose_gpus(AmprtOptions *options, const AmprtPart *part, int n_parts, int *n,
                               AmprtError *error) {
  const char *text = options->local_gpus;
  bool automatic = !strcmp(text, "auto"), has_part = false;
  char *end;
  long wanted = strtol(text, &end, 10);
  if (!automatic && (!isdigit((unsigned char)*text) || *end || wanted > MAX_PROCESSES))
    return amprt_fail(error, AMPRT_USAGE,
                      "--local-gpus takes auto or a number of GPUs, not `%.40s`", text);
  if (!automatic && !wanted)
    return AMPRT_OK;
  for (int i = 0; i < n_parts; i++)
    has_part |= !strncmp(part[i].name, "cuda", 4);
  if (!has_part || !strncmp(options->device, "cpu", 3))
    return amprt_fail(error, AMPRT_USAGE, "--local-gpus: %s; --processes starts several on the CPU",
                      has_part ? "--device=cpu contradicts it"
                               : "this program has no part for GPUs");
  int have = count_gpus();
  if (!have)
    return amprt_fail(error, AMPRT_ENV, "--local-gpus: the NVIDIA driver shows no GPU here");
  if (wanted > have)
    return amprt_fail(error, AMPRT_ENV, "--local-gpus=%ld: the NVIDIA driver shows %d here", wanted,
                      have);
  *n = automatic ? have : (int)wanted;
  if (!*options->device)
    options->device = "cuda";
  return AMPRT_OK;
}

static AmprtStatus choose_number(AmprtOptions *options, const AmprtPart *part, int n_parts, int *n,
                                 AmprtError *error) {
  *n = (int)options->processes;
  AmprtStatus status = AMPRT_OK;
  bool gpus = strcmp(options->local_gpus, "0") != 0;
  if (options->processes < 0 || options->processes > MAX_PROCESSES)
    return amprt_fail(error, AMPRT_USAGE, "--processes must be from 0 to %d", MAX_PROCESSES);
  if (gpus && options->processes)
    return amprt_fail(error, AMPRT_USAGE,
                      "--processes and --local-gpus both say how many processes to start");
  if (gpus)
    status = choose_gpus(options, part, n_parts, n, error);
  if (!status && *n && !amprt_opens_libraries)
    return amprt_fail(error, AMPRT_USAGE,
                      "--processes needs the MPI library of mpirun, which this program cannot open "
                      "as it is static (ampcc --static): start its processes with torchrun, or "
                      "make it without --static");
  AmprtLaunch launch = {0};
  if (!status && *n)
    status = amprt_launch_read(&launch, error);
  if (launch.launcher) /* also where it has not said how they meet */
    return amprt_fail(error, AMPRT_USAGE,
                      "--%s starts processes by itself, and this one is one of %d that %s has "
                      "started (%s): leave out one of the two",
                      gpus ? "local-gpus" : "processes", launch.size, launch.launcher->name,
                      launch.launcher->size);
  return status;
}

/* ---- the launcher ---- */

typedef enum Kind { OPEN_MPI, HYDRA } Kind;

/* Finds the launcher on PATH and knows it by the beginning of what it says of its version. */
static AmprtStatus find_launcher(const char **command, Kind *kind, AmprtError *error) {
  static const char *const names[] = {"mpirun", "mpiexec"};
  static const struct {
    const char *begins;
    Kind kind;
  } known[] = {{"mpirun (Open MPI)", OPEN_MPI},
               {"mpiexec (Open MPI)", OPEN_MPI},
               {"HYDRA build", HYDRA},
               {"Intel(R) MPI", HYDRA}};
  char line[128] = "";
  for (size_t i = 0; i < sizeof names / sizeof *names && !*line; i++) {
    char ask[64];
    snprintf(ask, sizeof ask, "%s --version 2>/dev/null", names[i]);
    FILE *answer = popen(ask, "r");
    *command = names[i];
    if (answer && !fgets(line, sizeof line, answer))
      line[0] = '\0';
    if (answer)
      pclose(answer);
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strncmp(line, known[i].begins, strlen(known[i].begins)))
      return *kind = known[i].kind, AMPRT_OK;
  line[strcspn(line, "\n")] = '\0';
  char found[192] = "there is no mpirun on PATH";
  if (*line)
    snprintf(found, sizeof found, "the %s on PATH is neither Open MPI's nor MPICH's, but `%.80s`",
             *command, line);
  return amprt_fail(error, AMPRT_ENV,
                    "several processes are started by mpirun, but %s: install one (Debian: "
                    "openmpi-bin or mpich), or start the processes with a launcher of your own",
                    found);
}

/* The launcher's command line. */
typedef struct Command {
  const char **arg; /* malloc, ends with NULL */
  char program[4096], number[16], threads[32];
} Command;

/* Ranks are not bound; each is told its share of the processors. Open MPI must be told that ranks
 * may outnumber processors and that root may start them. The last --processes counts: a rank starts
 * none. */
static AmprtStatus make_command(Command *to, const char *name, Kind kind, int n,
                                const AmprtOptions *options, int argc, char **argv,
                                AmprtError *error) {
  static const char *const open_mpi[] = {"--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE",
                                         "--allow-run-as-root"};
  int n_own = kind != OPEN_MPI ? 0 : geteuid() ? 4 : 5, k = 0;
  ssize_t length = readlink("/proc/self/exe", to->program, sizeof to->program - 1);
  if (length < 0)
    return amprt_fail_errno(error, "readlink", "/proc/self/exe");
  to->program[length] = '\0';
  cpu_set_t set;
  CPU_ZERO(&set);
  int processors = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
  snprintf(to->number, sizeof to->number, "%d", n);
  snprintf(to->threads, sizeof to->threads, "--threads=%d", processors > n ? processors / n : 1);
  to->arg = malloc(((size_t)argc + 16) * sizeof *to->arg);
  if (!to->arg)
    return amprt_fail_memory(error, (size_t)argc * sizeof *to->arg, "the launcher's command line");
  to->arg[k++] = name;
  for (int i = 0; i < n_own; i++)
    to->arg[k++] = open_mpi[i];
  to->arg[k++] = "-n";
  to->arg[k++] = to->number;
  to->arg[k++] = to->program;
  for (int i = 1; i < argc; i++)
    to->arg[k++] = argv[i];
  if (!options->given.threads)
    to->arg[k++] = to->threads;
  if (!options->processes && !options->given.device)
    to->arg[k++] = "--device=cuda";
  to->arg[k++] = "--processes=0";
  to->arg[k++] = "--local-gpus=0";
  to->arg[k] = NULL;
  return AMPRT_OK;
}

/* ---- while it runs ---- */

static pid_t parent_of(pid_t pid) {
  char path[64], text[512] = "";
  int parent = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file)
    fclose(file);
  text[n] = '\0';
  const char *name_end = strrchr(text, ')'); /* PID (NAME) STATE PARENT */
  return name_end && sscanf(name_end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Is `pid` this program, started by the launcher? */
static bool is_rank(pid_t pid, pid_t launcher) {
  char path[64];
  struct stat mine, its;
  snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
  if (stat("/proc/self/exe", &mine) || stat(path, &its) || mine.st_ino != its.st_ino ||
      mine.st_dev != its.st_dev)
    return false;
  while (pid > 1 && pid != launcher)
    pid = parent_of(pid);
  return pid == launcher;
}

/* Sends the signal to every rank. A launcher would kill the ranks a second after it, before they
 * have saved, so it gets none unless there is no rank yet. */
static void pass_on(int signal, pid_t launcher) {
  DIR *processes = opendir("/proc");
  int sent = 0;
  for (struct dirent *entry; processes && (entry = readdir(processes));) {
    pid_t pid = (pid_t)atoi(entry->d_name);
    if (pid > 1 && is_rank(pid, launcher))
      sent += !kill(pid, signal);
  }
  if (processes)
    closedir(processes);
  if (!sent)
    kill(launcher, signal);
}

/* Starts the launcher in a group of its own, so that a terminal's signals come to this process
 * alone. It ends if this process is killed. */
static pid_t start(const Command *command, const sigset_t *before) {
  pid_t self = getpid(), pid = fork();
  if (pid)
    return pid;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigprocmask(SIG_SETMASK, before, NULL);
  /* from a terminal it could not read: it is not in the terminal's group */
  if (getppid() == self && freopen("/dev/null", "r", stdin))
    execvp(command->arg[0], (char **)(uintptr_t)command->arg);
  _exit(127);
}

/* Runs the launcher to its end, and passes on the signals that end a run, unless they were ignored
 * when this process started. */
static AmprtStatus run_launcher(const Command *command, int *exit_status, AmprtError *error) {
  static const int passed[] = {SIGINT, SIGTERM, SIGHUP};
  sigset_t watched, before;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
    struct sigaction now;
    if (!sigaction(passed[i], NULL, &now) && now.sa_handler != SIG_IGN)
      sigaddset(&watched, passed[i]);
  }
  struct sigaction plain = {.sa_handler = SIG_DFL};
  sigaction(SIGCHLD, &plain, NULL); /* where it is ignored, no status can be had */
  sigprocmask(SIG_BLOCK, &watched, &before);
  pid_t launcher = start(command, &before);
  int status = 0;
  pid_t ended = launcher < 0 ? -1 : 0;
  while (!ended) {
    int signal = sigwaitinfo(&watched, NULL);
    if (signal > 0 && signal != SIGCHLD)
      pass_on(signal, launcher);
    ended = waitpid(launcher, &status, WNOHANG);
  }
  if (ended < 0)
    amprt_fail_errno(error, launcher < 0 ? "fork" : "waitpid", command->arg[0]);
  sigprocmask(SIG_SETMASK, &before, NULL);
  *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return error->status;
}

AmprtStatus amprt_processes_run(AmprtOptions *options, const AmprtPart *part, int n_parts, int argc,
                                char **argv, bool *ran, int *exit_status, AmprtError *error) {
  Command command = {0};
  const char *name;
  Kind kind = OPEN_MPI;
  int n = 0;
  *ran = false;
  AmprtStatus status = choose_number(options, part, n_parts, &n, error);
  if (status || n <= 1)
    return status;
  status = find_launcher(&name, &kind, error);
  if (!status)
    status = make_command(&command, name, kind, n, options, argc, argv, error);
  if (!status)
    status = run_launcher(&command, exit_status, error);
  *ran = !status;
  free(command.arg);
  return status;
}
