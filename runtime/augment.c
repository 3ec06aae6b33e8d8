#include "runtime/augment.h"

#include <math.h>
#include <stddef.h>

/* What each byte becomes. Sums of bytes are exact, so the result does not depend on their order. */
static void make_table(const AmprtImageSpec *spec, uint64_t sum, uint64_t squares,
                       float table[256]) {
  double n = (double)(spec->height * spec->width * spec->channels);
  double mean = 0, scale = 255;
  if (spec->standardize) {
    mean = (double)sum / n;
    double variance = ((double)squares - (double)sum * mean) / n;
    double deviation = sqrt(variance > 0 ? variance : 0);
    scale = fmax(deviation, 1 / sqrt(n));
  }
  for (int v = 0; v < 256; v++)
    table[v] = (float)((v - mean) / scale);
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

void amprt_image_prepare(const AmprtImageSpec *spec, const unsigned char *pixel, AmprtWords random,
                         float *out) {
  uint32_t places = (uint32_t)(2 * spec->pad + 1);
  Crop crop = {(int64_t)amprt_rng_below(random.v[0], places) - spec->pad,
               (int64_t)amprt_rng_below(random.v[1], places) - spec->pad,
               spec->flip && random.v[2] >> 31};
  uint64_t sum = 0, squares = 0;
  float table[256];
  for (int64_t y = 0; y < spec->height; y++)
    for (int64_t x = 0; x < spec->width; x++)
      for (int64_t c = 0; c < spec->channels; c++) {
        unsigned v = crop_at(spec, pixel, crop, y, x, c);
        sum += v;
        squares += v * v;
      }
  make_table(spec, sum, squares, table);
  for (int64_t y = 0; y < spec->height; y++)
    for (int64_t x = 0; x < spec->width; x++)
      for (int64_t c = 0; c < spec->channels; c++)
        *out++ = table[crop_at(spec, pixel, crop, y, x, c)];
}
