/* One step as a timeline of kernels, in the form that chrome://tracing and Perfetto read. */
#ifndef AMPRT_TIMELINE_H
#define AMPRT_TIMELINE_H

#include "runtime/core/machine.h"

typedef struct AmprtTimeline {
  const AmprtMachine *machine;
  double start;
  double *end; /* of each kernel of the graph that trains */
} AmprtTimeline;

AmprtStatus amprt_timeline_open(AmprtTimeline *timeline, const AmprtMachine *machine,
                                AmprtError *error);
void amprt_timeline_close(AmprtTimeline *timeline);
/* The step begins: *hook is what to call after each of its kernels. */
void amprt_timeline_begin(AmprtTimeline *timeline, AmprtHook *hook);
/* The step has ended. */
AmprtStatus amprt_timeline_write(const AmprtTimeline *timeline, const char *path,
                                 AmprtError *error);

#endif
