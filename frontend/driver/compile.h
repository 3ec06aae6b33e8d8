/* The steps of a compilation that several parts of the driver share. They report what goes wrong.
 */
#ifndef AMPCC_FRONTEND_DRIVER_COMPILE_H
#define AMPCC_FRONTEND_DRIVER_COMPILE_H

#include "codegen/codegen.h"
#include "frontend/driver/options.h"
#include "frontend/import/load.h"

/* Reads the model that the options name and applies the options that change it; NULL after an
 * error. */
Module *compile_load(Arena *arena, const Options *options, Diag *diag);
/* The same for a file whose bytes were read already. */
Module *compile_model(Arena *arena, const Options *options, const Bytes *bytes, Diag *diag);
/* Runs the pipeline, or those of its passes that --passes and --skip leave, and names those that
 * ran in *ran (NULL: not wanted); false after an error. */
bool compile_passes(Module *module, const Options *options, const Target *target, const char **ran,
                    Diag *diag);
bool compile_is_planned(const Module *module);
/* Does the step update a parameter? */
bool compile_trains(const Module *module);
CodegenOptions compile_codegen(const Options *options);

#endif
