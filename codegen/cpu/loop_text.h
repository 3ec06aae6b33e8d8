/* The text of the CPU's loops. */
#ifndef AMPCC_CODEGEN_CPU_LOOP_TEXT_H
#define AMPCC_CODEGEN_CPU_LOOP_TEXT_H

#include "codegen/loop/loop.h"

/* The function that runs the kernel, with `@` for its name; with a convolution in front of the loop
 * its args have a member `conv`. Adds the numbers that it uses to the plan. */
const char *loop_text(LoopPlan *plan);

#endif
