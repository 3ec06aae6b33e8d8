/* Reads any bytes as the text form of a graph. The parser never crashes; a graph that it accepts
 * prints as a text that reads back as the same text, and goes through every pass that accepts it.
 * Without a fuzzing engine the seeds run as a test. */
#include "codegen/codegen.h"
#include "passes/pass.h"
#include "tests/fuzz/round_trip.h"

/* The most bytes of one tensor: passes compute constants, which could otherwise take terabytes. */
enum { MOST_BYTES = 1 << 20 };

static bool is_small(const Module *module) {
  for (int g = 0; g < module->n_graphs; g++)
    for (int i = 0; i < module->graph[g]->n_nodes; i++)
      for (int r = 0; r < module->graph[g]->node[i]->n_results; r++)
        if (type_bytes(module->graph[g]->node[i]->result[r]->type) > MOST_BYTES)
          return false;
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static FILE *null;
  if (!null)
    null = fopen("/dev/null", "w");
  Arena *arena = arena_new();
  char *text = arena_strdup(arena, (const char *)data, size);
  Diag diag = {.out = null, .source = text};
  Module *module = module_parse(arena, "fuzz.amp", text, &diag);
  CHECK(module || diag.n_errors, "parse failed without a diagnostic");
  if (module) {
    module_verify(module, "parsing");
    check_round_trip(arena, module, &diag);
  }
  if (module && is_small(module) && codegen_check(module, &diag)) {
    CompileOptions options;
    compile_options_default(&options);
    options.dtype = size % 3 == 0 ? DT_F32 : size % 3 == 1 ? DT_F16 : DT_BF16;
    PassContext context = {module, &options, &target_cpu_own[WINOGRAD_AUTO], &diag, arena_new()};
    PassTrace trace = {.out = null};
    pipeline_run(&context, NULL, NULL, &trace);
    module_verify(module, "the pipeline");
    arena_free(context.scratch);
  }
  arena_free(arena);
  return 0;
}
