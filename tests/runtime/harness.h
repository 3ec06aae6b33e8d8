/* What the runtime's tests share: a scratch folder, runs of a program with its output caught,
 * files. */
#ifndef HARNESS_H
#define HARNESS_H

#include "runtime/amprt.h"
#include "runtime/data/feed.h"
#include "runtime/state/safetensors.h"
#include "tests/runtime/device.h"

#include <setjmp.h>
#include <stdarg.h>
/* clang-format off: cmocka.h needs the others before it */
#include <cmocka.h>
/* clang-format on */

extern char scratch[256];    /* a new empty folder for each test */
extern char caught[1 << 16]; /* stdout and stderr of the last run_program */
extern bool on_device;       /* run_program runs programs on the test device (device.h) */

int scratch_setup(void **state);
int scratch_teardown(void **state);
const char *in_scratch(const char *name); /* "SCRATCH/name"; eight calls may be in use at once */
void write_bytes(const char *path, const void *data, size_t size);
AmprtBytes read_bytes(const char *path);
void assert_same_file(const char *a, const char *b);
/* Splits `line` at blanks into argv; `$` stands for the scratch folder. Returns amprt_main's
 * status. */
int run_program(const AmprtProgram *program, const char *line);
int run_parts(const AmprtPart *part, int n_parts, const char *line); /* as they are */
/* The last run must have printed `text`. */
void assert_said(const char *text);
/* A run must end with this status, and have printed `says`. */
void run_good(const AmprtProgram *program, const char *line);
void run_status(const AmprtProgram *program, const char *line, int want);
void run_bad(const AmprtProgram *program, const char *line, int want, const char *says);

/* Opens a data set as a program does that gets --dataset and --data-dir. */
AmprtStatus open_data(AmprtData *data, const AmprtProgram *program, const char *dataset,
                      const char *dir, AmprtError *error);
/* The plan of a training on the toy's images in random order, without an end. */
AmprtFeedPlan toy_plan(const AmprtDataset *set);

/* A scratch folder with the toy's data in it: 26 batches of 8 an epoch, 25.4 to be exact. */
int toy_setup(void **state);
AmprtTensors load_tensors(const char *name); /* of the scratch folder */
float first_float(const AmprtTensors *file, const char *name);
/* A log is one object per line, with no NaN; returns how many lines hold `text`. */
int count_log(const char *name, const char *text);

#endif
