/* libamprt_dnn: the convolutions and matrix products of a CPU program, through oneDNN. Generated
 * code holds one DnnOp for each such kernel and passes it to dnn_run; dnn_open, dnn_close and the
 * others are the program's hooks in AmprtProgram. ampcc is linked with this library too and asks it
 * how much workspace each op needs.
 *
 * Activations are stored as N,H,W,C and filters as K,R,S,C/groups, both without padding. 16-bit
 * floats are widened, computed in f32 and rounded once, unless the CPU has instructions for bf16. A
 * process can run one program at a time. */
#ifndef AMPCC_RUNTIME_CPU_DNN_RT_H
#define AMPCC_RUNTIME_CPU_DNN_RT_H

#include "amprt.h"

typedef enum DnnKind {
  DNN_CONV,   /* a = x,  b = w,  out = y  */
  DNN_DGRAD,  /* a = dy, b = w,  out = dx */
  DNN_WGRAD,  /* a = x,  b = dy, out = dw */
  DNN_MATMUL, /* out = a * b; n: rows of out, k: columns of out, c: inner size */
} DnnKind;

/* How an op is computed; codegen/cpu/onednn_choose.c chooses by shape. */
typedef enum DnnMethod {
  DNN_NHWC,  /* oneDNN's convolution reads and writes N,H,W,C in place                      */
  DNN_BLOCK, /* activations are copied to and from the layout that oneDNN prefers           */
  DNN_GEMM,  /* 1x1, no padding, one group: a matrix product; a stride first picks the pixels */
} DnnMethod;

/* Where an operand lies: in the arena, in the state block, or in the program as a constant. */
typedef struct DnnRef {
  uint64_t at; /* offset in bytes */
  uint8_t in_state;
  const void *data; /* a constant's elements, of the op's dtype; NULL for all others */
} DnnRef;

typedef struct DnnOp {
  uint8_t kind, method, dtype, trans_a, trans_b; /* dtype: AMPRT_F32, AMPRT_F16 or AMPRT_BF16 */
  int32_t slot;                                  /* position in the list given to dnn_open    */
  int32_t chunk;                                 /* images computed at a time; divides n      */
  int64_t n, h, w, c, k, r, s, ho, wo;
  int64_t groups;            /* of the channels c and k; 0 is 1 */
  int64_t stride[2], pad[4]; /* top, bottom, left, right */
  DnnRef a, b, out;
  uint64_t workspace, workspace_bytes; /* planned, in the arena */
} DnnOp;

/* Channels of a filter: those of one group of x. */
static inline int64_t dnn_filter_c(const DnnOp *op) {
  return op->groups > 1 ? op->c / op->groups : op->c;
}

/* Bytes of workspace that the op needs on this CPU with the present number of threads; -1 with one
 * line in `error`. */
int64_t dnn_workspace(const DnnOp *op, char *error, size_t error_size);
/* For ampcc, before it asks for the first workspace: the answers are then those of a CPU with AVX2,
 * which every program needs, and of so many threads, whatever machine this is. */
void dnn_plan_for(int threads);

/* The hooks of AmprtProgram. dnn_open makes all primitives; ops[i]->slot must be i. */
int dnn_open(const DnnOp *const *ops, int n_ops, const AmprtRun *run, char *error,
             size_t error_size);
void dnn_close(void);
void dnn_run(const AmprtRun *run, const void *op);
const char *dnn_describe(void);
extern const AmprtThreads dnn_threads; /* OpenMP's, which oneDNN itself computes with */

#endif
