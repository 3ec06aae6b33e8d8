/* Graph -> program. The module must be in stage PLANNED. */
#ifndef AMPCC_CODEGEN_CODEGEN_H
#define AMPCC_CODEGEN_CODEGEN_H

#include "passes/pass.h"

typedef struct CodegenOptions {
  const CompileOptions *compile;
  const char *cpu; /* "x86-64-v3" (default), "x86-64-v4", "native", ...: a -march= value, checked */
  const char *output;     /* final path */
  const char *resource;   /* folder of libamprt.a, amprt.h, ...; NULL: beside the running ampcc */
  const char *cc;         /* C compiler; NULL: $CC, else cc */
  const char *save_temps; /* keep generated files, named after this prefix; or NULL */
  bool verbose;           /* print the commands run */
  bool time_report;       /* add emit, cc and ld to the time report */
} CodegenOptions;

/* backend.h: a target as the code generator sees it. */
typedef struct Backend Backend;
extern const Target target_cpu;   /* codegen/cpu/target.c */
extern const Backend backend_cpu; /* codegen/cpu/backend.c */

/* What a program holds for one target. */
typedef struct ProgramPart {
  const Module *module; /* stage PLANNED, for the backend's target */
  const Backend *backend;
} ProgramPart;

/* check.c: reports (E402) what the target cannot run; before the pipeline. */
bool codegen_check(const Module *module, Diag *diag);
/* emit_c.c: the program of one part as one C text (deterministic: no paths, no times). */
void emit_c(const ProgramPart *part, const CodegenOptions *options, FILE *out);
/* emit_json.c, emit_dot.c: for tools and for people */
void emit_json(const Module *module, FILE *out);
void emit_dot(const Module *module, FILE *out);
/* emit_explain.c: --explain-precision=json */
void emit_explain(const Module *module, FILE *out);
/* build.c: C texts -> objects -> executable, written under a temporary name beside `output` and
 * renamed. The program tries its parts in this order. Returns 0, or 3 after one line on stderr that
 * names the call and the way out. */
int build_program(const ProgramPart *part, int n_parts, const CodegenOptions *options);

#endif
