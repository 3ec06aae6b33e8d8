/* One image: bytes in, bytes and what they mean out. specs/resnet.md 4.1. */
#ifndef AMPRT_AUGMENT_H
#define AMPRT_AUGMENT_H

#include "runtime/amprt.h"
#include "runtime/base/rng.h"

#include <stdbool.h>

typedef struct AmprtImageSpec {
  int64_t height, width, channels;
  int64_t pad;      /* of zeros, before a random crop of the original size; 0: no crop */
  bool flip;        /* left to right with probability one half */
  bool standardize; /* (x - mean) / max(std, 1/sqrt(n)), n values of this image, after the crop
                       (zeros of the padding count); else x / 255 */
} AmprtImageSpec;

/* `random` decides crop and flip. `pixel` and `out` are [height, width, channels]. */
AmprtScaling amprt_image_prepare(const AmprtImageSpec *spec, const unsigned char *pixel,
                                 AmprtWords random, unsigned char *out);
/* The n floats that bytes mean. */
void amprt_image_floats(const unsigned char *pixel, size_t n, AmprtScaling scaling, float *out);

#endif
