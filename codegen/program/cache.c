#define _GNU_SOURCE /* st_mtim, futimens */
#include "codegen/program/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
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
  NAME_CHARACTERS = SHA256_TEXT - 1,
  OLD_NAME_CHARACTERS = 16, /* of entries that begin with "ampcc 2" */
  FRESH_SECONDS = 3600,
  MOST_ENTRIES = 20000,
  MOST_KINDS = 16
};

static bool only_read;
static const char *shared_folder;

void cache_only_read(void) {
  only_read = true;
}

void cache_share(const char *folder) {
  shared_folder = folder;
}

const char *cache_shared(void) {
  return shared_folder;
}

/* ---- what was looked for ---- */

typedef struct Use {
  char kind[16];
  int hits, misses, damaged;
  int shared;  /* of the hits, those in the folder behind */
  int shipped; /* and those that came with ampcc */
} Use;

/* Shared with the processes that are forked: some compile kernels. Two of them that begin a kind at
 * once may take a row each. */
static struct {
  Use use[MOST_KINDS];
  int n;
} * uses;

static Use *use_of(const char *kind) {
  static Use none;
  if (!uses) {
    void *shared =
        mmap(NULL, sizeof *uses, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
      return &none;
    uses = shared;
  }
  for (int i = 0; i < uses->n && i < MOST_KINDS; i++)
    if (strcmp(uses->use[i].kind, kind) == 0)
      return &uses->use[i];
  int row = __atomic_fetch_add(&uses->n, 1, __ATOMIC_SEQ_CST);
  if (row >= MOST_KINDS)
    return &none;
  snprintf(uses->use[row].kind, sizeof uses->use[row].kind, "%s", kind);
  return &uses->use[row];
}

void cache_print_use(FILE *out) {
  for (int i = 0; uses && i < uses->n && i < MOST_KINDS; i++) {
    Use sum = uses->use[i];
    bool again = false;
    for (int k = 0; k < uses->n && k < MOST_KINDS; k++)
      if (k != i && strcmp(uses->use[k].kind, sum.kind) == 0) {
        again |= k < i;
        sum.hits += uses->use[k].hits;
        sum.misses += uses->use[k].misses;
        sum.damaged += uses->use[k].damaged;
        sum.shared += uses->use[k].shared;
        sum.shipped += uses->use[k].shipped;
      }
    if (again)
      continue;
    fprintf(out, "ampcc: cache: %s: %d found, %d missed", sum.kind, sum.hits, sum.misses);
    if (sum.shared)
      fprintf(out, ", %d of %s", sum.shared, shared_folder);
    if (sum.shipped)
      fprintf(out, ", %d that came with ampcc", sum.shipped);
    if (sum.damaged)
      fprintf(out, ", %d damaged", sum.damaged);
    fputc('\n', out);
  }
}

/* ---- entries ---- */

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
  CacheKey key = {.sha = sha256_begin(), .kind = kind};
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

static bool path_of(const char *folder, const char *before, const CacheKey *key,
                    char path[PATH_BYTES]) {
  unsigned char hash[SHA256_BYTES];
  char name[SHA256_TEXT];
  sha256_get(&key->sha, hash);
  sha256_hex(hash, name);
  return snprintf(path, PATH_BYTES, "%s/%s%s", folder, before, name) < PATH_BYTES;
}

static bool entry_path(const char *folder, const CacheKey *key, char path[PATH_BYTES]) {
  return path_of(folder, "", key, path);
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

/* Reads the data of a file, if the file is whole and its key is `key`; notes the time unless
 * `only_look`. */
static bool read_entry(int fd, const CacheKey *key, bool only_look, Arena *arena, char **data,
                       size_t *size) {
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
  if (!only_look && time(NULL) - st.st_mtime > FRESH_SECONDS)
    futimens(fd, NULL);
  return true;
}

typedef enum Found { MISSING, DAMAGED, WHOLE } Found;

static Found look(const char *folder, const CacheKey *key, bool only_look, Arena *arena,
                  char **data, size_t *size) {
  char path[PATH_BYTES];
  int fd = folder && entry_path(folder, key, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0)
    return MISSING;
  bool good = read_entry(fd, key, only_look, arena, data, size);
  close(fd);
  return good ? WHOLE : DAMAGED;
}

/* A shipped file has the name of what it is, and not of its key: so it may be of another compiler,
 * or empty where the build could not make it. */
static Found look_shipped(const CacheKey *key, Arena *arena, char **data, size_t *size) {
  Header found;
  unsigned char right[SHA256_BYTES];
  int fd = key->shipped ? open(key->shipped, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0)
    return MISSING;
  sha256_get(&key->sha, right);
  bool same = read_all(fd, &found, sizeof found) && memcmp(found.key, right, sizeof right) == 0;
  bool good = same && lseek(fd, 0, SEEK_SET) == 0 && read_entry(fd, key, true, arena, data, size);
  close(fd);
  return good ? WHOLE : same ? DAMAGED : MISSING;
}

static void count(int *uses_of_a_kind) {
  __atomic_fetch_add(uses_of_a_kind, 1, __ATOMIC_SEQ_CST);
}

bool cache_get(const char *folder, const CacheKey *key, Arena *arena, char **data, size_t *size) {
  if (!folder && !key->shipped)
    return false;
  bool own = !folder || !shared_folder || strcmp(folder, shared_folder) != 0;
  Use *use = use_of(key->kind);
  Found found = look(folder, key, only_read || !own, arena, data, size);
  Found behind = MISSING, shipped = MISSING;
  if (found != WHOLE && folder && own && shared_folder)
    behind = look(shared_folder, key, true, arena, data, size);
  if (found != WHOLE && behind != WHOLE)
    shipped = look_shipped(key, arena, data, size);
  bool good = found == WHOLE || behind == WHOLE || shipped == WHOLE;
  bool damaged = found == DAMAGED || (!good && (behind == DAMAGED || shipped == DAMAGED));
  count(damaged ? &use->damaged : good ? &use->hits : &use->misses);
  if (behind == WHOLE || (found == WHOLE && !own))
    count(&use->shared);
  if (shipped == WHOLE)
    count(&use->shipped);
  return good;
}

bool cache_get_again(const char *folder, const CacheKey *key, Arena *arena, char **data,
                     size_t *size) {
  return look(folder, key, only_read, arena, data, size) == WHOLE;
}

char *cache_entry(Arena *arena, const CacheKey *key, const void *data, size_t size, size_t *bytes) {
  Header header = header_of(key, data, size);
  *bytes = sizeof header + size;
  char *entry = arena_alloc(arena, *bytes);
  memcpy(entry, &header, sizeof header);
  memcpy(entry + sizeof header, data, size);
  return entry;
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
  if (!folder || only_read || !make_folder(folder) || !entry_path(folder, key, path) ||
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

/* ---- locks ---- */

int cache_order(const CacheKey *a, const CacheKey *b) {
  unsigned char x[SHA256_BYTES], y[SHA256_BYTES];
  sha256_get(&a->sha, x);
  sha256_get(&b->sha, y);
  return memcmp(x, y, sizeof x);
}

/* The lock is flock's, on the file `new.` and the hash of the key, which exists only while an entry
 * is made. A process that waits has the file open while it is removed: its lock then keeps nobody
 * from a new file of that name. But by then the entry exists, unless it could not be made, and then
 * two may make it. */
int cache_lock(const char *folder, const CacheKey *key, bool goes_on(void)) {
  enum { TURNS = 3000 };
  const struct timespec turn = {.tv_nsec = 20000000};
  char path[PATH_BYTES];
  if (!folder || only_read || !make_folder(folder) || !path_of(folder, unfinished, key, path))
    return -1;
  int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  for (int i = 0; lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0; i++) {
    if (errno != EWOULDBLOCK || i == TURNS || !goes_on()) {
      close(lock);
      return -1;
    }
    nanosleep(&turn, NULL);
  }
  return lock;
}

void cache_unlock(const char *folder, const CacheKey *key, int lock) {
  char path[PATH_BYTES];
  if (lock < 0)
    return;
  if (path_of(folder, unfinished, key, path))
    unlink(path);
  close(lock);
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
  DIR *dir = folder && !only_read ? opendir(folder) : NULL;
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

/* ---- what there is ---- */

/* The kind of an entry, or NULL if its header is damaged. */
static const char *header_kind(const Header *header) {
  static const char *const older[] = {"ampcc 2", "ampcc 3"};
  for (size_t i = 0; i < sizeof older / sizeof *older; i++)
    if (memcmp(header->magic, older[i], sizeof header->magic) == 0)
      return "older versions";
  bool good = memcmp(header->magic, magic, sizeof magic) == 0 &&
              memchr(header->kind, 0, sizeof header->kind) && header->kind[0];
  return good ? header->kind : NULL;
}

typedef struct KindSum {
  char kind[16];
  int entries;
  int64_t bytes;
} KindSum;

static void add_kind(KindSum sum[MOST_KINDS], const char *kind, int64_t bytes) {
  for (int i = 0; i < MOST_KINDS; i++) {
    if (!sum[i].entries)
      snprintf(sum[i].kind, sizeof sum[i].kind, "%s", kind);
    if (strcmp(sum[i].kind, kind) != 0)
      continue;
    sum[i].entries++;
    sum[i].bytes += bytes;
    return;
  }
}

static int by_kind(const void *a, const void *b) {
  return strcmp(((const KindSum *)a)->kind, ((const KindSum *)b)->kind);
}

/* Adds a file of the folder, whatever it holds or, with `only_whole`, if it begins as an entry. */
static void add_file(KindSum sum[MOST_KINDS], DIR *dir, const char *name, bool only_whole) {
  Header header = {.bytes = 0};
  struct stat st;
  int fd = openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, &st) == 0) {
    const char *kind = read_all(fd, &header, sizeof header) ? header_kind(&header) : NULL;
    if (kind || !only_whole)
      add_kind(sum, kind ? kind : "damaged", st.st_size);
  }
  if (fd >= 0)
    close(fd);
}

void cache_print_shipped(const char *folder, FILE *out) {
  KindSum sum[MOST_KINDS] = {{.entries = 0}};
  DIR *dir = opendir(folder);
  for (struct dirent *file; dir && (file = readdir(dir));)
    add_file(sum, dir, file->d_name, true);
  if (dir)
    closedir(dir);
  for (int i = 0; i < MOST_KINDS && sum[i].entries; i++)
    fprintf(out, "beside it, %d of kind %s that came with ampcc, %lld bytes: %s\n", sum[i].entries,
            sum[i].kind, (long long)sum[i].bytes, folder);
}

void cache_print_stats(const char *folder, FILE *out) {
  KindSum sum[MOST_KINDS] = {{.entries = 0}};
  DIR *dir = folder ? opendir(folder) : NULL;
  for (struct dirent *file; dir && (file = readdir(dir));)
    if (is_entry(file->d_name))
      add_file(sum, dir, file->d_name, false);
  if (dir)
    closedir(dir);
  int n = 0;
  KindSum all = {.kind = "all"};
  for (; n < MOST_KINDS && sum[n].entries; n++) {
    all.entries += sum[n].entries;
    all.bytes += sum[n].bytes;
  }
  qsort(sum, (size_t)n, sizeof *sum, by_kind);
  fprintf(out, "%s\n%-15s %8s %12s\n", folder ? folder : "no cache", "kind", "entries", "bytes");
  for (int i = 0; i <= n; i++) {
    const KindSum *row = i < n ? &sum[i] : &all;
    fprintf(out, "%-15s %8d %12lld\n", row->kind, row->entries, (long long)row->bytes);
  }
}

/* Is the file what its header and its name say? The hash of a key is the name. */
static bool is_whole(int fd, const char *name) {
  Header header;
  Sha256 sha = sha256_begin();
  unsigned char hash[SHA256_BYTES];
  char part[1 << 16], right_name[SHA256_TEXT];
  ssize_t n;
  uint64_t bytes = 0;
  if (!read_all(fd, &header, sizeof header))
    return false;
  const char *kind = header_kind(&header);
  if (!kind || kind != header.kind)
    return kind != NULL;
  sha256_hex(header.key, right_name);
  if (strcmp(name, right_name) != 0)
    return false;
  while ((n = read(fd, part, sizeof part)) > 0) {
    sha256_add(&sha, part, (size_t)n);
    bytes += (uint64_t)n;
  }
  sha256_get(&sha, hash);
  return bytes == header.bytes && memcmp(hash, header.data, sizeof hash) == 0;
}

bool cache_verify(const char *folder, FILE *out) {
  int n = 0, n_bad = 0;
  DIR *dir = folder ? opendir(folder) : NULL;
  for (struct dirent *file; dir && (file = readdir(dir));) {
    int fd = is_entry(file->d_name) ? openat(dirfd(dir), file->d_name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
      continue;
    n++;
    if (!is_whole(fd, file->d_name)) {
      n_bad++;
      bool gone = !only_read && unlinkat(dirfd(dir), file->d_name, 0) == 0;
      fprintf(out, "%s/%s is damaged%s\n", folder, file->d_name, gone ? ": removed" : "");
    }
    close(fd);
  }
  if (dir)
    closedir(dir);
  fprintf(out, "%d entries, %d damaged\n", n, n_bad);
  return n_bad == 0;
}
