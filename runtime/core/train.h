/* One run of the program: train.c has the loop, eval.c the test set, dump.c one step in a file. */
#ifndef AMPRT_TRAIN_H
#define AMPRT_TRAIN_H

#include "runtime/base/log.h"
#include "runtime/core/schedule.h"
#include "runtime/core/shards.h"
#include "runtime/parallel/group.h"
#include "runtime/state/ckpt.h"
#include "runtime/state/modeldir.h"

enum { AMPRT_SCHEDULE = 256 }; /* the most entries that a schedule vector may have */

typedef struct AmprtSession {
  const AmprtProgram *program;
  AmprtOptions options;
  AmprtMachine machine;
  AmprtShards shards;
  AmprtGroup *group; /* those that train together (ranks.h); NULL: this process is alone */
  int rank, size;    /* of this process in it; 0 and 1: it is alone */
  bool agreed;       /* the error of this run is known to all of them */
  int stopped;       /* the signal for which all of them stop, or 0 */
  AmprtRanks others; /* what the device knows of them */
  unsigned char id[AMPRT_ID_BYTES];
  AmprtData data;
  AmprtModelDir dir;
  AmprtLog log;
  AmprtProgress progress;
  AmprtMade made;
  struct AmprtReport *report; /* report/report.h; NULL: there is none */
  double began;               /* seconds since 1970 */
  int64_t epoch;              /* examples of an epoch of training */
  bool resumed;
  float schedule[AMPRT_SCHEDULE];
} AmprtSession;

typedef struct AmprtScore {
  double loss, accuracy, accuracy5; /* accuracy5 is NaN unless the model counts it */
  int64_t examples;
} AmprtScore;

/* Examples of a step, all shards and parts counted: what the recipe calls the batch. */
int64_t amprt_step_examples(const AmprtSession *session);

/* train.c: the training. Sets session->stopped. */
AmprtStatus amprt_train(AmprtSession *session, AmprtError *error);
/* Sets session->epoch and session->schedule. */
AmprtStatus amprt_schedule_for(AmprtSession *session, AmprtError *error);
/* The stream of training batches from `position` on: for purpose "train" those of this process's
 * shards, else all. `pixels`: AmprtFeedPlan.pixels */
AmprtStatus amprt_train_feed(AmprtSession *session, const char *purpose, uint64_t position,
                             bool pixels, AmprtFeed **feed, AmprtError *error);

/* eval.c: evaluates on the test set and reports. After a signal *score is of a part of the set. */
AmprtStatus amprt_evaluate(AmprtSession *session, AmprtScore *score, AmprtError *error);
/* Sets the moving statistics to the plain mean over --recompute-bn-stats training batches. */
AmprtStatus amprt_recompute_stats(AmprtSession *session, AmprtError *error);
/* Warns if the first evaluation comes before the moving statistics have forgotten their start. */
void amprt_warn_of_lag(AmprtSession *session);

/* dump.c: --dump-step, with `batch` or, if that is NULL, with the next batch of the stream. */
AmprtStatus amprt_dump_step(AmprtSession *session, const char *path, const AmprtBatch *batch,
                            AmprtError *error);

/* trap.c: a reproducer is a checkpoint of the state before a step, with the step's batch. `path`
 * gets the name: nonfinite-STEP.safetensors in the model folder, or here if there is none. */
AmprtStatus amprt_reproducer_save(const AmprtSession *session, const AmprtBatch *batch,
                                  char path[AMPRT_PATH], AmprtError *error);
/* --reproduce, once the state is loaded: runs that step and names the first result that is not
 * finite (which is AMPRT_INPUT), or with --dump-step writes its tensors. */
AmprtStatus amprt_reproduce(AmprtSession *session, const char *path, AmprtError *error);

/* tune.c: --tune, which takes the place of a run. */
AmprtStatus amprt_tune(AmprtSession *session, const char *path, AmprtError *error);

#endif
