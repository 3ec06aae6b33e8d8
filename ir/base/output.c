#include "ir/base/output.h"

#include "ir/base/exit.h"
#include "ir/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char *program = "ampcc";
static const char *volatile unfinished; /* the temporary file, while one is open */

static bool fail(const char *path, const char *why) {
  text_say("%s: cannot write %s: %s\n", program, path, why);
  return false;
}

/* ---- signals ---- */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_ENDING = sizeof ending / sizeof *ending };
static struct sigaction before[N_ENDING];

void output_abandon(void) {
  if (unfinished)
    unlink(unfinished);
}

/* SA_RESETHAND has removed the handler when it runs, so the signal that it raises ends the process.
 */
static void on_signal(int number) {
  output_abandon();
  raise(number);
}

static void watch(const char *temporary) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_NODEFER};
  sigemptyset(&action.sa_mask);
  unfinished = temporary;
  for (int i = 0; i < N_ENDING; i++) {
    sigaction(ending[i], NULL, &before[i]);
    if (before[i].sa_handler == SIG_DFL) /* a signal that is ignored or handled stays so */
      sigaction(ending[i], &action, NULL);
  }
}

static void unwatch(void) {
  unfinished = NULL;
  for (int i = 0; i < N_ENDING; i++)
    sigaction(ending[i], &before[i], NULL);
}

/* ---- files ---- */

bool output_open(Arena *arena, const char *path, Output *out) {
  struct stat st;
  *out = (Output){.path = path, .file = stdout, .mode = 0666};
  if (!strcmp(path, "-"))
    return true;
  if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
    bool null = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
    out->file = null ? fopen(path, "w") : NULL;
    return out->file || fail(path, null ? strerror(errno) : "it exists and is no regular file");
  }
  out->temporary = arena_printf(arena, "%s.XXXXXX", path);
  int fd = mkstemp(out->temporary);
  out->file = fd < 0 ? NULL : fdopen(fd, "w");
  if (!out->file)
    return fail(path, strerror(errno));
  watch(out->temporary);
  return true;
}

void output_drop(Output *out) {
  if (out->file != stdout)
    fclose(out->file);
  if (!out->temporary)
    return;
  unlink(out->temporary);
  unwatch();
}

/* Sets the mode of the file and syncs it to the disk, so that it outlives a loss of power. It is
 * opened anew, since another process may have written it. */
static bool settle(const char *path, mode_t mode) {
  mode_t mask = umask(0);
  umask(mask);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool good = fd >= 0 && fchmod(fd, mode & ~mask) == 0 && fsync(fd) == 0;
  return (fd < 0 || close(fd) == 0) && good;
}

bool output_close(Output *out) {
  if (out->file == stdout)
    return output_finish(0) == 0;
  bool good = fflush(out->file) == 0 && !ferror(out->file);
  good = fclose(out->file) == 0 && good;
  if (!out->temporary)
    return good || fail(out->path, strerror(errno));
  good = good && settle(out->temporary, out->mode) && rename(out->temporary, out->path) == 0;
  if (!good) {
    fail(out->path, strerror(errno));
    unlink(out->temporary);
  }
  unwatch();
  return good;
}

bool output_write(Arena *arena, const char *path, mode_t mode, const char *bytes, size_t size) {
  Output out;
  if (!output_open(arena, path, &out))
    return false;
  out.mode = mode;
  fwrite(bytes, 1, size, out.file);
  return output_close(&out);
}

bool output_folder(const char *path) {
  struct stat st;
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
    return true;
  text_say("%s: cannot make the folder %s: %s\n", program, path, strerror(errno));
  return false;
}

/* ---- standard streams ---- */

void output_start(const char *name) {
  program = name;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0)
      abort();
}

int output_finish(int status) {
  bool failed = ferror(stdout); /* an earlier write failed, and errno no longer says why */
  errno = 0;
  if (fflush(stdout) == 0 && !failed)
    return status;
  fail("standard output", errno ? strerror(errno) : "an earlier write failed");
  clearerr(stdout); /* so that it is reported only once */
  return status ? status : EXIT_ENVIRONMENT;
}
