/* The command line of ampcc-tf. */
#ifndef AMPCC_FRONTEND_TF_OPTIONS_H
#define AMPCC_FRONTEND_TF_OPTIONS_H

#include "frontend/driver/option_table.h"

typedef enum TfOptionId {
#define OPTION(id, ...) TF_OPT_##id,
#include "frontend/tf/options.def"
  TF_OPTION_COUNT
} TfOptionId;

typedef struct TfOptions {
  const char *model, *output;
  const char *text[TF_OPTION_COUNT]; /* as given; NULL: absent; "": a switch, or no argument */
  WarnSet warn;
  int version;        /* of TensorFlow: 219 is 2.19 */
  bool graph, report; /* what comes out: at least one of them */
} TfOptions;

extern const OptionTable tf_option_table;

/* False after one line on stderr. Strings are argv's or the arena's. */
bool tf_options_parse(Arena *arena, int argc, char **argv, TfOptions *out);
void tf_options_help(FILE *out);

#endif
