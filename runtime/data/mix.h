/* How the examples of a batch are mixed: mixup (H. Zhang et al., arXiv 1710.09412) and CutMix (S.
 * Yun et al., arXiv 1905.04899). Example n of a batch of N is mixed with example N-1-n, which the
 * compiled step does (passes/grad/mix.c); here is drawn how. */
#ifndef AMPRT_MIX_H
#define AMPRT_MIX_H

#include "runtime/base/rng.h"

#include <stdbool.h>

/* The alphas of the beta distributions that lambda is drawn from; 0: not at all. With both, each
 * batch has one of the two, with probability one half. */
typedef struct AmprtMixSpec {
  double mixup, cutmix;
} AmprtMixSpec;

/* All zeros: examples are as they are. */
typedef struct AmprtMix {
  double other;                     /* share of the partner in every pixel */
  int32_t top, bottom, left, right; /* rows and columns from..to-1 that are the partner's alone */
} AmprtMix;

/* Draws how the batch that begins at `position` of its stream is mixed, which depends on the
 * arguments alone. The box has the share 1 - lambda of the image's area and its centre anywhere in
 * the image; what would lie outside is cut off. */
AmprtMix amprt_mix_draw(AmprtMixSpec spec, AmprtKey key, uint64_t position, int64_t height,
                        int64_t width);
/* Converts to the numbers that files hold, and back. */
enum { AMPRT_MIX_NUMBERS = 5 };
void amprt_mix_numbers(const AmprtMix *mix, double out[AMPRT_MIX_NUMBERS]);
AmprtMix amprt_mix_of(const double number[AMPRT_MIX_NUMBERS]);
/* The input `mix` of a step, [height, width, channels]: the share of an example's own numbers. */
void amprt_mix_fill(const AmprtMix *mix, int64_t height, int64_t width, int64_t channels,
                    float *out);

#endif
