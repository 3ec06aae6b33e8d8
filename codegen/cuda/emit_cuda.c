/* A CUDA part as C: one row per launch, the plans and args that rows name, constants, the image.
 * The kernels' own text is compiled apart, by NVRTC. */
#include "codegen/cuda/emit_cuda.h"

#include "codegen/cuda/cuda.h"
#include "codegen/loop/loop.h"
#include "codegen/text/prelude_text.h"

#include <cublasLt.h>

#include <string.h>
#include <zlib.h>

const char cuda_fields[] = "  .device = &cuda_device, .describe = cuda_describe,\n";

/* ---- launches ---- */

static void write_kernel(const Launch *launch, FILE *out) {
  fprintf(out, ".function = \"%s\"", launch->function);
  if (launch->args)
    fprintf(out, ", .args = &%s, .args_bytes = sizeof %s", launch->args, launch->args);
  if (launch->shared)
    fprintf(out, ", .shared = %lld", (long long)launch->shared);
  fprintf(out, ",\n   .grid = {%lld, %lld, %lld}, .block = {%d, %d, %d}},\n",
          (long long)launch->grid[0], (long long)launch->grid[1], (long long)launch->grid[2],
          launch->block[0], launch->block[1], launch->block[2]);
}

static void write_library(const Launch *launch, FILE *out) {
  fprintf(out, ".%s = &%s,\n   .operand = {", launch->kind == CUDA_PLAN ? "plan" : "matmul",
          launch->description);
  for (int i = 0; i < launch->n_operands; i++)
    fprintf(out, "%s{%llu, %d}", i ? ", " : "", (unsigned long long)launch->operand[i].at,
            launch->operand[i].block);
  fprintf(out, "}, .workspace = %lld, .workspace_bytes = %lld},\n", (long long)launch->workspace,
          (long long)launch->workspace_bytes);
}

static void write_launches(const char *graph, const LaunchList *list, FILE *out) {
  static const char *const kind[] = {"CUDA_KERNEL", "CUDA_PLAN", "CUDA_MATMUL"};
  fprintf(out, "static const CudaLaunch launches_%s[] = {\n", graph);
  for (int i = 0; i < list->n; i++) {
    fprintf(out, "  {.kind = %s, .kernel = %d, ", kind[list->launch[i].kind],
            list->launch[i].kernel);
    if (list->launch[i].kind == CUDA_KERNEL)
      write_kernel(&list->launch[i], out);
    else
      write_library(&list->launch[i], out);
  }
  fprintf(out, "  {0}};\n\nenum { n_launches_%s = %d };\n\n", graph, list->n);
}

/* For check_kernels, and the figures: of the first graph, which is the step. */
static void note_launches(CudaTarget *cuda, const LaunchList *list, bool is_step,
                          PartFigures *figures) {
  for (int i = 0; i < list->n; i++) {
    const Launch *launch = &list->launch[i];
    int *count[] = {[CUDA_KERNEL] = &figures->launches,
                    [CUDA_PLAN] = &figures->plans,
                    [CUDA_MATMUL] = &figures->products};
    *count[launch->kind] += is_step;
    if (launch->kind != CUDA_KERNEL)
      continue;
    Wanted wanted = {launch->function, launch->block[0] * launch->block[1] * launch->block[2],
                     launch->shared};
    arena_push(cuda->arena, cuda->wanted, cuda->n_wanted, cuda->cap_wanted, wanted);
  }
}

/* What makes the image port is a table of its own, and a launch of the step. */
static void emit_pixels(ProgramCode *program, const GraphCode *code, const Value *port) {
  Emitter *emit = &program->emit;
  LaunchList list = {0};
  arena_push(emit->arena, list.launch, list.n, list.cap, cuda_emit_pixels(emit, port));
  write_launches(arena_printf(emit->arena, "%s_pixels", code->ident), &list, emit->tables);
  note_launches(cuda_target_of(emit->target), &list, code->graph == program->module->graph[0],
                program->figures);
}

void cuda_emit_graph(ProgramCode *program, GraphCode *code) {
  Emitter *emit = &program->emit;
  const Value *port = cuda_pixels_port(code->graph);
  LaunchList list = {0};
  for (int i = 0; i < code->kernels.n;) {
    const Kernel *kernel = &code->kernels.kernel[i];
    int n = 1;
    if (cuda_is_library(kernel)) {
      cuda_emit_library(emit, kernel, &list);
    } else {
      n = cuda_loops_joined(kernel, code->kernels.n - i);
      cuda_emit_loops(emit, kernel, n, &list);
    }
    i += n;
  }
  for (int i = 0; i < code->kernels.n; i++)
    code->call[i] =
        (KernelCall){.args = "NULL",
                     .name = arena_printf(program->arena, "k%d_%s", i,
                                          loop_stem(program->arena, &code->kernels.kernel[i]))};
  write_launches(code->ident, &list, emit->tables);
  note_launches(cuda_target_of(emit->target), &list, code->graph == program->module->graph[0],
                program->figures);
  if (port)
    emit_pixels(program, code, port);
}

/* ---- texts ---- */

static void write_lines(const char *const *line, FILE *out) {
  for (; *line; line++)
    fputs(*line, out);
}

void cuda_emit_head(FILE *out) {
  fputs("#include \"cuda_rt.h\"\n\n", out);
  write_lines(args_text, out);
}

void cuda_emit_functions(const ProgramCode *program, const char *types, const char *functions,
                         FILE *out, FILE *kernels) {
  (void)program;
  fputs(types, out);
  if (!kernels)
    return;
  cuda_emit_prelude(kernels);
  fputs(types, kernels);
  fputs(functions, kernels);
}

/* ---- bytes ---- */

/* As string literals: a compiler reads those some ten times as fast as lists of numbers. */
static void write_bytes(const char *declaration, const void *data, size_t size, FILE *out) {
  const unsigned char *byte = data;
  fprintf(out, "%s =", declaration);
  for (size_t i = 0; i < size; i++) {
    if (i % 64 == 0)
      fputs(i ? "\"\n  \"" : "\n  \"", out);
    if (byte[i] >= ' ' && byte[i] <= '~' && byte[i] != '"' && byte[i] != '\\' && byte[i] != '?')
      fputc(byte[i], out);
    else
      fprintf(out, "\\%03o", byte[i]);
  }
  fputs(size ? "\";\n\n" : "\n  \"\";\n\n", out);
}

static void write_image(const char *name, bool is_ptx, const void *data, size_t size, FILE *out) {
  fprintf(out, "  {%s, %zu, %d, 0x%08lx},\n", name, size, is_ptx,
          crc32_z(crc32(0, NULL, 0), data, size));
}

/* For GPUs that machine code does not reach: of another major version, if all plans can be made
 * there. */
static bool has_ptx(const CudaTarget *cuda) {
  return cuda->with_ptx && (!cuda->newest || cuda->newest / 10 > cuda->device->capability / 10);
}

void cuda_emit_image(const CudaTarget *cuda, const NvrtcCode *code, FILE *out) {
  fputs("#include \"cuda_rt.h\"\n\n", out);
  write_bytes("static const _Alignas(64) char cubin[]", code->cubin, code->cubin_bytes, out);
  if (has_ptx(cuda))
    write_bytes("static const char ptx[]", code->ptx, code->ptx_bytes, out);
  fprintf(out, "const CudaImage amp_images_%s[] = {\n", cuda->backend.ident);
  write_image("cubin", false, code->cubin, code->cubin_bytes, out);
  if (has_ptx(cuda))
    write_image("ptx", true, code->ptx, code->ptx_bytes, out);
  fputs("};\n", out);
}

/* ---- the part ---- */

static void write_graphs(const ProgramCode *program, FILE *out) {
  fputs("static const CudaGraph cuda_graphs[] = {\n", out);
  for (int i = 0; i < program->module->n_graphs; i++) {
    const GraphCode *code = &program->graph[i];
    fprintf(out, "  {launches_%s, n_launches_%s", code->ident, code->ident);
    if (cuda_pixels_port(code->graph))
      fprintf(out, ", launches_%s_pixels", code->ident);
    fputs("},\n", out);
  }
  fputs("};\n\n", out);
}

/* Does any launch of any graph name a table of this kind? */
static bool any_launch(const ProgramCode *program, bool products) {
  for (int g = 0; g < program->module->n_graphs; g++) {
    const KernelList *kernels = &program->graph[g].kernels;
    for (int i = 0; i < kernels->n; i++)
      if (cuda_is_library(&kernels->kernel[i]) &&
          (kernel_main(&kernels->kernel[i])->op == OP_MATMUL) == products)
        return true;
  }
  return false;
}

static bool any_tf32(const Module *module) {
  for (int g = 0; g < module->n_graphs; g++)
    for (int i = 0; i < module->graph[g]->n_nodes; i++)
      if (attr_int(module->graph[g]->node[i], ATTR_TF32, 0))
        return true;
  return false;
}

void cuda_emit_hooks(const ProgramCode *program, FILE *out) {
  const CudaTarget *cuda = cuda_target_of(program->backend->target);
  const Bytes *constants = program->emit.constants;
  const char *ident = program->backend->ident;
  write_bytes("static const _Alignas(256) unsigned char constants[]", constants->byte, constants->n,
              out);
  write_graphs(program, out);
  fprintf(
      out,
      "extern const CudaImage amp_images_%s[];\n"
      "static const CudaPart cuda_part = {\n  .name = \"%s\", .capability = %d, .newest = %d,\n"
      "  .image = amp_images_%s, .n_images = %d, .constant = constants, .constant_bytes = %zu,\n"
      "  .graph = cuda_graphs, .n_graphs = %d, .tf32 = %d,\n"
      "  .cudnn_version = %d, .cublas_version = %d, .cuda_version = %d};\n\n",
      ident, program->backend->target->name, cuda->device->capability, cuda->newest, ident,
      1 + has_ptx(cuda), constants->n, program->module->n_graphs, any_tf32(program->module),
      any_launch(program, false) ? cuda->toolkit->cudnn_version : 0,
      any_launch(program, true) ? CUBLAS_VERSION : 0, CUDART_VERSION);
}

void cuda_emit_fits(const ProgramCode *program, FILE *out) {
  (void)program;
  fputs("static int fits(char *why, size_t size) {\n"
        "  return cuda_fits(&cuda_part, &amp_program, why, size);\n}\n",
        out);
}
