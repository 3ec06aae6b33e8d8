/* ampcc-diff: what differs between two programs, models or graphs. Each side is read into the same
 * form, as far as it has one: a program has all of it, a model its graph and recipe. Comparing
 * makes a list of differences, which is then printed. */
#ifndef AMPCC_FRONTEND_DIFF_DIFF_H
#define AMPCC_FRONTEND_DIFF_DIFF_H

#include "ir/ir.h"

#include <jansson.h>

/* What an executable or object of ampcc says of itself. All pointers are NULL where it does not. */
typedef struct Program {
  json_t *manifest;       /* --about=json */
  const char *ir;         /* --dump-ir */
  const char **target;    /* of each part, in the order of the parts */
  const char **precision; /* --print-precision of each part */
  int n_parts;
  int64_t code_bytes, data_bytes; /* of the sections that are loaded */
} Program;

/* One of the two files. */
typedef struct Side {
  const char *path;
  const unsigned char *bytes;
  size_t size;
  const Program *program; /* NULL: a model or a graph */
  const Module *module;
} Side;

/* side.c: reads a file of any kind. False after reporting what is wrong with it. */
bool side_read(Arena *arena, const char *path, Side *out, Diag *diag);
/* program.c: is it an ELF file; and what it says of itself. NULL with one line in *error. */
bool program_is(const unsigned char *bytes, size_t size);
Program *program_read(Arena *arena, const unsigned char *bytes, size_t size, const char **error);

/* What a difference is about, in the order in which they are printed. */
typedef enum Topic {
  TOPIC_MAKING,    /* recipe, flags, files, versions */
  TOPIC_GRAPH,     /* nodes before the first pass */
  TOPIC_PRECISION, /* types and casts */
  TOPIC_KERNELS,   /* kernels, plans */
  TOPIC_MEMORY,
  TOPIC_SIZES,
  TOPIC_COUNT
} Topic;
extern const char *const topic_name[TOPIC_COUNT];

typedef struct Difference {
  Topic topic;
  const char *where; /* "@train", "cpu", "cpu @train"; or "" */
  const char *layer; /* or "" */
  const char *name;  /* a node, a field, a file: what differs; or "" */
  const char *what;  /* an attribute; or "" */
  const char *a, *b; /* its value on each side; NULL: there is none */
} Difference;

typedef struct DifferenceList {
  Arena *arena;
  Difference *at;
  int n, cap;
  int following; /* results that have another type only because an operand has */
} DifferenceList;

/* Adds a difference unless both values are equal; both may be NULL. */
void differ(DifferenceList *list, Difference difference);
void differ_numbers(DifferenceList *list, Difference difference, int64_t a, int64_t b);

/* graphs.c, manifests.c */
void compare_modules(const Side *a, const Side *b, DifferenceList *list);
void compare_programs(const Side *a, const Side *b, DifferenceList *list);

/* report.c: `most` lines of each topic; 0: all */
void report_text(const Side *a, const Side *b, const DifferenceList *list, int most, FILE *out);
void report_json(const Side *a, const Side *b, const DifferenceList *list, FILE *out);

#endif
