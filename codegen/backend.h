/* A target as the code generator sees it: how the kernels of its part of a program become text, and
 * how that text becomes objects. (Passes ask another table about a target: Target in
 * passes/target.h.) The emitters and build.c know targets through this table only. */
#ifndef AMPCC_CODEGEN_BACKEND_H
#define AMPCC_CODEGEN_BACKEND_H

#include "codegen/program/emit.h"

/* One object file of a part: the text of the part, compiled with these arguments. */
typedef struct Unit {
  const char *name; /* of the object file, without its ending */
  bool kernels;     /* are kernels in it, or the tables alone? */
  const char *level, *march;
  const char *define[3]; /* macros, as -D options; ends in NULL */
  const char *feature;   /* an instruction set beside those of `march`, as -m option; or NULL */
  bool is_common;        /* is its text the same in all programs? ampcc may come with the object */
} Unit;

enum { MAX_UNITS = 6 };
struct json_t; /* jansson.h */

struct Backend {
  const Target *target;
  const CpuArch *arch; /* the CPU of the part, or beside its GPU */
  const char *ident;   /* the part is `amp_part_IDENT` */
  const char *whole; /* macros that are defined where a text is compiled as a program of its own */

  /* Writes the functions and tables of the graph's kernels to program->emit, and fills code->call
   * and the figures of the part. */
  void (*emit_graph)(ProgramCode *program, GraphCode *code);
  /* Writes what stands in front of all functions and tables because they use it. */
  void (*emit_head)(const ProgramCode *program, FILE *out);
  /* Writes the functions, their types and the table that names them: to the C text of the part
   * `out`, or to the text `kernels` that compile_kernels compiles. */
  void (*emit_functions)(const ProgramCode *program, const char *types, const char *functions,
                         FILE *out, FILE *kernels);
  /* Writes what `fields` and emit_fits refer to; it stands behind the tables of all kernels. */
  void (*emit_hooks)(const ProgramCode *program, FILE *out);
  const char *fields; /* further fields of AmprtProgram */
  /* Writes the function `static int fits(char *why, size_t size)`, which is AmprtPart.fits. */
  void (*emit_fits)(const ProgramCode *program, FILE *out);

  /* Lists the object files of the part, that of the tables last; without a module those of a part
   * that has all kinds. Returns their number, or 0 after one line on stderr. */
  int (*units)(const Backend *backend, Arena *arena, const Module *module,
               const CodegenOptions *options, Unit unit[MAX_UNITS]);
  /* What the program is linked with beside libamprt: files of the resource folder, which have no
   * slash and end in .a, and arguments of the linker. Ends in NULL. */
  const char *const *libraries;
  /* Files that results of the target depend on, beside what compilers and linkers read; ends in
   * NULL, which may be all. */
  const char *const *files;
  const char *not_static; /* why a program with this part cannot be static; NULL: it can be */

  /* For targets whose functions are a text of their own; NULL for the others. Compiles the text to
   * machine code in the file `code`, and writes that as a C array to the file `image`. It is called
   * in a process of its own. Returns false after one line on stderr. */
  bool (*compile_kernels)(const Backend *backend, const char *text, const char *code,
                          const char *image);
  /* Can that machine code run all launches of the part? Returns false after one line on stderr. */
  bool (*check_kernels)(const Backend *backend, const char *code, PartFigures *figures);
  /* Compiles the text and writes the machine code, or with TEXT_C the C array of it. */
  bool (*write_kernels)(const Backend *backend, const char *text, TextForm form,
                        PartFigures *figures, FILE *out);
  /* Adds to the manifest of the part what only this target has. */
  void (*manifest)(const ProgramCode *program, struct json_t *part);
  /* Reports what the passes found that the target cannot run, and returns an exit status. NULL if
   * there can be nothing to report. */
  int (*report)(const Backend *backend, Diag *diag);
};

#endif
