/* What the program says: lines for people, and one JSON object per line for tools. */
#ifndef AMPRT_LOG_H
#define AMPRT_LOG_H

#include "runtime/base/json.h"
#include "runtime/base/status.h"

#include <stdio.h>

typedef struct AmprtLog {
  /* lines for people: standard output, or standard error if the log is on standard output */
  FILE *out;
  FILE *json;          /* NULL: there is none */
  char json_path[512]; /* for messages */
  bool quiet, verbose, terminal;
  int rank;         /* above 0: other processes say what there is to say, this one warns alone */
  bool silent;      /* it does not even warn, as all processes find the same */
  bool told_broken; /* a warning has said that `out` cannot be written */
  int width;        /* of the progress line on the terminal now; 0: there is none */
} AmprtLog;

/* To be called before anything else. A program may be started with descriptors 0 to 2 closed; the
 * next file that it opens would then be its standard output, and lines would be written into it.
 * Returns false if standard output was closed, which a training ignores and --help does not. */
bool amprt_log_standard_files(void);
/* To be called before any line is printed. `to_stdout`: the log goes to standard output
 * (--log-file=-). */
void amprt_log_begin(AmprtLog *log, bool quiet, bool verbose, bool to_stdout);
/* From now on this is the log of process `rank` of several. */
void amprt_log_rank(AmprtLog *log, int rank);
/* Opens the log to append to it, beginning on a new line. */
AmprtStatus amprt_log_open(AmprtLog *log, const char *path, AmprtError *error);
void amprt_log_close(AmprtLog *log);

void amprt_say(AmprtLog *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void amprt_warn(AmprtLog *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints a progress line: on a terminal it overwrites the last one, and stays only with `keep`. */
void amprt_log_progress(AmprtLog *log, const char *text, bool keep);

/* How many columns such a line may have: one that wraps cannot be overwritten. 0: no terminal, or
 * one that does not know. */
int amprt_log_columns(const AmprtLog *log);

/* An object of the log is made by begin, any number of fields, and end, which writes it. */
void amprt_event_begin(AmprtText *event, const char *name);
void amprt_event_number(AmprtText *event, const char *key, double value);
void amprt_event_integer(AmprtText *event, const char *key, int64_t value);
void amprt_event_integers(AmprtText *event, const char *key, const int64_t *value, int n);
void amprt_event_string(AmprtText *event, const char *key, const char *value);
void amprt_event_end(AmprtText *event, AmprtLog *log);

#endif
