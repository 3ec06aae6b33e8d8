#include "runtime/report/logger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char to_files[] = "BenchmarkFileLogger", to_people[] = "BaseBenchmarkLogger";

void amprt_utc(char *out, size_t size) {
  struct timespec now;
  struct tm utc;
  char date[32];
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(out, size, "%s.%06ldZ", date, now.tv_nsec / 1000);
}

AmprtStatus amprt_logger_check(const AmprtOptions *options, AmprtError *error) {
  const char *type = options->benchmark_logger_type;
  if (strcmp(type, to_files) != 0 && strcmp(type, to_people) != 0)
    return amprt_fail(error, AMPRT_USAGE, "--benchmark-logger-type=%.80s: %s", type,
                      "nothing is uploaded here; BenchmarkFileLogger writes files");
  if (!strcmp(type, to_files) && !*options->benchmark_log_dir)
    return amprt_fail(error, AMPRT_USAGE,
                      "--benchmark-logger-type=%s needs --benchmark-log-dir=DIR", to_files);
  return AMPRT_OK;
}

AmprtStatus amprt_logger_open(AmprtLogger *logger, AmprtSession *session, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  const char *dir = options->benchmark_log_dir;
  *logger = (AmprtLogger){.session = session,
                          .to_files = !strcmp(options->benchmark_logger_type, to_files)};
  amprt_utc(logger->started, sizeof logger->started);
  if (!logger->to_files) {
    if (*dir)
      amprt_warn(&session->log, "--benchmark-log-dir is used by --benchmark-logger-type=%s alone",
                 to_files);
    return AMPRT_OK;
  }
  AmprtStatus status = amprt_make_dir(dir, error);
  if (!status)
    status = amprt_path(logger->metrics, dir, "metric.log", error);
  return status ? status : amprt_path(logger->run, dir, "benchmark_run.log", error);
}

static void tell(AmprtLogger *logger, const char *why) {
  if (!logger->told)
    amprt_warn(&logger->session->log, "%s; the run goes on", why);
  logger->told = true;
}

/* Appends a line with a single write. */
static void append(AmprtLogger *logger, const char *line, size_t size) {
  int fd = open(logger->metrics, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                0666);
  if (fd < 0 || write(fd, line, size) != (ssize_t)size) {
    AmprtError error;
    amprt_fail_errno(&error, "write", logger->metrics);
    tell(logger, error.text);
  }
  if (fd >= 0)
    close(fd);
}

void amprt_logger_metric(AmprtLogger *logger, const char *name, double value, int64_t global_step) {
  AmprtText text = {0};
  char now[40];
  if (!isfinite(value)) {
    amprt_warn(&logger->session->log, "metric %s at step %" PRId64 " is %g, which is not logged",
               name, global_step, value);
    return;
  }
  amprt_utc(now, sizeof now);
  amprt_text_add(&text, "{\"name\": ");
  amprt_text_string(&text, name);
  amprt_text_add(&text, ", \"value\": ");
  amprt_text_double(&text, value);
  amprt_text_add(&text,
                 ", \"unit\": null, \"global_step\": %" PRId64
                 ", \"timestamp\": \"%s\", \"extras\": []}",
                 global_step, now);
  if (text.failed) {
    tell(logger, "no memory for a metric");
  } else if (logger->to_files) {
    amprt_text_add(&text, "\n");
    append(logger, text.data, text.size);
  } else {
    amprt_say(&logger->session->log, "Benchmark metric: %s", text.data);
  }
  amprt_text_free(&text);
}

void amprt_logger_run(AmprtLogger *logger, const char *status) {
  AmprtText text = {0};
  AmprtError error;
  amprt_run_info(logger->session, logger->started, status, &text);
  if (text.failed) {
    tell(logger, "no memory for what runs");
  } else if (logger->to_files) {
    amprt_text_add(&text, "\n");
    if (amprt_write_file(logger->run, text.data, text.size, &error))
      tell(logger, error.text);
  } else if (!strcmp(status, "running")) {
    amprt_say(&logger->session->log, "Benchmark run: %s", text.data);
  } else {
    amprt_say(&logger->session->log, "Benchmark run status: %s", status);
  }
  amprt_text_free(&text);
}
