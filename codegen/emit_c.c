/* The program as one C text: head, functions, tables, AmprtProgram, main. Compiled plainly it is a
 * whole program for one instruction set. build.c compiles it several times instead: with
 * AMPCC_VARIANT naming the variant, once per instruction set, and with AMPCC_VARIANTS listing them,
 * for main alone. */
#include "codegen/emit.h"

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

static void text_append(Text *t, FILE *out) {
  fclose(t->file);
  fwrite(t->text, 1, t->size, out);
  free(t->text);
}

static GraphCode emit_graph(CpuEmit *emit, const Graph *graph) {
  CHECK(graph->stage == STAGE_PLANNED, "@%s is in stage %s", graph->name, stage_name[graph->stage]);
  emit->graph = graph;
  GraphCode code = {.graph = graph,
                    .ident = ident_of(emit->arena, graph->name),
                    .kernels = kernels_of(emit->arena, graph)};
  code.call = arena_alloc(emit->arena, (size_t)code.kernels.n * sizeof *code.call);
  for (int i = 0; i < code.kernels.n; i++)
    if (kernel_main(&code.kernels.kernel[i]))
      cpu_emit_main(emit, &code.kernels.kernel[i], &code.call[i]);
    else
      cpu_emit_loop(emit, &code.kernels.kernel[i], &code.call[i]);
  return code;
}

static void emit_graphs(const Module *module, const CodegenOptions *options, FILE *out) {
  Text functions, tables;
  text_open(&functions);
  text_open(&tables);
  CpuEmit emit = {.arena = module->arena,
                  .module = module,
                  .functions = functions.file,
                  .tables = tables.file,
                  .cache = function_cache_new(module->arena),
                  .options = options};
  GraphCode code[MAX_GRAPHS];
  for (int i = 0; i < module->n_graphs; i++)
    code[i] = emit_graph(&emit, module->graph[i]);
  text_append(&functions, out);
  text_append(&tables, out);
  for (int i = 0; i < module->n_graphs; i++)
    emit_graph_tables(module->arena, &code[i], out);
  fputs("static const AmprtGraph graphs[] = {\n", out);
  for (int i = 0; i < module->n_graphs; i++)
    emit_graph_row(&code[i], out);
  fputs("};\n\n", out);
  cpu_emit_hooks(&emit, out);
}

void emit_c(const Module *module, const CodegenOptions *options, FILE *out) {
  VariableList variables = variables_of(module->arena, module);
  fputs("/* A training program, written by ampcc " AMPCC_VERSION ". */\n"
        "#include \"amprt.h\"\n\n#include <stdio.h>\n\n"
        "typedef struct AmpVariant {\n  const AmprtProgram *program;\n  unsigned needs;\n} "
        "AmpVariant;\n\n"
        "#ifndef AMPCC_VARIANTS\n#ifndef AMPCC_VARIANT\n#define AMPCC_VARIANT amp_whole\n"
        "#define AMPCC_VARIANTS V(amp_whole)\n#endif\n\n",
        out);
  cpu_emit_head(out);
  emit_graphs(module, options, out);
  emit_variables(&variables, out);
  emit_recipe(module->recipe, out);
  emit_program(module, options, &variables, out);
  emit_variant(out);
  fputs("#endif\n\n#ifdef AMPCC_VARIANTS\n", out);
  emit_main(out);
  fputs("#endif\n", out);
}
