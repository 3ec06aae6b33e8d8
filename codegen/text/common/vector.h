/* Ops on vectors over the channels and on scalars. These are few elements, so they are computed in
 * double. For every target; pasted behind its prelude.h, like math.h. */
#ifndef AMP_PRELUDE_VECTOR_H
#define AMP_PRELUDE_VECTOR_H

#include "codegen/text/common/math.h"
#include "ir/recipe/lr_schedule.def"

/* Mean and biased variance from sums of x and x*x over M elements. Rounding could leave a tiny
 * negative variance, which becomes 0. */
AMP_FN void amp_bn_stats(double sum, double square, double M, float *mean, float *var) {
  double m = sum / M, v = square / M - m * m;
  *mean = (float)m;
  *var = (float)(v < 0 ? 0 : v);
}

/* The shift is computed with the rounded scale, so that x = mean gives exactly beta. */
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

AMP_INLINE float amp_ema(float old, float batch, float momentum, double correction) {
  double m = (double)momentum;
  return (float)((double)old * m + (double)batch * correction * (1 - m));
}

/* The vector s of ir/recipe/lr_schedule.def has `size` entries. */
AMP_FN float amp_lr_schedule(int64_t at, const float *s, int64_t size) {
  double step = (double)at, base = (double)s[AMP_LR_BASE];
  double warmup = (double)s[AMP_LR_WARMUP], total = (double)s[AMP_LR_TOTAL];
  if (step < warmup)
    return (float)(base * step / warmup);
  if (s[AMP_LR_KIND] == AMP_LR_PIECEWISE) {
    int64_t room = AMP_LR_ROOM(size), passed = 0;
    int64_t n = s[AMP_LR_BOUNDARIES] < 0 ? 0 : (int64_t)s[AMP_LR_BOUNDARIES];
    n = n < room ? n : room;
    for (int64_t i = 0; i < n; i++)
      passed += (double)s[AMP_LR_LIST + i] < step;
    return (float)(base * (double)s[AMP_LR_LIST + n + passed]);
  }
  if (s[AMP_LR_KIND] == AMP_LR_COSINE) {
    double span = total - warmup > 1 ? total - warmup : 1, done = (step - warmup) / span;
    double end = (double)s[AMP_LR_END], turn = amp_cos_pi(done < 1 ? done : 1);
    return (float)(end + (base - end) * (1 + turn) / 2);
  }
  if (s[AMP_LR_KIND] == AMP_LR_POLYNOMIAL) {
    double span = total - warmup + 1 > 1 ? total - warmup + 1 : 1, done = (step - warmup) / span;
    double end = (double)s[AMP_LR_END], left = done < 1 ? 1 - done : 0;
    return (float)(end + (base - end) * pow(left, (double)s[AMP_LR_POWER]));
  }
  if (s[AMP_LR_KIND] == AMP_LR_EXPONENTIAL) {
    double decays = step / (double)s[AMP_LR_EVERY];
    return (float)(base *
                   pow((double)s[AMP_LR_RATE], s[AMP_LR_STAIRS] != 0 ? floor(decays) : decays));
  }
  return s[AMP_LR_BASE];
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
