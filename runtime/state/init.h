/* Initial values of variables. */
#ifndef AMPRT_INIT_H
#define AMPRT_INIT_H

#include "runtime/amprt.h"

#include <stdbool.h>

int64_t amprt_variable_elements(const AmprtVariable *variable);
size_t amprt_variable_bytes(const AmprtVariable *variable);
const AmprtVariable *amprt_variable_find(const AmprtProgram *program,
                                         const char *name);  /* or NULL */
bool amprt_variable_is_saved(const AmprtVariable *variable); /* do checkpoints hold it? */

/* Sets every variable by its initialiser, then the low-precision copies, on all `threads` (NULL: on
 * the calling one). Random values depend only on the seed and the variable's own name, so that
 * adding a layer changes no other. The state must be zeros before, which initialisers with zeros
 * leave untouched. */
void amprt_init(const AmprtProgram *program, unsigned char *state, uint64_t seed,
                const AmprtThreads *threads);
/* Recomputes the COPY variables from the parameters that they follow, on the same threads. */
void amprt_init_copies(const AmprtProgram *program, unsigned char *state,
                       const AmprtThreads *threads);

#endif
