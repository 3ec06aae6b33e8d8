/* Files that appear whole or not at all: each is written under a temporary name beside its final
 * one, synced, and renamed. Only a regular file is ever replaced: a device, a FIFO, a folder or a
 * symbolic link in its place is refused; /dev/null is written to, as by any program.
 *
 * What goes wrong is one line on stderr that begins with the program's name. */
#ifndef AMPCC_IR_BASE_OUTPUT_H
#define AMPCC_IR_BASE_OUTPUT_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct Output {
  const char *path;
  char *temporary; /* NULL for what is written directly: "-", standard output, and /dev/null */
  FILE *file;
  mode_t mode; /* less the umask: 0666; 0777 may be set before output_close */
} Output;

/* At most one output is open at a time. If SIGINT, SIGTERM or SIGHUP ends the process meanwhile,
 * the temporary file goes. False after a line on stderr. */
bool output_open(Arena *arena, const char *path, Output *out);
/* Another process may have written the temporary file instead of out->file. */
bool output_close(Output *out);
/* In place of output_close: what was written does not count. */
void output_drop(Output *out);
/* The same for an output that is open, if any, from a handler of signals. */
void output_abandon(void);

/* First thing in main, with the program's name for messages. A standard stream that the caller
 * closed is opened, so that no file takes its number: reading it finds nothing, writing standard
 * output is an error. */
void output_start(const char *name);
/* Last thing in main. Returns `status`; if something written to standard output was lost, a line on
 * stderr says so, and EXIT_ENVIRONMENT takes the place of 0. */
int output_finish(int status);

#endif
