/* The parts of a program, one per target. Each has a module of its own, since the pipeline makes
 * different kernels for each target. */
#ifndef AMPCC_FRONTEND_DRIVER_PARTS_H
#define AMPCC_FRONTEND_DRIVER_PARTS_H

#include "frontend/driver/compile.h"

typedef struct PartList {
  ProgramPart part[MAX_TARGETS];
  PartFigures figures[MAX_TARGETS];
  int n;
  InputFile *input; /* every file that the program is made from */
  int n_inputs, cap_inputs;
  const char *source;  /* CodegenOptions.source */
  bool said;           /* was something said that -q does not want to hear? */
  double load_seconds; /* what reading the model took for all parts together */
} PartList;

/* Adds a file that was read to the list of inputs. */
void parts_input(Arena *arena, PartList *parts, const char *what, const char *path,
                 const void *bytes, size_t size);
/* Reads --tuning-db and finds the backend of each target; opens no library yet. Returns an exit
 * status. If the toolkit that a GPU needs is missing, that is 3 after one line on stderr if
 * --target named the GPU; else a line says that there will be no parts for GPUs. */
int parts_open(Arena *arena, const Options *options, PartList *out, Diag *diag);
/* Loads the model and runs the passes for each part. Returns an exit status. What concerns the
 * model is reported for one part only. Without --target, a GPU that cannot run the model gets no
 * part, and a line says so. */
int parts_compile(Arena *arena, const Options *options, PartList *parts, Diag *diag);
/* The largest workspace that any kernel of the part needs. */
int64_t part_workspace_bytes(const ProgramPart *part);
/* compile_codegen with what is known of the parts. */
CodegenOptions parts_codegen(const PartList *parts, const Options *options);
/* Prints a line per part: what it consists of and how long it took. */
void parts_print(const PartList *parts, FILE *out);

#endif
