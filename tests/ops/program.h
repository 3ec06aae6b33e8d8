/* A planned module as running code: the text of emit_c, compiled into a shared object and called
 * through its tables, without libamprt. */
#ifndef AMPCC_TESTS_OPS_PROGRAM_H
#define AMPCC_TESTS_OPS_PROGRAM_H

#include "codegen/codegen.h"
#include "tests/eval_env.h"

typedef struct Program Program;

/* Moves every stored value to a place of its own with guard bytes around it, so that anything that
 * a kernel writes beside its results is noticed. */
void program_spread(Module *module);
/* Writes and compiles the code, with oneDNN; `folder` is for its files, `resource` that of
 * amprt.h. Several may be begun before the first is finished. BUGs where the compiler fails. */
Program *program_begin(Arena *arena, const Module *module, const CodegenOptions *options,
                       const char *folder, const char *name);
/* With the kernels of --cpu-library=LIBRARY, for the machine of -march=MARCH. */
Program *program_begin_with(Arena *arena, const Module *module, const CodegenOptions *options,
                            const char *folder, const char *name, const char *library,
                            Winograd winograd, const char *march);
void program_finish(Program *program);
/* Runs one graph: inputs and variables from env, outputs and new state to it, as eval_graph.
 * Returns not 0 if bytes were written that belong to no value (the first one is printed). */
int program_run(Program *program, int graph, int threads, EvalEnv *env);
/* The steps of program_run, for callers that run a graph many times from the same beginning. Blocks
 * are the memory that a run works on. Programs that are made from one module have each value at the
 * same place of their blocks, whatever machine they are for. */
typedef struct Blocks {
  unsigned char *arena, *state;
} Blocks;
/* New memory that holds the inputs and variables of env. */
Blocks program_start(Program *program, int graph, EvalEnv *env);
/* Copies `start` to `end` and runs the graph on it. If `end` is empty, its memory is allocated; if
 * it holds an earlier run of this graph, its memory is used again. That saves time, as blocks can
 * have hundreds of MB, and the system clears each page of new memory. */
void program_run_on(Program *program, int graph, int threads, const Blocks *start, Blocks *end);
/* Do all outputs and variables have the same bytes after two runs? */
bool program_same(Program *program, int graph, const Blocks *a, const Blocks *b);
/* Writes outputs and variables to env. */
void program_results(Program *program, int graph, const Blocks *end, EvalEnv *env);
/* Returns not 0 if a run has written bytes that belong to no value (the first one is printed).
 * Overwrites all values. */
int program_strays(Program *program, int graph, const Blocks *end);
void blocks_free(Blocks *blocks);
/* Another machine: the command of its C compiler, what that takes behind -march=, and the command
 * that runs its programs here. */
typedef struct Machine {
  const char *compiler, *march, *emulator;
} Machine;
/* Compiles the text of a program that was begun for another machine as well, together with
 * tests/ops/emulated.c of the folder `source`. */
void program_emulate(Program *program, const Machine *machine, const char *source);
/* As program_run, but there. */
int program_run_emulated(Program *program, int graph, int threads, EvalEnv *env);
/* Runs every library kernel of a spread program again and again. Returns how many did not give the
 * same bits each time (each is printed). */
int program_repeat(Program *program, int graph, int threads, EvalEnv *env);

#endif
