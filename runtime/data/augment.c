#include "runtime/data/augment.h"

#include <math.h>
#include <stddef.h>

/* Sums of bytes are exact, so the result does not depend on their order. */
static AmprtScaling standardize(double n, uint64_t sum, uint64_t squares) {
  double mean = (double)sum / n;
  double variance = ((double)squares - (double)sum * mean) / n;
  double deviation = sqrt(variance > 0 ? variance : 0);
  return (AmprtScaling){mean, fmax(deviation, 1 / sqrt(n))};
}

/* The part of the padded image that is taken; bytes outside the image are 0. */
typedef struct Crop {
  int64_t y0, x0; /* of the crop in the image; may be negative */
  bool mirrored;
} Crop;

static unsigned char crop_at(const AmprtImageSpec *spec, const unsigned char *pixel, Crop crop,
                             int64_t y, int64_t x, int64_t c) {
  int64_t sy = y + crop.y0, sx = (crop.mirrored ? spec->width - 1 - x : x) + crop.x0;
  if (sy < 0 || sy >= spec->height || sx < 0 || sx >= spec->width)
    return 0;
  return pixel[(sy * spec->width + sx) * spec->channels + c];
}

AmprtScaling amprt_image_prepare(const AmprtImageSpec *spec, const unsigned char *pixel,
                                 AmprtWords random, unsigned char *out) {
  uint32_t places = (uint32_t)(2 * spec->pad + 1);
  Crop crop = {(int64_t)amprt_rng_below(random.v[0], places) - spec->pad,
               (int64_t)amprt_rng_below(random.v[1], places) - spec->pad,
               spec->flip && random.v[2] >> 31};
  uint64_t sum = 0, squares = 0;
  for (int64_t y = 0; y < spec->height; y++)
    for (int64_t x = 0; x < spec->width; x++)
      for (int64_t c = 0; c < spec->channels; c++) {
        unsigned v = *out++ = crop_at(spec, pixel, crop, y, x, c);
        sum += v;
        squares += v * v;
      }
  double n = (double)(spec->height * spec->width * spec->channels);
  return spec->standardize ? standardize(n, sum, squares) : (AmprtScaling){0, 255};
}

void amprt_image_floats(const unsigned char *pixel, size_t n, AmprtScaling scaling, float *out) {
  float table[256];
  for (int v = 0; v < 256; v++)
    table[v] = (float)((v - scaling.offset) / scaling.scale);
  for (size_t i = 0; i < n; i++)
    out[i] = table[pixel[i]];
}
