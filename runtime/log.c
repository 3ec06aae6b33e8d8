#include "runtime/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A killed run may have left half a line. */
static void end_last_line(FILE *file) {
  if (fseek(file, -1, SEEK_END) == 0 && fgetc(file) != '\n') {
    fseek(file, 0, SEEK_END);
    fputc('\n', file);
  }
  fseek(file, 0, SEEK_END);
}

AmprtStatus amprt_log_open(AmprtLog *log, const char *path, bool append, AmprtError *error) {
  log->terminal = isatty(STDOUT_FILENO) && !log->quiet;
  snprintf(log->json_path, sizeof log->json_path, "%s", path);
  if (!*path)
    return AMPRT_OK;
  log->json = fopen(path, append ? "a+" : "w");
  if (!log->json)
    return amprt_fail(error, AMPRT_ENV, "%s: cannot write the log: %s", path, strerror(errno));
  if (append)
    end_last_line(log->json);
  return AMPRT_OK;
}

void amprt_log_close(AmprtLog *log) {
  if (log->width)
    putchar('\n');
  log->width = 0;
  fflush(stdout);
  if (log->json)
    fclose(log->json);
  log->json = NULL;
}

static void clear_progress(AmprtLog *log) {
  if (log->width)
    printf("\r%*s\r", log->width, "");
  log->width = 0;
}

void amprt_say(AmprtLog *log, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  clear_progress(log);
  vprintf(fmt, args);
  putchar('\n');
  fflush(stdout);
  va_end(args);
}

void amprt_warn(AmprtLog *log, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  clear_progress(log);
  fflush(stdout);
  fputs("warning: ", stderr);
  vfprintf(stderr, fmt, args);
  fputc('\n', stderr);
  va_end(args);
}

/* A line that wraps cannot be written over. */
static int columns(void) {
  struct winsize size;
  bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1 : 100;
}

void amprt_log_progress(AmprtLog *log, const char *text, bool keep) {
  if (log->quiet)
    return;
  if (log->terminal && !keep) {
    int width = (int)strlen(text), most = columns();
    width = width < most ? width : most;
    printf("\r%.*s%*s", width, text, log->width > width ? log->width - width : 0, "");
    log->width = width;
  } else {
    clear_progress(log);
    puts(text);
  }
  fflush(stdout);
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
  if (bad) { /* training is worth more than its log */
    amprt_warn(log, "%s: cannot write the log: %s; no more lines", log->json_path, strerror(errno));
    fclose(log->json);
    log->json = NULL;
  }
}
