/* --precision-file: one rule per line, `op|layer|value PATTERN low|f32|allow|infer|clear|deny`. */
#ifndef AMPCC_FRONTEND_DRIVER_PRECISION_FILE_H
#define AMPCC_FRONTEND_DRIVER_PRECISION_FILE_H

#include "passes/precision/precision_rules.h"

/* Rules in file order, in `arena`, and the text of the file in *text; NULL after reporting at least
 * one error. */
PrecisionRules *precision_file_read(Arena *arena, const char *path, const char **text, Diag *diag);

#endif
