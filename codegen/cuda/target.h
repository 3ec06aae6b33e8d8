/* One GPU as a target: what passes ask of it, and the plans made for it so far. */
#ifndef AMPCC_CODEGEN_CUDA_TARGET_H
#define AMPCC_CODEGEN_CUDA_TARGET_H

#include "codegen/backend.h"
#include "codegen/cuda/conv_kernel.h"
#include "codegen/cuda/toolkit/tuning.h"

/* The plan of one convolution; without text and workspace if it was refused. */
typedef struct Planned {
  PlanText plan;
  int index;
} Planned;

/* What the device cannot run, for each reason once. */
typedef struct Refusal {
  SrcLoc loc;
  const char *op, *why;
} Refusal;

/* What the image must hold: one launch of a generated kernel. */
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
  const char *failure; /* the first of a library that cannot be opened; NULL: none */
  Planned *planned;    /* by key, once */
  int n_planned, cap_planned;
  int newest; /* CudaPart.newest of these */
  Refusal *refusal;
  int n_refusals, cap_refusals;
  Wanted *wanted;
  int n_wanted, cap_wanted;
} CudaTarget;

/* Fills what passes ask. */
void cuda_target_init(CudaTarget *cuda, const char *name);
/* The plan of a convolution, which `node` is part of; valid until the next call. */
const Planned *cuda_planned(CudaTarget *cuda, const Node *node, const ConvOp *op);
void cuda_refuse(CudaTarget *cuda, const Node *node, const char *op, const char *why);
static inline CudaTarget *cuda_target_of(const Target *target) {
  return (CudaTarget *)target->context;
}

#endif
