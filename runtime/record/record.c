#include "runtime/record/record.h"

#include "runtime/record/crc32c.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  WINDOW = 1 << 16, /* how many bytes are read at once where records are short */
  SHORT = 1 << 12,  /* records up to this size are read: to skip one costs more */
};

AmprtStatus amprt_records_open(AmprtRecordFile *file, const char *path, AmprtError *error) {
  *file = (AmprtRecordFile){-1, 0, path};
  return amprt_open_file(path, &file->fd, &file->size, error);
}

void amprt_records_close(AmprtRecordFile *file) {
  if (file->fd >= 0)
    close(file->fd);
  file->fd = -1;
}

static AmprtStatus fail_at(const AmprtRecordFile *file, uint64_t offset, const char *what,
                           AmprtError *error) {
  return amprt_fail(error, AMPRT_INPUT, "%s: record at byte %" PRIu64 ": %s", file->path, offset,
                    what);
}

/* The length that a head tells, if its checksum is right and the record ends within the file. */
static AmprtStatus check_head(const AmprtRecordFile *file, uint64_t offset,
                              const unsigned char *head, uint64_t *length, AmprtError *error) {
  uint64_t left = file->size - offset - AMPRT_RECORD_HEAD;
  if (amprt_little(head + 8, 4) != amprt_crc32c_masked(head, 8))
    return fail_at(file, offset, "the checksum of its length is wrong", error);
  *length = amprt_little(head, 8);
  if (*length <= left && left - *length >= AMPRT_RECORD_TAIL)
    return AMPRT_OK;
  return amprt_fail(error, AMPRT_INPUT,
                    "%s: record at byte %" PRIu64 ": should have %" PRIu64
                    " bytes of data, but the file ends after %" PRIu64,
                    file->path, offset, *length, left);
}

AmprtStatus amprt_records_walk(const AmprtRecordFile *file, AmprtRecordEach *each, void *context,
                               AmprtError *error) {
  unsigned char window[WINDOW];
  uint64_t begin = 0, end = 0, length = 0; /* of the file, in the window */
  AmprtStatus status = AMPRT_OK;
  for (uint64_t at = 0; at < file->size;) {
    uint64_t left = file->size - at;
    if (left < AMPRT_RECORD_HEAD)
      return fail_at(file, at, "the file ends in the middle of its length", error);
    if (at < begin || at + AMPRT_RECORD_HEAD > end) {
      uint64_t want = length <= SHORT ? WINDOW : AMPRT_RECORD_HEAD;
      begin = at;
      end = at + (want < left ? want : left);
      status = amprt_read_at(file->fd, file->path, begin, window, end - begin, error);
    }
    if (!status)
      status = check_head(file, at, window + (at - begin), &length, error);
    if (status || !each(context, at, length))
      return status;
    at += AMPRT_RECORD_HEAD + length + AMPRT_RECORD_TAIL;
  }
  return AMPRT_OK;
}

AmprtStatus amprt_record_read(const AmprtRecordFile *file, uint64_t offset, uint64_t length,
                              unsigned char *room, AmprtError *error) {
  uint64_t stored;
  AmprtStatus status = amprt_read_at(file->fd, file->path, offset, room,
                                     AMPRT_RECORD_HEAD + length + AMPRT_RECORD_TAIL, error);
  if (!status)
    status = check_head(file, offset, room, &stored, error);
  if (status)
    return status;
  if (stored != length)
    return fail_at(file, offset, "its length has changed since the file was opened", error);
  const unsigned char *data = room + AMPRT_RECORD_HEAD;
  if (amprt_little(data + length, 4) != amprt_crc32c_masked(data, length))
    return fail_at(file, offset, "the checksum of its data is wrong", error);
  return AMPRT_OK;
}

AmprtStatus amprt_record_write(int fd, const char *path, const void *data, size_t size,
                               AmprtError *error) {
  unsigned char head[AMPRT_RECORD_HEAD], tail[AMPRT_RECORD_TAIL];
  amprt_put_little(head, size, 8);
  amprt_put_little(head + 8, amprt_crc32c_masked(head, 8), 4);
  amprt_put_little(tail, amprt_crc32c_masked(data, size), 4);
  struct iovec part[] = {{head, sizeof head}, {(void *)(uintptr_t)data, size}, {tail, sizeof tail}};
  for (int i = 0; i < 3;) {
    ssize_t n = writev(fd, part + i, 3 - i);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return amprt_fail_errno(error, "write", path);
    for (size_t done = (size_t)n; i < 3 && done >= part[i].iov_len; i++)
      done -= part[i].iov_len, n = (ssize_t)done;
    if (i < 3) {
      part[i].iov_base = (char *)part[i].iov_base + n;
      part[i].iov_len -= (size_t)n;
    }
  }
  return AMPRT_OK;
}
