/* One target's part of a program as one C text: head, functions, tables, AmprtProgram, AmprtPart,
 * main. Compiled plainly it is a program of that part alone. build.c compiles pieces of it: with
 * AMPCC_CODE naming a variant, the functions for one instruction set; with AMPCC_TABLES, the
 * tables; with AMPCC_PARTS listing every part of the program, main. */
#include "codegen/backend.h"

#include <stdlib.h>

typedef struct Text { /* a stream into memory */
  FILE *file;
  char *text;
  size_t size;
} Text;

static void text_open(Text *t) {
  t->file = open_memstream(&t->text, &t->size);
  CHECK(t->file, "out of memory");
}

static const char *text_close(Text *t) {
  fclose(t->file);
  return t->text;
}

static GraphCode emit_graph(ProgramCode *program, const Graph *graph) {
  CHECK(graph->stage == STAGE_PLANNED, "@%s is in stage %s", graph->name, stage_name[graph->stage]);
  Arena *arena = program->arena;
  GraphCode code = {
      .graph = graph, .ident = ident_of(arena, graph->name), .kernels = kernels_of(arena, graph)};
  code.call = arena_alloc(arena, (size_t)code.kernels.n * sizeof *code.call);
  program->emit.graph = graph;
  program->backend->emit_graph(program, &code);
  return code;
}

static void write_head(const Backend *backend, FILE *out) {
  fprintf(out,
          "/* A training program, written by ampcc " AMPCC_VERSION ". */\n"
          "#include \"amprt.h\"\n\n#include <stdio.h>\n\n"
          "#if !defined AMPCC_CODE && !defined AMPCC_TABLES\n"
          "%s#define AMPCC_PARTS P(amp_part_%s)\n#endif\n\n",
          backend->whole, backend->ident);
  backend->emit_head(out);
}

void emit_c(const ProgramPart *part, const CodegenOptions *options, FILE *out) {
  const Module *module = part->module;
  const Backend *backend = part->backend;
  Text functions, tables;
  text_open(&functions);
  text_open(&tables);
  ProgramCode program = {
      .arena = module->arena, .module = module, .backend = backend, .options = options};
  program.emit = (Emitter){.arena = module->arena,
                           .module = module,
                           .types = functions.file,
                           .functions = functions.file,
                           .tables = tables.file,
                           .cache = function_cache_new(module->arena),
                           .options = options};
  for (int i = 0; i < module->n_graphs; i++)
    program.graph[i] = emit_graph(&program, module->graph[i]);

  write_head(backend, out);
  backend->emit_functions(&program, text_close(&functions), out);
  fprintf(out, "#ifdef AMPCC_TABLES\n%s", text_close(&tables));
  backend->emit_hooks(&program, out);
  emit_tables(&program, out);
  emit_program(&program, out);
  emit_part(&program, out);
  fputs("#endif\n\n#ifdef AMPCC_PARTS\n", out);
  emit_main(out);
  fputs("#endif\n", out);
  free(functions.text);
  free(tables.text);
}
