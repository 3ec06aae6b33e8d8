/* Truncated normal numbers by vectors of 2, 4 and 8 doubles, which have the same bits. */
#ifndef AMPRT_NORMAL_MANY_H
#define AMPRT_NORMAL_MANY_H

#include "runtime/base/rng.h"

#include <stddef.h>

/* A function like amprt_truncated_normals. */
typedef void AmprtNormals(AmprtKey key, uint64_t first, double mean, double stddev, float *out,
                          size_t n);

AmprtNormals amprt_normals_2;
#ifdef __x86_64__
AmprtNormals amprt_normals_4; /* needs AVX2 */
AmprtNormals amprt_normals_8; /* needs AVX-512F */
#endif

#endif
