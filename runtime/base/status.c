#include "runtime/base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

AmprtStatus amprt_fail(AmprtError *error, AmprtStatus status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(error->text, sizeof error->text, fmt, args);
  va_end(args);
  for (unsigned char *c = (unsigned char *)error->text; *c; c++)
    if (*c < 0x20 || *c == 0x7f)
      *c = '?';
  error->status = status;
  return status;
}

AmprtStatus amprt_fail_errno(AmprtError *error, const char *call, const char *path) {
  return amprt_fail(error, AMPRT_ENV, "%s: %s failed: %s", path, call, strerror(errno));
}

AmprtStatus amprt_fail_memory(AmprtError *error, size_t bytes, const char *what) {
  return amprt_fail(error, AMPRT_ENV, "no memory for %s (%.1f MiB)", what,
                    (double)bytes / (1 << 20));
}
