/* Files that are read and written as a whole, without messages. */
#ifndef AMPCC_CODEGEN_PROGRAM_BYTES_H
#define AMPCC_CODEGEN_PROGRAM_BYTES_H

#include "ir/base/arena.h"

#include <stdbool.h>

/* Reads a regular file; a NUL that is not counted follows its bytes. */
bool bytes_read(Arena *arena, const char *path, char **bytes, size_t *size);
bool bytes_write(const char *path, const char *bytes, size_t size);

#endif
