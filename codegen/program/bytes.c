#include "codegen/program/bytes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool folder_names(Arena *arena, const char *path, const char ***name, int *n) {
  const char **list = NULL;
  int cap = 0;
  DIR *folder = opendir(path);
  const struct dirent *entry;
  if (!folder)
    return false;
  *n = 0;
  while ((entry = readdir(folder)) != NULL)
    arena_push(arena, list, *n, cap, arena_strdup(arena, entry->d_name, strlen(entry->d_name)));
  closedir(folder);
  if (*n)
    qsort(list, (size_t)*n, sizeof *list, by_name);
  *name = list;
  return true;
}
