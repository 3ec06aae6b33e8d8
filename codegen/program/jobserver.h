/* GNU make's jobserver (GNU make manual, "POSIX Jobserver"): a pipe or FIFO with a byte for each
 * job that may run beside the first of every command. $MAKEFLAGS names it, as
 * --jobserver-auth=fifo:PATH or --jobserver-auth=R,W. */
#ifndef AMPCC_CODEGEN_PROGRAM_JOBSERVER_H
#define AMPCC_CODEGEN_PROGRAM_JOBSERVER_H

#include "ir/base/arena.h"

#include <stdbool.h>

typedef struct Jobserver {
  bool present;
  int read, write; /* descriptors; `read` does not block */
  char *token;     /* those taken, which are given back as they were */
  int n, cap;
} Jobserver;

/* Finds the jobserver; without one *out is empty. False if there is one that cannot be used, which
 * is said on stderr once: then no more than one job may run. */
bool jobserver_open(Arena *arena, Jobserver *out);
/* Makes a jobserver for `jobs` jobs, for this process and those that it starts; $MAKEFLAGS names it
 * from then on. False after one line on stderr. */
bool jobserver_make(Arena *arena, int jobs, Jobserver *out);
/* Takes a token; false if there is none now. */
bool jobserver_take(Arena *arena, Jobserver *server);
/* Gives tokens back until at most `keep` are left. */
void jobserver_give(Jobserver *server, int keep);
void jobserver_close(Jobserver *server);

#endif
