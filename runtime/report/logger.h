/* The benchmark logger of the official programs (specs/resnet.md 1.5). BaseBenchmarkLogger prints;
 * BenchmarkFileLogger appends to DIR/metric.log and writes DIR/benchmark_run.log anew. */
#ifndef AMPRT_LOGGER_H
#define AMPRT_LOGGER_H

#include "runtime/core/train.h"

typedef struct AmprtLogger {
  AmprtSession *session;
  bool to_files, told; /* a warning has said that a file cannot be written */
  char metrics[AMPRT_PATH], run[AMPRT_PATH];
  char started[40]; /* run_date */
} AmprtLogger;

AmprtStatus amprt_logger_check(const AmprtOptions *options, AmprtError *error);
/* Makes the folder. */
AmprtStatus amprt_logger_open(AmprtLogger *logger, AmprtSession *session, AmprtError *error);
/* A number that is not finite is left out, with a warning: JSON has none. */
void amprt_logger_metric(AmprtLogger *logger, const char *name, double value, int64_t global_step);
/* What runs where, when it begins (`status` running) and again when it has ended (success or
 * failure): then only the status is printed. */
void amprt_logger_run(AmprtLogger *logger, const char *status);

/* "2018-06-28T23:59:59.123456Z" */
void amprt_utc(char *out, size_t size);
/* run_info.c: the object of benchmark_run.log. */
void amprt_run_info(const AmprtSession *session, const char *date, const char *status,
                    AmprtText *out);

#endif
