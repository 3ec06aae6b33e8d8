/* ampcc: model in, training program out. Exit status: 0 done, 1 the user's input, 2 usage, 3 the
 * environment, 70 a bug of ours. */
#include "frontend/certify_run.h"
#include "frontend/compile.h"
#include "frontend/options.h"
#include "frontend/output.h"
#include "frontend/precision_file.h"
#include "frontend/reproducer.h"
#include "frontend/tf/compat.h"
#include "passes/explain.h"
#include "passes/memory_report.h"
#include "passes/traffic_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the model ---- */

/* --precision-file; false after an error. */
static bool load_rules(Arena *arena, Options *options, Diag *diag) {
  const char *path = options->text[OPT_precision_file];
  if (!path)
    return true;
  if (options->compile.dtype == DT_F32)
    diag_error(diag, (SrcLoc){.file = path}, DIAG_OPTION,
               "--precision-file has nothing to choose in fp32: give --dtype=fp16 or bf16");
  else
    options->compile.rules = precision_file_read(arena, path, diag);
  return diag->n_errors == 0;
}

/* ---- what comes out ---- */

static bool print_reports(const Module *module, const Options *options, Diag *diag) {
  FILE *out = strcmp(options->output, "-") ? stdout : stderr;
  const char *explain = options->text[OPT_explain_precision];
  if (options->text[OPT_print_precision])
    precision_report(module, out);
  else if (options->text[OPT_verbose])
    precision_print_totals(module, stderr);
  if (explain && !strcmp(explain, "json"))
    emit_explain(module, out);
  else if (explain && !explain_text(module, *explain ? explain : NULL, out, diag))
    return false;
  if (options->text[OPT_print_memory_plan])
    memory_report(module, out);
  if (options->text[OPT_print_traffic])
    traffic_report(module, out);
  return true;
}

static void say_done(const Module *module, const Options *options) {
  static const char *const dtype[] = {[DT_F32] = "fp32", [DT_F16] = "fp16", [DT_BF16] = "bf16"};
  int64_t arena = 0;
  for (int g = 0; g < module->n_graphs; g++)
    if (module->graph[g]->arena_bytes > arena)
      arena = module->graph[g]->arena_bytes;
  fprintf(stderr, "ampcc: %s: %s, %s, batch %" PRId64 ", %.1f MB of variables, %.1f MB of arena\n",
          options->output, module->recipe->name, dtype[options->compile.dtype],
          module->recipe->batch_size, (double)module->state_bytes / 1e6, (double)arena / 1e6);
}

static int emit_text(Arena *arena, const Module *module, const Options *options) {
  CodegenOptions codegen = compile_codegen(options);
  Output out;
  if (!output_open(arena, options->output, &out))
    return EXIT_ENVIRONMENT;
  if (options->emit == EMIT_IR)
    module_print(module, out.file);
  else if (options->emit == EMIT_JSON)
    emit_json(module, out.file);
  else if (options->emit == EMIT_DOT)
    emit_dot(module, out.file);
  else
    emit_c(&(ProgramPart){module, &backend_cpu}, &codegen, out.file);
  return output_close(&out) ? 0 : EXIT_ENVIRONMENT;
}

static int emit(Arena *arena, const Module *module, const Options *options, Diag *diag) {
  bool needs_plan = options->emit == EMIT_C || options->emit == EMIT_EXE ||
                    options->text[OPT_print_memory_plan] != NULL ||
                    options->text[OPT_print_traffic] != NULL || options->text[OPT_certify];
  if (needs_plan && !compile_is_planned(module)) {
    diag_error(diag, (SrcLoc){.file = options->model}, DIAG_OPTION,
               "a program needs every pass up to plan-memory; --passes or --skip left some out");
    return EXIT_INPUT;
  }
  precision_warn_casts(module, diag);
  if (!print_reports(module, options, diag) || diag->n_errors)
    return EXIT_INPUT;
  int status = options->text[OPT_certify]
                   ? certify_run(arena, options, module->recipe->batch_size, diag)
                   : 0;
  if (status)
    return status;
  if (options->emit != EMIT_EXE)
    return emit_text(arena, module, options);
  CodegenOptions codegen = compile_codegen(options);
  status = build_program(&(ProgramPart){module, &backend_cpu}, 1, &codegen);
  if (status == 0 && !options->text[OPT_quiet])
    say_done(module, options);
  return status;
}

static int compile(Arena *arena, Options *options) {
  Diag diag = {.out = stderr, .warn = options->warn};
  double start = now();
  bool ready = load_rules(arena, options, &diag);
  Module *module = ready ? compile_load(arena, options, &diag) : NULL;
  double loaded = now();
  reproducer_set_module(module);
  int status = EXIT_INPUT;
  if (module && compile_passes(module, options, &diag)) {
    if (options->text[OPT_time_report]) {
      fprintf(stderr, "%9.4f s  import\n", loaded - start);
      pass_time_report(stderr);
    }
    status = emit(arena, module, options, &diag);
  }
  if (diag.n_errors > 1)
    fprintf(stderr, "%d errors\n", diag.n_errors);
  return status;
}

int main(int argc, char **argv) {
  Arena *arena = arena_new();
  Options options;
  int status = 0;
  if (!options_parse(arena, argc, argv, &options)) {
    status = EXIT_USAGE;
  } else if (options.text[OPT_help]) {
    options_help(stdout);
  } else if (options.text[OPT_version]) {
    puts("ampcc " AMPCC_VERSION);
  } else if (options.text[OPT_list_passes]) {
    options_list_passes(stdout);
  } else if (options.text[OPT_list_targets]) {
    targets_list(stdout);
  } else {
    reproducer_install(&options);
    status = options.graphdef ? tf_compat(arena, &options) : compile(arena, &options);
    reproducer_set_module(NULL);
  }
  arena_free(arena);
  return status;
}
