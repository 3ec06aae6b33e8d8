/* Grouped convolutions as kernels of the program itself: how they are cut into tiles, and the
 * workspace that they need. */
#ifndef AMPCC_CODEGEN_CPU_OWN_GROUPED_H
#define AMPCC_CODEGEN_CPU_OWN_GROUPED_H

#include "codegen/cpu/own_plan.h"

/* Is it a convolution of several groups, or a gradient of one, that text/cpu/grouped.h computes?
 * Not where the groups have many channels each: those are computed as other convolutions are. */
bool is_grouped(const Node *node);
/* The plan of such an op, without a loop behind it. */
OwnPlan grouped_plan(const Node *node);

#endif
