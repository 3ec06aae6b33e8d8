/* Files that appear whole or not at all: each is written under a temporary name beside its final
 * one, synced, and renamed. Only a regular file is ever replaced: a device, a FIFO, a folder or a
 * symbolic link in its place is refused; /dev/null is written to, as by any program.
 *
 * Every failure prints one line to stderr that begins with the program's name. */
#ifndef AMPCC_IR_BASE_OUTPUT_H
#define AMPCC_IR_BASE_OUTPUT_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct Output {
  const char *path;
  char *temporary; /* NULL for what is written directly: standard output ("-") and /dev/null */
  FILE *file;
  mode_t mode; /* 0666, or 0777 if the caller sets that before output_close; the umask applies */
} Output;

/* Opens an output; at most one may be open at a time. If SIGINT, SIGTERM or SIGHUP ends the process
 * before it is closed, the temporary file is removed. False after a line on stderr. */
bool output_open(Arena *arena, const char *path, Output *out);
/* Gives the file its final name. The temporary file may have been written by another process
 * instead of through out->file. */
bool output_close(Output *out);
/* Writes a file of these bytes: output_open, output_close and what lies between. */
bool output_write(Arena *arena, const char *path, mode_t mode, const char *bytes, size_t size);
/* Called in place of output_close: removes what was written. */
void output_drop(Output *out);
/* Removes the temporary file of the output that is open, if any; safe in a signal handler. */
void output_abandon(void);

/* Makes a folder, unless it is there. False after a line on stderr. */
bool output_folder(const char *path);

/* To be called first in main, with the program's name for messages. Opens the standard streams that
 * the caller has closed, so that no file takes their numbers: reading finds nothing, and writing to
 * standard output is an error. */
void output_start(const char *name);
/* To be called last in main. Returns `status`; if something written to standard output was lost,
 * prints a line to stderr and returns EXIT_ENVIRONMENT in place of 0. */
int output_finish(int status);

#endif
