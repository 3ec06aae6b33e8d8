/* How our own kernels cut an op into tiles, and the workspace that they need. */
#ifndef AMPCC_CODEGEN_CPU_OWN_PLAN_H
#define AMPCC_CODEGEN_CPU_OWN_PLAN_H

#include "codegen/codegen.h"
#include "codegen/text/cpu/conv_args.h"
#include "ir/kernel.h"

/* What a loop behind a main op needs of the workspace. */
typedef struct OwnLoop {
  int64_t tiles; /* of the main op's result, each of which has sums of its own */
  int64_t sums;  /* where these lie */
  int64_t made;  /* where the result lies, if only the loop reads it */
} OwnLoop;

/* The args of a kernel's main op, except where its operands lie, with offsets from the start of its
 * workspace. */
typedef struct OwnPlan {
  bool is_grad; /* a filter's gradient, so `grad` and not `conv` */
  bool winograd;
  AmpConv conv;
  AmpConvGrad grad;
  OwnLoop loop;
  int64_t workspace; /* bytes */
} OwnPlan;

OwnPlan own_plan(const Kernel *kernel, Winograd winograd);
/* Adds to `workspace` what the loop behind the main op of a kernel needs, whose result is cut into
 * these tiles. *passing: does only the loop read that result? */
OwnLoop own_loop(const Kernel *kernel, const AmpTiles *cut, int64_t *workspace, int32_t *passing);
/* Can a loop run behind the tiles of the main op? */
bool own_takes_loop(const Node *main);

#endif
