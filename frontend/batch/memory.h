/* How many programs of a batch fit into memory at a time. A program is counted with twice the
 * largest process that any of them had: the memory of its ampcc, and of one compiler; compilers
 * beyond that need tokens of the jobserver, as programs do. */
#ifndef AMPCC_FRONTEND_BATCH_MEMORY_H
#define AMPCC_FRONTEND_BATCH_MEMORY_H

#include "frontend/driver/options.h"

typedef struct BatchMemory {
  int64_t limit; /* --batch-memory, or what is available when the batch begins */
  int64_t need;  /* of a program, by what is known so far */
} BatchMemory;

/* False after one line on stderr if --batch-memory is wrong. */
bool memory_begin(const Options *options, BatchMemory *out);
/* Notes how large the largest process of a program was. */
void memory_learn(BatchMemory *memory, int64_t bytes);
/* How many programs fit into the limit: from 1 to `jobs`. */
int memory_room(const BatchMemory *memory, int jobs);
/* May `n` programs be at work, of which one is yet to be begun? There must be room for them, and
 * memory for one more now, whatever other programs of this machine have taken. */
bool memory_suffices(const BatchMemory *memory, int n);

#endif
