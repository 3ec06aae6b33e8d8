/* Kernels that call a library. A convolution, with the nodes that run with it, is a plan of cuDNN;
 * a matrix product, perhaps with a bias, is a call of cublasLt. Neither has a text, and equal plans
 * or products share a table. */
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/target.h"
#include "codegen/loop/bits.h"

#include <string.h>

/* Bytes. cublasLt chooses its algorithm where the program runs; the workspace is for algorithms
 * that split long sums. */
enum { MATMUL_WORKSPACE = 4 << 20, SCRATCH_ALIGN = 256 };

bool cuda_is_library(const Kernel *kernel) {
  const Node *main = kernel_main(kernel);
  return main && op_info[main->op].gen != GEN_POOL;
}

/* ---- scratch ---- */

/* Gives each result of a plan that nobody reads a place in the workspace, behind the `own` bytes
 * that the plan itself needs. Returns the size of the workspace. */
static int64_t place_scratch(const ConvKernel *conv, int64_t own, int64_t at[CONV_MAX_OPERANDS]) {
  int64_t end = own;
  for (int i = 0; i < conv->n_operands; i++)
    if (conv->operand[i].is_scratch) {
      at[i] = (end + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
      end = at[i] + conv->operand[i].n * (int64_t)sizeof(float);
    }
  return end;
}

int64_t cuda_library_workspace(const Target *target, const Kernel *kernel) {
  CudaTarget *cuda = cuda_target_of(target);
  const Node *main = kernel_main(kernel);
  if (main->op == OP_MATMUL) {
    if (main->result[0]->type.dtype == DT_BF16 && cuda->device->capability < 80)
      cuda_refuse(cuda, main, op_info[main->op].name,
                  "it does not multiply bf16; sm_80 and later do");
    if (attr_int(main, ATTR_TF32, 0) && cuda->device->capability < 80)
      cuda_refuse(cuda, main, op_info[main->op].name, plan_no_tf32);
    return MATMUL_WORKSPACE;
  }
  int64_t at[CONV_MAX_OPERANDS];
  ConvKernel conv = conv_kernel_of(cuda_forms(cuda), kernel);
  return place_scratch(&conv, cuda_planned(cuda, main, &conv.op)->plan.workspace, at);
}

/* ---- places ---- */

/* The offset of a constant operand in the block of constants. It is stored in its own type there,
 * while the constants of loops are f32. */
static int64_t constant_at(Emitter *emit, const Value *value) {
  const Node *node = value->node;
  const Attr *data = attr_find(node, ATTR_DATA);
  DType dtype = value->type.dtype;
  int64_t n = type_count(value->type);
  size_t size = (size_t)dtype_info[dtype].bytes;
  unsigned char *bytes = arena_alloc(emit->arena, (size_t)n * size);
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits = float_bits(data ? data->floats[i] : attr_float(node, ATTR_VALUE, 0), dtype);
    memcpy(bytes + (size_t)i * size, &bits, size);
  }
  return constant_intern(emit, bytes, (size_t)n * size);
}

static CudaPlace place_of(Emitter *emit, const Value *value) {
  const Value *storage = value_storage((Value *)value);
  if (storage->node->op == OP_CONST)
    return (CudaPlace){(uint64_t)constant_at(emit, storage), CUDA_CONSTANT};
  return (CudaPlace){(uint64_t)value_at(value), value_in_state(value) ? CUDA_STATE : CUDA_ARENA};
}

static CudaPlace operand_place(Emitter *emit, const ConvOperand *operand, int64_t scratch) {
  if (operand->value)
    return place_of(emit, operand->value);
  if (operand->is_scratch)
    return (CudaPlace){(uint64_t)scratch, CUDA_ARENA};
  float *each = arena_alloc(emit->arena, (size_t)operand->n * sizeof *each);
  for (int64_t i = 0; i < operand->n; i++)
    each[i] = operand->each;
  return (CudaPlace){(uint64_t)constant_intern(emit, each, (size_t)operand->n * sizeof *each),
                     CUDA_CONSTANT};
}

/* ---- tables ---- */

static const char *plan_table(Emitter *emit, const Planned *planned, int n_operands) {
  Arena *arena = emit->arena;
  const PlanText *plan = &planned->plan;
  const char *name = arena_printf(arena, "plan_%d", planned->index);
  if (!table_intern(emit, name))
    return name;
  CHECK(plan->json, "no plan of %s", plan->key);
  Text candidates = {arena}, uids = {arena};
  for (int i = 0; i < plan->n_candidates; i++)
    text_format(&candidates, "%s%s", i ? ",\n  " : "", cstring_text(arena, plan->candidate[i]));
  for (int i = 0; i < n_operands; i++)
    text_item(&uids, arena_printf(arena, "%d", i + 1));
  file_fill(emit->tables, arena,
            "static const char *const candidates_$I[] = {\n"
            "  $CANDIDATES};\n"
            "static const CudaPlan $NAME = {\n"
            "  .json = $JSON,\n"
            "  .json_bytes = $BYTES, .n_operands = $OPERANDS, .uid = {$UIDS},"
            " .workspace_bytes = $WORKSPACE,\n"
            "  .key = \"$KEY\", .candidate = candidates_$I, .n_candidates = $NCANDIDATES};\n"
            "\n",
            holes({"I", .number = planned->index}, {"NAME", name},
                  {"CANDIDATES", text_get(&candidates)}, {"JSON", cstring_text(arena, plan->json)},
                  {"BYTES", .number = (int64_t)plan->json_bytes},
                  {"OPERANDS", .number = n_operands}, {"UIDS", text_get(&uids)},
                  {"WORKSPACE", .number = plan->workspace}, {"KEY", plan->key},
                  {"NCANDIDATES", .number = plan->n_candidates}));
  return name;
}

static const char *matmul_table(Emitter *emit, const Node *node, bool bias) {
  const int64_t *a = node->arg[0]->type.dim, *out = node->result[0]->type.dim;
  int trans_a = attr_int(node, ATTR_TRANS_A, 0) != 0,
      trans_b = attr_int(node, ATTR_TRANS_B, 0) != 0, tf32 = attr_int(node, ATTR_TF32, 0) != 0;
  const char *dtype = cdtype_name(node->result[0]->type.dtype);
  long long rows = out[0], columns = out[1], inner = a[trans_a ? 0 : 1];
  const char *name =
      arena_printf(emit->arena, "matmul_%s%s%s_%d%d_%lld_%lld_%lld", dtype, tf32 ? "_tf32" : "",
                   bias ? "_bias" : "", trans_a, trans_b, rows, columns, inner);
  if (table_intern(emit, name))
    file_fill(emit->tables, emit->arena,
              "static const CudaMatmul $NAME = {\n"
              "  .dtype = $DTYPE, .trans_a = $A, .trans_b = $B, .tf32 = $TF, .bias = $BIAS,\n"
              "  .rows = $ROWS, .columns = $COLUMNS, .inner = $INNER};\n"
              "\n",
              holes({"NAME", name}, {"DTYPE", dtype}, {"A", .number = trans_a},
                    {"B", .number = trans_b}, {"TF", .number = tf32}, {"BIAS", .number = bias},
                    {"ROWS", .number = rows}, {"COLUMNS", .number = columns},
                    {"INNER", .number = inner}));
  return name;
}

/* ---- launches ---- */

static Launch launch_conv(Emitter *emit, const Kernel *kernel, int64_t workspace) {
  CudaTarget *cuda = cuda_target_of(emit->target);
  ConvKernel conv = conv_kernel_of(cuda_forms(cuda), kernel);
  const Planned *planned = cuda_planned(cuda, kernel_main(kernel), &conv.op);
  int64_t scratch[CONV_MAX_OPERANDS] = {0};
  Launch launch = {.kind = CUDA_PLAN,
                   .description = plan_table(emit, planned, conv.n_operands),
                   .n_operands = conv.n_operands,
                   .workspace_bytes = planned->plan.workspace};
  place_scratch(&conv, planned->plan.workspace, scratch);
  for (int i = 0; i < conv.n_operands; i++)
    launch.operand[i] = operand_place(emit, &conv.operand[i], workspace + scratch[i]);
  return launch;
}

static Launch launch_matmul(Emitter *emit, const Kernel *kernel) {
  const Node *main = kernel_main(kernel),
             *bias = NULL; /* the node that adds a bias, if there is one */
  for (int i = 0; i < kernel->n_nodes; i++)
    if (kernel->node[i]->op == OP_BIAS_ADD)
      bias = kernel->node[i];
  CHECK(bias || kernel->n_nodes == 1, "kernel %d is no product", kernel->id);
  Launch launch = {.kind = CUDA_MATMUL,
                   .description = matmul_table(emit, main, bias != NULL),
                   .n_operands = 3 + (bias != NULL),
                   .operand = {place_of(emit, main->arg[0]), place_of(emit, main->arg[1]),
                               place_of(emit, (bias ? bias : main)->result[0])},
                   .workspace_bytes = MATMUL_WORKSPACE};
  if (bias)
    launch.operand[3] = place_of(emit, bias->arg[1]);
  return launch;
}

void cuda_emit_library(Emitter *emit, const Kernel *kernel, LaunchList *out) {
  const Node *main = kernel_main(kernel);
  const int64_t *space = attr_ints(kernel->node[0], ATTR_WORKSPACE, 2);
  int64_t workspace = space ? space[0] : 0;
  Launch launch =
      main->op == OP_MATMUL ? launch_matmul(emit, kernel) : launch_conv(emit, kernel, workspace);
  launch.kernel = kernel->id;
  launch.workspace = workspace;
  arena_push(emit->arena, out->launch, out->n, out->cap, launch);
}
