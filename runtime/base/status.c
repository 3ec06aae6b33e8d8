#include "runtime/base/status.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The number of bytes of the UTF-8 character at c, or 0 if it is none or must not reach a
 * terminal. */
static size_t plain_length(const unsigned char *c) {
  if (c[0] < 0x80)
    return c[0] >= 0x20 && c[0] != 0x7f;
  size_t n = c[0] >= 0xc2 && c[0] <= 0xdf ? 2
             : (c[0] & 0xf0) == 0xe0      ? 3
             : (c[0] & 0xf8) == 0xf0      ? 4
                                          : 0;
  uint32_t code = c[0] & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if ((c[i] & 0xc0) != 0x80) /* true at the end of the text, too */
      return 0;
    code = code << 6 | (c[i] & 0x3fu);
  }
  bool whole = (n == 2 && code >= 0xa0) || (n == 3 && code >= 0x800 && code >> 11 != 27) ||
               (n == 4 && code >= 0x10000 && code <= 0x10ffff);
  bool turns = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return whole && !turns ? n : 0;
}

void amprt_make_plain(char *text, int lines) {
  for (char *c = text; *c;) {
    size_t n = plain_length((const unsigned char *)c);
    if (!n && !(lines && *c == '\n'))
      *c = '?';
    c += n ? n : 1;
  }
}

void amprt_vprint(FILE *out, const char *fmt, va_list args) {
  char few[512], *text = few;
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(few, sizeof few, fmt, args);
  if (n >= (int)sizeof few) {
    text = malloc((size_t)n + 1);
    if (text)
      vsnprintf(text, (size_t)n + 1, fmt, again);
    else
      text = few; /* without memory for the whole text, prints its beginning */
  }
  va_end(again);
  amprt_make_plain(text, 1);
  fputs(text, out);
  if (text != few)
    free(text);
}

void amprt_print(FILE *out, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  amprt_vprint(out, fmt, args);
  va_end(args);
}

AmprtStatus amprt_fail(AmprtError *error, AmprtStatus status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(error->text, sizeof error->text, fmt, args);
  va_end(args);
  amprt_make_plain(error->text, 0);
  error->status = status;
  return status;
}

void amprt_fail_more(AmprtError *error, const char *more) {
  size_t n = strlen(error->text), most = sizeof error->text - 1 - strlen(more);
  memcpy(error->text + (n < most ? n : most), more, strlen(more) + 1);
}

AmprtStatus amprt_fail_errno(AmprtError *error, const char *call, const char *path) {
  return amprt_fail(error, AMPRT_ENV, "%s: %s failed: %s", path, call, strerror(errno));
}

AmprtStatus amprt_fail_memory(AmprtError *error, size_t bytes, const char *what) {
  return amprt_fail(error, AMPRT_ENV, "no memory for %s (%.1f MiB)", what,
                    (double)bytes / (1 << 20));
}
