/* Grouped convolutions as kernels of the program itself: how they are cut into tiles, the workspace
 * that they need, and their calls. */
#ifndef AMPCC_CODEGEN_CPU_OWN_GROUPED_H
#define AMPCC_CODEGEN_CPU_OWN_GROUPED_H

#include "codegen/cpu/own_plan.h"
#include "codegen/text/cpu/grouped_args.h"

/* The args of a kernel, except where its operands lie, with offsets from the start of its
 * workspace. */
typedef struct GroupedPlan {
  bool is_grad; /* a filter's gradient, so `grad` and not `conv` */
  AmpGrouped conv;
  AmpGroupedGrad grad;
  int64_t workspace; /* bytes */
  OwnLoop loop;
} GroupedPlan;

/* Is it a convolution of several groups, or a gradient of one, that these kernels compute? Of those
 * with many channels in each group own_plan.h has the plan. */
bool is_grouped(const Node *node);
/* Of a kernel whose main op is one. */
GroupedPlan grouped_plan(const Kernel *kernel);

#endif
