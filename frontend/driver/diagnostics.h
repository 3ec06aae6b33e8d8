/* Where the diagnostics of a run go, and in which form: --diagnostics-format, --diagnostics-file
 * and --color, of ampcc and ampcc-tf alike.
 *
 *   text    for people, with colours on terminals
 *   json    an object in a line for each message, as it comes
 *   sarif   one document of SARIF 2.1.0 at the end of the run
 *
 * json and sarif hold every message, however many there are, and only ASCII. */
#ifndef AMPCC_FRONTEND_DRIVER_DIAGNOSTICS_H
#define AMPCC_FRONTEND_DRIVER_DIAGNOSTICS_H

#include "frontend/driver/option_table.h"
#include "ir/base/diag.h"
#include "ir/base/text.h"

#include <jansson.h>

typedef enum DiagForm { FORM_TEXT, FORM_JSON, FORM_SARIF } DiagForm;

/* What the three options ask for. */
typedef struct DiagSettings {
  DiagForm form;
  const char *path; /* NULL: standard error */
  bool colour;
} DiagSettings;

typedef struct Diagnostics {
  const char *program, *version;
  DiagSettings settings;
  TextDraft draft;         /* what goes to settings.path */
  FILE *out;               /* draft.file, or stderr */
  json_t *rules, *results; /* of SARIF; the rules are those that a result names */
} Diagnostics;

/* Reads the values of the three options, which are rows of the table with these indices. False
 * after one line on stderr. */
bool diagnostics_read(const OptionTable *table, const char *const *text, int format, int file,
                      int color, DiagSettings *out);
/* Sets the fields of *diag that say where messages go. */
void diagnostics_start(Diagnostics *out, const char *program, const char *version,
                       const DiagSettings *settings, Diag *diag);
/* Ends what was started, with diag_finish or the document. Returns the exit status of the run,
 * which is `status` unless the file cannot be written. */
int diagnostics_finish(Arena *arena, Diagnostics *diagnostics, const Diag *diag, int status);

#endif
