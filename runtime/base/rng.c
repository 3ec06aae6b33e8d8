#include "runtime/base/rng.h"

#include <math.h>

static void mul(uint32_t a, uint32_t b, uint32_t *high, uint32_t *low) {
  uint64_t p = (uint64_t)a * b;
  *high = (uint32_t)(p >> 32);
  *low = (uint32_t)p;
}

AmprtWords amprt_philox(AmprtWords c, AmprtKey key) {
  for (int round = 0; round < 10; round++) {
    uint32_t high0, low0, high1, low1;
    mul(0xD2511F53u, c.v[0], &high0, &low0);
    mul(0xCD9E8D57u, c.v[2], &high1, &low1);
    c = (AmprtWords){{high1 ^ c.v[1] ^ key.v[0], low1, high0 ^ c.v[3] ^ key.v[1], low0}};
    key.v[0] += 0x9E3779B9u; /* the golden ratio */
    key.v[1] += 0xBB67AE85u; /* sqrt(3) - 1 */
  }
  return c;
}

AmprtKey amprt_rng_key(uint64_t seed, const char *purpose) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (const char *c = purpose; *c; c++)
    hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
  AmprtKey name = {{(uint32_t)hash, (uint32_t)(hash >> 32)}};
  AmprtWords words =
      amprt_philox((AmprtWords){{(uint32_t)seed, (uint32_t)(seed >> 32), 0, 0}}, name);
  return (AmprtKey){{words.v[0], words.v[1]}};
}

AmprtWords amprt_rng_at(AmprtKey key, uint64_t a, uint64_t b) {
  return amprt_philox(
      (AmprtWords){{(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)}}, key);
}

uint32_t amprt_rng_below(uint32_t word, uint32_t n) {
  return (uint32_t)((uint64_t)word * n >> 32);
}

double amprt_rng_unit(uint32_t word) {
  return (word + 0.5) * 0x1p-32;
}

void amprt_rng_normal(AmprtWords words, double out[4]) {
  for (int i = 0; i < 4; i += 2) {
    double radius = sqrt(-2 * log(amprt_rng_unit(words.v[i])));
    double angle = 6.283185307179586 * amprt_rng_unit(words.v[i + 1]);
    out[i] = radius * cos(angle);
    out[i + 1] = radius * sin(angle);
  }
}

void amprt_rng_permute(AmprtKey key, uint64_t epoch, uint32_t *order, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    order[i] = i;
  AmprtWords words = {{0}};
  for (uint32_t i = n, used = 0; i > 1; i--, used++) {
    if (used % 4 == 0)
      words = amprt_rng_at(key, used / 4, epoch);
    uint32_t j = amprt_rng_below(words.v[used % 4], i), last = order[i - 1];
    order[i - 1] = order[j];
    order[j] = last;
  }
}
