/* The scalars of a training step. They are read from the blocks when it has ended; a device that
 * runs ahead of the host keeps them until they are collected. */
#ifndef AMPRT_RESULT_H
#define AMPRT_RESULT_H

#include "runtime/core/machine.h"

typedef struct AmprtResult {
  double loss, accuracy, learning_rate, gradient_norm, l2_loss; /* NaN: the program has none */
  double finite;                                                /* 0: the step was skipped */
  double stop_votes;       /* above 0: a process wants to stop; train_dp alone */
  double loss_scale, step; /* after the step; 0 and -1: the program has none */
} AmprtResult;

/* Reads the scalars of the last step, or of the initial state if none was run. */
void amprt_result_read(const AmprtMachine *machine, AmprtResult *result);
/* Only with a device: tells it which scalars to keep for amprt_result_collect. */
void amprt_result_watch(const AmprtMachine *machine);
/* Only with a device: waits for the oldest step not yet collected and reads its scalars. */
void amprt_result_collect(const AmprtMachine *machine, AmprtResult *result);

#endif
