/* --inject, for tests of what happens when numbers go wrong: puts Inf or NaN into one element of a
 * batch, a parameter or a kernel's result. */
#ifndef AMPRT_INJECT_H
#define AMPRT_INJECT_H

#include "runtime/core/machine.h"

typedef struct AmprtInjection AmprtInjection;

typedef struct AmprtInject {
  AmprtMachine *machine;
  AmprtInjection *entry;
  int n;
  bool again;    /* graph 0 runs a step of the graph that trains once more */
  int64_t batch; /* number of the batch that is running, counted from the start of the stream */
  float *image;  /* a copy of a batch's images, or NULL if no entry needs one */
  AmprtBatch own;
} AmprtInject;

/* `text` is a list like "inf@3:conv1.weight,nan@5:layer1.0.conv1[17],-inf@7:image": value, batch,
 * name as in the text form, and optionally the element (0 by default). It is an error if the
 * program has no such name. An empty text is an empty list. */
AmprtStatus amprt_inject_open(AmprtInject *inject, AmprtMachine *machine, const char *text,
                              AmprtError *error);
void amprt_inject_close(AmprtInject *inject);
/* To be called before batch `number`: overwrites parameters and their copies. Returns the batch to
 * run, which is `batch` or a copy of it with an element overwritten. */
const AmprtBatch *amprt_inject_begin(AmprtInject *inject, int64_t number, const AmprtBatch *batch);
/* The function of an AmprtHook whose context is the AmprtInject. */
void amprt_inject_after(void *inject, int kernel);
/* To be called after the step, or with several shards after each shard: parameters and copies get
 * back their old values. */
void amprt_inject_end(AmprtInject *inject);

#endif
