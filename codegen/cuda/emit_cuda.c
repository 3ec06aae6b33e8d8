/* A CUDA part as C: a row for each launch, the plans and args that the rows name, the constants,
 * and the image of machine code. The text of the kernels is compiled separately, by NVRTC. */
#include "codegen/cuda/emit_cuda.h"

#include "codegen/cuda/cuda.h"
#include "codegen/loop/loop.h"
#include "codegen/text/prelude_text.h"

#include <cublasLt.h>

#include <string.h>
#include <zlib.h>

const char cuda_fields[] = "  .device = &cuda_device, .describe = cuda_describe,\n";

/* ---- launches ---- */

static void add_kernel(Text *rows, const Launch *launch) {
  Arena *arena = rows->arena;
  Text fields = {arena};
  text_item(&fields, arena_printf(arena, ".function = \"%s\"", launch->function));
  if (launch->args)
    text_item(&fields, text_filled(arena, ".args = &$ARGS, .args_bytes = sizeof $ARGS",
                                   holes({"ARGS", launch->args})));
  if (launch->shared)
    text_item(&fields, arena_printf(arena, ".shared = %lld", (long long)launch->shared));
  text_fill(rows,
            "{.kind = CUDA_KERNEL, .kernel = $KERNEL, $FIELDS,\n"
            " .grid = {$GX, $GY, $GZ}, .block = {$BX, $BY, $BZ}},\n",
            holes({"KERNEL", .number = launch->kernel}, {"FIELDS", text_get(&fields)},
                  {"GX", .number = launch->grid[0]}, {"GY", .number = launch->grid[1]},
                  {"GZ", .number = launch->grid[2]}, {"BX", .number = launch->block[0]},
                  {"BY", .number = launch->block[1]}, {"BZ", .number = launch->block[2]}));
}

static void add_library(Text *rows, const Launch *launch) {
  Arena *arena = rows->arena;
  bool is_plan = launch->kind == CUDA_PLAN;
  Text operands = {arena};
  for (int i = 0; i < launch->n_operands; i++)
    text_item(&operands,
              arena_printf(arena, "{%llu, %d}", (unsigned long long)launch->operand[i].at,
                           launch->operand[i].block));
  text_fill(rows,
            "{.kind = $KIND, .kernel = $KERNEL, .$FIELD = &$TABLE,\n"
            " .operand = {$OPERANDS}, .workspace = $WORKSPACE, .workspace_bytes = $BYTES},\n",
            holes({"KIND", is_plan ? "CUDA_PLAN" : "CUDA_MATMUL"},
                  {"FIELD", is_plan ? "plan" : "matmul"}, {"KERNEL", .number = launch->kernel},
                  {"TABLE", launch->description}, {"OPERANDS", text_get(&operands)},
                  {"WORKSPACE", .number = launch->workspace},
                  {"BYTES", .number = launch->workspace_bytes}));
}

static void write_launches(Emitter *emit, const char *graph, const LaunchList *list) {
  Text rows = {emit->arena};
  for (int i = 0; i < list->n; i++)
    (list->launch[i].kind == CUDA_KERNEL ? add_kernel : add_library)(&rows, &list->launch[i]);
  file_fill(emit->tables, emit->arena,
            "static const CudaLaunch launches_$GRAPH[] = {\n"
            "  $ROWS\n"
            "  {0}};\n"
            "\n"
            "enum { n_launches_$GRAPH = $N };\n"
            "\n",
            holes({"GRAPH", graph}, {"ROWS", text_get(&rows)}, {"N", .number = list->n}));
}

/* Notes the launches that the machine code must be capable of, for check_kernels. Those of the
 * training step are counted for the figures of the part. */
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

static void add_extra(ProgramCode *program, const GraphCode *code, const char *what, Launch launch,
                      bool is_step) {
  Emitter *emit = &program->emit;
  LaunchList list = {0};
  arena_push(emit->arena, list.launch, list.n, list.cap, launch);
  write_launches(emit, arena_printf(emit->arena, "%s_%s", code->ident, what), &list);
  note_launches(cuda_target_of(emit->target), &list, is_step, program->figures);
}

void cuda_emit_graph(ProgramCode *program, GraphCode *code) {
  Emitter *emit = &program->emit;
  CudaTarget *cuda = cuda_target_of(emit->target);
  const KernelList *kernels = &code->kernels;
  bool is_step = code->graph == program->module->graph[0];
  const bool *waits = bucket_waits(program->arena, code);
  LaunchList list = {0};
  for (int i = 0; i < kernels->n;) {
    const Kernel *kernel = &kernels->kernel[i];
    int past = i + 1; /* a kernel that waits for a bucket begins a launch */
    while (past < kernels->n && !waits[past])
      past++;
    int n = cuda_is_library(kernel) ? 1 : cuda_loops_joined(kernel, past - i);
    if (cuda_is_library(kernel))
      cuda_emit_library(emit, kernel, &list);
    else
      cuda_emit_loops(emit, kernel, n, &list);
    i += n;
  }
  for (int i = 0; i < kernels->n; i++) {
    const char *stem = loop_stem(program->arena, &kernels->kernel[i]);
    code->call[i] =
        (KernelCall){.args = "NULL", .name = arena_printf(program->arena, "k%d_%s", i, stem)};
  }
  write_launches(emit, code->ident, &list);
  note_launches(cuda, &list, is_step, program->figures);
  /* Launches that are no kernel of the graph have tables of their own. */
  const Value *port = cuda_pixels_port(code->graph);
  if (port)
    add_extra(program, code, "pixels", cuda_emit_pixels(emit, port), is_step);
  if (cuda_sums_ranks(code->graph))
    add_extra(program, code, "ranks", cuda_emit_ranks(emit), is_step);
}

/* ---- texts ---- */

void cuda_emit_head(const ProgramCode *program, FILE *out) {
  (void)program;
  fputs("#include \"cuda_rt.h\"\n\n", out);
  for (const char *const *line = args_text; *line; line++)
    fputs(*line, out);
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

/* Writes bytes as string literals, which a compiler reads ten times as fast as lists of numbers. */
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

static const char *image_row(const CudaTarget *cuda, const char *name, bool is_ptx,
                             const void *data, size_t size) {
  unsigned long sum = crc32_z(crc32(0, NULL, 0), data, size);
  return arena_printf(cuda->arena, "{%s, %zu, %d, 0x%08lx},\n", name, size, is_ptx, sum);
}

/* PTX is for GPUs of a later major capability, on which the machine code cannot run. It is of use
 * only if cuDNN has engines for all plans of the part there. */
static bool has_ptx(const CudaTarget *cuda) {
  return cuda->with_ptx && (!cuda->newest || cuda->newest / 10 > cuda->device->capability / 10);
}

void cuda_emit_image(const CudaTarget *cuda, const NvrtcCode *code, FILE *out) {
  bool ptx = has_ptx(cuda);
  fputs("#include \"cuda_rt.h\"\n\n", out);
  write_bytes("static const _Alignas(64) char cubin[]", code->cubin, code->cubin_bytes, out);
  if (ptx)
    write_bytes("static const char ptx[]", code->ptx, code->ptx_bytes, out);
  const char *cubin_row = image_row(cuda, "cubin", false, code->cubin, code->cubin_bytes);
  file_fill(out, cuda->arena,
            "const CudaImage amp_images_$PART[] = {\n"
            "  $CUBIN\n"
            "  $PTX\n"
            "};\n",
            holes({"PART", cuda->backend.ident}, {"CUBIN", cubin_row},
                  {"PTX", ptx ? image_row(cuda, "ptx", true, code->ptx, code->ptx_bytes) : ""}));
}

/* ---- the part ---- */

/* Does any graph have a matrix product (`products`), or else a convolution? */
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
  Arena *arena = program->arena;
  const CudaTarget *cuda = cuda_target_of(program->backend->target);
  const Bytes *constants = program->emit.constants;
  Text graphs = {arena};
  for (int i = 0; i < program->module->n_graphs; i++) {
    const GraphCode *code = &program->graph[i];
    const char *ident = code->ident;
    text_format(&graphs, "{launches_%s, n_launches_%s", ident, ident);
    if (cuda_pixels_port(code->graph))
      text_format(&graphs, ", .pixels = launches_%s_pixels", ident);
    if (cuda_sums_ranks(code->graph))
      text_format(&graphs, ", .ranks = launches_%s_ranks", ident);
    text_add(&graphs, "},\n");
  }
  write_bytes("static const _Alignas(256) unsigned char constants[]", constants->byte, constants->n,
              out);
  file_fill(
      out, arena,
      "static const CudaGraph cuda_graphs[] = {\n"
      "  $GRAPHS\n"
      "};\n"
      "\n"
      "extern const CudaImage amp_images_$PART[];\n"
      "static const CudaPart cuda_part = {\n"
      "  .name = \"$NAME\", .capability = $CAPABILITY, .newest = $NEWEST,\n"
      "  .image = amp_images_$PART, .n_images = $IMAGES, .constant = constants,"
      " .constant_bytes = $BYTES,\n"
      "  .graph = cuda_graphs, .n_graphs = $NGRAPHS, .tf32 = $TF,\n"
      "  .cudnn_version = $CUDNN, .cublas_version = $CUBLAS, .cuda_version = $CUDA};\n"
      "\n",
      holes({"PART", program->backend->ident}, {"NAME", program->backend->target->name},
            {"GRAPHS", text_get(&graphs)}, {"CAPABILITY", .number = cuda->device->capability},
            {"NEWEST", .number = cuda->newest}, {"IMAGES", .number = 1 + has_ptx(cuda)},
            {"BYTES", .number = (int64_t)constants->n},
            {"NGRAPHS", .number = program->module->n_graphs},
            {"TF", .number = any_tf32(program->module)},
            {"CUDNN", .number = any_launch(program, false) ? cuda->toolkit->cudnn_version : 0},
            {"CUBLAS", .number = any_launch(program, true) ? CUBLAS_VERSION : 0},
            {"CUDA", .number = CUDART_VERSION}));
}

void cuda_emit_fits(const ProgramCode *program, FILE *out) {
  (void)program;
  fputs("static int fits(char *why, size_t size) {\n"
        "  return cuda_fits(&cuda_part, &amp_program, why, size);\n"
        "}\n",
        out);
}
