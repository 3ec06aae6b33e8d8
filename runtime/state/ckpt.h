/* Checkpoints are safetensors files with every variable but the low-precision copies, under its own
 * name; parameters of rank 4 and their slots have the shape [K,C,R,S]. Progress and recipe are in
 * the metadata. A file that does not fit changes nothing in memory. */
#ifndef AMPRT_CKPT_H
#define AMPRT_CKPT_H

#include "runtime/base/json.h"
#include "runtime/core/machine.h"
#include "runtime/state/made.h"

enum { AMPRT_MAX_SHARDS = 1 << 20 };

/* The state of random numbers and of the data stream. */
typedef struct AmprtProgress {
  int64_t step;      /* global step: updates done (skipped ones do not count) */
  uint64_t examples; /* consumed from the training stream */
  uint64_t seed;
  int64_t shards; /* of a step; 0 is 1 */
} AmprtProgress;

/* Writes the state, with `made` in the metadata. If `batch` is not NULL, its tensors `image` and
 * `label` are added, which makes the file a reproducer of a step (trap.c). */
AmprtStatus amprt_ckpt_save(const char *path, const AmprtMachine *machine,
                            const AmprtProgress *progress, const AmprtMade *made,
                            const AmprtBatch *batch, AmprtError *error);

/* The number of shards that the steps before this checkpoint had; 1 if it does not say, 0 if the
 * file cannot be read. */
int64_t amprt_ckpt_shards(const char *path);

typedef struct AmprtResumed {
  AmprtProgress progress;
  bool damaged;      /* the file itself cannot be read; another one may do */
  AmprtText notes;   /* a line for each thing that the user may want to know; the caller frees it */
  AmprtText changed; /* "batch-size=16 (now 8), ...": where `made` differs; the caller frees it */
} AmprtResumed;

/* Loads the whole state, for --resume. With `trains` a file of another optimizer is refused,
 * because its slots mean something else. */
AmprtStatus amprt_ckpt_resume(const char *path, AmprtMachine *machine, const AmprtMade *made,
                              bool trains, AmprtResumed *resumed, AmprtError *error);

/* How well a file of --init-from must fit. */
typedef enum AmprtFit {
  AMPRT_FIT_LOOSE,  /* what it lacks, and a head of other size, keeps its initial values */
  AMPRT_FIT_WHOLE,  /* it must have all that the program has */
  AMPRT_FIT_STRICT, /* and nothing else but state of a training */
} AmprtFit;

/* Loads parameters and statistics alone, for --init-from, from any file that has them by name and
 * shape, in any float type. The head is the layer that makes the logits. Notes list what keeps its
 * initial values and what is not used; everything that does not fit is in one error. */
AmprtStatus amprt_ckpt_init_from(const char *path, AmprtMachine *machine, AmprtFit fit,
                                 AmprtText *notes, AmprtError *error);

#endif
