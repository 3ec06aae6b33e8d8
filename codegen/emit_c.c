/* The program as one C text: head, functions, tables, AmprtProgram, main. Compiled plainly it is a
 * whole program for one instruction set. build.c compiles it in parts: with AMPCC_CODE naming the
 * variant, the functions for one instruction set, and with AMPCC_MAIN listing the variants, all the
 * rest. */
#include "codegen/emit.h"

#include <stdlib.h>
#include <string.h>

typedef struct Text { /* a stream into memory */
  FILE *file;
  char *text;
  size_t size;
} Text;

static void text_open(Text *t) {
  t->file = open_memstream(&t->text, &t->size);
  CHECK(t->file, "out of memory");
}

static void text_append(Text *t, FILE *out) {
  fclose(t->file);
  fwrite(t->text, 1, t->size, out);
  free(t->text);
}

static int function_index(ProgramCode *program, const char *name) {
  for (int i = 0; i < program->n_functions; i++)
    if (strcmp(program->function[i], name) == 0)
      return i;
  arena_push(program->arena, program->function, program->n_functions, program->cap_functions, name);
  return program->n_functions - 1;
}

static GraphCode emit_graph(Emitter *emit, ProgramCode *program, const Graph *graph) {
  CHECK(graph->stage == STAGE_PLANNED, "@%s is in stage %s", graph->name, stage_name[graph->stage]);
  emit->graph = graph;
  GraphCode code = {.graph = graph,
                    .ident = ident_of(emit->arena, graph->name),
                    .kernels = kernels_of(emit->arena, graph)};
  code.call = arena_alloc(emit->arena, (size_t)code.kernels.n * sizeof *code.call);
  code.function = arena_alloc(emit->arena, (size_t)code.kernels.n * sizeof *code.function);
  for (int i = 0; i < code.kernels.n; i++) {
    if (kernel_main(&code.kernels.kernel[i]))
      cpu_emit_main(emit, &code.kernels.kernel[i], &code.call[i]);
    else
      cpu_emit_loop(emit, &code.kernels.kernel[i], &code.call[i]);
    code.function[i] = function_index(program, code.call[i].function);
  }
  return code;
}

static void emit_code(const ProgramCode *program, FILE *out) {
  fputs("#ifdef AMPCC_CODE\nstatic AmpFunction *const functions[] = {\n", out);
  for (int i = 0; i < program->n_functions; i++)
    fprintf(out, "  %s,\n", program->function[i]);
  fputs("  NULL};\n\n", out);
  emit_variant(out);
  fputs("#endif\n\n", out);
}

void emit_c(const Module *module, const CodegenOptions *options, FILE *out) {
  Text functions, tables;
  text_open(&functions);
  text_open(&tables);
  ProgramCode program = {.arena = module->arena, .module = module, .options = options};
  Emitter emit = {.arena = module->arena,
                  .module = module,
                  .functions = functions.file,
                  .tables = tables.file,
                  .cache = function_cache_new(module->arena),
                  .options = options};
  for (int i = 0; i < module->n_graphs; i++)
    program.graph[i] = emit_graph(&emit, &program, module->graph[i]);

  fputs("/* A training program, written by ampcc " AMPCC_VERSION ". */\n"
        "#include \"amprt.h\"\n\n#include <stdio.h>\n\n"
        "typedef void AmpFunction(const AmprtRun *run, const void *args);\n\n"
        "typedef struct AmpVariant { /* the functions compiled for one instruction set */\n"
        "  AmpFunction *const *function;\n  unsigned needs;\n} AmpVariant;\n\n"
        "#if !defined AMPCC_CODE && !defined AMPCC_MAIN\n"
        "#define AMPCC_CODE amp_whole\n#define AMPCC_MAIN V(amp_whole)\n#endif\n\n",
        out);
  cpu_emit_head(out);
  text_append(&functions, out);
  emit_code(&program, out);
  fputs("#ifdef AMPCC_MAIN\n", out);
  text_append(&tables, out);
  cpu_emit_hooks(&emit, out);
  emit_tables(&program, out);
  emit_program(&program, out);
  emit_main(&program, out);
  fputs("#endif\n", out);
}
