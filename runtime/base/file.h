/* Whole files in memory, and files that appear whole or not at all. */
#ifndef AMPRT_FILE_H
#define AMPRT_FILE_H

#include "runtime/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { AMPRT_PATH = 4096 };

typedef struct AmprtBytes {
  unsigned char *data; /* malloc */
  size_t size;
} AmprtBytes;

/* "dir/name"; fails if that is too long. */
AmprtStatus amprt_path(char out[AMPRT_PATH], const char *dir, const char *name, AmprtError *error);
bool amprt_is_file(const char *path);

/* The whole of a regular file; more than `limit` bytes is an error. Free out->data. */
AmprtStatus amprt_read_file(const char *path, size_t limit, AmprtBytes *out, AmprtError *error);
/* If the bytes are gzip, replaces them with what they hold (at most `limit` bytes). `path` is for
 * messages. On failure the bytes are as before. */
AmprtStatus amprt_gunzip(AmprtBytes *bytes, size_t limit, const char *path, AmprtError *error);

/* Makes `dir` and the folders above it. */
AmprtStatus amprt_make_dir(const char *dir, AmprtError *error);

/* A file under construction: path.tmp, then synced, renamed and its folder synced. What exists and
 * is no regular file (a device, a FIFO, a link) is refused; /dev/null takes everything. */
typedef struct AmprtWriter {
  int fd;
  bool direct; /* no temporary file, no rename: /dev/null */
  char path[AMPRT_PATH], temporary[AMPRT_PATH];
} AmprtWriter;

AmprtStatus amprt_write_begin(AmprtWriter *writer, const char *path, AmprtError *error);
AmprtStatus amprt_write(AmprtWriter *writer, const void *data, size_t size, AmprtError *error);
/* Ends it: with `keep` the file is there under its name, else nothing is left of it. */
AmprtStatus amprt_write_end(AmprtWriter *writer, bool keep, AmprtError *error);

#endif
