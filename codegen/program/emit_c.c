/* One target's part of a program as one C text: head, functions, tables, AmprtProgram, AmprtPart
 * and main. Compiled without macros it is a program of that part alone. build.c compiles it several
 * times, each time with macros that choose a piece: AMPCC_CODE, which names a variant, chooses the
 * functions, to be compiled for one instruction set; AMPCC_KERNELS those among them that are the
 * same in all programs; AMPCC_TABLES chooses the tables; AMPCC_PARTS, which lists all parts of the
 * program, chooses main. */
#include "codegen/backend.h"
#include "ir/base/clock.h"
#include "ir/base/text.h"

#include <stdlib.h>

enum { TYPES, FUNCTIONS, TABLES, N_DRAFTS };

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

/* What stands in front of the functions: the same in all programs, up to the choice of a target. */
static void emit_begin(const ProgramCode *program, FILE *out) {
  const Backend *backend = program->backend;
  file_fill(out, program->arena,
            "/* A training program, written by ampcc " AMPCC_VERSION ". */\n"
            "#include \"amprt.h\"\n"
            "\n"
            "#include <stdio.h>\n"
            "\n"
            "#if !defined AMPCC_CODE && !defined AMPCC_KERNELS && !defined AMPCC_TABLES\n"
            "$WHOLE\n"
            "#define AMPCC_PARTS P(amp_part_$PART)\n"
            "#endif\n"
            "\n",
            holes({"WHOLE", backend->whole}, {"PART", backend->ident}));
  backend->emit_head(program, out);
}

void emit_common(Arena *arena, const Backend *backend, FILE *out) {
  ProgramCode program = {
      .arena = arena, .backend = backend, .emit = {.arena = arena, .target = backend->target}};
  emit_begin(&program, out);
}

void emit_c(const ProgramPart *part, const CodegenOptions *options, FILE *out, FILE *kernels) {
  Arena *arena = part->module->arena;
  const Backend *backend = part->backend;
  double start = clock_cpu_seconds();
  PartFigures unused = {0};
  ProgramCode program = {.arena = arena,
                         .module = part->module,
                         .backend = backend,
                         .options = options,
                         .figures = part->figures ? part->figures : &unused};

  /* The kernels of all graphs go into three drafts. Functions that are C for the host have their
   * types in front of each; those for another compiler have all types in front of all. */
  TextDraft draft[N_DRAFTS];
  const char *text[N_DRAFTS];
  for (int i = 0; i < N_DRAFTS; i++)
    text_draft(&draft[i]);
  bool apart = backend->compile_kernels != NULL;
  program.emit = (Emitter){.arena = arena,
                           .module = part->module,
                           .types = draft[apart ? TYPES : FUNCTIONS].file,
                           .functions = draft[FUNCTIONS].file,
                           .tables = draft[TABLES].file,
                           .cache = function_cache_new(arena),
                           .options = options,
                           .target = backend->target,
                           .constants = apart ? arena_new_of(arena, Bytes) : NULL};
  for (int i = 0; i < part->module->n_graphs; i++)
    program.graph[i] = emit_graph(&program, part->module->graph[i]);
  for (int i = 0; i < N_DRAFTS; i++)
    text[i] = text_take(&draft[i], arena);

  emit_begin(&program, out);
  backend->emit_functions(&program, text[TYPES], text[FUNCTIONS], out, kernels);
  fprintf(out, "#ifdef AMPCC_TABLES\n%s", text[TABLES]);
  backend->emit_hooks(&program, out);
  emit_tables(&program, out);
  program.functions = text[FUNCTIONS];
  emit_program(&program, out);
  emit_part(&program, out);
  fputs("#endif\n\n#ifdef AMPCC_PARTS\n", out);
  emit_main(out);
  fputs("#endif\n", out);
  program.figures->seconds += clock_cpu_seconds() - start;
}

int emit_program_text(const ProgramPart *part, const CodegenOptions *options, TextForm form,
                      FILE *out) {
  const Backend *backend = part->backend;
  bool apart = backend->compile_kernels != NULL, good = true;
  PartFigures none = {0}, *figures = part->figures ? part->figures : &none;
  Arena *arena = part->module->arena;
  TextDraft c, kernels;
  text_draft(&c);
  text_draft(&kernels);
  emit_c(part, options, form == TEXT_C ? out : c.file, apart ? kernels.file : NULL);
  fclose(c.file);
  free(c.text);
  const char *text = text_take(&kernels, arena);
  double start = clock_cpu_seconds();
  if (form == TEXT_KERNELS)
    fputs(text, out);
  else if (apart)
    good = backend->write_kernels(backend, text, form, figures, out);
  figures->seconds += clock_cpu_seconds() - start;
  return good ? 0 : 3;
}

const Target *backend_target(const Backend *backend) {
  return backend->target;
}

const char *backend_not_static(const Backend *backend) {
#ifdef AMPCC_SANITIZE
  return "this ampcc makes programs with sanitizers, which are shared libraries";
#endif
  return backend->not_static;
}

int backend_report(const Backend *backend, Diag *diag) {
  return backend->report ? backend->report(backend, diag) : 0;
}
