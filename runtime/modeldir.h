/* The model folder: ckpt-STEP.safetensors files and log.jsonl. One run at a time uses it. */
#ifndef AMPRT_MODELDIR_H
#define AMPRT_MODELDIR_H

#include "runtime/file.h"

#include <stdint.h>

typedef struct AmprtModelDir {
  char path[AMPRT_PATH]; /* "" if this run writes no files */
  int lock;              /* descriptor of the folder, or -1 */
  int64_t *step;         /* of the checkpoints that are there, rising */
  int n;
} AmprtModelDir;

/* Makes the folder, locks it, and lists what is in it; drops what an interrupted save left. With
 * `clean` deletes checkpoints and log. `path` "" is fine. */
AmprtStatus amprt_modeldir_open(AmprtModelDir *dir, const char *path, bool clean,
                                AmprtError *error);
void amprt_modeldir_close(AmprtModelDir *dir);
AmprtStatus amprt_modeldir_ckpt(const AmprtModelDir *dir, int64_t step, char out[AMPRT_PATH],
                                AmprtError *error);
/* After a save at `step`: deletes all but the last `keep` at or before it (0: deletes none). Later
 * ones are unreadable leftovers that a resume has passed over; they stay. */
void amprt_modeldir_keep(AmprtModelDir *dir, int64_t step, int64_t keep);

#endif
