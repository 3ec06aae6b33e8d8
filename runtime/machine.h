/* The program in memory: its two blocks, and one run of one of its graphs. */
#ifndef AMPRT_MACHINE_H
#define AMPRT_MACHINE_H

#include "runtime/feed.h"

typedef struct AmprtMachine {
  const AmprtProgram *program;
  AmprtRun run;
  bool opened;      /* program->open has been called */
  double **seconds; /* [graph][kernel], or NULL: no profile */
  int64_t *runs;    /* [graph] */
} AmprtMachine;

/* What the ports of a graph are filled with. */
typedef struct AmprtInputs {
  const AmprtBatch *batch;
  const float *schedule; /* as many as the port holds */
  float bn_momentum;
} AmprtInputs;

/* Checks the program's tables, allocates both blocks, and makes its library objects. */
AmprtStatus amprt_machine_open(AmprtMachine *machine, const AmprtProgram *program,
                               const AmprtOptions *options, AmprtError *error);
void amprt_machine_close(AmprtMachine *machine);

const AmprtGraph *amprt_graph_find(const AmprtProgram *program, const char *name); /* or NULL */
const AmprtPort *amprt_port_find(const AmprtPort *port, int n, const char *name);  /* or NULL */
int64_t amprt_port_elements(const AmprtPort *port);
const void *amprt_port_at(const AmprtMachine *machine, const AmprtPort *port);

/* Called after each kernel of a run, before the next can overwrite what it stored. */
typedef struct AmprtHook {
  void (*after)(void *context, int kernel);
  void *context;
} AmprtHook;

/* One run is fill, then all kernels, in pieces if need be. */
void amprt_machine_fill(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs);
void amprt_machine_kernels(AmprtMachine *machine, const AmprtGraph *graph, int first, int past,
                           const AmprtHook *hook, int n_hooks);
void amprt_machine_run(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs);
/* A scalar output; `otherwise` if the graph has none of that name. */
double amprt_machine_scalar(const AmprtMachine *machine, const AmprtGraph *graph, const char *name,
                            double otherwise);
/* A scalar variable, likewise. */
double amprt_machine_variable(const AmprtMachine *machine, const char *name, double otherwise);
int64_t amprt_machine_step(const AmprtMachine *machine); /* global_step; -1 if there is none */

/* profile.c: seconds by kernel, the slowest first, and by layer. */
void amprt_profile_print(const AmprtMachine *machine, FILE *out);

#endif
