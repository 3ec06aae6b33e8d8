/* What a target is to code generation, beside the Target that passes ask: how the kernels of its
 * part become text, and how that text becomes objects. emit_c.c and build.c know targets through
 * this table only. */
#ifndef AMPCC_CODEGEN_BACKEND_H
#define AMPCC_CODEGEN_BACKEND_H

#include "codegen/program/emit.h"

/* One object of a part: the part's text, compiled with these. */
typedef struct Unit {
  const char *name; /* of the object, without its ending */
  const char *level, *march, *define;
} Unit;

enum { MAX_UNITS = 3 };

struct Backend {
  const Target *target;
  const char *ident; /* the part is `amp_part_IDENT` */
  const char *whole; /* macros for a text that is compiled as a program of its own */

  /* The kernels of code->graph: their functions and tables go to program->emit, code->call and the
   * figures are filled. */
  void (*emit_graph)(ProgramCode *program, GraphCode *code);
  /* In front of all: what functions and tables use. */
  void (*emit_head)(FILE *out);
  /* The text of the functions with their types, and what names them: in the part's C text `out`, or
   * in the text `kernels` that compile_kernels is for. */
  void (*emit_functions)(const ProgramCode *program, const char *types, const char *functions,
                         FILE *out, FILE *kernels);
  /* After the tables of all kernels: what `fields` and emit_fits name. */
  void (*emit_hooks)(const ProgramCode *program, FILE *out);
  const char *fields; /* of AmprtProgram */
  /* static int fits(char *why, size_t size): AmprtPart.fits */
  void (*emit_fits)(const ProgramCode *program, FILE *out);

  /* The part's objects, that of the tables last. Their number, 0 after one line on stderr. */
  int (*units)(const Backend *backend, Arena *arena, const CodegenOptions *options,
               Unit unit[MAX_UNITS]);
  /* What the program is linked with beside libamprt: files of the resource folder, which have no
   * slash and end in .a, and arguments of the linker. Ends in NULL. */
  const char *const *libraries;

  /* For targets whose functions are a text of their own; NULL for others. Compiles it to machine
   * code, in the file `code`, and writes it as C to the file `image`. Runs in a process of its own;
   * false after one line on stderr. */
  bool (*compile_kernels)(const Backend *backend, const char *text, const char *code,
                          const char *image);
  /* Is that machine code what the launches need? False after one line on stderr. */
  bool (*check_kernels)(const Backend *backend, const char *code, PartFigures *figures);
  /* The machine code itself, or (TEXT_C) as C. */
  bool (*write_kernels)(const Backend *backend, const char *text, TextForm form,
                        PartFigures *figures, FILE *out);
  /* What the passes found that the target cannot run; NULL: nothing, ever. Returns an exit status.
   */
  int (*report)(const Backend *backend, Diag *diag);
};

#endif
