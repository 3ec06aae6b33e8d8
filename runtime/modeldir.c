#include "runtime/modeldir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* The step of "ckpt-STEP.safetensors" + `suffix`, or -1. */
static int64_t step_of(const char *name, const char *suffix) {
  char *end, again[64];
  if (strncmp(name, "ckpt-", 5) || name[5] < '0' || name[5] > '9')
    return -1;
  errno = 0;
  long long step = strtoll(name + 5, &end, 10);
  snprintf(again, sizeof again, "ckpt-%lld.safetensors%s", step, suffix);
  return !errno && !strcmp(again, name) ? step : -1;
}

static int by_step(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static AmprtStatus add_step(AmprtModelDir *dir, int64_t step, AmprtError *error) {
  for (int i = 0; i < dir->n; i++)
    if (dir->step[i] == step)
      return AMPRT_OK;
  int64_t *more = realloc(dir->step, ((size_t)dir->n + 1) * sizeof *more);
  if (!more)
    return amprt_fail_memory(error, 0, "a list of checkpoints");
  dir->step = more;
  dir->step[dir->n++] = step;
  qsort(dir->step, (size_t)dir->n, sizeof *dir->step, by_step);
  return AMPRT_OK;
}

static AmprtStatus list(AmprtModelDir *dir, bool clean, AmprtError *error) {
  DIR *folder = opendir(dir->path);
  if (!folder)
    return amprt_fail_errno(error, "opendir", dir->path);
  AmprtStatus status = AMPRT_OK;
  for (struct dirent *entry; !status && (entry = readdir(folder));) {
    const char *name = entry->d_name;
    int64_t step = step_of(name, "");
    if (step_of(name, ".tmp") >= 0 || (clean && (step >= 0 || !strcmp(name, "log.jsonl"))))
      unlinkat(dirfd(folder), name, 0);
    else if (step >= 0)
      status = add_step(dir, step, error);
  }
  closedir(folder);
  return status;
}

static AmprtStatus lock_folder(AmprtModelDir *dir, AmprtError *error) {
  dir->lock = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir->lock < 0)
    return amprt_fail_errno(error, "open", dir->path);
  if (flock(dir->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
    return amprt_fail(
        error, AMPRT_ENV,
        "%s: another run is using this folder; wait for it or name another --model-dir", dir->path);
  return AMPRT_OK; /* a file system without locks is no reason not to train */
}

AmprtStatus amprt_modeldir_open(AmprtModelDir *dir, const char *path, bool clean,
                                AmprtError *error) {
  *dir = (AmprtModelDir){.lock = -1};
  if (!*path)
    return AMPRT_OK;
  AmprtStatus status = amprt_make_dir(path, error);
  if (!status)
    snprintf(dir->path, sizeof dir->path, "%s", path);
  if (!status)
    status = lock_folder(dir, error);
  return status ? status : list(dir, clean, error);
}

void amprt_modeldir_close(AmprtModelDir *dir) {
  if (dir->lock >= 0)
    close(dir->lock);
  free(dir->step);
  *dir = (AmprtModelDir){.lock = -1};
}

AmprtStatus amprt_modeldir_ckpt(const AmprtModelDir *dir, int64_t step, char out[AMPRT_PATH],
                                AmprtError *error) {
  char name[64];
  snprintf(name, sizeof name, "ckpt-%" PRId64 ".safetensors", step);
  return amprt_path(out, dir->path, name, error);
}

void amprt_modeldir_keep(AmprtModelDir *dir, int64_t step, int64_t keep) {
  AmprtError ignored;
  char path[AMPRT_PATH];
  if (add_step(dir, step, &ignored) || keep == 0)
    return;
  int older = 0; /* at or before step */
  while (older < dir->n && dir->step[older] <= step)
    older++;
  int drop = older > keep ? older - (int)keep : 0;
  for (int i = 0; i < drop; i++)
    if (!amprt_modeldir_ckpt(dir, dir->step[i], path, &ignored))
      unlink(path);
  dir->n -= drop;
  memmove(dir->step, dir->step + drop, (size_t)dir->n * sizeof *dir->step);
}
