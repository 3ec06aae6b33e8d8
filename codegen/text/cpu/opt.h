/* Optimizers on the CPU: a single pass over a parameter, its slots and its gradient, in blocks that
 * stay in the cache. For each block the gradient is unscaled and clipped, the step is computed, and
 * the results and the low-precision copy are stored. No variable is written if the predicate is
 * false. */
#ifndef AMP_PRELUDE_OPT_H
#define AMP_PRELUDE_OPT_H

#include "codegen/text/cpu/row.h"
#include "codegen/text/common/opt.h"

typedef struct AmpOptBlock { /* where the old values of a block lie, and its new values */
  const float *w, *slot[AMP_MAX_SLOTS], *g;
  float *new_w, *new_slot[AMP_MAX_SLOTS];
} AmpOptBlock;

typedef void AmpOptStep(const AmpOpt *a, const AmpOptScalars *s, const AmpOptBlock *b, int n);

/* Defines the kernel amp_opt_NAME of the optimizer `name`; `slots` and `needs` are those of its row
 * in ir/recipe/opt.def. */
#define AMP_OPTIMIZER(name, slots, needs)                                                          \
  AMP_FN void amp_opt_##name##_block(const AmpOpt *a, const AmpOptScalars *shared,                 \
                                     const AmpOptBlock *b, int n) {                                \
    const AmpOptScalars s = *shared;                                                               \
    const float *w = b->w, *u = b->slot[0], *v = b->slot[1], *g = b->g;                            \
    float *new_w = b->new_w, *new_u = b->new_slot[0], *new_v = b->new_slot[1];                     \
    AMP_SIMD                                                                                       \
    for (int i = 0; i < n; i++) {                                                                  \
      AmpOptElement e;                                                                             \
      e.w = w[i];                                                                                  \
      e.g = g[i];                                                                                  \
      if ((slots) > 0)                                                                             \
        e.slot[0] = u[i];                                                                          \
      if ((slots) > 1)                                                                             \
        e.slot[1] = v[i];                                                                          \
      amp_step_##name(a, &s, &e);                                                                  \
      new_w[i] = e.w;                                                                              \
      if ((slots) > 0)                                                                             \
        new_u[i] = e.slot[0];                                                                      \
      if ((slots) > 1)                                                                             \
        new_v[i] = e.slot[1];                                                                      \
    }                                                                                              \
  }                                                                                                \
  AMP_LIBRARY_FN(amp_opt_##name)(const AmprtRun *run, const void *args) {                          \
    const AmpOpt *a = (const AmpOpt *)args;                                                        \
    AmpOptScalars s = amp_opt_scalars(a, *(const float *)amp_at(run, &a->lr),                      \
                                      *(const float *)amp_at(run, &a->inv));                       \
    amp_opt_##needs(run, a, &s);                                                                   \
    amp_opt_run(run, a, &s, slots, amp_opt_##name##_block);                                        \
  }

/* ---- the column `needs` ---- */

AMP_FN void amp_opt_NOTHING(const AmprtRun *run, const AmpOpt *a, AmpOptScalars *s) {
  (void)run, (void)a, (void)s;
}

AMP_FN void amp_opt_STEPS(const AmprtRun *run, const AmpOpt *a, AmpOptScalars *s) {
  double t = (double)(*(const int64_t *)amp_at(run, &a->step) + 1);
  s->correction1 = amp_opt_correction(a->beta1, t);
  s->correction2 = amp_opt_correction(a->beta2, t);
}

/* A chunk of an optimizer's kernel, and what all of them share. */
typedef struct AmpOptLoop {
  const AmpOpt *a;
  const AmpOptScalars *s;
  AmpOptStep *step;
  int slots, go;
} AmpOptLoop;

AMP_FN void amp_opt_squares(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpOptLoop *l = (const AmpOptLoop *)args;
  const AmpOpt *a = l->a;
  double *sum = (double *)(void *)(run->arena + a->scratch) + 2 * chunk;
  int64_t at = chunk * a->n / a->chunks, end = (chunk + 1) * a->n / a->chunks;
  sum[0] = amp_squares(AMPRT_F32, amp_at(run, &a->w), at, end, 1, AMP_INF);
  sum[1] = amp_squares(a->g.dtype, amp_at(run, &a->g), at, end, l->s->unscale, l->s->clip);
}

/* The norms are summed in a fixed order. */
AMP_FN void amp_opt_NORMS(const AmprtRun *run, const AmpOpt *a, AmpOptScalars *s) {
  const double *sum = (const double *)(const void *)(run->arena + a->scratch);
  const AmpOptLoop loop = {.a = a, .s = s};
  double ww = 0, gg = 0;
  amp_parallel(run, a->chunks, amp_opt_squares, &loop);
  for (int64_t chunk = 0; chunk < a->chunks; chunk++) {
    ww += sum[2 * chunk];
    gg += sum[2 * chunk + 1];
  }
  s->ratio = amp_opt_ratio(a, ww, gg);
}

/* ---- the pass over the elements ---- */

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

AMP_FN void amp_opt_block(const AmprtRun *run, const AmpOpt *a, const AmpOptScalars *s, int slots,
                          AmpOptStep *step, int64_t at, int n, int go) {
  float buf_g[AMP_BUFFER], w[AMP_BUFFER], slot[AMP_MAX_SLOTS][AMP_BUFFER];
  AmpOptBlock b;
  b.w = (const float *)amp_at(run, &a->w) + at;
  b.g = amp_read(a->g.dtype, amp_at(run, &a->g), at, n, buf_g);
  if (s->clip < AMP_INF)
    b.g = amp_opt_clip(s, b.g, buf_g, n);
  b.new_w = w;
  for (int k = 0; k < AMP_MAX_SLOTS; k++) {
    b.slot[k] = k < slots ? (const float *)amp_at(run, &a->slot[k]) + at : NULL;
    b.new_slot[k] = slot[k];
  }
  step(a, s, &b, n);
  amp_opt_store(run, a, 0, at, n, w, go);
  for (int k = 0; k < slots; k++)
    amp_opt_store(run, a, 1 + k, at, n, slot[k], go);
  if (a->has_copy)
    amp_opt_store(run, a, 1 + slots, at, n, w, go);
}

AMP_FN void amp_opt_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpOptLoop *l = (const AmpOptLoop *)args;
  const AmpOpt *a = l->a;
  int64_t at = chunk * a->n / a->chunks, end = (chunk + 1) * a->n / a->chunks;
  for (; at < end; at += AMP_WIDTH)
    amp_opt_block(run, a, l->s, l->slots, l->step, at, amp_piece(end, at), l->go);
}

AMP_FN void amp_opt_run(const AmprtRun *run, const AmpOpt *a, const AmpOptScalars *s, int slots,
                        AmpOptStep *step) {
  int go = amp_go(run, &a->go), stores = go;
  for (int k = 0; k < AMP_MAX_OPT_OUT; k++)
    stores |= a->out[k].where != AMP_NOWHERE;
  const AmpOptLoop loop = {a, s, step, slots, go};
  if (stores)
    amp_parallel(run, a->chunks, amp_opt_chunk, &loop);
}

/* ---- the optimizers ---- */

#define SLOT(suffix, initialiser)                        +1
#define OPTIMIZER_OP(id, name, slots, needs, attributes) AMP_OPTIMIZER(name, 0 slots, needs)
#include "ir/recipe/opt.def"

#endif
