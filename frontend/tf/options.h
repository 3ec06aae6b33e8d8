/* The command line of ampcc-tf. */
#ifndef AMPCC_FRONTEND_TF_OPTIONS_H
#define AMPCC_FRONTEND_TF_OPTIONS_H

#include "frontend/driver/diagnostics.h"

typedef enum TfOptionId {
#define OPTION(id, ...) TF_OPT_##id,
#include "frontend/tf/options.def"
  TF_OPTION_COUNT
} TfOptionId;

typedef struct TfOptions {
  const char *model, *output;
  const char *text[TF_OPTION_COUNT]; /* each option's value; NULL if absent, "" without a value */
  WarnSet warn;
  DiagSettings diagnostics;
  int version;        /* the version of TensorFlow: 219 is 2.19 */
  bool graph, report; /* what is to be written: at least one of them */
} TfOptions;

extern const OptionTable tf_option_table;

/* False after one line on stderr. Strings belong to argv or to the arena. */
bool tf_options_parse(Arena *arena, int argc, char **argv, TfOptions *out);
void tf_options_help(FILE *out);

#endif
