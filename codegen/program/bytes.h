/* Files that are read and written as a whole, and the names in folders, without messages. */
#ifndef AMPCC_CODEGEN_PROGRAM_BYTES_H
#define AMPCC_CODEGEN_PROGRAM_BYTES_H

#include "ir/base/arena.h"

#include <stdbool.h>

/* Reads a regular file; a NUL that is not counted follows its bytes. */
bool bytes_read(Arena *arena, const char *path, char **bytes, size_t *size);
bool bytes_write(const char *path, const char *bytes, size_t size);
/* All names in a folder, "." and ".." among them, sorted. False with errno set if there is none. */
bool folder_names(Arena *arena, const char *path, const char ***name, int *n);

#endif
