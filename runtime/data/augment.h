/* Augments one image of raw pixels: bytes become bytes and the numbers that these stand for. See
 * specs/resnet.md 4.1. */
#ifndef AMPRT_AUGMENT_H
#define AMPRT_AUGMENT_H

#include "runtime/amprt.h"
#include "runtime/base/rng.h"

#include <stdbool.h>

typedef struct AmprtImageSpec {
  int64_t height, width, channels; /* of the result */
  int64_t pad;      /* of zeros, before a random crop of the original size; 0: no crop */
  bool flip;        /* left to right with probability one half */
  bool standardize; /* (x - mean) / max(std, 1/sqrt(n)), n values of this image, after the crop
                       (zeros of the padding count); else x / 255 */
} AmprtImageSpec;

/* `pixel` is [height, width, channels] with a height and width of its own, at most those of the
 * result `out`; a smaller image lies in the middle of zeros, the odd ones of which are below and to
 * the right. `random` decides crop and flip. All channels have the scaling that is returned. */
AmprtScaling amprt_image_prepare(const AmprtImageSpec *spec, const unsigned char *pixel,
                                 int64_t height, int64_t width, AmprtWords random,
                                 unsigned char *out);
/* Random erasing (Z. Zhong et al., arXiv 1708.04896) as torchvision has it by default: with the
 * given probability a rectangle of 0.02 to 0.33 of the area, whose height is 0.3 to 3.3 times its
 * width (uniform in the logarithm), loses what it shows. Rectangles that do not fit are drawn
 * again, ten times in all. Its bytes become those nearest to the offset of their channel, which
 * mean 0 to half a byte. A function of key, epoch and index. */
void amprt_image_erase(const AmprtImageSpec *spec, double probability, AmprtKey key, uint64_t epoch,
                       uint32_t index, const AmprtScaling *scaling, unsigned char *pixel);
/* The n floats that bytes mean; their channels follow one another, and each has its scaling. */
void amprt_image_floats(const unsigned char *pixel, size_t n, size_t channels,
                        const AmprtScaling *scaling, float *out);

#endif
