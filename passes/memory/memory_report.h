/* The text of --print-memory-plan. */
#ifndef AMPCC_PASSES_MEMORY_MEMORY_REPORT_H
#define AMPCC_PASSES_MEMORY_MEMORY_REPORT_H

#include "ir/ir.h"

#include <stdio.h>

/* The arena of a program that trains alone: that of the largest graph but @train_dp, which runs
 * only where several shards are trained together. */
int64_t module_arena_bytes(const Module *module);
/* Every place of a module in stage PLANNED, graph by graph; each graph's peak beside the sum of its
 * buffers and the most bytes that are alive at once. */
void memory_report(const Module *module, FILE *out);

#endif
