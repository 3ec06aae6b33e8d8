/* The part of a program for GPUs of one capability: how it is compiled, checked and linked. */
#include "codegen/backend.h"

#include "codegen/cuda/emit_cuda.h"
#include "codegen/cuda/toolkit/cubin.h"
#include "ir/base/exit.h"

#include <cublasLt.h>

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

/* ---- kernels ---- */

static bool say(const char *what) {
  fprintf(stderr, "ampcc: %s\n", what);
  return false;
}

static bool compile_text(CudaTarget *cuda, const char *text, NvrtcCode *code) {
  char error[TOOLKIT_ERROR];
  return nvrtc_compile(cuda->toolkit, cuda->cache, cuda->arena, text, cuda->device->capability,
                       code, error) ||
         say(error);
}

static bool write_file(const char *path,
                       void (*write)(const CudaTarget *, const NvrtcCode *, FILE *),
                       const CudaTarget *cuda, const NvrtcCode *code) {
  FILE *out = fopen(path, "w");
  if (out)
    write(cuda, code, out);
  bool good = out && fflush(out) == 0 && !ferror(out);
  if (!good)
    fprintf(stderr, "ampcc: cannot write %s: %s\n", path, strerror(errno));
  return (!out || fclose(out) == 0) && good;
}

static void write_cubin(const CudaTarget *cuda, const NvrtcCode *code, FILE *out) {
  (void)cuda;
  fwrite(code->cubin, 1, code->cubin_bytes, out);
}

static bool compile_kernels(const Backend *backend, const char *text, const char *cubin,
                            const char *image) {
  CudaTarget *cuda = cuda_target_of(backend->target);
  NvrtcCode code;
  return compile_text(cuda, text, &code) && write_file(cubin, write_cubin, cuda, &code) &&
         write_file(image, cuda_emit_image, cuda, &code);
}

/* ---- checks ---- */

static bool read_file(Arena *arena, const char *path, const char **data, size_t *size) {
  FILE *in = fopen(path, "rb");
  long bytes = in && fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
  char *text = bytes >= 0 ? arena_alloc(arena, (size_t)bytes + 1) : NULL;
  bool good =
      text && fseek(in, 0, SEEK_SET) == 0 && fread(text, 1, (size_t)bytes, in) == (size_t)bytes;
  if (!good)
    fprintf(stderr, "ampcc: cannot read %s: %s\n", path, strerror(errno));
  if (in)
    fclose(in);
  *data = text;
  *size = (size_t)bytes;
  return good;
}

static const CubinKernel *find_kernel(const CubinKernel *kernel, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (strcmp(kernel[i].name, name) == 0)
      return &kernel[i];
  BUG("the machine code has no `%s`", name);
}

static void check_code(const CudaTarget *cuda, const char *data, size_t size,
                       PartFigures *figures) {
  CubinKernel *kernel;
  int n;
  CHECK(cubin_read(cuda->arena, data, size, &kernel, &n), "NVRTC made no cubin");
  for (int i = 0; i < cuda->n_wanted; i++) {
    const Wanted *wanted = &cuda->wanted[i];
    const char *refusal = cubin_refusal(cuda->arena, find_kernel(kernel, n, wanted->function),
                                        cuda->device, wanted->threads, wanted->shared);
    CHECK(!refusal, "%s: %s", cuda->target.name, refusal);
  }
  figures->functions = n;
  figures->image_bytes = (int64_t)size;
  for (int i = 0; i < n; i++)
    figures->spills += kernel[i].stack > 0;
}

static bool check_kernels(const Backend *backend, const char *path, PartFigures *figures) {
  const CudaTarget *cuda = cuda_target_of(backend->target);
  const char *data;
  size_t size;
  if (!read_file(cuda->arena, path, &data, &size))
    return false;
  check_code(cuda, data, size, figures);
  return true;
}

static bool write_kernels(const Backend *backend, const char *text, TextForm form,
                          PartFigures *figures, FILE *out) {
  CudaTarget *cuda = cuda_target_of(backend->target);
  NvrtcCode code;
  if (!compile_text(cuda, text, &code))
    return false;
  check_code(cuda, code.cubin, code.cubin_bytes, figures);
  if (form == TEXT_C)
    cuda_emit_image(cuda, &code, out);
  else if (form == TEXT_PTX)
    fwrite(code.ptx, 1, code.ptx_bytes, out);
  else
    fwrite(code.cubin, 1, code.cubin_bytes, out);
  return true;
}

/* ---- what passes and tuning files left to report ---- */

static bool is_missed(const CudaTarget *cuda, int i) {
  return cuda->planned[i].plan.json && !cuda->planned[i].plan.tuned;
}

/* Reports the plans whose engine no tuning file chose: one note for all and, with --require-tuned,
 * an error for each. Returns the number of errors. */
static int report_missed(const CudaTarget *cuda, Diag *diag) {
  int missed = 0, version = cuda->toolkit->cudnn_version;
  for (int i = 0; i < cuda->n_planned; i++)
    missed += is_missed(cuda, i);
  if (missed && tuning_covers(cuda->tuning, cuda->device->capability, version))
    diag_note(diag, (SrcLoc){0}, "%s: %d of %d plans are as timed, the others in cuDNN's own order",
              cuda->target.name, cuda->n_planned - missed, cuda->n_planned);
  else if (missed)
    diag_note(diag, (SrcLoc){0}, "%s: no file of --tuning-db is of sm_%d and cuDNN %d.%d.%d",
              cuda->target.name, cuda->device->capability, version / 10000, version % 10000 / 100,
              version % 100);
  if (!cuda->require_tuned)
    return 0;
  for (int i = 0; i < cuda->n_planned; i++)
    if (is_missed(cuda, i))
      diag_error(diag, (SrcLoc){0}, DIAG_NOT_TUNED,
                 "%s: no file of --tuning-db has a choice for %s", cuda->target.name,
                 cuda->planned[i].plan.key);
  return missed;
}

static int report(const Backend *backend, Diag *diag) {
  const CudaTarget *cuda = cuda_target_of(backend->target);
  if (cuda->failure) {
    say(cuda->failure);
    return EXIT_ENVIRONMENT;
  }
  for (int i = 0; i < cuda->n_refusals; i++)
    diag_error(diag, cuda->refusal[i].loc, DIAG_TARGET, "%s cannot run `%s`: %s",
               backend->target->name, cuda->refusal[i].op, cuda->refusal[i].why);
  if (cuda->n_unrepeatable)
    diag_warning(diag, (SrcLoc){0}, WARN_REPEATABLE,
                 "%s: %d plans are of fused forms that are not known to give the same bytes in "
                 "every run; without --fuse-level=3 there are none",
                 backend->target->name, cuda->n_unrepeatable);
  bool wanted = cuda->tuning->n > 0 || cuda->require_tuned;
  return cuda->n_refusals + (wanted ? report_missed(cuda, diag) : 0) ? EXIT_INPUT : 0;
}

static const char *version_text(Arena *arena, int major, int minor, int patch) {
  return arena_printf(arena, "%d.%d.%d", major, minor, patch);
}

/* The versions of the toolkit's libraries, and every plan. */
static void manifest(const ProgramCode *program, struct json_t *part) {
  CudaTarget *cuda = cuda_target_of(program->backend->target);
  Arena *arena = program->arena;
  json_t *toolkit = json_object(), *plans = json_array();
  char error[TOOLKIT_ERROR];
  int cudnn = cuda->toolkit->cudnn_version;
  int nvrtc = toolkit_nvrtc(cuda->toolkit, error) ? cuda->toolkit->nvrtc_version : 0;
  if (cudnn)
    json_object_set_new(
        toolkit, "cudnn",
        json_string(version_text(arena, cudnn / 10000, cudnn % 10000 / 100, cudnn % 100)));
  json_object_set_new(toolkit, "nvrtc",
                      json_string(version_text(arena, nvrtc / 1000, nvrtc % 1000 / 10, 0)));
  json_object_set_new(toolkit, "cublas", json_integer(CUBLAS_VERSION));
  for (int i = 0; i < cuda->n_planned; i++) {
    const PlanText *plan = &cuda->planned[i].plan;
    json_t *json = json_object();
    if (!plan->json)
      continue;
    json_object_set_new(json, "key", json_string(plan->key));
    json_object_set_new(json, "engine", json_integer(plan->engine));
    json_object_set_new(json, "workspace_bytes", json_integer(plan->workspace));
    json_object_set_new(json, "tuned", json_boolean(plan->tuned));
    json_array_append_new(plans, json);
  }
  json_object_set_new(part, "toolkit", toolkit);
  json_object_set_new(part, "plans", plans);
}

/* ---- objects ---- */

static int units(const Backend *backend, Arena *arena, const Module *module,
                 const CodegenOptions *options, Unit unit[MAX_UNITS]) {
  (void)arena, (void)module, (void)options;
  unit[0] = (Unit){.name = backend->ident,
                   .level = "-O1",
                   .march = backend->arch->any,
                   .define = {"-DAMPCC_TABLES"}};
  return 1;
}

/* cudart for this machine's CPU, in the toolkit; for another kind it lies with the runtime's
 * libraries. NULL if there is none. */
static const char *cudart_for(Arena *arena, const CpuArch *arch, const char *folder) {
  static const char *const place[] = {"lib64", "lib", "nvidia/cu13/lib"};
  if (arch->folder)
    return "libcudart_static.a";
  for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
    const char *path = arena_printf(arena, "%s/%s/libcudart_static.a", folder, place[i]);
    if (access(path, R_OK) == 0)
      return path;
  }
  return NULL;
}

const bool codegen_has_cuda = true;

const char *codegen_cuda_versions(Arena *arena, const char *cuda_path) {
  char error[TOOLKIT_ERROR];
  Toolkit *toolkit = toolkit_find(arena, cuda_path, error);
  return toolkit && toolkit_nvrtc(toolkit, error) && toolkit_cudnn(toolkit, error)
             ? arena_printf(arena, "%s %d %d", toolkit->folder, toolkit->nvrtc_version,
                            toolkit->cudnn_version)
             : arena_strdup(arena, error, strlen(error));
}

const Backend *backend_cuda(Arena *arena, const Device *device, const CudaOptions *options,
                            const char **error) {
  static const Tuning no_tuning;
  char text[TOOLKIT_ERROR];
  CudaTarget *cuda = arena_new_of(arena, CudaTarget);
  *cuda = (CudaTarget){.arena = arena,
                       .device = device,
                       .fuse_level = options->fuse_level,
                       .cache = options->cache,
                       .toolkit = toolkit_find(arena, options->cuda_path, text),
                       .with_ptx = options->ptx,
                       .tuning = options->tuning ? options->tuning : &no_tuning,
                       .require_tuned = options->require_tuned};
  *error = cuda->toolkit ? NULL : arena_strdup(arena, text, strlen(text));
  if (!cuda->toolkit)
    return NULL;
  const char *cudart = cudart_for(arena, options->arch, cuda->toolkit->folder);
  *error = cudart ? NULL
                  : arena_printf(arena,
                                 "no libcudart_static.a in %s; --cuda-path names another "
                                 "folder of CUDA 13",
                                 cuda->toolkit->folder);
  if (!cudart)
    return NULL;
  const char *const library[] = {"libamprt_cuda.a", cudart, "-ldl", "-lrt", "-lpthread", NULL};
  const char **libraries = arena_alloc(arena, sizeof library);
  memcpy(libraries, library, sizeof library);
  cuda_target_init(cuda, arena_printf(arena, "cuda:sm_%d", device->capability));
  cuda->backend = (Backend){
      .target = &cuda->target,
      .arch = options->arch,
      .ident = arena_printf(arena, "cuda_sm_%d", device->capability),
      .whole = "#define AMPCC_TABLES\n",
      .emit_graph = cuda_emit_graph,
      .emit_head = cuda_emit_head,
      .emit_functions = cuda_emit_functions,
      .emit_hooks = cuda_emit_hooks,
      .fields = cuda_fields,
      .emit_fits = cuda_emit_fits,
      .units = units,
      .libraries = libraries,
      .files = toolkit_files(cuda->toolkit),
      .not_static = arena_printf(arena, "NVIDIA's driver is a shared library: give --target=%s",
                                 options->arch->target),
      .compile_kernels = compile_kernels,
      .check_kernels = check_kernels,
      .write_kernels = write_kernels,
      .manifest = manifest,
      .report = report};
  return &cuda->backend;
}
