/* A model as a CUDA part that can be run on the host: from its text through all passes. */
#ifndef AMPCC_TESTS_CUDA_STEPS_H
#define AMPCC_TESTS_CUDA_STEPS_H

#include "passes/pass.h"
#include "tests/cuda/step/part.h"

typedef struct Step {
  Arena *arena;
  const char *name;
  CompileOptions compile;
  CodegenOptions codegen;
  const Backend *backend;
  const Module *module;
  Part *part;
} Step;

/* f32, f16, bf16 */
DType step_dtype(const char *name);
/* FILE.amp through all passes for a device, the same in all calls: "sm_90". BUGs where something is
 * refused. */
void step_compile(Step *step, const char *path, DType dtype, const char *device,
                  const char *resource);
/* Starts to compile its code as `folder`/`name`; `edit` (or NULL) spoils the kernels. */
void step_build(Step *step, const PartEdit *edit, const char *folder, const char *name);
/* Both, for sm_90. */
void step_begin(Step *step, const char *path, DType dtype, const PartEdit *edit,
                const char *resource, const char *folder, const char *name);
void step_free(Step *step);

#endif
