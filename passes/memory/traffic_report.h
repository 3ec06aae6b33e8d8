/* The text of --print-traffic. */
#ifndef AMPCC_PASSES_MEMORY_TRAFFIC_REPORT_H
#define AMPCC_PASSES_MEMORY_TRAFFIC_REPORT_H

#include "ir/ir.h"

#include <stdio.h>

typedef struct Traffic {
  int kernels;
  int64_t read, written; /* bytes */
} Traffic;

/* The sum that the report ends in. */
Traffic traffic_total(const Module *module);
/* Prints, by group, the kernels of @train of a module in stage PLANNED and the bytes that they read
 * from and write to memory. Every tensor that a kernel touches counts once and whole. Caches
 * between kernels, second passes within one, scratch memory and constants are not counted. */
void traffic_report(const Module *module, FILE *out);

#endif
