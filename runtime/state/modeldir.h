/* The model folder: ckpt-STEP.safetensors files, log.jsonl, and TensorBoard's event files here and
 * in its folder eval. A lock keeps it to one run at a time. */
#ifndef AMPRT_MODELDIR_H
#define AMPRT_MODELDIR_H

#include "runtime/base/file.h"

#include <stdint.h>

typedef struct AmprtModelDir {
  char path[AMPRT_PATH]; /* "" if this run writes no files */
  int lock;              /* descriptor of the folder, or -1 */
  int64_t *step;         /* steps of the checkpoints that exist, rising */
  int n;
} AmprtModelDir;

/* Makes the folder, locks it and lists its checkpoints, without changing anything in it. With an
 * empty `path` there is no folder. */
AmprtStatus amprt_modeldir_open(AmprtModelDir *dir, const char *path, AmprtError *error);
/* Lists its checkpoints alone: without a lock, and without making a folder that is not there. */
AmprtStatus amprt_modeldir_look(AmprtModelDir *dir, const char *path, AmprtError *error);
/* To be called when everything else has been checked, before a training writes its first
 * checkpoint. Deletes what an interrupted save left and, with `clean`, the checkpoints, the event
 * files and the log. `log` is the descriptor of the log that this run writes, or -1: if it is the
 * folder's own log, that is emptied instead of deleted. */
AmprtStatus amprt_modeldir_begin(AmprtModelDir *dir, bool clean, int log, AmprtError *error);
/* Renames the log of an earlier run to log.jsonl.old, or log.jsonl.old-2, -3 ... if that exists.
 * `to` gets the new path, or "" if there was no log. */
AmprtStatus amprt_modeldir_old_log(AmprtModelDir *dir, char to[AMPRT_PATH], AmprtError *error);
/* Takes the newest checkpoint, which could not be read, out of the list and renames its file, so
 * that no later checkpoint replaces it. `to` gets the new path. */
AmprtStatus amprt_modeldir_set_aside(AmprtModelDir *dir, char to[AMPRT_PATH], AmprtError *error);
void amprt_modeldir_close(AmprtModelDir *dir);
AmprtStatus amprt_modeldir_ckpt(const AmprtModelDir *dir, int64_t step, char out[AMPRT_PATH],
                                AmprtError *error);
/* After a save at `step`: deletes all but the last `keep` checkpoints (0: deletes none). */
void amprt_modeldir_keep(AmprtModelDir *dir, int64_t step, int64_t keep);

#endif
