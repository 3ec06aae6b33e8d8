/* Shared by the emitters. */
#ifndef AMPCC_CODEGEN_EMIT_H
#define AMPCC_CODEGEN_EMIT_H

#include "codegen/cpu/cpu.h"

/* One graph with the calls of its kernels. */
typedef struct GraphCode {
  const Graph *graph;
  const char *ident; /* its name as part of identifiers */
  KernelList kernels;
  KernelCall *call;
} GraphCode;

/* A variable's node in the first graph that has it. */
typedef struct VariableList {
  const Node **node;
  int n, cap;
} VariableList;
VariableList variables_of(Arena *arena, const Module *module);

/* A C string literal of any bytes. */
void cstring_write(FILE *out, const char *text);
void cdouble_write(FILE *out, double value);

/* emit_tables.c */
void emit_graph_tables(Arena *arena, const GraphCode *code, FILE *out);
void emit_graph_row(const GraphCode *code, FILE *out);
void emit_variables(const VariableList *variables, FILE *out);
void emit_recipe(const struct Recipe *recipe, FILE *out); /* what the program has flags for */

/* emit_program.c: AmprtProgram and main */
void emit_program(const Module *module, const CodegenOptions *options,
                  const VariableList *variables, FILE *out);
void emit_variant(FILE *out); /* exports the program under the name AMPCC_VARIANT */
void emit_main(FILE *out);
/* Hex hash of what checkpoints depend on: parameters, statistics, and the window ops between. The
 * same for every precision, batch size and optimizer. */
const char *fingerprint_of(Arena *arena, const Module *module, const VariableList *variables);

#endif
