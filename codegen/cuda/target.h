/* One GPU as a target: what passes ask of it, and the plans made for it so far. */
#ifndef AMPCC_CODEGEN_CUDA_TARGET_H
#define AMPCC_CODEGEN_CUDA_TARGET_H

#include "codegen/backend.h"
#include "codegen/cuda/conv_kernel.h"
#include "codegen/cuda/toolkit/tuning.h"

/* The plan of one convolution. If the device cannot run it, `plan` has neither text nor
 * workspace. */
typedef struct Planned {
  PlanText plan;
  int index;
} Planned;

/* An op that the device cannot run; each reason is reported once. */
typedef struct Refusal {
  SrcLoc loc;
  const char *op, *why;
} Refusal;

/* A launch of a generated kernel; check_kernels tests whether the machine code allows it. */
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
  int fuse_level; /* of CudaOptions */
  Toolkit *toolkit;
  const char *cache; /* folder, or NULL */
  bool with_ptx;     /* the image also serves newer GPUs */
  const Tuning *tuning;
  bool require_tuned;  /* of CudaOptions */
  const char *failure; /* why a library could not be opened, the first reason; NULL: all could */
  Planned *planned;    /* one for each key */
  int n_planned, cap_planned;
  int newest;         /* CudaPart.newest for these plans */
  int n_unrepeatable; /* plans of forms that need FUSE_UNREPEATABLE */
  Refusal *refusal;
  int n_refusals, cap_refusals;
  Wanted *wanted;
  int n_wanted, cap_wanted;
} CudaTarget;

/* Fills cuda->target, the table of functions that passes call. */
void cuda_target_init(CudaTarget *cuda, const char *name);
/* The plan of a convolution that `node` is part of. Valid until the next call. */
const Planned *cuda_planned(CudaTarget *cuda, const Node *node, const ConvOp *op);
/* Notes that the device cannot run the op, and `why`; `op` names it in the message. */
void cuda_refuse(CudaTarget *cuda, const Node *node, const char *op, const char *why);
static inline CudaTarget *cuda_target_of(const Target *target) {
  return (CudaTarget *)target->context;
}
static inline ConvForms cuda_forms(const CudaTarget *cuda) {
  return (ConvForms){cuda->device, cuda->fuse_level};
}

#endif
