/* A library kernel as a short list of steps, made once by dnn_open. An op may be cut into chunks of
 * whole images, so that what a step writes is still in cache when the next one reads it: all steps
 * run for chunk 0, then for chunk 1. Internal to libamprt_dnn. */
#ifndef AMPCC_RUNTIME_CPU_PLAN_H
#define AMPCC_RUNTIME_CPU_PLAN_H

#include "runtime/cpu/api.h"

enum { MAX_STEPS = 12, MAX_STEP_ARGS = 4 };

typedef enum When { EACH, FIRST, LAST } When; /* in which chunks */

typedef struct Place { /* where a tensor lies; `move` bytes further in every next chunk */
  unsigned char *at;
  int64_t move;
} Place;

typedef struct Step Step;
struct Step {
  void (*run)(const Step *step, int64_t chunk);
  When when;
  uint8_t dtype;        /* of the 16-bit side */
  Place from, with, to; /* all but primitives; matrix products: to = from * with */
  int64_t count;        /* elements, all but primitives and products */
  int64_t rows, cols, inner;
  char trans_from, trans_with; /* 'T' or 'N' */
  bool add;                    /* product: added to `to`, but in chunk 0 */
  const DnnOp *op;             /* pick, spread */
  dnnl_primitive_t prim;
  int n_args;
  dnnl_exec_arg_t arg[MAX_STEP_ARGS];
  Place place[MAX_STEP_ARGS];
};

typedef struct Plan {
  int64_t n_chunks;
  int n_steps;
  Step step[MAX_STEPS];
} Plan;

/* While a plan is being made. With `dry` nothing is created, only sizes are added up. */
typedef struct Builder {
  const DnnOp *op;
  const AmprtRun *run;
  Plan *plan;
  unsigned char *scratch;
  int64_t used;
  bool dry;
} Builder;

/* dnn_rt_steps.c: one step each. Places of type f32 unless said. */
Place dnn_place_scratch(Builder *b, int64_t bytes, int64_t move);
Place dnn_place_operand(const Builder *b, DnnRef ref, int64_t move);
bool dnn_step_widen(Builder *b, When when, Place from, Place to, int64_t count); /* from: 16 bit */
bool dnn_step_round(Builder *b, When when, Place from, Place to, int64_t count); /* to: 16 bit */
bool dnn_step_sum(Builder *b, Place from, Place to,
                  int64_t count); /* to (+)= from; set in chunk 0 */
bool dnn_step_reorder(Builder *b, When when, MdRef from, Place at, MdRef to, Place to_at);
/* Operands in the order x, w, y, or their gradients, whatever the op's kind. */
bool dnn_conv_md(const_dnnl_primitive_desc_t pd, DnnKind kind, Md md[3]);
bool dnn_step_conv(Builder *b, const_dnnl_primitive_desc_t pd, const Md md[3],
                   const Place place[3]);
bool dnn_step_product(Builder *b, Step product);
/* Every stride-th row and column of f32 images, packed; and back, with zeros between. */
bool dnn_step_pick(Builder *b, Place from, Place to, int64_t images);
bool dnn_step_spread(Builder *b, Place from, Place to, int64_t images);

/* dnn_rt_conv.c, dnn_rt_gemm.c: fill b->plan; false after dnn_fail */
bool dnn_build_conv(Builder *b);
bool dnn_build_gemm_conv(Builder *b);
bool dnn_build_matmul(Builder *b);
bool dnn_bf16_is_native(void);

/* dnn_rt_convert.c, on all threads: exact, and to nearest even with NaN kept */
void dnn_widen_f16(float *to, const uint16_t *from, int64_t count);
void dnn_widen_bf16(float *to, const uint16_t *from, int64_t count);
void dnn_round_f16(uint16_t *to, const float *from, int64_t count);
void dnn_round_bf16(uint16_t *to, const float *from, int64_t count);

#endif
