/* One training step with an eye on its numbers: runs it, finds what was not finite if it went
 * wrong, reports, and with --trap saves what reproduces it. A device may run ahead: then steps are
 * started, and what they brought is collected and judged later, in the same order. */
#ifndef AMPRT_WATCH_H
#define AMPRT_WATCH_H

#include "runtime/core/result.h"
#include "runtime/core/train.h"
#include "runtime/watch/finite.h"
#include "runtime/watch/inject.h"

typedef struct AmprtWatch {
  AmprtSession *session;
  const AmprtGraph *graph;
  AmprtKept kept;
  AmprtInject inject;
  int loss_after; /* kernel after which the loss can be judged before anything has changed; -1: none
                   */
  bool gated, trap;     /* has the program a finite test of its own; --trap */
  bool ahead;           /* may steps be started before others have ended */
  int running;          /* steps started and not yet collected */
  AmprtResult result;   /* of the last step */
  bool bad, skipped;    /* was the last step: `skipped` or its loss not finite; skipped */
  double loss_scale;    /* that the last step began with; 0 if there is none */
  AmprtFinding finding; /* of the last bad step */
} AmprtWatch;

AmprtStatus amprt_watch_open(AmprtWatch *watch, AmprtSession *session, AmprtError *error);
void amprt_watch_close(AmprtWatch *watch);
/* Runs a step; session->progress still says what was before it. Fails if a trap was set and the
 * step is bad. */
AmprtStatus amprt_watch_step(AmprtWatch *watch, const AmprtBatch *batch, AmprtError *error);
/* With `ahead`, the same in two halves. */
AmprtStatus amprt_watch_start(AmprtWatch *watch, const AmprtBatch *batch, AmprtError *error);
AmprtStatus amprt_watch_collect(AmprtWatch *watch, AmprtError *error);

#endif
