/* The parts of a program, one per target of --target: each has a module of its own, as the pipeline
 * made it for that target. */
#ifndef AMPCC_FRONTEND_PARTS_H
#define AMPCC_FRONTEND_PARTS_H

#include "frontend/compile.h"

typedef struct PartList {
  ProgramPart part[MAX_TARGETS];
  PartFigures figures[MAX_TARGETS];
  int n;
  double load_seconds; /* of all */
} PartList;

/* Finds what each target needs; opens no library yet. Without it: 3 after one line on stderr if
 * --target named the GPUs, else a line that they are left out. */
int parts_open(Arena *arena, const Options *options, PartList *out);
/* Loads the model and runs the passes for each. An exit status. What concerns the model is reported
 * for the first part alone. */
int parts_compile(Arena *arena, const Options *options, PartList *parts, Diag *diag);
/* A line per part: what it consists of and what it took. */
void parts_print(const PartList *parts, FILE *out);

#endif
