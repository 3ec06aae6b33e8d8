/* The test devices of several processes, which sum through a piece of shared memory. */
#ifndef TEAM_H
#define TEAM_H

#include "runtime/amprt.h"

/* Fills an AmprtDevice.make_id. */
void team_make_id(unsigned char *id);
/* Returns 0, or -1 where there is no shared memory. `bytes`: the most that is summed at once. */
int team_open(const AmprtRanks *ranks, uint64_t bytes);
void team_close(void);
/* data[i] becomes the sum of all processes', in the order of a balanced tree; waits for all. */
void team_sum(float *data, uint64_t elements);

#endif
