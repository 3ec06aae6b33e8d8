/* Figures of a program, part by part. An ampcc that makes a program writes them where
 * --figures=FILE says, as JSON:
 *
 *   {"model": "lenet5", "dtype": "bf16", "batch_size": 128,
 *    "parts": [{"target": "cpu", "arena_bytes": 1052416, ...}]}
 *
 * Each part has every name of figures.def. So a process of --batch tells the one that started it
 * what it has made, and the same object is part of the report. */
#ifndef AMPCC_FRONTEND_BATCH_FIGURES_H
#define AMPCC_FRONTEND_BATCH_FIGURES_H

#include "frontend/driver/parts.h"

#include <jansson.h>

typedef enum FigureId {
#define FIGURE(id, name, meaning) FIGURE_##id,
#include "frontend/batch/figures.def"
  FIGURE_COUNT
} FigureId;

extern const char *const figure_name[FIGURE_COUNT];

typedef struct PartFigure {
  const char *target;
  int64_t value[FIGURE_COUNT];
} PartFigure;

typedef struct Figures {
  const char *model, *dtype; /* the model's own name */
  int64_t batch_size;
  PartFigure part[MAX_TARGETS];
  int n;
} Figures;

/* --figures: returns an exit status. */
int figures_write(Arena *arena, const PartList *parts, const Options *options);
/* Adds the figures to an object, and reads them from one; false if anything is missing or wrong. */
void figures_add(Arena *arena, const Figures *figures, json_t *object);
bool figures_read(Arena *arena, const json_t *object, Figures *out);
/* The largest of any part. */
int64_t figures_most(const Figures *figures, FigureId id);

#endif
