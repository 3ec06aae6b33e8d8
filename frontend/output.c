#include "frontend/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const char *path) {
  fprintf(stderr, "ampcc: cannot write %s: %s\n", path, strerror(errno));
  return false;
}

bool output_open(Arena *arena, const char *path, Output *out) {
  struct stat st;
  *out = (Output){.path = path, .file = stdout};
  if (!strcmp(path, "-"))
    return true;
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
    fprintf(stderr, "ampcc: cannot write %s: it exists and is no regular file\n", path);
    return false;
  }
  out->temporary = arena_printf(arena, "%s.XXXXXX", path);
  int fd = mkstemp(out->temporary);
  out->file = fd < 0 ? NULL : fdopen(fd, "w");
  return out->file ? true : fail(path);
}

/* mkstemp makes files that only their owner may read; a model's graph is no secret. */
static mode_t usual_mode(void) {
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

void output_drop(Output *out) {
  if (!out->temporary)
    return;
  fclose(out->file);
  unlink(out->temporary);
}

bool output_close(Output *out) {
  if (!out->temporary)
    return fflush(stdout) == 0 && !ferror(stdout) ? true : fail("standard output");
  bool good = fflush(out->file) == 0 && !ferror(out->file) && fsync(fileno(out->file)) == 0 &&
              fchmod(fileno(out->file), usual_mode()) == 0;
  good = fclose(out->file) == 0 && good;
  if (good && rename(out->temporary, out->path) == 0)
    return true;
  fail(out->path);
  unlink(out->temporary);
  return false;
}
