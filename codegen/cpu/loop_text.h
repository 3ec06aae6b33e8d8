/* Generated loops of the CPU. */
#ifndef AMPCC_CODEGEN_CPU_LOOP_TEXT_H
#define AMPCC_CODEGEN_CPU_LOOP_TEXT_H

#include "codegen/loop/loop.h"

/* The function's text, `@` for its name. Appends the numbers it uses to the plan. */
const char *loop_text(LoopPlan *plan);

#endif
