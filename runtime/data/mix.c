#include "runtime/data/mix.h"

#include <math.h>

/* The logarithm of a number that has the gamma distribution of shape alpha: G. Marsaglia, W. W.
 * Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); for alpha < 1 by
 * their section 6, as a product whose logarithm does not vanish. Draws with the words of odd b, or
 * those of even b. */
static double log_gamma_draw(double alpha, AmprtKey key, uint64_t position, uint64_t b) {
  double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;; b += 2) {
    AmprtWords words = amprt_rng_at(key, position, b);
    double normal[4];
    amprt_rng_normal(words, normal);
    double x = normal[0], v = 1 + c * x;
    if (v <= 0)
      continue;
    v = v * v * v;
    if (log(amprt_rng_unit(words.v[2])) >= 0.5 * x * x + d - d * v + d * log(v))
      continue;
    return log(d * v) + (alpha < 1 ? log(amprt_rng_unit(words.v[3])) / alpha : 0);
  }
}

static double beta_draw(double alpha, AmprtKey key, uint64_t position) {
  double a = log_gamma_draw(alpha, key, position, 1), b = log_gamma_draw(alpha, key, position, 2);
  return 1 / (1 + exp(b - a));
}

/* `size` pixels around `centre`, as far as they lie within `whole`. */
static void cut(int64_t centre, int64_t size, int64_t whole, int32_t *from, int32_t *to) {
  int64_t first = centre - size / 2, past = centre + size / 2;
  *from = (int32_t)(first < 0 ? 0 : first);
  *to = (int32_t)(past > whole ? whole : past);
}

AmprtMix amprt_mix_draw(AmprtMixSpec spec, AmprtKey key, uint64_t position, int64_t height,
                        int64_t width) {
  AmprtMix mix = {0};
  AmprtWords words = amprt_rng_at(key, position, 0);
  bool cuts = spec.cutmix > 0 && (spec.mixup <= 0 || words.v[0] >> 31);
  double alpha = cuts ? spec.cutmix : spec.mixup;
  if (alpha <= 0)
    return mix;
  double other = 1 - beta_draw(alpha, key, position);
  if (!cuts) {
    mix.other = other;
    return mix;
  }
  double side = sqrt(other);
  cut(amprt_rng_below(words.v[1], (uint32_t)height), (int64_t)((double)height * side), height,
      &mix.top, &mix.bottom);
  cut(amprt_rng_below(words.v[2], (uint32_t)width), (int64_t)((double)width * side), width,
      &mix.left, &mix.right);
  return mix;
}

void amprt_mix_numbers(const AmprtMix *mix, double out[AMPRT_MIX_NUMBERS]) {
  out[0] = mix->other;
  out[1] = mix->top;
  out[2] = mix->bottom;
  out[3] = mix->left;
  out[4] = mix->right;
}

/* A number of a row or column; one that is out of range becomes 0. */
static int32_t place(double number) {
  return number > 0 && number < 0x1p31 ? (int32_t)number : 0;
}

AmprtMix amprt_mix_of(const double number[AMPRT_MIX_NUMBERS]) {
  return (AmprtMix){number[0], place(number[1]), place(number[2]), place(number[3]),
                    place(number[4])};
}

void amprt_mix_fill(const AmprtMix *mix, int64_t height, int64_t width, int64_t channels,
                    float *out) {
  for (int64_t y = 0; y < height; y++)
    for (int64_t x = 0; x < width; x++) {
      bool cut = y >= mix->top && y < mix->bottom && x >= mix->left && x < mix->right;
      for (int64_t c = 0; c < channels; c++)
        *out++ = cut ? 0 : (float)(1 - mix->other);
    }
}
