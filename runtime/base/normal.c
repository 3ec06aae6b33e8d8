#include "runtime/base/normal.h"

#include "runtime/base/normal_many.h"

#include <math.h>

void amprt_truncated_block(AmprtKey key, uint64_t block, double mean, double stddev,
                           double out[4]) {
  int missing = 0xf;
  for (uint64_t attempt = 0; missing; attempt++) {
    double z[4];
    amprt_rng_normal(amprt_rng_at(key, block, attempt), z);
    for (int i = 0; i < 4; i++)
      if (missing >> i & 1 && fabs(z[i]) <= 2) {
        out[i] = mean + stddev * z[i];
        missing &= ~(1 << i);
      }
  }
}

/* The widest that this processor has. */
static AmprtNormals *choose(void) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f"))
    return amprt_normals_8;
  if (__builtin_cpu_supports("avx2"))
    return amprt_normals_4;
#endif
  return amprt_normals_2;
}

void amprt_truncated_normals(AmprtKey key, uint64_t first, double mean, double stddev, float *out,
                             size_t n) {
  choose()(key, first, mean, stddev, out, n);
}
