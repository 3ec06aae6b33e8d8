/* For test programs that take .amp files. */
#ifndef AMPCC_TESTS_READ_FILE_H
#define AMPCC_TESTS_READ_FILE_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"

#include <stdio.h>

/* The whole file as text that ends in NUL; BUGs if it cannot be opened. */
static inline char *read_file(Arena *arena, const char *path) {
  FILE *in = fopen(path, "rb");
  CHECK(in, "cannot open %s", path);
  char *text = NULL;
  int len = 0, cap = 0;
  for (int c; (c = fgetc(in)) != EOF;)
    arena_push(arena, text, len, cap, (char)c);
  arena_push(arena, text, len, cap, '\0');
  fclose(in);
  return text;
}

#endif
