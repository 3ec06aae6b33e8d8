/* The parts of a program, one per target of --target: each has a module of its own, as the pipeline
 * made it for that target. */
#ifndef AMPCC_FRONTEND_DRIVER_PARTS_H
#define AMPCC_FRONTEND_DRIVER_PARTS_H

#include "frontend/driver/compile.h"

typedef struct PartList {
  ProgramPart part[MAX_TARGETS];
  PartFigures figures[MAX_TARGETS];
  int n;
  double load_seconds; /* of all */
} PartList;

/* Reads --tuning-db and finds what each target needs; opens no library yet. An exit status; what a
 * GPU needs and lacks is 3 after one line on stderr if --target named it, else a line that it is
 * left out. */
int parts_open(Arena *arena, const Options *options, PartList *out, Diag *diag);
/* Loads the model and runs the passes for each. An exit status. What concerns the model is reported
 * for one part alone. Without --target a GPU that cannot run the model gets no part and a line. */
int parts_compile(Arena *arena, const Options *options, PartList *parts, Diag *diag);
/* A line per part: what it consists of and what it took. */
void parts_print(const PartList *parts, FILE *out);

#endif
