/* The C statements of single nodes of a loop, the same for every target. Targets differ in how they
 * spell an operand that the kernel loads. Attributes and constants are numbers of the args and
 * spelled `f[2]`; a function whose statements have any must declare `f`. */
#ifndef AMPCC_CODEGEN_LOOP_STATEMENT_H
#define AMPCC_CODEGEN_LOOP_STATEMENT_H

#include "codegen/loop/loop.h"

/* Input i of the plan where a statement uses it: "b3[i]". */
typedef const char *LoopSpelling(const LoopPlan *plan, int i);

bool is_low(DType dtype); /* f16 or bf16 */
const char *low_name(DType dtype);
const char *held_type(DType dtype); /* what a value is while the kernel holds it */
/* Stored in 16 bits? A constant holds f32 for every float type; see ref_read. */
bool input_is_low(const LoopInput *in);

int node_number(const LoopPlan *plan, const Node *node); /* its place in the kernel */
const char *result_name(const LoopPlan *plan, const Node *node, int r);
const char *operand_name(LoopPlan *plan, LoopSpelling *spelling, const Node *node, int k);
/* What the second sum of bn_sums and bn_grad_stats multiplies operand 0 by. */
const char *sum_factor(LoopPlan *plan, LoopSpelling *spelling, const Node *node);
/* What output `o` stores. */
const char *output_source(const LoopPlan *plan, LoopSpelling *spelling, const LoopOutput *out);

/* Declares the results of a POINT or VECTOR node and computes them. May add numbers to the plan. */
void write_point(LoopPlan *plan, LoopSpelling *spelling, Text *to, const Node *node);
void declare_results(const LoopPlan *plan, Text *to, const Node *node);
void round_result(const LoopPlan *plan, Text *to, const Value *value);

#endif
