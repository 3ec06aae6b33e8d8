#include "codegen/cuda/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An entry: this, then `size` bytes. */
typedef struct Header {
  char magic[8];
  unsigned char key[32], sum[32]; /* of the data */
  uint64_t size;
} Header;

static const char magic[8] = "ampcc 1";
enum { PATH_BYTES = 4096 };

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

void cache_key_begin(CacheKey *key, const char *kind) {
  sha256_begin(&key->sha);
  cache_key_text(key, AMPCC_VERSION);
  cache_key_text(key, kind);
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
  Header header = {.size = size};
  Sha256 name = key->sha, sum;
  memcpy(header.magic, magic, sizeof magic);
  sha256_end(&name, header.key);
  sha256_begin(&sum);
  sha256_add(&sum, data, size);
  sha256_end(&sum, header.sum);
  return header;
}

static bool entry_path(const char *folder, const CacheKey *key, char path[PATH_BYTES]) {
  Sha256 name = key->sha;
  unsigned char digest[32];
  char hex[41];
  sha256_end(&name, digest);
  for (int i = 0; i < 20; i++)
    snprintf(hex + 2 * i, 3, "%02x", digest[i]);
  return snprintf(path, PATH_BYTES, "%s/%s", folder, hex) < PATH_BYTES;
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

bool cache_get(const char *folder, const CacheKey *key, Arena *arena, char **data, size_t *size) {
  char path[PATH_BYTES];
  struct stat st;
  Header found;
  if (!folder || !entry_path(folder, key, path))
    return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  bool good = fstat(fd, &st) == 0 && read_all(fd, &found, sizeof found) &&
              (uint64_t)st.st_size - sizeof found == found.size;
  if (good) {
    *data = arena_alloc(arena, (size_t)found.size + 1);
    *size = (size_t)found.size;
    good = read_all(fd, *data, *size);
  }
  close(fd);
  if (!good)
    return false;
  Header right = header_of(key, *data, *size);
  return memcmp(&right, &found, sizeof right) == 0;
}

/* With all folders above it. */
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
      snprintf(temporary, sizeof temporary, "%s/new.XXXXXX", folder) >= PATH_BYTES)
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
