/* The text of --print-traffic. */
#ifndef AMPCC_PASSES_MEMORY_TRAFFIC_REPORT_H
#define AMPCC_PASSES_MEMORY_TRAFFIC_REPORT_H

#include "ir/ir.h"

#include <stdio.h>

/* Kernels of @train of a module in stage PLANNED, and the bytes that they read from and write to
 * memory, by group. Every tensor that a kernel touches counts once and whole: no cache between
 * kernels, no second pass within one, no scratch, constants are free. */
void traffic_report(const Module *module, FILE *out);

#endif
