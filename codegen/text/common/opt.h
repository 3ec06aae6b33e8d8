/* Numbers that a whole optimizer step shares. Part of the prelude of every target, behind its own;
 * see prelude_math.h. */
#ifndef AMP_PRELUDE_OPT_SCALARS_H
#define AMP_PRELUDE_OPT_SCALARS_H

#include "codegen/text/common/math.h"

typedef struct AmpOptScalars {
  float lr, inv, decay, momentum, rest1, beta2, rest2, fix1, fix2, epsilon;
  float unscale, clip; /* with a clip the gradient is unscaled before the step, whose inv is 1 */
} AmpOptScalars;

/* `lr` and `unscale` are what a->lr and a->inv refer to. */
AMP_INLINE AmpOptScalars amp_opt_scalars(const AmpOpt *a, float lr, float unscale) {
  AmpOptScalars s = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  s.lr = lr;
  s.unscale = unscale;
  s.clip = a->clip > 0 ? (float)a->clip : AMP_INF;
  s.inv = a->clip > 0 ? 1.0f : unscale;
  s.decay = (float)a->decay;
  s.momentum = (float)a->momentum;
  s.epsilon = (float)a->epsilon;
  return s;
}

/* Adam's, without the corrections fix1 and fix2, which are powers. */
AMP_INLINE void amp_opt_betas(const AmpOpt *a, AmpOptScalars *s) {
  s->momentum = (float)a->beta1;
  s->rest1 = (float)(1 - a->beta1);
  s->beta2 = (float)a->beta2;
  s->rest2 = (float)(1 - a->beta2);
}

/* What undoes that a mean of so many steps began at 0. */
AMP_INLINE float amp_opt_correction(double beta, double steps) {
  return (float)(1 / (1 - pow(beta, steps)));
}

#endif
