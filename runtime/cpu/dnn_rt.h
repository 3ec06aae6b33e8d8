/* libamprt_dnn: the convolutions and matrix products of a CPU program, through oneDNN. Generated
 * code holds one DnnOp per kernel and passes it to dnn_run; the program's hooks are dnn_open,
 * dnn_close and so on. ampcc links the same code and asks it for workspace sizes, so that nothing
 * is guessed.
 *
 * Activations are N,H,W,C, filters K,R,S,C, both without padding. 16-bit floats are computed in f32
 * and rounded once, unless the CPU multiplies bf16 itself. One program per process. */
#ifndef AMPCC_RUNTIME_CPU_DNN_RT_H
#define AMPCC_RUNTIME_CPU_DNN_RT_H

#include "amprt.h"

typedef enum DnnKind {
  DNN_CONV,   /* a = x,  b = w,  out = y  */
  DNN_DGRAD,  /* a = dy, b = w,  out = dx */
  DNN_WGRAD,  /* a = x,  b = dy, out = dw */
  DNN_MATMUL, /* a, b, out; n = rows of out, k = its columns, c = inner size */
} DnnKind;

/* How an op is computed; codegen/cpu/library.c chooses by shape. */
typedef enum DnnMethod {
  DNN_NHWC,  /* oneDNN's convolution on N,H,W,C as it lies                                      */
  DNN_BLOCK, /* activations are copied to and from oneDNN's own layout                          */
  DNN_GEMM, /* 1x1 without padding: one matrix product (rows are picked first if stride is not 1) */
} DnnMethod;

typedef struct DnnRef { /* an operand: offset in the arena or the state block, or a constant */
  uint64_t at;
  uint8_t in_state;
  const void *data; /* elements of the op's dtype; else NULL */
} DnnRef;

typedef struct DnnOp {
  uint8_t kind, method, dtype, trans_a, trans_b; /* dtype: AMPRT_F32, AMPRT_F16 or AMPRT_BF16 */
  int32_t slot;                                  /* position in the list given to dnn_open    */
  int32_t chunk;                                 /* images computed at a time; divides n      */
  int64_t n, h, w, c, k, r, s, ho, wo;
  int64_t stride[2], pad[4]; /* top, bottom, left, right */
  DnnRef a, b, out;
  uint64_t workspace, workspace_bytes; /* planned, in the arena */
} DnnOp;

/* Bytes of scratch that `op` needs on this CPU with the threads now set, or -1 with `error` set. */
int64_t dnn_workspace(const DnnOp *op, char *error, size_t error_size);
/* Plans for the CPU that every user has at least, whatever this one is: before the first call. */
void dnn_plan_for(int threads);

/* The hooks of AmprtProgram. dnn_open makes all primitives; ops[i]->slot must be i. */
int dnn_open(const DnnOp *const *ops, int n_ops, const AmprtRun *run, char *error,
             size_t error_size);
void dnn_close(void);
void dnn_run(const AmprtRun *run, const void *op);
void dnn_set_threads(int threads);
int dnn_threads(void);
const char *dnn_describe(void);

#endif
