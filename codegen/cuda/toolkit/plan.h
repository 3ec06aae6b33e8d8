/* Plans of cuDNN made when compiling: for a device of the table, without a GPU. */
#ifndef AMPCC_CODEGEN_CUDA_TOOLKIT_PLAN_H
#define AMPCC_CODEGEN_CUDA_TOOLKIT_PLAN_H

#include "codegen/cuda/toolkit/toolkit.h"
#include "codegen/cudnn/conv_graph.h"
#include "ir/ir.h"

typedef struct PlanText { /* all of CudaPlan, and what the choice was */
  const char *key, *json;
  size_t json_bytes;
  int64_t workspace, engine;
  uint32_t notes; /* bit i: numerical note i of cuDNN; bit 0: tensor cores */
  /* plan_choose: engines of all that there were, with their knobs, as JSON */
  const char *const *candidate;
  int n_candidates;
  bool tuned; /* it is the one that was asked for */
} PlanText;

enum { PLAN_CANDIDATES = 12 }; /* that a program holds of each plan for --tune */

/* What a conv2d, conv2d_dgrad or conv2d_wgrad node computes; operands in the order of its args,
 * then its result. */
ConvOp plan_op(const Node *node);

/* Why a device before sm_80 refuses what is to multiply as TF32. */
extern const char plan_no_tf32[];

/* Has cuDNN an engine for the op's form on the device, by the table plan_forms.def? Asks no
 * library: for passes that choose what to fuse. */
bool plan_exists(const ConvOp *op, const Device *device);
/* Up to which capability, from the device's on, the op's form has engines; 0: as far as there are
 * GPUs. */
int plan_newest(const ConvOp *op, const Device *device);
/* Has it one for this fused form that moves fewer bytes than the form's parts do? */
bool plan_saves(const ConvOp *op, const Device *device);

/* The first `most` plans that suit (see cuda_conv_plans), best first, from the cache folder (NULL:
 * none) if they were made before. How many; 0 with one line in `error`: no library
 * (toolkit->cudnn_version is 0 then), or the reason why the device cannot run the op. Equal calls
 * give equal bytes. */
int plan_list(Toolkit *toolkit, const char *cache, Arena *arena, const ConvOp *op,
              const Device *device, PlanText *out, int most, char error[TOOLKIT_ERROR]);
/* The best one. */
bool plan_make(Toolkit *toolkit, const char *cache, Arena *arena, const ConvOp *op,
               const Device *device, PlanText *out, char error[TOOLKIT_ERROR]);
/* Of a list that is not empty the one whose engine, as JSON without blanks, is `engine`; the first
 * if none is or it is NULL. With the list as its candidates. */
PlanText plan_choose(Arena *arena, const PlanText *list, int n, const char *engine);

#endif
