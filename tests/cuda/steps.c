#include "tests/cuda/steps.h"

#include "codegen/cuda/device.h"
#include "tests/read_file.h"

static const char passes[] =
    "simplify,eval-graph,autodiff,loss-scale,optimizer,simplify,amp,"
    "fold-casts,weight-copies,cse,dce,assign-layout,lower-norm,norm-forms,fuse,"
    "schedule,plan-memory,check-plan";

/* One for all, kept to the end: what it knows of cuDNN has no other. */
static const Backend *backend(void) {
  static Arena *arena;
  static const Backend *made;
  const char *error = NULL;
  if (made)
    return made;
  arena = arena_new();
  const Device *device = device_find(arena, "sm_90", &error);
  made = device ? backend_cuda(arena, device, &(CudaOptions){.cache_dir = ""}, &error) : NULL;
  CHECK(made, "%s", error);
  return made;
}

void step_begin(Step *s, const char *path, DType dtype, const PartEdit *edit, const char *resource,
                const char *folder, const char *name) {
  *s = (Step){.arena = arena_new()};
  Diag diag = {.out = stderr};
  compile_options_default(&s->compile);
  s->compile.dtype = dtype;
  s->codegen = (CodegenOptions){.compile = &s->compile, .resource = resource};
  s->name = arena_printf(s->arena, "%s_%s", name, dtype_info[dtype].name);
  Module *module = module_parse(s->arena, path, read_file(s->arena, path), &diag);
  CHECK(module, "%s does not parse", path);
  s->module = module;
  PassContext context = {module, &s->compile, backend_target(backend()), &diag, arena_new()};
  bool ok = pipeline_run(&context, passes, NULL, NULL);
  CHECK(ok && backend_report(backend(), &diag) == 0, "%s failed", path);
  arena_free(context.scratch);
  s->part = part_begin(s->arena, &(ProgramPart){module, backend(), NULL}, &s->codegen, edit, folder,
                       s->name);
}

void step_free(Step *s) {
  part_free(s->part);
  arena_free(s->arena);
}
