/* How our own kernels cut an op into tiles, and the workspace that they need. */
#ifndef AMPCC_CODEGEN_CPU_OWN_PLAN_H
#define AMPCC_CODEGEN_CPU_OWN_PLAN_H

#include "codegen/codegen.h"
#include "codegen/text/cpu/conv_args.h"
#include "ir/kernel.h"

/* The args of a kernel's main op, except where its operands lie, with offsets from the start of its
 * workspace. */
typedef struct OwnPlan {
  bool is_grad; /* a filter's gradient, so `grad` and not `conv` */
  bool winograd;
  AmpConv conv;
  AmpConvGrad grad;
  int64_t tiles;     /* with a loop behind: of the result, each of which has sums of its own */
  int64_t sums;      /* where these lie, in the workspace */
  int64_t made;      /* where the result lies in it, if only the loop reads it */
  int64_t workspace; /* bytes */
} OwnPlan;

OwnPlan own_plan(const Kernel *kernel, Winograd winograd);
/* Can a loop run behind the tiles of the main op? */
bool own_takes_loop(const Node *main);

#endif
