/* ampcc --batch: many models in one command, each compiled by a process of its own that runs this
 * same executable. README.md in this folder says what it does. */
#ifndef AMPCC_FRONTEND_BATCH_BATCH_H
#define AMPCC_FRONTEND_BATCH_BATCH_H

#include "frontend/batch/figures.h"
#include "frontend/batch/memory.h"

#include <sys/types.h>

typedef enum BatchResult {
  BATCH_WAITING,
  BATCH_RUNNING,
  BATCH_MADE,
  BATCH_UNCHANGED, /* was made before of the same inputs */
  BATCH_FAILED,
  BATCH_RESULT_COUNT
} BatchResult;

typedef struct BatchProgram {
  const char *name;        /* of its file in the folder */
  const char *model;       /* path */
  const char *where;       /* who asked for it: "zoo.txt:3" or "--batch" */
  const CommandLine *line; /* of the list; NULL if there is none */
  GivenWord *word;         /* its options */
  int n_words;
  const char *key; /* hash of all that it is made of; NULL: not known, so it is always made */
  /* what came of it */
  BatchResult result;
  double seconds;      /* from start to end; 0 if unchanged */
  int status;          /* how its process ended: an exit status, or 128 and the signal's number */
  const char *message; /* why it failed, in one line; else NULL */
  int64_t bytes;       /* size of the program */
  const char *sha256;  /* and its hash */
  Figures figures;
  const char **regression; /* what has grown since the baseline, a line each */
  int n_regressions, cap_regressions;
  /* while it runs */
  pid_t pid;
  double start;
} BatchProgram;

typedef struct Batch {
  Arena *arena;
  const Options *options;
  const char *folder;    /* --out-dir */
  const char *workplace; /* a folder in it for all that is no finished program */
  int jobs;
  BatchMemory memory;
  BatchProgram *program;
  int n, cap;
  double start;
  const char *build, *build_folder; /* record.c: hash of this ampcc with the runtime of a folder */
  int n_done, n_made;               /* of all; of those that a process was started for */
  double seconds;                   /* that all of it took, when it is done */
  double tolerance;                 /* --tolerance, in percent */
  json_t *baseline;                 /* NULL: none */
  int n_compared;                   /* programs that are in it */
} Batch;

typedef struct BatchCount {
  int result[BATCH_RESULT_COUNT];
  int regressed; /* programs that have regressions */
} BatchCount;

BatchCount batch_count(const Batch *batch);

/* Returns an exit status. */
int batch_run(Arena *arena, const Options *options);

/* list.c: fills batch->program. False after at least one line on stderr. */
bool batch_list(Batch *batch);

/* An option of the program's line or else of the command line; NULL if absent. */
const char *batch_text(const Batch *batch, const BatchProgram *program, OptionId id);

/* baseline.c: --tolerance and --baseline; false after one line on stderr. */
bool baseline_tolerance(Batch *batch);
bool baseline_read(Batch *batch);
/* Finds the regressions of every program. */
void baseline_compare(Batch *batch);

/* record.c: what is remembered of programs that were made. record_key returns NULL if an input
 * cannot be read. */
const char *record_key(Batch *batch, const BatchProgram *program);
/* Is the program there as it was made of the same key? Fills in its figures. */
bool record_holds(Batch *batch, BatchProgram *program);
/* False after one line on stderr. */
bool record_keep(Batch *batch, BatchProgram *program);
/* Deletes the record and the program that it is of. */
void record_forget(Batch *batch, const BatchProgram *program);

/* processes.c: makes every program. Returns 0, or the number of the signal that stopped it, when
 * all that it started has ended. */
int batch_make(Batch *batch);
/* The file of a program in the workplace: NAME.WHAT. */
const char *batch_file(const Batch *batch, const BatchProgram *program, const char *what);
/* Its own place. */
const char *batch_place(const Batch *batch, const BatchProgram *program);

/* print.c */
void batch_print_head(const Batch *batch);
/* One line of standard output for a program that is done. */
void batch_print_done(const Batch *batch, const BatchProgram *program);
/* Draws the progress on standard error if that is a terminal; every line printed there or on
 * standard output begins with batch_print_clear. */
void batch_print_progress(const Batch *batch);
void batch_print_clear(const Batch *batch);
/* The table with totals; what has grown, and where the messages of failed programs are. */
void batch_print_table(const Batch *batch);

extern const char *const batch_result_name[BATCH_RESULT_COUNT];

#endif
