#define _GNU_SOURCE /* st_mtim, futimens */
#include "codegen/program/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file begins with this; the data follows. */
typedef struct Header {
  char magic[8], kind[16];
  uint64_t bytes; /* of the data */
  unsigned char key[SHA256_BYTES], data[SHA256_BYTES];
} Header;

static const char magic[8] = "ampcc 4", unfinished[] = "new.";
enum {
  PATH_BYTES = 4096,
  NAME_CHARACTERS = 2 * SHA256_BYTES,
  OLD_NAME_CHARACTERS = 16, /* of entries that begin with "ampcc 2" */
  FRESH_SECONDS = 3600,
  MOST_ENTRIES = 20000
};

const char *cache_folder(Arena *arena, const char *wanted) {
  if (wanted)
    return wanted[0] ? wanted : NULL;
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (base && base[0] == '/')
    return arena_printf(arena, "%s/ampcc", base);
  if (home && home[0] == '/')
    return arena_printf(arena, "%s/.cache/ampcc", home);
  return NULL;
}

CacheKey cache_key_begin(const char *kind) {
  CacheKey key = {sha256_begin(), kind};
  cache_key_text(&key, AMPCC_VERSION);
  cache_key_text(&key, kind);
  return key;
}

void cache_key_add(CacheKey *key, const void *part, size_t size) {
  uint64_t length = size;
  sha256_add(&key->sha, &length, sizeof length);
  sha256_add(&key->sha, part, size);
}

void cache_key_text(CacheKey *key, const char *part) {
  cache_key_add(key, part, strlen(part));
}

void cache_key_int(CacheKey *key, long long part) {
  cache_key_add(key, &part, sizeof part);
}

static Header header_of(const CacheKey *key, const void *data, size_t size) {
  Header header = {.bytes = size};
  Sha256 sha = sha256_begin();
  sha256_add(&sha, data, size);
  sha256_get(&sha, header.data);
  sha256_get(&key->sha, header.key);
  memcpy(header.magic, magic, sizeof magic);
  snprintf(header.kind, sizeof header.kind, "%s", key->kind);
  return header;
}

static bool entry_path(const char *folder, const CacheKey *key, char path[PATH_BYTES]) {
  unsigned char hash[SHA256_BYTES];
  char name[NAME_CHARACTERS + 1];
  sha256_get(&key->sha, hash);
  for (int i = 0; i < SHA256_BYTES; i++)
    snprintf(name + 2 * i, 3, "%02x", hash[i]);
  return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
}

static bool read_all(int fd, void *to, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = read(fd, (char *)to + done, size - done);
    if (n <= 0)
      return false;
    done += (size_t)n;
  }
  return true;
}

static bool write_all(int fd, const void *from, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = write(fd, (const char *)from + done, size - done);
    if (n <= 0)
      return false;
    done += (size_t)n;
  }
  return true;
}

/* Reads the data of a file, if the file is whole and its key is `key`. */
static bool read_entry(int fd, const CacheKey *key, Arena *arena, char **data, size_t *size) {
  struct stat st;
  Header found;
  if (fstat(fd, &st) != 0 || !read_all(fd, &found, sizeof found) ||
      (uint64_t)st.st_size < sizeof found || found.bytes != (uint64_t)st.st_size - sizeof found)
    return false;
  *size = (size_t)found.bytes;
  *data = arena_alloc(arena, *size + 1);
  if (!read_all(fd, *data, *size))
    return false;
  Header right = header_of(key, *data, *size);
  if (memcmp(&right, &found, sizeof right) != 0)
    return false;
  /* The time of its last use, to the hour. In a folder that may only be read it stays as it is. */
  if (time(NULL) - st.st_mtime > FRESH_SECONDS)
    futimens(fd, NULL);
  return true;
}

bool cache_get(const char *folder, const CacheKey *key, Arena *arena, char **data, size_t *size) {
  char path[PATH_BYTES];
  if (!folder || !entry_path(folder, key, path))
    return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  bool good = read_entry(fd, key, arena, data, size);
  close(fd);
  return good;
}

/* Makes a folder and all folders above it. */
static bool make_folder(const char *folder) {
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s", folder) >= PATH_BYTES)
    return false;
  for (char *c = path + 1; *c; c++)
    if (*c == '/') {
      *c = '\0';
      mkdir(path, 0777);
      *c = '/';
    }
  return mkdir(path, 0777) == 0 || access(path, W_OK) == 0;
}

void cache_put(const char *folder, const CacheKey *key, const void *data, size_t size) {
  char path[PATH_BYTES], temporary[PATH_BYTES];
  if (!folder || !make_folder(folder) || !entry_path(folder, key, path) ||
      snprintf(temporary, sizeof temporary, "%s/%sXXXXXX", folder, unfinished) >= PATH_BYTES)
    return;
  int fd = mkstemp(temporary);
  if (fd < 0)
    return;
  Header header = header_of(key, data, size);
  bool good = write_all(fd, &header, sizeof header) && write_all(fd, data, size);
  good = close(fd) == 0 && good;
  if (!good || rename(temporary, path) != 0)
    unlink(temporary);
}

/* ---- what is deleted ---- */

typedef struct Entry {
  char name[NAME_CHARACTERS + 1];
  int64_t bytes;
  struct timespec used;
} Entry;

static bool is_entry(const char *name) {
  size_t n = strlen(name);
  return (n == NAME_CHARACTERS || n == OLD_NAME_CHARACTERS) &&
         strspn(name, "0123456789abcdef") == n;
}

static int by_use(const void *a, const void *b) {
  const struct timespec *x = &((const Entry *)a)->used, *y = &((const Entry *)b)->used;
  if (x->tv_sec != y->tv_sec)
    return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

void cache_trim(const char *folder, int64_t most) {
  DIR *dir = folder ? opendir(folder) : NULL;
  if (!dir)
    return;
  Arena *arena = arena_new();
  Entry *entry = NULL;
  int n = 0, cap = 0;
  int64_t bytes = 0;
  struct stat st;
  for (struct dirent *file; (file = readdir(dir));) {
    bool begun = strncmp(file->d_name, unfinished, sizeof unfinished - 1) == 0;
    if ((!begun && !is_entry(file->d_name)) || fstatat(dirfd(dir), file->d_name, &st, 0) != 0)
      continue;
    if (begun) {
      if (time(NULL) - st.st_mtime > FRESH_SECONDS)
        unlinkat(dirfd(dir), file->d_name, 0);
      continue;
    }
    Entry found = {.bytes = st.st_size, .used = st.st_mtim};
    snprintf(found.name, sizeof found.name, "%s", file->d_name);
    arena_push(arena, entry, n, cap, found);
    bytes += found.bytes;
  }
  if (bytes > most || n > MOST_ENTRIES) {
    qsort(entry, (size_t)n, sizeof *entry, by_use);
    /* A tenth more than necessary, so that this is seldom done. */
    for (int i = 0; i < n && (bytes > most - most / 10 || n - i > MOST_ENTRIES * 9 / 10); i++)
      if (unlinkat(dirfd(dir), entry[i].name, 0) == 0)
        bytes -= entry[i].bytes;
  }
  closedir(dir);
  arena_free(arena);
}
