/* The scalars of a training step, read from the blocks when it has ended or, of a device that runs
 * ahead of the host, collected later. */
#ifndef AMPRT_RESULT_H
#define AMPRT_RESULT_H

#include "runtime/core/machine.h"

typedef struct AmprtResult {
  double loss, accuracy, learning_rate, gradient_norm; /* NaN: the program has none */
  double finite;                                       /* 0: the step was skipped */
  double loss_scale, step;                             /* after it; 0 and -1: has none */
} AmprtResult;

/* Of the step that was run last, or of the state that is there if none was. */
void amprt_result_read(const AmprtMachine *machine, AmprtResult *result);
/* Of a device: tells it what amprt_result_collect will want. */
void amprt_result_watch(const AmprtMachine *machine);
/* Of a device: waits for the oldest step that was started and not yet collected. */
void amprt_result_collect(const AmprtMachine *machine, AmprtResult *result);

#endif
