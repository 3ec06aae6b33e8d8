#include "codegen/program/bytes.h"

#include <stdio.h>
#include <sys/stat.h>

bool bytes_read(Arena *arena, const char *path, char **bytes, size_t *size) {
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
    return false;
  FILE *file = fopen(path, "rb");
  if (!file)
    return false;
  *size = (size_t)st.st_size;
  *bytes = arena_alloc(arena, *size + 1);
  bool good = fread(*bytes, 1, *size, file) == *size;
  fclose(file);
  return good;
}

bool bytes_write(const char *path, const char *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite(bytes, 1, size, file) == size;
  if (file)
    good = fclose(file) == 0 && good;
  return good;
}
