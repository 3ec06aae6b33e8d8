/* ampcc: model in, training program out. */
#include "frontend/batch/batch.h"
#include "frontend/batch/figures.h"
#include "frontend/driver/certify_run.h"
#include "frontend/driver/depfile.h"
#include "frontend/driver/parts.h"
#include "frontend/driver/precision_file.h"
#include "frontend/driver/reproducer.h"
#include "frontend/driver/whole.h"
#include "frontend/explain/explain.h"
#include "ir/base/exit.h"
#include "ir/base/output.h"
#include "ir/base/reads.h"
#include "ir/base/text.h"
#include "passes/memory/memory_report.h"
#include "passes/memory/traffic_report.h"
#include "passes/precision/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The form of text that each --emit= asks code generation for. */
static const TextForm text_form[EMIT_COUNT] = {[EMIT_C] = TEXT_C,
                                               [EMIT_CUDA] = TEXT_KERNELS,
                                               [EMIT_PTX] = TEXT_PTX,
                                               [EMIT_CUBIN] = TEXT_CUBIN};

/* ---- the model ---- */

/* --precision-file; false after an error. */
static bool load_rules(Arena *arena, Options *options, PartList *parts, Diag *diag) {
  const char *path = options->text[OPT_precision_file], *text = NULL;
  if (!path)
    return true;
  if (options->compile.dtype == DT_F32)
    diag_error(diag, (SrcLoc){.file = path}, DIAG_OPTION,
               "--precision-file has nothing to choose in fp32: give --dtype=fp16 or bf16");
  else
    options->compile.rules = precision_file_read(arena, path, &text, diag);
  if (text)
    parts_input(arena, parts, "precision file", path, text, strlen(text));
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
  return true;
}

/* The reports that differ from target to target. */
static void print_plans(const PartList *parts, const Options *options) {
  FILE *out = strcmp(options->output, "-") ? stdout : stderr;
  for (int i = 0; i < parts->n; i++) {
    const ProgramPart *part = &parts->part[i];
    bool plan = options->text[OPT_print_memory_plan], traffic = options->text[OPT_print_traffic];
    if (parts->n > 1 && (plan || traffic))
      fprintf(out, "%starget %s\n", i ? "\n" : "", backend_target(part->backend)->name);
    if (plan)
      memory_report(part->module, out);
    if (traffic)
      traffic_report(part->module, out);
  }
}

/* What is said of a program behind its name. */
static void print_summary(const PartList *parts, const Options *options, FILE *out) {
  const Module *module = parts->part[0].module;
  text_print(module->recipe->name, SIZE_MAX, out);
  fprintf(out, ", %s, batch %" PRId64 "\n", dtype_info[options->compile.dtype].flag,
          module->recipe->batch_size);
  parts_print(parts, out);
}

static void say_done(const PartList *parts, const Options *options) {
  text_say("ampcc: %s: ", options->output);
  print_summary(parts, options, stderr);
}

/* Keeps the program in the cache, unless something was said that a later compile must say again. */
static void keep(Arena *arena, const PartList *parts, const Options *options, const Diag *diag,
                 Whole *whole) {
  bool said = parts->said || diag->n_notes;
  for (int i = 0; i < WARN_COUNT; i++)
    said |= diag->n_warnings[i] > 0;
  if (said)
    return;
  PartList *quick = arena_new_of(arena, PartList);
  *quick = *parts;
  for (int i = 0; i < quick->n; i++) { /* which then takes no time */
    quick->figures[i] = *parts->part[i].figures;
    quick->figures[i].seconds = 0;
    quick->part[i].figures = &quick->figures[i];
  }
  TextDraft draft;
  print_summary(quick, options, text_draft(&draft));
  const char *summary = text_take(&draft, arena);
  whole_keep(whole, options, summary, draft.size);
}

static int emit_text(Arena *arena, const PartList *parts, const Options *options) {
  const ProgramPart *part = &parts->part[0];
  CodegenOptions codegen = parts_codegen(parts, options);
  Output out;
  int status = 0;
  if (!output_open(arena, options->output, &out))
    return EXIT_ENVIRONMENT;
  if (options->emit == EMIT_IR)
    module_print(part->module, out.file);
  else if (options->emit == EMIT_JSON)
    emit_json(part->module, out.file);
  else if (options->emit == EMIT_DOT)
    emit_dot(part->module, out.file);
  else
    status = emit_program_text(part, &codegen, text_form[options->emit], out.file);
  if (status)
    output_drop(&out);
  return !status && output_close(&out) ? 0 : EXIT_ENVIRONMENT;
}

/* --dry-run: everything has been checked and planned. */
static int dry_run(Arena *arena, const PartList *parts, const Options *options) {
  CodegenOptions codegen = parts_codegen(parts, options);
  codegen.dry_run = true;
  bool builds = options->emit == EMIT_EXE || options->emit == EMIT_OBJ;
  int status = builds ? build_program(parts->part, parts->n, &codegen) : 0;
  const char *const *reads = reads_list();
  for (int i = 0; reads[i] && !status; i++)
    printf("reads %s\n", reads[i]);
  const char *writes[] = {options->text[OPT_certify], options->text[OPT_figures], options->output,
                          depfile_path(arena, options), options->text[OPT_diagnostics_file]};
  for (size_t i = 0; i < sizeof writes / sizeof *writes && !status; i++)
    if (writes[i] && *writes[i] && strcmp(writes[i], "-") != 0)
      printf("writes %s\n", writes[i]);
  return status;
}

static int emit(Arena *arena, const PartList *parts, const Options *options, Diag *diag,
                Whole *whole) {
  const Module *module = parts->part[0].module;
  if (options_need_plan(options) && !compile_is_planned(module)) {
    diag_error(diag, (SrcLoc){.file = options->model}, DIAG_OPTION,
               "a program needs every pass up to plan-memory; --passes or --skip left some out");
    return EXIT_INPUT;
  }
  if (options->emit >= EMIT_C && !compile_trains(module)) {
    diag_error(diag, (SrcLoc){.file = options->model}, DIAG_OPTION,
               "a program trains, and this graph updates no parameter: --passes or --skip left out "
               "`optimizer`, or the graph was made without it");
    return EXIT_INPUT;
  }
  precision_warn_casts(module, diag);
  if (!print_reports(module, options, diag) || diag->n_errors)
    return EXIT_INPUT;
  print_plans(parts, options);
  if (options->text[OPT_dry_run])
    return dry_run(arena, parts, options);
  int status = options->text[OPT_certify]
                   ? certify_run(arena, options, module->recipe->batch_size, diag)
                   : 0;
  if (status)
    return status;
  CodegenOptions codegen = parts_codegen(parts, options);
  codegen.used = whole->wanted ? &whole->used : NULL;
  if (options->emit == EMIT_EXE || options->emit == EMIT_OBJ)
    status = build_program(parts->part, parts->n, &codegen);
  else
    status = emit_text(arena, parts, options);
  bool machine_code =
      options->emit == EMIT_EXE || options->emit == EMIT_OBJ || options->emit == EMIT_CUBIN;
  if (status == 0 && options->text[OPT_figures])
    status = figures_write(arena, parts, options);
  if (status == 0 && !depfile_write(arena, options))
    status = EXIT_ENVIRONMENT;
  if (status == 0 && machine_code && !options->silent)
    say_done(parts, options);
  if (status == 0 && whole->wanted)
    keep(arena, parts, options, diag, whole);
  return status;
}

/* --print-recipe: every field that has a value, and who has set it. */
static void print_recipe(const Recipe *recipe, const Options *options) {
  for (int i = 0; i < RECIPE_COUNT; i++) {
    const RecipeField *field = &recipe_field[i];
    const void *at = (const char *)recipe + field->offset;
    if (field->kind == RECIPE_FLOAT && !recipe_is_set(at))
      continue; /* a coefficient that is as the optimizer's row has it */
    const char *source = recipe_is_default(recipe, field) ? "default" : "the model";
    for (int k = 0; k < options->overrides.n; k++)
      if (options->overrides.at[k].field == field)
        source = options->overrides.at[k].source ? options->overrides.at[k].source : "a flag";
    printf("--%s=", field->flag);
    recipe_print_field(recipe, field, stdout);
    printf("  # %s\n", source);
  }
}

static int compile(Arena *arena, Options *options) {
  Diag diag = {.file = strcmp(options->model, "-") ? options->model : "<stdin>",
               .warn = options->warn,
               .quiet = options->text[OPT_quiet] != NULL,
               .all_errors = options->text[OPT_all_errors] != NULL};
  Diagnostics diagnostics;
  diagnostics_start(&diagnostics, "ampcc", AMPCC_VERSION, &options->diagnostics, &diag);
  PartList *parts = arena_new_of(arena, PartList);
  int status = load_rules(arena, options, parts, &diag) ? parts_open(arena, options, parts, &diag)
                                                        : EXIT_INPUT;
  if (!status && options->text[OPT_print_recipe]) {
    const Module *module = compile_load(arena, options, &diag);
    if (module)
      print_recipe(module->recipe, options);
    return diagnostics_finish(arena, &diagnostics, &diag, module ? 0 : EXIT_INPUT);
  }
  Whole whole;
  if (!status && whole_find(arena, options, parts, &whole, &status)) {
    if (!status && !depfile_write(arena, options))
      status = EXIT_ENVIRONMENT;
    return diagnostics_finish(arena, &diagnostics, &diag, status);
  }
  if (!status)
    status = parts_compile(arena, options, parts, &diag);
  if (!status && options->text[OPT_time_report]) {
    text_say("%9.4f s  import\n", parts->load_seconds);
    pass_time_report(stderr);
  }
  if (!status)
    status = emit(arena, parts, options, &diag, &whole);
  return diagnostics_finish(arena, &diagnostics, &diag, status);
}

int main(int argc, char **argv) {
  output_start("ampcc");
  Arena *arena = arena_new();
  Options options;
  int status = 0;
  if (!options_parse(arena, argc, argv, &options)) {
    status = EXIT_USAGE;
  } else if (options.text[OPT_help]) {
    options_help(stdout);
  } else if (options.text[OPT_explain]) {
    const char *code = options.text[OPT_explain];
    status = explain("ampcc", *code ? code : options.model, stdout) ? 0 : EXIT_USAGE;
  } else if (options.text[OPT_version]) {
    puts("ampcc " AMPCC_VERSION);
  } else if (options.text[OPT_list_passes]) {
    options_list_passes(stdout);
  } else if (options.text[OPT_list_targets]) {
    targets_list(stdout);
  } else if (options.text[OPT_cache_stats]) {
    cache_print_stats(options.cache, stdout);
    if (options.cache)
      build_print_shipped(arena, options.text[OPT_resource_dir], stdout);
  } else if (options.text[OPT_cache_verify]) {
    status = cache_verify(options.cache, stdout) ? 0 : EXIT_INPUT;
  } else if (options.text[OPT_batch]) {
    status = batch_run(arena, &options);
  } else {
    reproducer_install(&options);
    status = compile(arena, &options);
    if (options.text[OPT_verbose])
      cache_print_use(stderr);
    reproducer_set_module(NULL, NULL);
  }
  arena_free(arena);
  return output_finish(status);
}
