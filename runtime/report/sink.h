/* A kind of report. Each is a file of this folder and a row of the table in report.c; it sees the
 * run through these functions, all but `open` and `close` optional. What cannot be written is told
 * once and ends no training. */
#ifndef AMPRT_SINK_H
#define AMPRT_SINK_H

#include "runtime/core/result.h"
#include "runtime/core/train.h"

typedef struct AmprtStepEnd { /* a training step that has ended */
  int64_t number;             /* of its batch, counted from the start of the stream */
  int64_t step;               /* the global step after it */
  const AmprtResult *result;
  double seconds; /* that training has taken in this run, evaluations and checkpoints left out */
} AmprtStepEnd;

typedef struct AmprtSink {
  /* Checks the options for this kind, before anything is written or deleted. */
  AmprtStatus (*check)(const AmprtSession *session, AmprtError *error);
  /* state stays NULL where the options do not ask for this kind; nothing else is called then. It is
   * closed also after an open that failed. */
  AmprtStatus (*open)(AmprtSession *session, void **state, AmprtError *error);
  /* Training goes on until `epochs` have passed since the start of the stream. */
  void (*cycle)(void *state, double epochs);
  /* The step on batch `number` is about to begin. True: it must have ended, and been told, before
   * the next begins. */
  bool (*begin)(void *state, int64_t number, const AmprtBatch *batch);
  /* What is to be called after each kernel of that step; false: nothing is. */
  bool (*hook)(void *state, AmprtHook *hook);
  void (*step)(void *state, const AmprtStepEnd *end);  /* session->progress counts it already */
  void (*evaluate)(void *state);                       /* an evaluation begins */
  void (*score)(void *state, const AmprtScore *score); /* and has ended */
  /* Where TensorBoard's histograms gather for the step that runs; NULL: nowhere. */
  struct AmprtEvents *(*events)(void *state);
  /* The run ends: with `status`, or stopped by a signal if `stopped` is not 0. */
  void (*close)(void *state, AmprtStatus status, int stopped);
} AmprtSink;

extern const AmprtSink amprt_tensorboard, amprt_benchmark, amprt_run_stats, amprt_mllog;

#endif
