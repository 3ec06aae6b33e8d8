/* Runs training steps and watches their numbers: finds what was not finite if a step went wrong,
 * reports it, and with --trap saves what reproduces it. A device may run ahead: then steps are
 * started first, and their results are collected and judged later, in the same order.
 *
 * A step of several shards (core/shards.h) that went wrong is run again shard by shard, each by
 * graph 0, which needs no sums of the others. */
#ifndef AMPRT_WATCH_H
#define AMPRT_WATCH_H

#include "runtime/core/result.h"
#include "runtime/core/train.h"
#include "runtime/watch/finite.h"
#include "runtime/watch/inject.h"

typedef struct AmprtWatch {
  AmprtSession *session;
  const AmprtGraph *graph; /* the one that trains */
  AmprtKept kept;
  AmprtInject inject;
  /* the kernel after which the loss is known while the state is still unchanged; -1: there is
   * none */
  int loss_after;
  bool gated, trap;     /* the program has a finite test of its own; --trap is set */
  bool ahead;           /* steps may start before others have ended */
  int running;          /* number of steps started and not yet collected */
  AmprtResult result;   /* of the last step */
  bool bad, skipped;    /* the last step was skipped or its loss was not finite; it was skipped */
  double loss_scale;    /* the loss scale of the last step; 0: the program has none */
  AmprtFinding finding; /* of the last bad step */
  /* Where that is: the number of its batch, counted from the start of the stream, the batch, if it
   * is this process's, and the rank that found it. */
  int64_t batch_number;
  const AmprtBatch *batch;
  int finder;
  AmprtFeed *again;   /* which the batch is of, if it has been read again */
  bool bad_gradients; /* of the shards that have run */
} AmprtWatch;

AmprtStatus amprt_watch_open(AmprtWatch *watch, AmprtSession *session, AmprtError *error);
void amprt_watch_close(AmprtWatch *watch);
/* With several shards in this process: runs local shard `index`, not the last, and puts its
 * sums aside. The step then runs the last. */
void amprt_watch_shard(AmprtWatch *watch, int64_t index, const AmprtBatch *batch);
/* Runs a step. session->progress is that before the step, and the caller updates it. Fails if
 * --trap is set and the step is bad. */
AmprtStatus amprt_watch_step(AmprtWatch *watch, const AmprtBatch *batch, AmprtError *error);
/* With `ahead`, the two halves of amprt_watch_step: start a step; wait for the oldest one. */
AmprtStatus amprt_watch_start(AmprtWatch *watch, const AmprtBatch *batch, AmprtError *error);
AmprtStatus amprt_watch_collect(AmprtWatch *watch, AmprtError *error);

#endif
