/* Optimizers: one pass over a parameter, its slots and its gradient. Unscale, clip, decay, step,
 * store, and the low-precision copy, all in f32; nothing is touched if the predicate says no. */
#ifndef AMP_PRELUDE_OPT_H
#define AMP_PRELUDE_OPT_H

#include "codegen/text/cpu/row.h"
#include "codegen/text/common/opt.h"

typedef struct AmpOptBlock { /* old values, new values */
  const float *w, *slot[AMP_MAX_SLOTS], *g;
  float *new_w, *new_slot[AMP_MAX_SLOTS];
} AmpOptBlock;

typedef void AmpOptStep(const AmpOpt *a, const AmpOptScalars *s, const AmpOptBlock *b, int n);

AMP_FN void amp_opt_store(const AmprtRun *run, const AmpOpt *a, int k, int64_t at, int n,
                          const float *value, int go) {
  if (a->out[k].where != AMP_NOWHERE)
    amp_write(a->out[k].dtype, amp_at(run, &a->out[k]), at, n, value);
  if (go && a->var[k].where != AMP_NOWHERE)
    amp_write(a->var[k].dtype, amp_at(run, &a->var[k]), at, n, value);
}

AMP_FN const float *amp_opt_clip(const AmpOptScalars *s, const float *g, float *to, int n) {
  const float unscale = s->unscale, clip = s->clip;
  AMP_SIMD
  for (int i = 0; i < n; i++)
    to[i] = amp_clip(g[i] * unscale, clip);
  return to;
}

AMP_FN void amp_opt_block(const AmprtRun *run, const AmpOpt *a, const AmpOptScalars *s,
                          AmpOptStep *step, int64_t at, int n, int go) {
  float buf_g[AMP_BUFFER], w[AMP_BUFFER], slot[AMP_MAX_SLOTS][AMP_BUFFER];
  AmpOptBlock b;
  b.w = (const float *)amp_at(run, &a->w) + at;
  b.g = amp_read(a->g.dtype, amp_at(run, &a->g), at, n, buf_g);
  if (s->clip < AMP_INF)
    b.g = amp_opt_clip(s, b.g, buf_g, n);
  b.new_w = w;
  for (int k = 0; k < a->n_slots; k++) {
    b.slot[k] = (const float *)amp_at(run, &a->slot[k]) + at;
    b.new_slot[k] = slot[k];
  }
  step(a, s, &b, n);
  amp_opt_store(run, a, 0, at, n, w, go);
  for (int k = 0; k < a->n_slots; k++)
    amp_opt_store(run, a, 1 + k, at, n, slot[k], go);
  if (a->has_copy)
    amp_opt_store(run, a, 1 + a->n_slots, at, n, w, go);
}

AMP_FN AmpOptScalars amp_opt_begin(const AmprtRun *run, const AmpOpt *a) {
  return amp_opt_scalars(a, *(const float *)amp_at(run, &a->lr),
                         *(const float *)amp_at(run, &a->inv));
}

AMP_FN void amp_opt_run(const AmprtRun *run, const AmpOpt *a, const AmpOptScalars *s,
                        AmpOptStep *step) {
  int go = amp_go(run, &a->go), stores = go;
  for (int k = 0; k < AMP_MAX_OPT_OUT; k++)
    stores |= a->out[k].where != AMP_NOWHERE;
  if (!stores)
    return;
  AMP_PARALLEL(a->chunks)
  for (int64_t chunk = 0; chunk < a->chunks; chunk++) {
    int64_t at = chunk * a->n / a->chunks, end = (chunk + 1) * a->n / a->chunks;
    for (; at < end; at += AMP_WIDTH)
      amp_opt_block(run, a, s, step, at, amp_piece(end, at), go);
  }
}

AMP_FN void amp_step_sgd(const AmpOpt *a, const AmpOptScalars *s, const AmpOptBlock *b, int n) {
  const float lr = s->lr, inv = s->inv, decay = s->decay;
  const float *w = b->w, *g = b->g;
  float *new_w = b->new_w;
  (void)a;
  AMP_SIMD
  for (int i = 0; i < n; i++)
    new_w[i] = w[i] - lr * (g[i] * inv + decay * w[i]);
}

AMP_FN void amp_step_momentum(const AmpOpt *a, const AmpOptScalars *s, const AmpOptBlock *b,
                              int n) {
  const float lr = s->lr, inv = s->inv, decay = s->decay, momentum = s->momentum;
  const float ahead = a->nesterov ? 1.0f : 0.0f, scale = a->nesterov ? momentum : 1.0f;
  const float *w = b->w, *m = b->slot[0], *g = b->g;
  float *new_w = b->new_w, *new_m = b->new_slot[0];
  AMP_SIMD
  for (int i = 0; i < n; i++) {
    float d = g[i] * inv + decay * w[i], v = momentum * m[i] + d;
    new_m[i] = v;
    new_w[i] = w[i] - lr * (a->nesterov ? d * ahead + scale * v : v);
  }
}

AMP_FN void amp_step_lars(const AmpOpt *a, const AmpOptScalars *s, const AmpOptBlock *b, int n) {
  const float rate = s->lr * s->fix1, inv = s->inv, decay = s->decay, momentum = s->momentum;
  const float *w = b->w, *m = b->slot[0], *g = b->g;
  float *new_w = b->new_w, *new_m = b->new_slot[0];
  (void)a;
  AMP_SIMD
  for (int i = 0; i < n; i++) {
    float v = momentum * m[i] + rate * (g[i] * inv + decay * w[i]);
    new_m[i] = v;
    new_w[i] = w[i] - v;
  }
}

AMP_FN void amp_step_adam(const AmpOpt *a, const AmpOptScalars *s, const AmpOptBlock *b, int n) {
  const float lr = s->lr, inv = s->inv, b1 = s->momentum, r1 = s->rest1, b2 = s->beta2,
              r2 = s->rest2;
  const float fix1 = s->fix1, fix2 = s->fix2, epsilon = s->epsilon;
  const float coupled = a->decoupled ? 0.0f : s->decay, apart = a->decoupled ? s->decay : 0.0f;
  const float *w = b->w, *m = b->slot[0], *v = b->slot[1], *g = b->g;
  float *new_w = b->new_w, *new_m = b->new_slot[0], *new_v = b->new_slot[1];
  AMP_SIMD
  for (int i = 0; i < n; i++) {
    float d = g[i] * inv + coupled * w[i];
    float mi = b1 * m[i] + r1 * d, vi = b2 * v[i] + r2 * d * d;
    new_m[i] = mi;
    new_v[i] = vi;
    new_w[i] = w[i] - lr * (mi * fix1 / (amp_sqrt(vi * fix2) + epsilon) + apart * w[i]);
  }
}

AMP_FN void amp_opt_sgd(const AmprtRun *run, const void *args) {
  const AmpOpt *a = (const AmpOpt *)args;
  AmpOptScalars s = amp_opt_begin(run, a);
  amp_opt_run(run, a, &s, amp_step_sgd);
}

AMP_FN void amp_opt_momentum(const AmprtRun *run, const void *args) {
  const AmpOpt *a = (const AmpOpt *)args;
  AmpOptScalars s = amp_opt_begin(run, a);
  amp_opt_run(run, a, &s, amp_step_momentum);
}

AMP_FN void amp_opt_adam(const AmprtRun *run, const void *args) {
  const AmpOpt *a = (const AmpOpt *)args;
  AmpOptScalars s = amp_opt_begin(run, a);
  double t = (double)(*(const int64_t *)amp_at(run, &a->step) + 1);
  amp_opt_betas(a, &s);
  s.fix1 = amp_opt_correction(a->beta1, t);
  s.fix2 = amp_opt_correction(a->beta2, t);
  amp_opt_run(run, a, &s, amp_step_adam);
}

/* trust * |w| / (|g| + decay * |w| + epsilon), the norms summed in a fixed order. */
AMP_FN double amp_lars_ratio(const AmprtRun *run, const AmpOpt *a, const AmpOptScalars *s) {
  const void *w = amp_at(run, &a->w), *g = amp_at(run, &a->g);
  double *sum = (double *)(void *)(run->arena + a->scratch), ww = 0, gg = 0;
  AMP_PARALLEL(a->chunks)
  for (int64_t chunk = 0; chunk < a->chunks; chunk++) {
    int64_t at = chunk * a->n / a->chunks, end = (chunk + 1) * a->n / a->chunks;
    sum[2 * chunk] = amp_squares(AMPRT_F32, w, at, end, 1, AMP_INF);
    sum[2 * chunk + 1] = amp_squares(a->g.dtype, g, at, end, s->unscale, s->clip);
  }
  for (int64_t chunk = 0; chunk < a->chunks; chunk++) {
    ww += sum[2 * chunk];
    gg += sum[2 * chunk + 1];
  }
  ww = sqrt(ww);
  gg = sqrt(gg);
  return ww != 0 && gg != 0 ? a->trust * ww / (gg + a->decay * ww + a->epsilon) : 1;
}

AMP_FN void amp_opt_lars(const AmprtRun *run, const void *args) {
  const AmpOpt *a = (const AmpOpt *)args;
  AmpOptScalars s = amp_opt_begin(run, a);
  s.fix1 = (float)amp_lars_ratio(run, a, &s);
  amp_opt_run(run, a, &s, amp_step_lars);
}

#endif
