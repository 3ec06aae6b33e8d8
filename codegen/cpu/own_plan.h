/* How our own kernels cut an op into tiles, and the workspace that they need. */
#ifndef AMPCC_CODEGEN_CPU_OWN_PLAN_H
#define AMPCC_CODEGEN_CPU_OWN_PLAN_H

#include "codegen/codegen.h"
#include "codegen/text/cpu/grouped_args.h"
#include "ir/kernel.h"

/* Which kernel computes a main op, and so which of the args of an OwnPlan count. */
typedef enum OwnKind { OWN_CONV, OWN_GRAD, OWN_GROUPED, OWN_GROUPED_GRAD } OwnKind;

/* The args of a kernel's main op, except where its operands lie, with offsets from the start of its
 * workspace. */
typedef struct OwnPlan {
  OwnKind kind;
  bool winograd;
  AmpConv conv;
  AmpConvGrad grad;
  AmpGrouped grouped;
  AmpGroupedGrad grouped_grad;
  int64_t tiles;     /* with a loop behind: of the result, each of which has sums of its own */
  int64_t sums;      /* where these lie, in the workspace */
  int64_t made;      /* where the result lies in it, if only the loop reads it */
  int64_t workspace; /* bytes */
} OwnPlan;

OwnPlan own_plan(const Kernel *kernel, Winograd winograd);
/* How the window of a convolution, or of a gradient of one, meets an axis: 0 is from top to bottom,
 * 1 from left to right. */
AmpWindow own_window(const Node *node, int axis, int64_t in, int64_t out, int64_t taps);
/* Can a loop run behind the tiles of the main op? */
bool own_takes_loop(const Node *main);

#endif
