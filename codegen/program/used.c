#define _GNU_SOURCE /* st_mtim */
#include "codegen/program/used.h"

#include "codegen/backend.h"
#include "codegen/program/bytes.h"
#include "ir/base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  MOST_BYTES = 16 << 20, /* of a file that is read */
  MOST_FILES = 4096,
  YOUNG_SECONDS = 1 /* a file that has just changed may change again with the same stamp */
};

const char *program_path(Arena *arena, const char *name) {
  const char *list = strchr(name, '/') ? "" : getenv("PATH"), *folder;
  struct stat st;
  if (strchr(name, '/'))
    return stat(name, &st) == 0 && S_ISREG(st.st_mode) ? name : NULL;
  while (list && (folder = list_word(arena, &list, ':')) != NULL) {
    const char *path = arena_printf(arena, "%s/%s", folder, name);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IXUSR)
      return path;
  }
  return NULL;
}

/* ---- one file ---- */

FileStamp stamp_of(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0)
    return (FileStamp){0};
  return (FileStamp){.device = (int64_t)st.st_dev,
                     .inode = (int64_t)st.st_ino,
                     .bytes = st.st_size,
                     .modified = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec},
                     .changed = {st.st_ctim.tv_sec, st.st_ctim.tv_nsec}};
}

bool stamp_is_newer(const FileStamp *stamp, struct timespec time) {
  return stamp->changed[0] != time.tv_sec ? stamp->changed[0] > time.tv_sec
                                          : stamp->changed[1] > time.tv_nsec;
}

static bool hash_folder(const char *path, Sha256 *sha) {
  Arena *arena = arena_new();
  const char **name;
  int n;
  bool good = folder_names(arena, path, &name, &n);
  for (int i = 0; good && i < n; i++)
    sha256_add(sha, name[i], strlen(name[i]) + 1);
  arena_free(arena);
  return good;
}

static bool hash_file(UsedFile *file) {
  Sha256 sha = sha256_begin();
  struct stat st;
  if (stat(file->path, &st) != 0)
    return false;
  sha256_add(&sha, S_ISDIR(st.st_mode) ? "d" : "f", 1);
  if (S_ISDIR(st.st_mode)) {
    if (!hash_folder(file->path, &sha))
      return false;
  } else if (st.st_size > MOST_BYTES) {
    int64_t figures[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    sha256_add(&sha, figures, sizeof figures);
  } else {
    Arena *arena = arena_new();
    char *bytes;
    size_t size;
    bool good = bytes_read(arena, file->path, &bytes, &size);
    if (good)
      sha256_add(&sha, bytes, size);
    arena_free(arena);
    if (!good)
      return false;
  }
  sha256_get(&sha, file->hash);
  return true;
}

/* The file with this stamp among the first `before` of the list, or NULL. CUDA's libraries are in
 * the list by several names each, which are links to one file. */
static const UsedFile *same_file(const UsedList *list, int before, const FileStamp *stamp) {
  for (int i = 0; i < before; i++)
    if (memcmp(&list->file[i].stamp, stamp, sizeof *stamp) == 0)
      return &list->file[i];
  return NULL;
}

int used_renew(UsedList *list) {
  int n = 0;
  for (int i = 0; i < list->n; i++) {
    UsedFile *file = &list->file[i];
    FileStamp now = stamp_of(file->path);
    if (!now.inode)
      return -1;
    if (memcmp(&now, &file->stamp, sizeof now) == 0)
      continue;
    n++;
    const UsedFile *same = same_file(list, i, &now);
    if (same) {
      file->stamp = now;
      memcpy(file->hash, same->hash, SHA256_BYTES);
      continue;
    }
    if (!hash_file(file))
      return -1;
    struct timespec young;
    clock_gettime(CLOCK_REALTIME, &young);
    young.tv_sec -= YOUNG_SECONDS;
    FileStamp after = stamp_of(file->path);
    bool settled = !stamp_is_newer(&now, young) && memcmp(&now, &after, sizeof now) == 0;
    file->stamp = settled ? now : (FileStamp){0};
  }
  return n;
}

/* ---- what is in the list ---- */

void used_add(UsedList *list, const char *path) {
  char here[4096];
  if (path[0] != '/')
    path = arena_printf(list->arena, "%s/%s", getcwd(here, sizeof here) ? here : ".", path);
  for (int i = 0; i < list->n; i++)
    if (strcmp(list->file[i].path, path) == 0)
      return;
  UsedFile file = {.path = arena_strdup(list->arena, path, strlen(path))};
  arena_push(list->arena, list->file, list->n, list->cap, file);
}

static bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

/* Adds a file that a tool has named. */
static void add_named(UsedList *list, const char *path, const char *temporary) {
  if (strncmp(path, temporary, strlen(temporary)) == 0)
    return;
  if (exists(path))
    used_add(list, path);
  else
    list->incomplete = true;
}

void used_add_self(UsedList *list) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[8192];
  while (maps && fgets(line, sizeof line, maps)) {
    char *path = strchr(line, '/'), *mode = strchr(line, ' ');
    line[strcspn(line, "\n")] = '\0';
    if (path && mode && strncmp(mode, " r-x", 4) == 0)
      add_named(list, path, "/dev/");
  }
  list->incomplete |= !maps;
  if (maps)
    fclose(maps);
}

/* The whole text of a tool's report; "" if there is none. */
static char *report_text(UsedList *list, const char *path) {
  char *text;
  size_t size;
  if (bytes_read(list->arena, path, &text, &size))
    return text;
  list->incomplete = true;
  return arena_strdup(list->arena, "", 0);
}

/* `TARGET: FILE FILE \` and further lines; a backslash stands before blanks, and $ is doubled. */
void used_add_rule(UsedList *list, const char *path, const char *temporary) {
  char *at = report_text(list, path), *colon = strstr(at, ": ");
  list->incomplete |= !colon;
  at = colon ? colon + 1 : at + strlen(at);
  while (*(at += strspn(at, " \t\n")) != '\0') {
    if (at[0] == '\\' && at[1] == '\n') {
      at += 2;
      continue;
    }
    char *word = at, *to = at;
    for (; *at && !strchr(" \t\n", *at); at++) {
      if ((at[0] == '\\' && at[1] && strchr(" #", at[1])) || (at[0] == '$' && at[1] == '$'))
        at++;
      else if (at[0] == '\\' && at[1] == '\n')
        break;
      *to++ = *at;
    }
    bool end = *at == '\0';
    if (*at == '\\')
      at++;
    *to = '\0';
    add_named(list, word, temporary);
    at += !end;
  }
}

/* Adds a folder that programs are looked for in, and those that it has. */
static void add_program_folder(UsedList *list, const char *folder) {
  static const char *const program[] = {"as",   "ld", "collect2", "lto-wrapper", "liblto_plugin.so",
                                        "specs"};
  used_add(list, folder);
  for (size_t i = 0; i < sizeof program / sizeof *program; i++) {
    const char *path = arena_printf(list->arena, "%s/%s", folder, program[i]);
    if (exists(path))
      used_add(list, path);
  }
}

/* gcc names the folders for programs and libraries in two lines; gcc and clang begin lines with a
 * blank that name a program that they run, or a folder for headers. */
void used_add_driver(UsedList *list, const char *path) {
  static const char programs[] = "COMPILER_PATH=", libraries[] = "LIBRARY_PATH=";
  char *rest = report_text(list, path);
  for (char *line; (line = strtok_r(rest, "\n", &rest)) != NULL;) {
    bool tools = strncmp(line, programs, sizeof programs - 1) == 0;
    const char *folders = strchr(line, '='), *folder;
    if (tools || strncmp(line, libraries, sizeof libraries - 1) == 0) {
      folders++;
      while ((folder = list_word(list->arena, &folders, ':')) != NULL)
        if (exists(folder) && tools)
          add_program_folder(list, folder);
        else if (exists(folder))
          used_add(list, folder);
      continue;
    }
    bool quoted = strncmp(line, " \"/", 3) == 0;
    if (!quoted && strncmp(line, " /", 2) != 0)
      continue;
    char *word = line + 1 + quoted;
    word[strcspn(word, quoted ? "\"" : " ")] = '\0';
    if (exists(word))
      used_add(list, word);
  }
}

/* A line names a file, or a member of an archive as `LIBRARY(MEMBER)` or `(LIBRARY)MEMBER`. */
void used_add_trace(UsedList *list, const char *path, const char *temporary) {
  char *rest = report_text(list, path);
  int before = list->n;
  for (char *line; (line = strtok_r(rest, "\n", &rest)) != NULL;) {
    if (strstr(line, ": ")) /* a message */
      continue;
    if (!exists(line)) {
      line += *line == '(';
      line[strcspn(line, "()")] = '\0';
    }
    add_named(list, line, temporary);
    char *slash = strrchr(line, '/');
    if (slash && slash != line && exists(line) &&
        strncmp(line, temporary, strlen(temporary)) != 0) {
      *slash = '\0';
      used_add(list, line);
    }
  }
  list->incomplete |= list->n == before;
}

/* ---- keys and bytes ---- */

void used_key_target(const Backend *backend, CacheKey *key) {
  cache_key_text(key, backend->target->name);
  for (const char *const *library = backend->libraries; *library; library++)
    cache_key_text(key, *library);
  for (const char *const *file = backend->files; file && *file; file++)
    cache_key_text(key, *file);
}

void used_key(const UsedList *list, CacheKey *key) {
  for (int i = 0; i < list->n; i++)
    cache_key_add(key, list->file[i].hash, SHA256_BYTES);
}

char *used_encode(const UsedList *list, size_t *size) {
  *size = 0;
  for (int i = 0; i < list->n; i++)
    *size += sizeof(FileStamp) + SHA256_BYTES + strlen(list->file[i].path) + 1;
  char *bytes = arena_alloc(list->arena, *size + 1), *at = bytes;
  for (int i = 0; i < list->n; i++) {
    const UsedFile *file = &list->file[i];
    memcpy(at, &file->stamp, sizeof file->stamp);
    memcpy(at += sizeof file->stamp, file->hash, SHA256_BYTES);
    memcpy(at += SHA256_BYTES, file->path, strlen(file->path) + 1);
    at += strlen(file->path) + 1;
  }
  return bytes;
}

bool used_decode(Arena *arena, const char *bytes, size_t size, UsedList *list) {
  const char *end = bytes + size;
  *list = (UsedList){.arena = arena};
  while (bytes < end) {
    UsedFile file;
    size_t fixed = sizeof file.stamp + SHA256_BYTES;
    if ((size_t)(end - bytes) <= fixed || list->n == MOST_FILES)
      return false;
    memcpy(&file.stamp, bytes, sizeof file.stamp);
    memcpy(file.hash, bytes + sizeof file.stamp, SHA256_BYTES);
    file.path = bytes + fixed;
    bytes += fixed + strnlen(file.path, (size_t)(end - bytes) - fixed) + 1;
    if (bytes > end)
      return false;
    arena_push(arena, list->file, list->n, list->cap, file);
  }
  return list->n > 0;
}
