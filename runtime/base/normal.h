/* Normal numbers in quantity, as initial values and synthetic images need them. */
#ifndef AMPRT_NORMAL_H
#define AMPRT_NORMAL_H

#include "runtime/base/rng.h"

#include <stddef.h>

/* out[i] becomes the float nearest to mean + stddev * z, where z is number first + i of the key: of
 * block (first + i) / 4, drawn by amprt_rng_normal again, from a stream for each attempt, until it
 * lies within two standard deviations. `first` is a multiple of four. */
void amprt_truncated_normals(AmprtKey key, uint64_t first, double mean, double stddev, float *out,
                             size_t n);

/* The four numbers of one block, as doubles. */
void amprt_truncated_block(AmprtKey key, uint64_t block, double mean, double stddev, double out[4]);

#endif
