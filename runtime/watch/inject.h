/* --inject, for tests of what happens when numbers go wrong: Inf or NaN is put into one element of
 * a batch, a parameter or a kernel's result. */
#ifndef AMPRT_INJECT_H
#define AMPRT_INJECT_H

#include "runtime/core/machine.h"

typedef struct AmprtInjection AmprtInjection;

typedef struct AmprtInject {
  AmprtMachine *machine;
  AmprtInjection *entry;
  int n;
  int64_t batch; /* the one that is running, counted from the start of the stream */
  float *image;  /* a batch of our own, or NULL: no entry needs one */
  AmprtBatch own;
} AmprtInject;

/* `text` is a list like "inf@3:conv1.weight,nan@5:layer1.0.conv1[17],-inf@7:image": value, batch,
 * name of the text form, and optionally which element (0). Names must be the program's. "" is no
 * entry. */
AmprtStatus amprt_inject_open(AmprtInject *inject, AmprtMachine *machine, const char *text,
                              AmprtError *error);
void amprt_inject_close(AmprtInject *inject);
/* Before batch `number`: overwrites parameters and their copies. Returns the batch to run: `batch`,
 * or its copy with an element overwritten. */
const AmprtBatch *amprt_inject_begin(AmprtInject *inject, int64_t number, const AmprtBatch *batch);
/* An AmprtHook's function; context is the AmprtInject. */
void amprt_inject_after(void *inject, int kernel);
/* After the step: parameters and copies get back what they held. */
void amprt_inject_end(AmprtInject *inject);

#endif
