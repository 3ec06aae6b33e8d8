#include "frontend/driver/compile.h"

/* Applies --batch-norm-momentum, whatever form the model came in. */
static void set_norm_momentum(Module *module, const Options *options, Diag *diag) {
  for (int g = 0; g < module->n_graphs && options->batch_norm_momentum >= 0; g++) {
    Graph *graph = module->graph[g];
    if (graph->stage > STAGE_MODEL) {
      diag_error(diag, (SrcLoc){.file = options->model}, DIAG_OPTION,
                 "--batch-norm-momentum cannot change what is built into this graph");
      return;
    }
    for (int i = 0; i < graph->n_nodes; i++)
      if (graph->node[i]->op == OP_BATCH_NORM)
        attr_set_float(graph, graph->node[i], ATTR_MOMENTUM, options->batch_norm_momentum);
  }
}

Module *compile_load(Arena *arena, const Options *options, Diag *diag) {
  Bytes bytes;
  return file_read(arena, options->model, &bytes, diag)
             ? compile_model(arena, options, &bytes, diag)
             : NULL;
}

Module *compile_model(Arena *arena, const Options *options, const Bytes *bytes, Diag *diag) {
  Module *module = model_load(arena, options->model, bytes, options->overrides, diag);
  if (!module)
    return NULL;
  set_norm_momentum(module, options, diag);
  /* A run of single passes (--passes) makes no program, so graphs that no target could run will do.
   */
  bool makes_program = !options->text[OPT_passes] || options_need_plan(options);
  if (diag->n_errors == 0 && makes_program)
    codegen_check(module, diag);
  return diag->n_errors == 0 ? module : NULL;
}

bool compile_passes(Module *module, const Options *options, const Target *target, const char **ran,
                    Diag *diag) {
  Arena *scratch = arena_new();
  PassContext context = {.module = module,
                         .options = &options->compile,
                         .target = target,
                         .diag = diag,
                         .scratch = scratch};
  PassTrace trace = {.print_before = options->text[OPT_print_before],
                     .print_after = options->text[OPT_print_after],
                     .out = stderr};
  bool good = pipeline_run(&context, options->text[OPT_passes], options->text[OPT_skip], &trace);
  arena_free(context.scratch); /* pass_run renews it */
  if (ran)
    *ran = context.ran;
  return good && diag->n_errors == 0;
}

bool compile_is_planned(const Module *module) {
  for (int g = 0; g < module->n_graphs; g++)
    if (module->graph[g]->stage != STAGE_PLANNED)
      return false;
  return true;
}

bool compile_trains(const Module *module) {
  const Graph *train = module->graph[0];
  for (int i = 0; i < train->n_nodes; i++) {
    const Node *node = train->node[i];
    if (node->op == OP_UPDATE && variable_kind(node->arg[0]->node) == VARIABLE_PARAM)
      return true;
  }
  return false;
}

CodegenOptions compile_codegen(const Options *options) {
  const char *temps = options->text[OPT_save_temps];
  return (CodegenOptions){.compile = &options->compile,
                          .cpu = options->text[OPT_cpu],
                          .output = options->output,
                          .resource = options->text[OPT_resource_dir],
                          .cc = options->text[OPT_cc],
                          .save_temps = temps && !*temps ? options->output : temps,
                          .verbose = options->text[OPT_verbose] != NULL,
                          .time_report = options->text[OPT_time_report] != NULL,
                          .cache = options->cache,
                          .cache_bytes = options->cache_bytes,
                          .object = options->emit == EMIT_OBJ,
                          .is_static = options->text[OPT_static] != NULL,
                          .given = options->given,
                          .n_given = options->n_given};
}
