#include "runtime/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

bool amprt_log_standard_files(void) {
  bool told = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
  while (fcntl(STDERR_FILENO, F_GETFD) < 0 || fcntl(STDOUT_FILENO, F_GETFD) < 0 ||
         fcntl(STDIN_FILENO, F_GETFD) < 0)
    if (open("/dev/null", O_RDWR) < 0 && open("/", O_RDONLY) < 0)
      break;
  return told;
}

int amprt_log_columns(const AmprtLog *log) {
  struct winsize size;
  bool known = ioctl(fileno(log->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1 : 0;
}

/* Open MPI's mpirun gives its ranks a terminal without a width, whatever it writes to itself. */
void amprt_log_begin(AmprtLog *log, bool quiet, bool verbose, bool to_stdout) {
  *log = (AmprtLog){.out = to_stdout ? stderr : stdout, .quiet = quiet, .verbose = verbose};
  log->terminal = amprt_log_columns(log) && !quiet;
}

void amprt_log_rank(AmprtLog *log, int rank) {
  log->rank = rank;
  log->silent = rank > 0;
  log->terminal = log->terminal && !rank;
}

/* A run that was killed may have left half a line; this ends it, so that the next line stands by
 * itself. */
static void end_last_line(const AmprtLog *log, int fd) {
  struct stat info;
  char last = '\n';
  int reader = open(log->json_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (reader < 0)
    return;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size &&
      pread(reader, &last, 1, info.st_size - 1) == 1 && last != '\n')
    fputc('\n', log->json);
  close(reader);
}

AmprtStatus amprt_log_open(AmprtLog *log, const char *path, AmprtError *error) {
  snprintf(log->json_path, sizeof log->json_path, "%s", path);
  if (log->out == stderr) {
    snprintf(log->json_path, sizeof log->json_path, "standard output");
    log->json = stdout;
    return AMPRT_OK;
  }
  /* O_NONBLOCK makes it an error to open a FIFO that nobody reads; without it open would wait. */
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  log->json = fd < 0 ? NULL : fdopen(fd, "a");
  if (!log->json)
    return amprt_fail(error, AMPRT_ENV, "%s: cannot write the log: %s", path, strerror(errno));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  end_last_line(log, fd);
  return AMPRT_OK;
}

/* A closed pipe or a full disk does not end the training; a warning says so once. */
static void flush(AmprtLog *log) {
  if (fflush(log->out) == 0 && !ferror(log->out))
    return;
  if (!log->told_broken && log->out == stdout)
    fprintf(stderr, "warning: cannot write to standard output: %s; the run goes on\n",
            strerror(errno));
  log->told_broken = true;
  clearerr(log->out);
}

static void close_json(AmprtLog *log) {
  if (log->json && log->json != stdout)
    fclose(log->json);
  log->json = NULL;
}

void amprt_log_close(AmprtLog *log) {
  if (log->width)
    fputc('\n', log->out);
  log->width = 0;
  flush(log);
  close_json(log);
}

static void clear_progress(AmprtLog *log) {
  if (log->width)
    fprintf(log->out, "\r%*s\r", log->width, "");
  log->width = 0;
}

void amprt_say(AmprtLog *log, const char *fmt, ...) {
  va_list args;
  if (log->rank)
    return;
  va_start(args, fmt);
  clear_progress(log);
  amprt_vprint(log->out, fmt, args);
  fputc('\n', log->out);
  flush(log);
  va_end(args);
}

void amprt_warn(AmprtLog *log, const char *fmt, ...) {
  va_list args;
  if (log->silent)
    return;
  va_start(args, fmt);
  clear_progress(log);
  flush(log);
  if (log->rank)
    fprintf(stderr, "rank %d: ", log->rank);
  fputs("warning: ", stderr);
  amprt_vprint(stderr, fmt, args);
  fputc('\n', stderr);
  va_end(args);
}

void amprt_log_progress(AmprtLog *log, const char *text, bool keep) {
  if (log->quiet || log->rank)
    return;
  if (log->terminal && !keep) {
    int width = (int)strlen(text), most = amprt_log_columns(log);
    width = width < most ? width : most;
    fprintf(log->out, "\r%.*s%*s", width, text, log->width > width ? log->width - width : 0, "");
    log->width = width;
  } else {
    clear_progress(log);
    fprintf(log->out, "%s\n", text);
  }
  flush(log);
}

void amprt_event_begin(AmprtText *event, const char *name) {
  amprt_text_add(event, "{\"event\":");
  amprt_text_string(event, name);
}

static void add_key(AmprtText *event, const char *key) {
  amprt_text_add(event, ",");
  amprt_text_string(event, key);
  amprt_text_add(event, ":");
}

void amprt_event_number(AmprtText *event, const char *key, double value) {
  add_key(event, key);
  amprt_text_number(event, value);
}

void amprt_event_integer(AmprtText *event, const char *key, int64_t value) {
  add_key(event, key);
  amprt_text_add(event, "%" PRId64, value);
}

void amprt_event_integers(AmprtText *event, const char *key, const int64_t *value, int n) {
  add_key(event, key);
  amprt_text_add(event, "[");
  for (int i = 0; i < n; i++)
    amprt_text_add(event, "%s%" PRId64, i ? "," : "", value[i]);
  amprt_text_add(event, "]");
}

void amprt_event_string(AmprtText *event, const char *key, const char *value) {
  add_key(event, key);
  amprt_text_string(event, value);
}

void amprt_event_end(AmprtText *event, AmprtLog *log) {
  amprt_text_add(event, "}");
  bool bad = false;
  if (log->json && !event->failed)
    bad = fprintf(log->json, "%s\n", event->data) < 0 || fflush(log->json) != 0;
  amprt_text_free(event);
  if (bad) { /* a log that cannot be written does not end the training */
    amprt_warn(log, "%s: cannot write the log: %s; no more lines", log->json_path, strerror(errno));
    close_json(log);
  }
}
