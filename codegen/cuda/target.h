/* One GPU as a target: what passes ask of it, and the plans made for it so far. */
#ifndef AMPCC_CODEGEN_CUDA_TARGET_H
#define AMPCC_CODEGEN_CUDA_TARGET_H

#include "codegen/backend.h"
#include "codegen/cuda/conv_kernel.h"
#include "codegen/cuda/toolkit/tuning.h"

/* The plan of one convolution. It has neither text nor workspace if the device cannot run it. */
typedef struct Planned {
  PlanText plan;
  int index;
} Planned;

/* An op that the device cannot run; each reason is reported once. */
typedef struct Refusal {
  SrcLoc loc;
  const char *op, *why;
} Refusal;

/* A launch of a generated kernel, which the image must be able to run. */
typedef struct Wanted {
  const char *function;
  int threads;
  int64_t shared;
} Wanted;

typedef struct CudaTarget {
  Backend backend;
  Target target; /* .context is this */
  Arena *arena;
  const Device *device;
  Toolkit *toolkit;
  const char *cache; /* folder, or NULL */
  bool with_ptx;     /* the image also serves newer GPUs */
  const Tuning *tuning;
  bool require_tuned;  /* of CudaOptions */
  const char *failure; /* why a library cannot be opened, the first reason; NULL: none */
  Planned *planned;    /* by key, once */
  int n_planned, cap_planned;
  int newest; /* CudaPart.newest of these */
  Refusal *refusal;
  int n_refusals, cap_refusals;
  Wanted *wanted;
  int n_wanted, cap_wanted;
} CudaTarget;

/* Fills the table that passes ask. */
void cuda_target_init(CudaTarget *cuda, const char *name);
/* The plan of a convolution that `node` is part of. Valid until the next call. */
const Planned *cuda_planned(CudaTarget *cuda, const Node *node, const ConvOp *op);
void cuda_refuse(CudaTarget *cuda, const Node *node, const char *op, const char *why);
static inline CudaTarget *cuda_target_of(const Target *target) {
  return (CudaTarget *)target->context;
}

#endif
