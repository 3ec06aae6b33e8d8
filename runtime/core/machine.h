/* The program in memory: its two blocks, and one run of one of its graphs. */
#ifndef AMPRT_MACHINE_H
#define AMPRT_MACHINE_H

#include "runtime/data/feed.h"

typedef struct AmprtMachine {
  const AmprtProgram *program;
  /* The graph that trains: train_dp if a step has several shards, else graph 0. */
  const AmprtGraph *train;
  uint64_t arena_bytes;
  AmprtRun run;     /* with a device: copies of its blocks, valid only in ranges that were pulled */
  bool opened;      /* program->open has been called */
  bool borrows;     /* the arena is another's */
  double **seconds; /* [graph][kernel], or NULL: no profile */
  int64_t *runs;    /* [graph] */
  /* the graph that was started last; last_image: its images, if its batch is fixed */
  const AmprtGraph *last;
  const float *last_image;
} AmprtMachine;

/* What the ports of a graph are filled with. */
typedef struct AmprtInputs {
  const AmprtBatch *batch;
  const float *schedule; /* as many elements as the port has */
  float bn_momentum;
  bool first_part;    /* with --accumulate: this is the first batch of the step */
  float shard_factor; /* train_dp: 1 / shards */
  float stop_vote;    /* train_dp: 1: a signal wants this process to stop */
} AmprtInputs;

typedef struct AmprtMachinePlan {
  bool shards;          /* graph train_dp trains */
  unsigned char *arena; /* of amprt_machine_arena bytes, zeroed; NULL: the machine makes its own */
  const AmprtRanks *ranks; /* for a device; NULL: it is alone */
} AmprtMachinePlan;

/* Checks the program's tables, allocates both blocks, and makes its library objects or opens its
 * device. */
AmprtStatus amprt_machine_open(AmprtMachine *machine, const AmprtProgram *program,
                               const AmprtOptions *options, const AmprtMachinePlan *plan,
                               AmprtError *error);
/* The size of an arena for all graphs that are used where graph `train` trains. */
uint64_t amprt_machine_arena(const AmprtProgram *program, const AmprtGraph *train);
/* Nothing happens to one that was never opened. */
void amprt_machine_close(AmprtMachine *machine);

const AmprtGraph *amprt_graph_find(const AmprtProgram *program, const char *name); /* or NULL */
const AmprtPort *amprt_port_find(const AmprtPort *port, int n, const char *name);  /* or NULL */
int64_t amprt_port_elements(const AmprtPort *port);
/* batches of one step (--accumulate), at least 1 */
int64_t amprt_parts(const AmprtProgram *program);

/* Host code reads a range of a block only after it has pulled it, and pushes what it has written.
 * Without a device the blocks are the program's own and nothing is copied. After a failure of the
 * device all further calls do nothing, and amprt_machine_check reports it. */
const void *amprt_machine_pull(const AmprtMachine *machine, AmprtBlock block, uint64_t at,
                               uint64_t bytes);
void amprt_machine_push(const AmprtMachine *machine, AmprtBlock block, uint64_t at, uint64_t bytes);
const void *amprt_machine_pull_state(const AmprtMachine *machine); /* the whole block */
void amprt_machine_push_state(const AmprtMachine *machine);
AmprtStatus amprt_machine_check(const AmprtMachine *machine, AmprtError *error);
/* The data of a port, variable or value, pulled. */
const void *amprt_port_at(const AmprtMachine *machine, const AmprtPort *port);
const void *amprt_variable_at(const AmprtMachine *machine, const AmprtVariable *variable);
const void *amprt_value_at(const AmprtMachine *machine, const AmprtValue *value);

/* Called after each kernel of a run, before the next can overwrite what it stored. */
typedef struct AmprtHook {
  void (*after)(void *context, int kernel);
  void *context;
} AmprtHook;

/* One run is fill and then all kernels, at once or in several calls. */
void amprt_machine_fill(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs);
void amprt_machine_kernels(AmprtMachine *machine, const AmprtGraph *graph, int first, int past,
                           const AmprtHook *hook, int n_hooks);
void amprt_machine_run(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs);
/* Can whole runs take images as bytes (AmprtFeedPlan.pixels)? */
bool amprt_machine_takes_pixels(const AmprtMachine *machine);
/* Only with a device: starts a run and returns without waiting for it. */
void amprt_machine_start(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs);
/* A scalar output; `otherwise` if the graph has none of that name. */
double amprt_machine_scalar(const AmprtMachine *machine, const AmprtGraph *graph, const char *name,
                            double otherwise);
/* A scalar variable, likewise. */
double amprt_machine_variable(const AmprtMachine *machine, const char *name, double otherwise);

/* profile.c: seconds by kernel, the slowest first, and by layer. */
void amprt_profile_print(const AmprtMachine *machine, FILE *out);

#endif
