/* Plans of cuDNN, made when compiling for a device of the table, without a GPU. */
#ifndef AMPCC_CODEGEN_CUDA_TOOLKIT_PLAN_H
#define AMPCC_CODEGEN_CUDA_TOOLKIT_PLAN_H

#include "codegen/cuda/toolkit/toolkit.h"
#include "codegen/cudnn/conv_graph.h"
#include "ir/ir.h"

typedef struct PlanText { /* a plan as text, to become a CudaPlan, and its alternatives */
  const char *key, *json;
  size_t json_bytes;
  int64_t workspace, engine;
  uint32_t notes; /* bit i: numerical note i of cuDNN; bit 0: tensor cores */
  /* set by plan_choose: the engines of all candidates, with their knobs, as JSON */
  const char *const *candidate;
  int n_candidates;
  bool tuned; /* it has the engine that was asked for */
} PlanText;

enum { PLAN_CANDIDATES = 12 }; /* engines that a program holds for each plan, for --tune */

/* What a conv2d, conv2d_dgrad or conv2d_wgrad node computes. Its operands are the node's, in their
 * order, and then its result. */
ConvOp plan_op(const Node *node);

/* The reason given where a device before sm_80 is to multiply as TF32. */
extern const char plan_no_tf32[];

/* A row of plan_forms.def: a fused form for which cuDNN has engines on these GPUs. */
typedef struct PlanForm {
  ConvForm form;
  int least, last;          /* capabilities */
  int c, k, filter, stride; /* what the engines take: see there */
  bool saves;               /* they move fewer bytes than the form's parts do one by one */
  int level;                /* of --fuse-level from which they are used; 0: never */
} PlanForm;

/* The row whose engines take the fused op on the device; NULL if there is none, and for plain
 * convolutions. Opens no library, so that passes can ask when they choose what to fuse. */
const PlanForm *plan_form(const ConvOp *op, const Device *device);
/* The last capability, counted from that of the device, for which the form of the op has engines; 0
 * if all later ones have them. */
int plan_newest(const ConvOp *op, const Device *device);

/* Makes the first `most` plans that suit (see cuda_conv_plans), best first, or takes them from the
 * folder `cache` (NULL: none). Returns how many there are. 0 with one line in `error` if there is
 * no library, in which case toolkit->cudnn_version is 0, or if the device cannot run the op. Equal
 * calls give equal bytes. */
int plan_list(Toolkit *toolkit, const char *cache, Arena *arena, const ConvOp *op,
              const Device *device, PlanText *out, int most, char error[TOOLKIT_ERROR]);
/* The plan of the list whose engine, as JSON without blanks, is `engine`; the first of the list if
 * there is none such or `engine` is NULL. The engines of the list, which must not be empty, become
 * the candidates of the plan. */
PlanText plan_choose(Arena *arena, const PlanText *list, int n, const char *engine);

#endif
