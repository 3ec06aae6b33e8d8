/* How our own kernels cut an op into tiles, and the workspace that they need. */
#ifndef AMPCC_CODEGEN_CPU_OWN_PLAN_H
#define AMPCC_CODEGEN_CPU_OWN_PLAN_H

#include "codegen/text/cpu/conv_args.h"
#include "ir/kernel.h"

/* The args of a node, except where its operands lie, with offsets from the start of its
 * workspace. */
typedef struct OwnPlan {
  bool is_grad; /* a filter's gradient, so `grad` and not `conv` */
  AmpConv conv;
  AmpConvGrad grad;
  int64_t workspace; /* bytes */
} OwnPlan;

OwnPlan own_plan(const Node *node);

#endif
