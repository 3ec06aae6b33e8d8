#include "tests/cuda/step/steps.h"

#include "codegen/cuda/toolkit/device.h"
#include "tests/read_file.h"

#include <string.h>

/* One backend for all steps, kept to the end: it describes one cuDNN and one device. */
static const Backend *backend_for(const char *device) {
  static Arena *arena;
  static const Backend *made;
  static const char *made_for;
  const char *error = NULL;
  CHECK(!made || strcmp(device, made_for) == 0, "one device for all");
  if (made)
    return made;
  arena = arena_new();
  made_for = device;
  const Device *gpu = device_find(arena, device, &error);
  made = gpu ? backend_cuda(arena, gpu,
                            &(CudaOptions){.arch = &cpu_x86_64, .fuse_level = FUSE_UNREPEATABLE},
                            &error)
             : NULL;
  CHECK(made, "%s", error);
  return made;
}

DType step_dtype(const char *name) {
  for (int d = 0; d < DT_COUNT; d++)
    if (strcmp(dtype_info[d].name, name) == 0)
      return (DType)d;
  BUG("no dtype %s", name);
}

void step_compile(Step *s, const char *path, DType dtype, const char *device,
                  const char *resource) {
  *s = (Step){.arena = arena_new()};
  Diag diag = {.out = stderr};
  compile_options_default(&s->compile);
  s->compile.dtype = dtype;
  s->compile.fuse_level = FUSE_UNREPEATABLE; /* so that the fused forms of cuDNN are tested */
  s->backend = backend_for(device);
  s->codegen = (CodegenOptions){.compile = &s->compile, .resource = resource};
  Module *module = module_parse(s->arena, path, read_file(s->arena, path), &diag);
  CHECK(module, "%s does not parse", path);
  s->module = module;
  PassContext context = {module, &s->compile, backend_target(s->backend), &diag, arena_new()};
  bool ok = pipeline_run(&context, NULL, NULL, NULL);
  CHECK(ok && backend_report(s->backend, &diag) == 0, "%s failed", path);
  arena_free(context.scratch);
}

void step_build(Step *s, const PartEdit *edit, const char *folder, const char *name) {
  s->name = arena_printf(s->arena, "%s_%s", name, dtype_info[s->compile.dtype].name);
  s->part = part_begin(s->arena, &(ProgramPart){s->module, s->backend, NULL}, &s->codegen, edit,
                       folder, s->name);
}

void step_begin(Step *s, const char *path, DType dtype, const PartEdit *edit, const char *resource,
                const char *folder, const char *name) {
  step_compile(s, path, dtype, "sm_90", resource);
  step_build(s, edit, folder, name);
}

void step_free(Step *s) {
  if (s->part)
    part_free(s->part);
  arena_free(s->arena);
}
