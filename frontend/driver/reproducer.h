/* An internal error leaves a file that shows it again: the graph before the pass that failed, with
 * the command to run on it. The process then ends with EXIT_BUG. */
#ifndef AMPCC_FRONTEND_DRIVER_REPRODUCER_H
#define AMPCC_FRONTEND_DRIVER_REPRODUCER_H

#include "frontend/driver/options.h"

/* From now on; `options` must stay. */
void reproducer_install(const Options *options);
/* The module to show when no pass is running, NULL: none; and the target that it is compiled for.
 */
void reproducer_set_module(const Module *module, const char *target);

#endif
