/* Ops on vectors over the channels and on scalars. These are few elements, so they are computed in
 * double. For every target; pasted behind its prelude.h, like math.h. */
#ifndef AMP_PRELUDE_VECTOR_H
#define AMP_PRELUDE_VECTOR_H

#include "codegen/text/common/math.h"

/* Mean and biased variance from sums of x and x*x over M elements. Rounding could leave a tiny
 * negative variance, which becomes 0. */
AMP_FN void amp_bn_stats(double sum, double square, double M, float *mean, float *var) {
  double m = sum / M, v = square / M - m * m;
  *mean = (float)m;
  *var = (float)(v < 0 ? 0 : v);
}

/* shift is computed with the rounded scale, so that x = mean gives beta to the last bit. */
AMP_FN void amp_bn_fold(float gamma, float beta, float mean, float var, double epsilon,
                        float *scale, float *shift) {
  *scale = (float)((double)gamma / sqrt((double)var + epsilon));
  *shift = (float)((double)beta - (double)mean * (double)*scale);
}

AMP_FN void amp_bn_grad_fold(float sdy, float sdyx, float gamma, float mean, float var,
                             double epsilon, double M, float *dgamma, float *dbeta, float *a,
                             float *b, float *c) {
  double inv = 1 / sqrt((double)var + epsilon), scale = (double)gamma * inv;
  *dgamma = (float)((double)sdyx * inv);
  *dbeta = sdy;
  *a = (float)scale;
  *b = (float)(-scale * inv * inv * (double)sdyx / M);
  *c = (float)(-scale * (double)sdy / M - (double)*b * (double)mean);
}

AMP_FN float amp_ema(float old, float batch, float momentum, double correction) {
  double m = (double)momentum;
  return (float)((double)old * m + (double)batch * correction * (1 - m));
}

/* The table s has `size` entries: kind, base, end, warm-up, total, n, boundaries[n], factors[n+1].
 */
AMP_FN float amp_lr_schedule(int64_t at, const float *s, int64_t size) {
  double step = (double)at, base = (double)s[1], warmup = (double)s[3], total = (double)s[4];
  if (step < warmup)
    return (float)(base * step / warmup);
  if (s[0] == 1) {
    int64_t room = (size - 7) / 2, n = s[5] < 0 ? 0 : (int64_t)s[5], passed = 0;
    n = n < room ? n : room;
    for (int64_t i = 0; i < n; i++)
      passed += (double)s[6 + i] < step;
    return (float)(base * (double)s[6 + n + passed]);
  }
  if (s[0] == 2) {
    double span = total - warmup > 1 ? total - warmup : 1, done = (step - warmup) / span;
    double end = (double)s[2], turn = amp_cos_pi(done < 1 ? done : 1);
    return (float)(end + (base - end) * (1 + turn) / 2);
  }
  return s[1];
}

AMP_FN void amp_loss_scale_update(float scale, int32_t good, uint8_t finite, double growth,
                                  double backoff, double interval, double min, double max,
                                  float *new_scale, int32_t *new_good) {
  double smaller = (double)scale * backoff;
  float larger = (float)((double)scale * growth);
  int grow = (double)good + 1 >= interval, fits = larger < AMP_INF && (double)larger <= max;
  *new_scale = !finite ? (float)(smaller > min ? smaller : min) : grow && fits ? larger : scale;
  *new_good = finite && !grow ? good + 1 : 0;
}

#endif
