/* The files that a program was made of beside the model: ampcc itself and its libraries, headers,
 * libraries that were linked, the C compiler's programs, and the folders that these were searched
 * in, since a file that appears there may take the place of another.
 *
 * A file counts by its content, a folder by the names in it. The content of a file is not read
 * again while its stamp stays the same: inode, size, and the times of its last change, of which the
 * system sets one itself. Files above 16 MiB (compilers, CUDA's libraries) count by size and time.
 */
#ifndef AMPCC_CODEGEN_PROGRAM_USED_H
#define AMPCC_CODEGEN_PROGRAM_USED_H

#include "codegen/program/cache.h"

#include <time.h>

typedef struct FileStamp {
  int64_t device, inode, bytes, modified[2], changed[2];
} FileStamp;

typedef struct UsedFile {
  const char *path; /* absolute */
  FileStamp stamp;  /* all 0: not known */
  unsigned char hash[SHA256_BYTES];
} UsedFile;

typedef struct UsedList {
  Arena *arena;
  UsedFile *file;
  int n, cap;
  bool incomplete; /* something was read that could not be named */
} UsedList;

/* The path of a program that is looked for as the shell does; NULL if there is none. */
const char *program_path(Arena *arena, const char *name);

/* Adds a file or a folder, unless the list has it. */
void used_add(UsedList *list, const char *path);
/* Adds the executable of this process and every library that is loaded into it. */
void used_add_self(UsedList *list);
/* Add what compilers and linkers say that they have read: a file that -MF wrote, what the driver of
 * a compiler prints with -v, and what a linker prints with --trace. Files below `temporary` are
 * left out. If a report is missing or names what is no file, the list becomes incomplete. */
void used_add_rule(UsedList *list, const char *path, const char *temporary);
void used_add_driver(UsedList *list, const char *path);
void used_add_trace(UsedList *list, const char *path, const char *temporary);

/* Finds the hash of every file whose stamp has changed. Returns how many these were, or -1 if a
 * file cannot be read. */
int used_renew(UsedList *list);
/* Was the file that had this stamp last changed after `time`? */
bool stamp_is_newer(const FileStamp *stamp, struct timespec time);
FileStamp stamp_of(const char *path);
/* Adds a target, and where the files lie that it needs. */
struct Backend;
void used_key_target(const struct Backend *backend, CacheKey *key);
/* Adds all hashes. */
void used_key(const UsedList *list, CacheKey *key);

/* The list as bytes, and back; false if they are no list. */
char *used_encode(const UsedList *list, size_t *size);
bool used_decode(Arena *arena, const char *bytes, size_t size, UsedList *list);

#endif
