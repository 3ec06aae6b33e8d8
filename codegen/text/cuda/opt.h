/* Optimizers: one pass over many parameters, their slots and gradients. Unscale, clip, decay, step,
 * store, and the low-precision copy, all in f32; nothing is touched if the predicate says no. A
 * block works on one piece of one parameter, four elements a thread. */
#ifndef AMP_PRELUDE_OPT_H
#define AMP_PRELUDE_OPT_H

#include "codegen/text/cuda/reduce.h"
#include "codegen/text/common/opt.h"

enum { AMP_OPT_WIDTH = 4 };

typedef struct AmpOptElement { /* old values become new ones */
  float w, slot[AMP_MAX_SLOTS], g;
} AmpOptElement;

/* Its bound is the sign's own; NaN stays. */
AMP_INLINE float amp_clip(float x, float bound) {
  return x > bound ? bound : x < -bound ? -bound : x;
}

AMP_INLINE const AmpOpt *amp_opt_of(const CudaRun *run, const AmpMany *a, const AmpPiece *piece) {
  return (const AmpOpt *)amp_at(run, &a->list) + piece->tensor;
}

AMP_INLINE AmpOptScalars amp_opt_begin(const CudaRun *run, const AmpOpt *o) {
  return amp_opt_scalars(o, *(const float *)amp_at(run, &o->lr),
                         *(const float *)amp_at(run, &o->inv));
}

AMP_INLINE void amp_step_sgd(const AmpOpt *o, const AmpOptScalars *s, AmpOptElement *e) {
  (void)o;
  e->w = e->w - s->lr * (e->g * s->inv + s->decay * e->w);
}

AMP_INLINE void amp_step_momentum(const AmpOpt *o, const AmpOptScalars *s, AmpOptElement *e) {
  float d = e->g * s->inv + s->decay * e->w, v = s->momentum * e->slot[0] + d;
  e->slot[0] = v;
  e->w = e->w - s->lr * (o->nesterov ? d + s->momentum * v : v);
}

AMP_INLINE void amp_step_lars(const AmpOpt *o, const AmpOptScalars *s, AmpOptElement *e) {
  float rate = s->lr * s->fix1;
  float v = s->momentum * e->slot[0] + rate * (e->g * s->inv + s->decay * e->w);
  (void)o;
  e->slot[0] = v;
  e->w = e->w - v;
}

AMP_INLINE void amp_step_adam(const AmpOpt *o, const AmpOptScalars *s, AmpOptElement *e) {
  float coupled = o->decoupled ? 0.0f : s->decay, apart = o->decoupled ? s->decay : 0.0f;
  float d = e->g * s->inv + coupled * e->w;
  float m = s->momentum * e->slot[0] + s->rest1 * d;
  float v = s->beta2 * e->slot[1] + s->rest2 * d * d;
  e->slot[0] = m;
  e->slot[1] = v;
  e->w = e->w - s->lr * (m * s->fix1 / (amp_sqrt(v * s->fix2) + s->epsilon) + apart * e->w);
}

AMP_INLINE void amp_opt_store(const CudaRun *run, const AmpOpt *o, int k, int64_t at, int have,
                              const float *value, int go) {
  if (o->out[k].where != AMP_NOWHERE)
    amp_store_some(o->out[k].dtype, AMP_OPT_WIDTH, have, amp_at(run, &o->out[k]), at, value);
  if (go && o->var[k].where != AMP_NOWHERE)
    amp_store_some(o->var[k].dtype, AMP_OPT_WIDTH, have, amp_at(run, &o->var[k]), at, value);
}

AMP_INLINE int amp_opt_stores(const AmpOpt *o, int go) {
  for (int k = 0; k < AMP_MAX_OPT_OUT; k++)
    go |= o->out[k].where != AMP_NOWHERE;
  return go;
}

/* The loop over a piece; `step` is one of the four above, `slots` its number of slots. */
#define AMP_OPT_RUN(run, o, s, piece, slots, step)                                                 \
  const int go = amp_go(run, &(o)->go);                                                            \
  const AmpRange r = amp_range(piece, (o)->n);                                                     \
  const int64_t stop = amp_opt_stores(o, go) ? r.last : r.first;                                   \
  for (int64_t at = r.first + (int64_t)threadIdx.x * AMP_OPT_WIDTH; at < stop;                     \
       at += AMP_THREADS * AMP_OPT_WIDTH) {                                                        \
    AmpOptBlock b;                                                                                 \
    amp_opt_load(run, o, slots, at, stop, &b);                                                     \
    AMP_UNROLL                                                                                     \
    for (int i = 0; i < AMP_OPT_WIDTH; i++) {                                                      \
      AmpOptElement e = amp_opt_element(&b, s, i);                                                 \
      step(o, s, &e);                                                                              \
      b.w[i] = e.w;                                                                                \
      b.slot[0][i] = e.slot[0];                                                                    \
      b.slot[1][i] = e.slot[1];                                                                    \
    }                                                                                              \
    amp_opt_save(run, o, slots, at, &b, go);                                                       \
  }

typedef struct AmpOptBlock {
  float w[AMP_OPT_WIDTH], slot[AMP_MAX_SLOTS][AMP_OPT_WIDTH], g[AMP_OPT_WIDTH];
  int have; /* elements that exist */
} AmpOptBlock;

AMP_INLINE void amp_opt_load(const CudaRun *run, const AmpOpt *o, int slots, int64_t at,
                             int64_t stop, AmpOptBlock *b) {
  const int n = AMP_OPT_WIDTH, have = stop - at < n ? (int)(stop - at) : n;
  b->have = have;
  amp_load_some(AMPRT_F32, n, have, amp_at(run, &o->w), at, b->w);
  amp_load_some(o->g.dtype, n, have, amp_at(run, &o->g), at, b->g);
  AMP_UNROLL
  for (int k = 0; k < slots; k++)
    amp_load_some(AMPRT_F32, n, have, amp_at(run, &o->slot[k]), at, b->slot[k]);
}

AMP_INLINE AmpOptElement amp_opt_element(const AmpOptBlock *b, const AmpOptScalars *s, int i) {
  AmpOptElement e;
  e.w = b->w[i];
  e.g = s->clip < AMP_INF ? amp_clip(b->g[i] * s->unscale, s->clip) : b->g[i];
  e.slot[0] = b->slot[0][i];
  e.slot[1] = b->slot[1][i];
  return e;
}

AMP_INLINE void amp_opt_save(const CudaRun *run, const AmpOpt *o, int slots, int64_t at,
                             const AmpOptBlock *b, int go) {
  amp_opt_store(run, o, 0, at, b->have, b->w, go);
  AMP_UNROLL
  for (int k = 0; k < slots; k++)
    amp_opt_store(run, o, 1 + k, at, b->have, b->slot[k], go);
  if (o->has_copy)
    amp_opt_store(run, o, 1 + slots, at, b->have, b->w, go);
}

AMP_INLINE void amp_opt_sgd(const CudaRun *run, const AmpMany *a) {
  const AmpPiece *piece = amp_piece(run, a);
  const AmpOpt *o = amp_opt_of(run, a, piece);
  AmpOptScalars s = amp_opt_begin(run, o);
  AMP_OPT_RUN(run, o, &s, piece, 0, amp_step_sgd)
}

AMP_INLINE void amp_opt_momentum(const CudaRun *run, const AmpMany *a) {
  const AmpPiece *piece = amp_piece(run, a);
  const AmpOpt *o = amp_opt_of(run, a, piece);
  AmpOptScalars s = amp_opt_begin(run, o);
  AMP_OPT_RUN(run, o, &s, piece, 1, amp_step_momentum)
}

/* The powers by one thread: they are many double operations. `shared`: two numbers. */
AMP_INLINE void amp_opt_adam(const CudaRun *run, const AmpMany *a, float *shared) {
  const AmpPiece *piece = amp_piece(run, a);
  const AmpOpt *o = amp_opt_of(run, a, piece);
  AmpOptScalars s = amp_opt_begin(run, o);
  if (threadIdx.x == 0) {
    double t = (double)(*(const int64_t *)amp_at(run, &o->step) + 1);
    shared[0] = amp_opt_correction(o->beta1, t);
    shared[1] = amp_opt_correction(o->beta2, t);
  }
  __syncthreads();
  amp_opt_betas(o, &s);
  s.fix1 = shared[0];
  s.fix2 = shared[1];
  AMP_OPT_RUN(run, o, &s, piece, 2, amp_step_adam)
}

/* A piece's sums of squares of w and of the gradient, for its parameter's norms. */
AMP_INLINE void amp_opt_lars_norms(const CudaRun *run, const AmpMany *a, double *shared) {
  const AmpPiece *piece = amp_piece(run, a);
  const AmpOpt *o = amp_opt_of(run, a, piece);
  const AmpOptScalars s = amp_opt_begin(run, o);
  const AmpRange r = amp_range(piece, o->n);
  double ww = amp_squares(AMPRT_F32, amp_at(run, &o->w), r, 1, AMP_INF, shared);
  double gg = amp_squares(o->g.dtype, amp_at(run, &o->g), r, s.unscale, s.clip, shared);
  double *sum = (double *)(run->arena + o->scratch) + 2 * (int64_t)piece->chunk;
  if (threadIdx.x == 0) {
    sum[0] = ww;
    sum[1] = gg;
  }
}

/* trust * |w| / (|g| + decay * |w| + epsilon) */
AMP_INLINE float amp_lars_ratio(const CudaRun *run, const AmpOpt *o, double *shared) {
  const double *sum = (const double *)(run->arena + o->scratch);
  double ww = 0, gg = 0;
  for (int64_t c = threadIdx.x; c < o->chunks; c += AMP_THREADS) {
    ww += sum[2 * c];
    gg += sum[2 * c + 1];
  }
  ww = sqrt(amp_sum(ww, AMP_THREADS, shared));
  gg = sqrt(amp_sum(gg, AMP_THREADS, shared));
  return (float)(ww != 0 && gg != 0 ? o->trust * ww / (gg + o->decay * ww + o->epsilon) : 1);
}

AMP_INLINE void amp_opt_lars(const CudaRun *run, const AmpMany *a, double *shared) {
  const AmpPiece *piece = amp_piece(run, a);
  const AmpOpt *o = amp_opt_of(run, a, piece);
  AmpOptScalars s = amp_opt_begin(run, o);
  s.fix1 = amp_lars_ratio(run, o, shared);
  AMP_OPT_RUN(run, o, &s, piece, 1, amp_step_lars)
}

#endif
