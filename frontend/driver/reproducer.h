/* When an internal error ends the run, a file is left with which it can be reproduced: the graph
 * before the first pass, and the command to run on it, which lists the passes up to the one that
 * failed. The process ends with EXIT_BUG. */
#ifndef AMPCC_FRONTEND_DRIVER_REPRODUCER_H
#define AMPCC_FRONTEND_DRIVER_REPRODUCER_H

#include "frontend/driver/options.h"

/* Installs this as the hook of internal errors; `options` must stay valid. */
void reproducer_install(const Options *options);
/* Sets the module to write when no pass is running, or NULL, and the target that it is compiled
 * for. */
void reproducer_set_module(const Module *module, const char *target);

#endif
