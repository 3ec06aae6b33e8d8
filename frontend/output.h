/* Files that appear whole or not at all: written under a temporary name beside the final one, synced,
 * renamed. */
#ifndef AMPCC_FRONTEND_OUTPUT_H
#define AMPCC_FRONTEND_OUTPUT_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct Output {
  const char *path; /* "-": standard output, written directly */
  char *temporary;
  FILE *file;
} Output;

/* False after one line on stderr. */
bool output_open(Arena *arena, const char *path, Output *out);
bool output_close(Output *out);
/* In place of output_close: what was written does not count. */
void output_drop(Output *out);

#endif
