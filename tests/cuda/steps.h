/* A model as a CUDA part that can be run on the host: from its text through all passes. */
#ifndef AMPCC_TESTS_CUDA_STEPS_H
#define AMPCC_TESTS_CUDA_STEPS_H

#include "passes/pass.h"
#include "tests/cuda/part.h"

typedef struct Step {
  Arena *arena;
  const char *name;
  CompileOptions compile;
  CodegenOptions codegen;
  const Module *module;
  Part *part;
} Step;

/* Starts to compile FILE.amp for sm_90 as `folder`/`name`; `edit` (or NULL) spoils the kernels.
 * BUGs where something is refused. */
void step_begin(Step *step, const char *path, DType dtype, const PartEdit *edit,
                const char *resource, const char *folder, const char *name);
void step_free(Step *step);

#endif
