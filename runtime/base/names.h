/* The names of ir/ports.def for the runtime: amprt_name_image is "image". By them it finds a
 * program's inputs, outputs and variables, and the batch in a dump or a saved step. */
#ifndef AMPRT_NAMES_H
#define AMPRT_NAMES_H

#define PORT(name, what, by) extern const char amprt_name_##name[];
#include "ir/ports.def"

#endif
