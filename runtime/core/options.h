/* The program's flags as one struct, made of the rows of options.def. */
#ifndef AMPRT_OPTIONS_H
#define AMPRT_OPTIONS_H

#include "runtime/amprt.h"
#include "runtime/base/status.h"

#include <stdbool.h>
#include <stdio.h>

#define AMPRT_FASHION_DIR "/usr/share/datasets/fashion-mnist"

enum { AMPRT_MAX_FLOATS = 64 };

typedef struct AmprtFloats {
  int n;
  double v[AMPRT_MAX_FLOATS];
} AmprtFloats;

typedef bool AmprtOptBOOL;
typedef int64_t AmprtOptINT;
typedef double AmprtOptFLOAT;
typedef const char *AmprtOptSTR; /* points into argv, the program's recipe or the table */
typedef AmprtFloats AmprtOptFLOATS;

typedef struct AmprtOptions {
#define GROUP(title)
#define OPTION(field, flag, letter, kind, otherwise, value, help) AmprtOpt##kind field;
#include "runtime/core/options.def"
  struct { /* which of them the command line itself gave */
#define GROUP(title)
#define OPTION(field, flag, letter, kind, otherwise, value, help) bool field;
#include "runtime/core/options.def"
  } given;
} AmprtOptions;

typedef enum AmprtOptionKind {
  AMPRT_OPT_BOOL,
  AMPRT_OPT_INT,
  AMPRT_OPT_FLOAT,
  AMPRT_OPT_STR,
  AMPRT_OPT_FLOATS
} AmprtOptionKind;

typedef struct AmprtOption {
  const char *group; /* title of the group that starts here, or NULL */
  const char *flag, *otherwise, *value, *help;
  char letter;
  AmprtOptionKind kind;
  size_t offset, given; /* in AmprtOptions */
} AmprtOption;

extern const AmprtOption amprt_option[];
extern const int amprt_n_options;

/* Table defaults, then the program's recipe, then argv. `--flag=value`, `--flag value`, bare
 * booleans, dashes or underscores. AMPRT_USAGE for anything else, with the nearest flags named. */
AmprtStatus amprt_options_parse(AmprtOptions *options, const AmprtProgram *program, int argc,
                                char **argv, AmprtError *error);
/* One setting, as on the command line; `value` NULL for a bare boolean. */
AmprtStatus amprt_options_set(AmprtOptions *options, const char *flag, const char *value,
                              AmprtError *error);
void amprt_options_help(const AmprtProgram *program, const char *argv0, FILE *out);

#endif
