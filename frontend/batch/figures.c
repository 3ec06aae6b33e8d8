#include "frontend/batch/figures.h"

#include "codegen/program/json_text.h"
#include "ir/base/exit.h"
#include "ir/base/output.h"
#include "passes/memory/memory_report.h"
#include "passes/memory/traffic_report.h"
#include "passes/precision/explain.h"

#include <string.h>

const char *const figure_name[FIGURE_COUNT] = {
#define FIGURE(id, name, meaning) [FIGURE_##id] = name,
#include "frontend/batch/figures.def"
};

static PartFigure measure(const ProgramPart *part) {
  const Module *module = part->module;
  Traffic traffic = traffic_total(module);
  PrecisionTotals precision = precision_totals(module->graph[0]);
  return (PartFigure){.target = backend_target(part->backend)->name,
                      .value = {[FIGURE_arena] = module_arena_bytes(module),
                                [FIGURE_state] = module->state_bytes,
                                [FIGURE_workspace] = part_workspace_bytes(part),
                                [FIGURE_traffic] = traffic.read + traffic.written,
                                [FIGURE_kernels] = traffic.kernels,
                                [FIGURE_casts] = precision.casts_own + precision.casts_inside,
                                [FIGURE_casts_alone] = precision.casts_own}};
}

int figures_write(Arena *arena, const PartList *parts, const Options *options) {
  const Recipe *recipe = parts->part[0].module->recipe;
  Figures figures = {.model = recipe->name,
                     .dtype = dtype_info[options->compile.dtype].flag,
                     .batch_size = recipe->batch_size,
                     .n = parts->n};
  for (int i = 0; i < parts->n; i++)
    figures.part[i] = measure(&parts->part[i]);
  Output out;
  if (!output_open(arena, options->text[OPT_figures], &out))
    return EXIT_ENVIRONMENT;
  json_t *object = json_object();
  figures_add(arena, &figures, object);
  json_dumpf(object, out.file, JSON_INDENT(1));
  json_decref(object);
  fputc('\n', out.file);
  return output_close(&out) ? 0 : EXIT_ENVIRONMENT;
}

/* ---- JSON ---- */

void figures_add(Arena *arena, const Figures *figures, json_t *object) {
  json_t *parts = json_array();
  for (int i = 0; i < figures->n; i++) {
    json_t *part = json_object();
    json_object_set_new(part, "target", json_text(arena, figures->part[i].target));
    for (int f = 0; f < FIGURE_COUNT; f++)
      json_object_set_new(part, figure_name[f], json_integer(figures->part[i].value[f]));
    json_array_append_new(parts, part);
  }
  json_object_set_new(object, "model", json_text(arena, figures->model));
  json_object_set_new(object, "dtype", json_text(arena, figures->dtype));
  json_object_set_new(object, "batch_size", json_integer(figures->batch_size));
  json_object_set_new(object, "parts", parts);
}

static const char *read_text(Arena *arena, const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? arena_strdup(arena, text, strlen(text)) : NULL;
}

bool figures_read(Arena *arena, const json_t *object, Figures *out) {
  const json_t *parts = json_object_get(object, "parts");
  *out = (Figures){.model = read_text(arena, object, "model"),
                   .dtype = read_text(arena, object, "dtype"),
                   .batch_size = json_integer_value(json_object_get(object, "batch_size")),
                   .n = (int)json_array_size(parts)};
  if (!out->model || !out->dtype || out->n < 1 || out->n > MAX_TARGETS)
    return false;
  for (int i = 0; i < out->n; i++) {
    const json_t *part = json_array_get(parts, (size_t)i);
    out->part[i].target = read_text(arena, part, "target");
    if (!out->part[i].target)
      return false;
    for (int f = 0; f < FIGURE_COUNT; f++) {
      const json_t *value = json_object_get(part, figure_name[f]);
      if (!json_is_integer(value))
        return false;
      out->part[i].value[f] = json_integer_value(value);
    }
  }
  return true;
}

int64_t figures_most(const Figures *figures, FigureId id) {
  int64_t most = 0;
  for (int i = 0; i < figures->n; i++)
    most = figures->part[i].value[id] > most ? figures->part[i].value[id] : most;
  return most;
}
