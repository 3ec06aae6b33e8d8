/* What the emitters of this folder share. */
#ifndef AMPCC_CODEGEN_PROGRAM_EMIT_H
#define AMPCC_CODEGEN_PROGRAM_EMIT_H

#include "codegen/loop/emitter.h"

/* One graph with the calls of its kernels. */
typedef struct GraphCode {
  const Graph *graph;
  const char *ident; /* its name as part of identifiers */
  KernelList kernels;
  KernelCall *call;
} GraphCode;

/* One part of a program being written. */
typedef struct ProgramCode {
  Arena *arena;
  const Module *module;
  const Backend *backend;
  const CodegenOptions *options;
  PartFigures *figures;
  const char *functions; /* the text of all kernels */
  Emitter emit;
  GraphCode graph[MAX_GRAPHS];
  const char **function; /* every function that a kernel of the CPU calls, once */
  int n_functions, cap_functions;
} ProgramCode;

/* The module's variables, each as its node in the first graph that has it. */
typedef struct VariableList {
  const Node **node;
  int n, cap;
} VariableList;
VariableList variables_of(Arena *arena, const Module *module);

/* As C: a string of any bytes as a literal; a number; the fields dtype, rank and dim of a row. */
const char *cstring_text(Arena *arena, const char *text);
const char *cdouble_text(Arena *arena, double value);
const char *ctype_text(Arena *arena, TensorType type);

/* emit_tables.c, emit_state.c: `graphs`, `variables`, `settings` and what they point to */
void emit_tables(const ProgramCode *program, FILE *out);
void emit_state(const ProgramCode *program, FILE *out);
/* emit_values.c: what the graph stores (an empty table unless `all`), and its first update */
void emit_values(Arena *arena, const GraphCode *code, bool all, FILE *out);

/* emit_buckets.c: what the graph sums over shards, and from where on it runs once */
void emit_buckets(const ProgramCode *program, const GraphCode *code, FILE *out);
/* Per kernel: is it the first that reads sums of a bucket? Looks at no places. */
bool *bucket_waits(Arena *arena, const GraphCode *code);

/* emit_manifest.c: texts that stand compressed in the section `ampcc` of the program. Each function
 * writes the data and returns the initialiser of an AmprtPacked. */
const char *emit_note(Arena *arena, const char *name, const char *text, size_t size, FILE *out);
const char *emit_report(Arena *arena, const char *name, void (*report)(const Module *, FILE *),
                        const Module *module, FILE *out);
/* The manifest: what is the same for all parts, up to the list of parts; and this part. */
const char *emit_manifest(const ProgramCode *program, const char *fingerprint, FILE *out);
const char *emit_part_manifest(const ProgramCode *program, FILE *out);

/* emit_program.c: AmprtProgram; AmprtPart; main, which lists the parts that AMPCC_PARTS names */
void emit_program(const ProgramCode *program, FILE *out);
void emit_part(const ProgramCode *program, FILE *out);
void emit_main(FILE *out);

#endif
