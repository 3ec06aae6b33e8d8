/* --target: what a program is built for. */
#ifndef AMPCC_FRONTEND_DRIVER_TARGETS_H
#define AMPCC_FRONTEND_DRIVER_TARGETS_H

#include "codegen/codegen.h"
#include "codegen/cuda/toolkit/device.h"

#include <stdio.h>

enum { MAX_TARGETS = 32 };

/* In the order in which the program tries them: GPUs, newest first, then the CPU. */
typedef struct TargetList {
  const Device *device[MAX_TARGETS]; /* NULL: the CPU */
  const CpuArch *arch;               /* the CPU, which is also that beside the GPUs */
  int n;
} TargetList;

/* Reads a list such as "cpu,cuda:h200,cuda:sm_80,cuda". GPUs of one capability are one target, for
 * which the first one named stands. A program is for one kind of CPU: the one named, else AArch64
 * if one of the GPUs is only found beside it, else x86-64. False after one line on stderr. */
bool targets_parse(Arena *arena, const char *text, TargetList *out);
/* The CPU that such a list names, or that beside the GPUs that it names; NULL is an empty list. */
const CpuArch *targets_cpu(Arena *arena, const char *text);
/* Prints what --list-targets shows. */
void targets_list(FILE *out);

#endif
