/* Precision options that depend on one another: dtype, --fp16-implementation, --loss-scale. */
#ifndef AMPCC_FRONTEND_DRIVER_COUPLING_H
#define AMPCC_FRONTEND_DRIVER_COUPLING_H

#include "frontend/driver/options.h"

/* Fills implementation and loss scale of options->compile, whose dtype is set. False after one line
 * on stderr. */
bool coupling_resolve(Options *options);
/* The part of --loss-scale after `dynamic:`, e.g. "init=1024,interval=100"; likewise. */
bool dynamic_scale_parse(CompileOptions *compile, const char *text);

#endif
