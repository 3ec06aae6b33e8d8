#include "runtime/state/modeldir.h"

#include "runtime/report/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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

/* Calls `each` for every entry of the folder, or of its subfolder `inner` if that exists, until a
 * call fails. */
static AmprtStatus for_each(AmprtModelDir *dir, const char *inner,
                            AmprtStatus (*each)(AmprtModelDir *dir, const char *name,
                                                AmprtError *error),
                            AmprtError *error) {
  char path[AMPRT_PATH];
  AmprtStatus status = amprt_path(path, dir->path, inner, error);
  if (status)
    return status;
  DIR *folder = opendir(path);
  if (!folder && errno == ENOENT && *inner)
    return AMPRT_OK;
  if (!folder)
    return amprt_fail_errno(error, "opendir", path);
  for (struct dirent *entry; !status && (entry = readdir(folder));)
    status = each(dir, entry->d_name, error);
  closedir(folder);
  return status;
}

static AmprtStatus list_one(AmprtModelDir *dir, const char *name, AmprtError *error) {
  int64_t step = step_of(name, "");
  return step >= 0 ? add_step(dir, step, error) : AMPRT_OK;
}

static AmprtStatus drop(AmprtModelDir *dir, const char *name, AmprtError *error) {
  if (unlinkat(dir->lock, name, 0) == 0)
    return AMPRT_OK;
  return amprt_fail(error, AMPRT_ENV, "%s/%s: cannot be deleted: %s", dir->path, name,
                    strerror(errno));
}

static AmprtStatus drop_leftover(AmprtModelDir *dir, const char *name, AmprtError *error) {
  return step_of(name, ".tmp") >= 0 ? drop(dir, name, error) : AMPRT_OK;
}

static AmprtStatus drop_old(AmprtModelDir *dir, const char *name, AmprtError *error) {
  return step_of(name, "") >= 0 || amprt_events_is_name(name) ? drop(dir, name, error) : AMPRT_OK;
}

/* Deletes event files of evaluations, in the folder eval. */
static AmprtStatus drop_old_eval(AmprtModelDir *dir, const char *name, AmprtError *error) {
  char path[300];
  snprintf(path, sizeof path, "eval/%s", name);
  return amprt_events_is_name(name) ? drop(dir, path, error) : AMPRT_OK;
}

/* Deletes the folder's log; if this run has opened it already, empties it instead. */
static AmprtStatus drop_log(AmprtModelDir *dir, int log, AmprtError *error) {
  struct stat old, own;
  if (fstatat(dir->lock, "log.jsonl", &old, AT_SYMLINK_NOFOLLOW) < 0)
    return AMPRT_OK;
  bool same =
      log >= 0 && fstat(log, &own) == 0 && own.st_dev == old.st_dev && own.st_ino == old.st_ino;
  if (!same)
    return drop(dir, "log.jsonl", error);
  return ftruncate(log, 0) == 0 ? AMPRT_OK : amprt_fail_errno(error, "ftruncate", "log.jsonl");
}

AmprtStatus amprt_modeldir_begin(AmprtModelDir *dir, bool clean, int log, AmprtError *error) {
  AmprtStatus status = for_each(dir, "", drop_leftover, error);
  if (!status && clean)
    status = drop_log(dir, log, error);
  if (!status && clean)
    status = for_each(dir, "", drop_old, error);
  if (!status && clean)
    status = for_each(dir, "eval", drop_old_eval, error);
  dir->n = clean ? 0 : dir->n;
  return status;
}

/* Finds the first of NAME, NAME-2, NAME-3 ... that does not exist. */
static AmprtStatus free_name(const AmprtModelDir *dir, const char *name, char out[AMPRT_PATH],
                             AmprtError *error) {
  struct stat info;
  AmprtStatus status = amprt_path(out, dir->path, name, error);
  size_t end = strlen(out);
  for (int i = 2; !status && lstat(out, &info) == 0; i++)
    if (snprintf(out + end, AMPRT_PATH - end, "-%d", i) >= (int)(AMPRT_PATH - end))
      status = amprt_fail(error, AMPRT_INPUT, "%.80s...: the path is too long", dir->path);
  return status;
}

/* Renames `path` to a free name in the folder; `to` gets the new path. */
static AmprtStatus set_aside(const AmprtModelDir *dir, const char *path, const char *name,
                             char to[AMPRT_PATH], AmprtError *error) {
  AmprtStatus status = free_name(dir, name, to, error);
  if (!status && rename(path, to) < 0)
    status = amprt_fail_errno(error, "rename", path);
  return status;
}

AmprtStatus amprt_modeldir_set_aside(AmprtModelDir *dir, char to[AMPRT_PATH], AmprtError *error) {
  char path[AMPRT_PATH], name[64];
  int64_t step = dir->step[dir->n - 1];
  snprintf(name, sizeof name, "ckpt-%" PRId64 ".safetensors.unreadable", step);
  AmprtStatus status = amprt_modeldir_ckpt(dir, step, path, error);
  if (!status)
    status = set_aside(dir, path, name, to, error);
  dir->n -= !status;
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
  return AMPRT_OK; /* on a file system without locks, train without one */
}

AmprtStatus amprt_modeldir_open(AmprtModelDir *dir, const char *path, AmprtError *error) {
  *dir = (AmprtModelDir){.lock = -1};
  if (!*path)
    return AMPRT_OK;
  AmprtStatus status = amprt_make_dir(path, error);
  if (!status)
    snprintf(dir->path, sizeof dir->path, "%s", path);
  if (!status)
    status = lock_folder(dir, error);
  return status ? status : for_each(dir, "", list_one, error);
}

AmprtStatus amprt_modeldir_look(AmprtModelDir *dir, const char *path, AmprtError *error) {
  *dir = (AmprtModelDir){.lock = -1};
  snprintf(dir->path, sizeof dir->path, "%s", path);
  return *path && access(path, F_OK) == 0 ? for_each(dir, "", list_one, error) : AMPRT_OK;
}

AmprtStatus amprt_modeldir_old_log(AmprtModelDir *dir, char to[AMPRT_PATH], AmprtError *error) {
  char path[AMPRT_PATH];
  struct stat info;
  *to = '\0';
  AmprtStatus status = amprt_path(path, dir->path, "log.jsonl", error);
  if (!status && lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size)
    status = set_aside(dir, path, "log.jsonl.old", to, error);
  return status;
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
  int older = 0; /* checkpoints at or before `step` */
  while (older < dir->n && dir->step[older] <= step)
    older++;
  int drop = older > keep ? older - (int)keep : 0;
  for (int i = 0; i < drop; i++)
    if (!amprt_modeldir_ckpt(dir, dir->step[i], path, &ignored))
      unlink(path);
  dir->n -= drop;
  memmove(dir->step, dir->step + drop, (size_t)dir->n * sizeof *dir->step);
}
