/* --dump-values: all numbers of a step, in the types that they are stored in: every floating-point
 * result (value:NAME, flat), the variables before and after the step (before:NAME, after:NAME), and
 * the input `schedule`. ampcc --certify reads them. */
#ifndef AMPRT_DUMP_VALUES_H
#define AMPRT_DUMP_VALUES_H

#include "runtime/core/machine.h"
#include "runtime/state/safetensors.h"

typedef struct AmprtValueDump {
  const AmprtMachine *machine;
  const AmprtGraph *graph;
  AmprtTensorOut *tensor; /* room for all; names and data are its own */
  int n;
  bool failed; /* out of memory */
} AmprtValueDump;

AmprtStatus amprt_values_open(AmprtValueDump *dump, const AmprtMachine *machine,
                              const AmprtGraph *graph, AmprtError *error);
void amprt_values_close(AmprtValueDump *dump);
/* The state as it is now, under PREFIX:NAME. */
void amprt_values_state(AmprtValueDump *dump, const char *prefix);
void amprt_values_input(AmprtValueDump *dump, const char *name); /* once they are filled */
/* A hook: what this kernel has stored. */
void amprt_values_after(void *dump, int kernel);

#endif
