/* The command line of ampcc. */
#ifndef AMPCC_FRONTEND_DRIVER_OPTIONS_H
#define AMPCC_FRONTEND_DRIVER_OPTIONS_H

#include "codegen/codegen.h"
#include "frontend/driver/diagnostics.h"
#include "frontend/driver/targets.h"
#include "passes/pass.h"

typedef enum OptionId {
#define OPTION(id, ...) OPT_##id,
#include "frontend/driver/options.def"
  OPTION_COUNT
} OptionId;

typedef enum OptionGroup {
  GROUP_OUTPUT,
  GROUP_PROGRAM,
  GROUP_PASSES,
  GROUP_REPORTS,
  GROUP_TOOLS,
  GROUP_BATCH,
  GROUP_COUNT
} OptionGroup;

extern const OptionInfo option_info[OPTION_COUNT];
extern const OptionTable option_table;

typedef enum EmitKind {
  EMIT_IR,
  EMIT_JSON,
  EMIT_DOT,
  EMIT_C,
  EMIT_CUDA,
  EMIT_PTX,
  EMIT_CUBIN,
  EMIT_OBJ,
  EMIT_EXE,
  EMIT_COUNT
} EmitKind;

typedef struct Options {
  const char *model;
  const char *text
      [OPTION_COUNT]; /* as given; NULL if absent; "" for a switch and for an omitted argument */
  Overrides overrides;
  WarnSet warn;
  /* the meaning of those values that are not plain strings */
  DiagSettings diagnostics;
  bool silent; /* say nothing of what was done: --quiet, or programs read standard error */
  TargetList targets;
  EmitKind emit;
  const char *output;
  Winograd winograd;
  CompileOptions compile;
  double batch_norm_momentum; /* negative: as the model says              */
  double max_error;           /* of --certify; NaN: any error is accepted */
  int certify_batch;          /* 0: chosen by the size of the model       */
  const char *cache;          /* --cache-dir; NULL: none                  */
  int64_t cache_bytes;        /* --cache-size                             */
  const GivenFlag *given;     /* PROGRAM options and overrides, no value with a path in it */
  int n_given;
  const GivenWord *word; /* every option in the order given */
  int n_words;
} Options;

/* False after one line on stderr. Strings belong to argv or to the arena. */
bool options_parse(Arena *arena, int argc, char **argv, Options *out);
void options_help(FILE *out);
void options_list_passes(FILE *out);

/* options_value.c: fills the second half of Options; false after one line on stderr */
bool options_interpret(Arena *arena, Options *options);
/* Those of the cache alone. */
bool options_cache(Arena *arena, Options *options);
/* Sets *out to a number of bytes, given as such or with a unit as in 6.2GiB, 800MB; leaves it alone
 * if the option is absent. */
bool options_bytes(const Options *options, OptionId id, int64_t *out);
/* Does the output need kernels and their places in memory, that is, every pass? */
bool options_need_plan(const Options *options);

#endif
