#include "runtime/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

AmprtStatus amprt_path(char out[AMPRT_PATH], const char *dir, const char *name, AmprtError *error) {
  if (snprintf(out, AMPRT_PATH, "%s/%s", dir, name) >= AMPRT_PATH)
    return amprt_fail(error, AMPRT_INPUT, "%.80s...: the path is too long", dir);
  return AMPRT_OK;
}

bool amprt_is_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

AmprtStatus amprt_open_file(const char *path, int *fd, uint64_t *size, AmprtError *error) {
  struct stat info;
  AmprtStatus status = AMPRT_OK;
  *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (*fd < 0)
    return amprt_fail(error, AMPRT_INPUT, "%s: cannot open: %s", path, strerror(errno));
  if (fstat(*fd, &info) < 0)
    status = amprt_fail_errno(error, "fstat", path);
  else if (!S_ISREG(info.st_mode))
    status = amprt_fail(error, AMPRT_INPUT, "%s: not a regular file", path);
  else
    *size = (uint64_t)info.st_size;
  if (status) {
    close(*fd);
    *fd = -1;
  }
  return status;
}

AmprtStatus amprt_read_at(int fd, const char *path, uint64_t offset, void *out, size_t size,
                          AmprtError *error) {
  for (size_t done = 0; done < size;) {
    ssize_t n = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return amprt_fail(error, AMPRT_ENV, "%s: cannot read at byte %llu: %s", path,
                        (unsigned long long)offset + done, strerror(errno));
    if (n == 0)
      return amprt_fail(error, AMPRT_INPUT, "%s: became shorter while it was read", path);
    done += (size_t)n;
  }
  return AMPRT_OK;
}

AmprtStatus amprt_read_file(const char *path, size_t limit, AmprtBytes *out, AmprtError *error) {
  int fd;
  uint64_t size;
  AmprtBytes bytes = {0};
  AmprtStatus status = amprt_open_file(path, &fd, &size, error);
  if (status)
    return status;
  if (size > limit)
    status = amprt_fail(error, AMPRT_INPUT, "%s: has %llu bytes; %zu would be the most", path,
                        (unsigned long long)size, limit);
  if (!status) {
    bytes.size = (size_t)size;
    bytes.data = malloc(bytes.size + 1);
    status = bytes.data ? amprt_read_at(fd, path, 0, bytes.data, bytes.size, error)
                        : amprt_fail_memory(error, bytes.size, path);
  }
  close(fd);
  if (status)
    free(bytes.data);
  else
    *out = bytes;
  return status;
}

AmprtStatus amprt_gunzip(AmprtBytes *bytes, size_t limit, const char *path, AmprtError *error) {
  if (bytes->size < 2 || bytes->data[0] != 0x1f || bytes->data[1] != 0x8b)
    return AMPRT_OK;
  if (bytes->size > UINT32_MAX || limit > UINT32_MAX - 1)
    return amprt_fail(error, AMPRT_INPUT, "%s: more than 4 GiB of gzip", path);
  z_stream z = {.next_in = bytes->data, .avail_in = (uInt)bytes->size};
  if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
    return amprt_fail_memory(error, 1 << 16, path);
  AmprtBytes out = {0};
  int code = Z_OK;
  size_t missing = 0;                         /* how many bytes could not be allocated */
  while (code == Z_OK && out.size <= limit) { /* the buffer doubles, so small files stay cheap */
    size_t room = out.size ? 2 * out.size : 1 << 16;
    room = room > limit + 1 ? limit + 1 : room;
    unsigned char *more = realloc(out.data, room);
    if (!more) {
      missing = room;
      break;
    }
    out.data = more;
    z.next_out = out.data + out.size;
    z.avail_out = (uInt)(room - out.size);
    code = inflate(&z, Z_NO_FLUSH);
    out.size = room - z.avail_out;
    if (code == Z_BUF_ERROR || (code == Z_OK && z.avail_out))
      break; /* the compressed data ended early */
  }
  size_t left = z.avail_in;
  inflateEnd(&z);
  if (code == Z_STREAM_END && !left && out.size <= limit) {
    free(bytes->data);
    *bytes = out;
    return AMPRT_OK;
  }
  free(out.data);
  if (missing || code == Z_MEM_ERROR)
    return amprt_fail_memory(error, missing ? missing : 1 << 16, path);
  return amprt_fail(error, AMPRT_INPUT, "%s: the gzip data is %s; fetch the file again", path,
                    code == Z_STREAM_END && left ? "followed by other bytes"
                    : out.size > limit           ? "larger than it can be"
                                                 : "damaged or short");
}

AmprtStatus amprt_make_dir(const char *dir, AmprtError *error) {
  char path[AMPRT_PATH];
  if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path)
    return amprt_fail(error, AMPRT_INPUT, "%.80s...: the path is too long", dir);
  for (char *slash = path; slash; *slash = '/') {
    slash = strchr(slash + 1, '/');
    if (slash)
      *slash = '\0';
    if (mkdir(path, 0777) < 0 && errno != EEXIST && errno != EISDIR)
      return amprt_fail_errno(error, "mkdir", path);
    if (!slash)
      break;
  }
  struct stat info;
  if (stat(path, &info) < 0 || !S_ISDIR(info.st_mode))
    return amprt_fail(error, AMPRT_INPUT, "%s: is not a folder", dir);
  return AMPRT_OK;
}

static bool is_null_device(const struct stat *info) {
  struct stat null;
  return S_ISCHR(info->st_mode) && stat("/dev/null", &null) == 0 && null.st_rdev == info->st_rdev;
}

/* Only a regular file may be replaced. */
static AmprtStatus check_target(AmprtWriter *writer, const char *path, AmprtError *error) {
  struct stat info;
  writer->direct = stat(path, &info) == 0 && is_null_device(&info);
  if (snprintf(writer->path, AMPRT_PATH, "%s", path) >= AMPRT_PATH - 8)
    return amprt_fail(error, AMPRT_INPUT, "%.80s...: the path is too long", path);
  if (writer->direct || lstat(path, &info) < 0 || S_ISREG(info.st_mode))
    return AMPRT_OK;
  return amprt_fail(error, AMPRT_INPUT, "%s: exists and is no regular file; it is not replaced",
                    path);
}

AmprtStatus amprt_write_begin(AmprtWriter *writer, const char *path, AmprtError *error) {
  AmprtStatus status = check_target(writer, path, error);
  if (status)
    return status;
  if (writer->direct) {
    snprintf(writer->temporary, AMPRT_PATH, "%s", writer->path);
    writer->fd = open(writer->path, O_WRONLY | O_CLOEXEC);
  }
  /* path.tmp, or if that exists path.tmp1, ... */
  for (int i = 0; !writer->direct && i < 100; i++) {
    snprintf(writer->temporary, AMPRT_PATH, "%.*s.tmp%.0d", AMPRT_PATH - 9, writer->path, i);
    writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (writer->fd >= 0 || errno != EEXIST)
      break;
  }
  return writer->fd < 0 ? amprt_fail_errno(error, "open", writer->temporary) : AMPRT_OK;
}

AmprtStatus amprt_write(AmprtWriter *writer, const void *data, size_t size, AmprtError *error) {
  for (const unsigned char *at = data; size;) {
    ssize_t n = write(writer->fd, at, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return amprt_fail_errno(error, "write", writer->temporary);
    at += n;
    size -= (size_t)n;
  }
  return AMPRT_OK;
}

AmprtStatus amprt_write_over(AmprtWriter *writer, uint64_t offset, const void *data, size_t size,
                             AmprtError *error) {
  for (size_t done = 0; done < size;) {
    ssize_t n = pwrite(writer->fd, (const char *)data + done, size - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return amprt_fail_errno(error, "pwrite", writer->temporary);
    done += (size_t)n;
  }
  return AMPRT_OK;
}

/* A rename survives a crash only once the folder itself is on disk. */
static AmprtStatus sync_folder(const char *path, AmprtError *error) {
  char folder[AMPRT_PATH];
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash)
    slash[slash == folder] = '\0';
  else
    snprintf(folder, sizeof folder, ".");
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return amprt_fail_errno(error, "open", folder);
  bool failed = fsync(fd) < 0 && errno != EINVAL; /* EINVAL: this file system cannot sync folders */
  AmprtStatus status = failed ? amprt_fail_errno(error, "fsync", folder) : AMPRT_OK;
  close(fd);
  return status;
}

AmprtStatus amprt_write_end(AmprtWriter *writer, bool keep, AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  if (keep && !writer->direct && fsync(writer->fd) < 0)
    status = amprt_fail_errno(error, "fsync", writer->temporary);
  if (close(writer->fd) < 0 && keep && !status)
    status = amprt_fail_errno(error, "close", writer->temporary);
  if (writer->direct)
    return status;
  if (keep && !status && rename(writer->temporary, writer->path) < 0)
    status = amprt_fail_errno(error, "rename", writer->path);
  if (!keep || status) {
    unlink(writer->temporary);
    return status;
  }
  return sync_folder(writer->path, error);
}

AmprtStatus amprt_write_file(const char *path, const void *data, size_t size, AmprtError *error) {
  AmprtWriter writer;
  AmprtError later;
  AmprtStatus status = amprt_write_begin(&writer, path, error);
  if (status)
    return status;
  status = amprt_write(&writer, data, size, error);
  AmprtStatus ended = amprt_write_end(&writer, !status, status ? &later : error);
  return status ? status : ended;
}
