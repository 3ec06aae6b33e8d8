/* Results that took long to compute, kept in a folder of the user for later compiles. Each entry is
 * a file named by the hash of its key, that is of everything that determines the result. It holds
 * the hash of the result and the result. A file that is damaged, cut short or of another key counts
 * as missing, and is replaced. A file in the folder is never changed: new ones are renamed into
 * place whole, so that several ampcc may share the folder, and it may be deleted at any time. */
#ifndef AMPCC_CODEGEN_PROGRAM_CACHE_H
#define AMPCC_CODEGEN_PROGRAM_CACHE_H

#include "ir/base/arena.h"
#include "ir/base/sha256.h"

#include <stdbool.h>
#include <stdio.h>

/* The folder that --cache-dir=WANTED names. NULL stands for the default, $XDG_CACHE_HOME/ampcc or
 * ~/.cache/ampcc, and "" for no cache. Returns NULL for no cache, also if there is no home
 * folder. */
const char *cache_folder(Arena *arena, const char *wanted);

typedef struct CacheKey {
  Sha256 sha;
  const char *kind;
  const char *shipped; /* a file that came with ampcc and may be the entry; or NULL */
} CacheKey;

/* A key is a list of parts; their order and lengths count. `kind` is a word of at most 15 letters,
 * by which --cache-stats counts the entries; the key keeps the pointer. */
CacheKey cache_key_begin(const char *kind);
void cache_key_add(CacheKey *key, const void *part, size_t size);
void cache_key_text(CacheKey *key, const char *part);
void cache_key_int(CacheKey *key, long long part);

/* A folder behind every other: what cache_get does not find in its own it looks for there. Nothing
 * there is ever changed, nor its time of last use; what is found is not copied. */
void cache_share(const char *folder);
/* That folder; NULL if there is none. */
const char *cache_shared(void);

/* Looks in the folder, in the one behind it, and at key->shipped, which is never changed either. A
 * NULL folder holds nothing. The data lies in the arena, with a NUL behind it. */
bool cache_get(const char *folder, const CacheKey *key, Arena *arena, char **data, size_t *size);
/* Lets one of several ampcc that miss an entry at once make it. Waits while another process has the
 * lock of the entry, but at most a minute, and no longer than goes_on(). Returns the lock, or -1
 * where there is none to have. In either case the entry may be there now: cache_get_again looks in
 * the folder, and counts nothing. Who needs several locks takes them in the order of cache_order,
 * so that no two wait for each other. */
int cache_lock(const char *folder, const CacheKey *key, bool goes_on(void));
void cache_unlock(const char *folder, const CacheKey *key, int lock);
int cache_order(const CacheKey *a, const CacheKey *b);
bool cache_get_again(const char *folder, const CacheKey *key, Arena *arena, char **data,
                     size_t *size);

/* A failure is silent: the next compile does the work again. */
void cache_put(const char *folder, const CacheKey *key, const void *data, size_t size);

/* The bytes of an entry, in the arena. */
char *cache_entry(Arena *arena, const CacheKey *key, const void *data, size_t size, size_t *bytes);

/* After this, cache_put and cache_trim do nothing, and no time of last use is written. */
void cache_only_read(void);
/* How many entries of each kind this process and those that it has started have found, missed, and
 * found damaged: a line per kind. */
void cache_print_use(FILE *out);

/* Prints how many entries of each kind there are, and their bytes. */
void cache_print_stats(const char *folder, FILE *out);
/* Prints a line on the entries of a folder whose files have other names, if there are any. */
void cache_print_shipped(const char *folder, FILE *out);
/* Compares every entry with its hashes, and removes those that differ. Prints how many there are,
 * and the names of those; false if there were any. */
bool cache_verify(const char *folder, FILE *out);

/* Deletes the entries that were not used for the longest time, until those that are left take at
 * most `most` bytes, and what an ampcc that was killed has left half written. No other file is
 * touched. */
void cache_trim(const char *folder, int64_t most);

#endif
