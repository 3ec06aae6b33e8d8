#include "frontend/driver/parts.h"

#include "codegen/cuda/toolkit/tuning.h"
#include "frontend/driver/reproducer.h"
#include "frontend/import/load.h"
#include "ir/base/clock.h"
#include "ir/base/exit.h"
#include "ir/base/list.h"
#include "ir/base/text.h"
#include "ir/kernel.h"
#include "passes/memory/memory_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void parts_input(Arena *arena, PartList *parts, const char *what, const char *path,
                 const void *bytes, size_t size) {
  const char *slash = strrchr(path, '/');
  InputFile input = {what, slash ? slash + 1 : path, (int64_t)size, ""};
  sha256_text(bytes, size, input.sha256);
  arena_push(arena, parts->input, parts->n_inputs, parts->cap_inputs, input);
}

CodegenOptions parts_codegen(const PartList *parts, const Options *options) {
  CodegenOptions codegen = compile_codegen(options);
  codegen.input = parts->input;
  codegen.n_inputs = parts->n_inputs;
  codegen.source = parts->source;
  return codegen;
}

/* Reads every file of --tuning-db. */
static bool read_tuning(Arena *arena, const Options *options, Tuning *out, PartList *parts,
                        Diag *diag) {
  bool good = true;
  const char *list = options->text[OPT_tuning_db], *path;
  while ((path = list_word(arena, &list, ',')) != NULL) {
    const char *text = text_read(arena, path, diag);
    if (text)
      parts_input(arena, parts, "tuning database", path, text, strlen(text));
    good = text && tuning_parse(arena, path, text, out, diag) && good;
  }
  return good;
}

int parts_open(Arena *arena, const Options *options, PartList *out, Diag *diag) {
  Tuning *tuning = arena_new_of(arena, Tuning);
  if (!read_tuning(arena, options, tuning, out, diag))
    return EXIT_INPUT;
  const char *missing = NULL;
  for (int i = 0; i < options->targets.n; i++) {
    const char *error = NULL;
    const Device *device = options->targets.device[i];
    CudaOptions cuda = {.arch = options->targets.arch,
                        .cuda_path = options->text[OPT_cuda_path],
                        .cache = options->cache,
                        .ptx = i == 0, /* the newest target also serves all GPUs that are newer */
                        .tuning = tuning,
                        .require_tuned = options->text[OPT_require_tuned] != NULL,
                        .fuse_level = options->compile.fuse_level};
    const Backend *backend =
        device
            ? backend_cuda(arena, device, &cuda, &error)
            : backend_cpu(options->targets.arch, options->text[OPT_cpu_library], options->winograd);
    if (!backend && options->text[OPT_target]) {
      text_say("ampcc: %s\n", error);
      return EXIT_ENVIRONMENT;
    }
    const char *shared = backend ? backend_not_static(backend) : NULL;
    if (shared && options->text[OPT_static]) {
      diag_error(diag, (SrcLoc){.file = options->model}, DIAG_OPTION,
                 "--static: a program for %s cannot be static: %s", backend_target(backend)->name,
                 shared);
      return EXIT_INPUT;
    }
    if (backend) {
      out->part[out->n] = (ProgramPart){NULL, backend, &out->figures[out->n]};
      out->n++;
    }
    missing = error ? error : missing;
  }
  out->said = missing != NULL;
  if (missing && !options->silent)
    text_say("ampcc: no parts for GPUs: %s\n", missing);
  return 0;
}

/* The text form of a module, in its arena. */
static const char *module_text(const Module *module) {
  TextDraft draft;
  module_print(module, text_draft(&draft));
  return text_take(&draft, module->arena);
}

static Module *load(Arena *arena, const Options *options, const Bytes *model, PartList *parts,
                    Diag *diag) {
  double start = clock_cpu_seconds();
  Module *module = compile_model(arena, options, model, diag);
  if (module && !parts->source)
    parts->source = module_text(module);
  parts->load_seconds += clock_cpu_seconds() - start;
  return module;
}

static int compile_part(const Options *options, Module *module, ProgramPart *part, Diag *diag) {
  double start = clock_cpu_seconds();
  reproducer_set_module(module, backend_target(part->backend)->name);
  part->module = module;
  bool good =
      compile_passes(module, options, backend_target(part->backend), &part->figures->passes, diag);
  int status = backend_report(part->backend, diag);
  part->figures->seconds = clock_cpu_seconds() - start;
  return status ? status : good ? 0 : EXIT_INPUT;
}

static Diag without_warnings(const Diag *diag) {
  Diag quiet = *diag;
  for (int w = 0; w < WARN_COUNT; w++)
    quiet.warn.on[w] = -1;
  return quiet;
}

/* Compiles the parts that --target names. Only the first one warns, as all would give the same
 * warnings. */
static int compile_named(Arena *arena, const Options *options, const Bytes *model, PartList *parts,
                         Diag *diag) {
  Diag quiet = without_warnings(diag);
  int status = 0;
  for (int i = 0; i < parts->n && !status; i++) {
    Module *module = load(arena, options, model, parts, i ? &quiet : diag);
    status =
        module ? compile_part(options, module, &parts->part[i], i ? &quiet : diag) : EXIT_INPUT;
  }
  parts->said |= quiet.n_notes > 0;
  if (quiet.n_errors > diag->n_errors) {
    diag->n_errors = quiet.n_errors;
    diag->n_shown = quiet.n_shown;
  }
  return status;
}

/* Messages that are kept until it is known whether they are to be seen. */
typedef struct Kept {
  Arena *arena;
  DiagMessage *message;
  int n, cap;
} Kept;

static void keep(void *to, const DiagMessage *message) {
  Kept *kept = to;
  DiagMessage copy = *message;
  copy.text = arena_strdup(kept->arena, message->text, strlen(message->text));
  arena_push(kept->arena, kept->message, kept->n, kept->cap, copy);
}

/* The first error as it would be printed, without what follows its first line; or "". */
static const char *first_error(Arena *arena, const Kept *kept) {
  int i = 0;
  while (i < kept->n && kept->message[i].level != LEVEL_ERROR)
    i++;
  if (i == kept->n)
    return "";
  TextDraft draft;
  Diag diag = {.out = text_draft(&draft)};
  diag_repeat(&diag, &kept->message[i]);
  char *text = text_take(&draft, arena);
  text[strcspn(text, "\n")] = '\0';
  return text;
}

/* Compiles a part for a GPU of the default set. If that fails, sets *why to the reason, or to NULL
 * if the reason lies in the model: it was planned for the CPU already (as the output of --emit=ir
 * is), or it is wrong for the CPU too. */
static int try_part(Arena *arena, const Options *options, const Bytes *model, PartList *parts,
                    ProgramPart *part, const Diag *diag, const char **why) {
  Kept kept = {.arena = arena};
  Diag quiet = without_warnings(diag);
  quiet.sink = keep;
  quiet.to = &kept;
  Module *module = load(arena, options, model, parts, &quiet);
  bool can = module && !compile_is_planned(module);
  int status = can ? compile_part(options, module, part, &quiet) : EXIT_INPUT;
  for (int i = 0; i < kept.n && !status; i++)
    diag_repeat(diag, &kept.message[i]);
  *why = can ? first_error(arena, &kept) : NULL;
  parts->said |= !status && (kept.n || quiet.n_notes);
  return status;
}

/* Without --target: compiles parts for the GPUs of the default set that can run the model, and for
 * the CPU, which is the last target and must be able to. */
static int compile_default(Arena *arena, const Options *options, const Bytes *model,
                           PartList *parts, Diag *diag) {
  const char *left_out[MAX_TARGETS];
  int n = 0, n_left_out = 0;
  for (int i = 0; i < parts->n - 1; i++) {
    const char *why;
    int status = try_part(arena, options, model, parts, &parts->part[i], diag, &why);
    if (status == EXIT_ENVIRONMENT)
      return status;
    if (!status)
      parts->part[n++] = parts->part[i];
    else if (why)
      left_out[n_left_out++] =
          arena_printf(arena, "%s: %s", backend_target(parts->part[i].backend)->name, why);
  }
  parts->part[n] = parts->part[parts->n - 1];
  parts->n = n + 1;
  Module *module = load(arena, options, model, parts, diag);
  int status = module ? compile_part(options, module, &parts->part[n], diag) : EXIT_INPUT;
  parts->said |= n_left_out > 0;
  for (int i = 0; i < n_left_out && !status && !options->silent; i++)
    text_say("ampcc: no part for %s\n", left_out[i]);
  return status;
}

int parts_compile(Arena *arena, const Options *options, PartList *parts, Diag *diag) {
  Bytes model;
  if (!file_read(arena, options->model, &model, diag))
    return EXIT_INPUT;
  parts_input(arena, parts, "model", options->model, model.at, (size_t)model.len);
  bool all = options->text[OPT_target] || options->text[OPT_require_tuned];
  return (all ? compile_named : compile_default)(arena, options, &model, parts, diag);
}

/* ---- figures ---- */

int64_t part_workspace_bytes(const ProgramPart *part) {
  const Module *module = part->module;
  int64_t most = 0;
  for (int g = 0; g < module->n_graphs; g++)
    for (int i = 0; i < module->graph[g]->n_nodes; i++) {
      const int64_t *space = attr_ints(module->graph[g]->node[i], ATTR_WORKSPACE, 2);
      most = space && space[1] > most ? space[1] : most;
    }
  return most;
}

/* How many kernels of the step consist of this convolution and other ops. */
static int fused(const Module *module, OpKind op) {
  Arena *arena = arena_new();
  KernelList kernels = kernels_of(arena, module->graph[0]);
  int n = 0;
  for (int i = 0; i < kernels.n; i++) {
    const Node *main = kernel_main(&kernels.kernel[i]);
    n += main && main->op == op && kernels.kernel[i].n_nodes > 1;
  }
  arena_free(arena);
  return n;
}

void parts_print(const PartList *parts, FILE *out) {
  for (int i = 0; i < parts->n; i++) {
    const ProgramPart *part = &parts->part[i];
    const PartFigures *f = part->figures;
    fprintf(out, "ampcc:   %-11s %5.1f s, ", backend_target(part->backend)->name, f->seconds);
    if (f->image_bytes) {
      fprintf(out, "%d launches of %d kernels (%.0f KB", f->launches, f->functions,
              (double)f->image_bytes / 1e3);
      if (f->spills)
        fprintf(out, ", %d keep registers in memory", f->spills);
      fprintf(out, "), %d plans", f->plans);
      int forward = fused(part->module, OP_CONV2D), data = fused(part->module, OP_CONV2D_DGRAD),
          filter = fused(part->module, OP_CONV2D_WGRAD);
      if (forward + data + filter)
        fprintf(out, " (fused: %d fprop, %d dgrad, %d wgrad)", forward, data, filter);
      fprintf(out, ", %d products, ", f->products);
    }
    fprintf(out, "%.1f MB of variables, %.1f MB of arena, %.1f MB the largest workspace\n",
            (double)part->module->state_bytes / 1e6, (double)module_arena_bytes(part->module) / 1e6,
            (double)part_workspace_bytes(part) / 1e6);
  }
}
