/* Whole programs in the cache. A program that was made before of the same input is written again
 * without a look at the model.
 *
 * There are two entries. The first is found by what the command says: options, variables of the
 * environment that compilers and linkers read, the contents of the model and of the files that
 * options name, and where ampcc, its runtime and the C compiler lie. It holds the list of all other
 * files that the program was made of (codegen/program/used.h). The second is found by the same
 * and the contents of these files. It holds the program and what is said about it.
 *
 * A program is kept only if nothing else was said: where there are warnings, the next compile gives
 * them again. Reports are not kept either. */
#ifndef AMPCC_FRONTEND_DRIVER_WHOLE_H
#define AMPCC_FRONTEND_DRIVER_WHOLE_H

#include "codegen/program/used.h"
#include "frontend/driver/parts.h"

typedef struct Whole {
  bool wanted; /* may this program be kept? */
  struct timespec start;
  CacheKey key;   /* of the list of files */
  UsedList used;  /* filled by the compile */
  UsedList named; /* the model and the files of options, whose contents are in the key */
} Whole;

/* Looks for the program that the options ask for. If the cache has it, writes it, sets *status and
 * returns true. `parts` are opened, not compiled. */
bool whole_find(Arena *arena, const Options *options, const PartList *parts, Whole *out,
                int *status);
/* Keeps the program that was written. `summary` is what was said about it behind its name. */
void whole_keep(Whole *whole, const Options *options, const char *summary, size_t size);

#endif
