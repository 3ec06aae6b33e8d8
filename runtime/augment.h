/* One image: bytes in, the model's floats out. specs/resnet.md 4.1. */
#ifndef AMPRT_AUGMENT_H
#define AMPRT_AUGMENT_H

#include "runtime/rng.h"

#include <stdbool.h>

typedef struct AmprtImageSpec {
  int64_t height, width, channels;
  int64_t pad;      /* of zeros, before a random crop of the original size; 0: no crop */
  bool flip;        /* left to right with probability one half */
  bool standardize; /* (x - mean) / max(std, 1/sqrt(n)), n values of this image, after the crop
                       (zeros of the padding count); else x / 255 */
} AmprtImageSpec;

/* `random` decides crop and flip. `out` is [height, width, channels]. */
void amprt_image_prepare(const AmprtImageSpec *spec, const unsigned char *pixel, AmprtWords random,
                         float *out);

#endif
