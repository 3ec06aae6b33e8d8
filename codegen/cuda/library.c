/* Kernels of one main op: a convolution as a plan of cuDNN, a matrix product as a call of cublasLt.
 * Neither has text of its own; equal ones share a table. */
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/target.h"
#include "codegen/loop/bits.h"

#include <string.h>

/* cublasLt chooses among algorithms where the program runs; this is what it may use for splitting
 * long sums. */
enum { MATMUL_WORKSPACE = 4 << 20 };

bool cuda_is_library(const Kernel *kernel) {
  const Node *main = kernel_main(kernel);
  return main && op_info[main->op].gen != GEN_POOL;
}

static const Node *only_node(const Kernel *kernel) {
  CHECK(kernel->n_nodes == 1, "a library kernel takes one node, not %d", kernel->n_nodes);
  return kernel->node[0];
}

int64_t cuda_library_workspace(const Target *target, const Kernel *kernel) {
  const Node *node = only_node(kernel);
  if (node->op == OP_MATMUL) {
    if (node->result[0]->type.dtype == DT_BF16 && cuda_target_of(target)->device->capability < 80)
      cuda_refuse(cuda_target_of(target), node, op_info[node->op].name,
                  "it does not multiply bf16; sm_80 and later do");
    return MATMUL_WORKSPACE;
  }
  return cuda_planned(cuda_target_of(target), node)->plan.workspace;
}

/* A constant operand as bytes of its own type; loops keep theirs in f32. */
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

static const char *plan_table(Emitter *emit, const Node *node) {
  const Planned *planned = cuda_planned(cuda_target_of(emit->target), node);
  const PlanText *plan = &planned->plan;
  const char *name = arena_printf(emit->arena, "plan_%d", planned->index);
  if (!table_intern(emit, name))
    return name;
  CHECK(plan->json, "no plan of %s", plan->key);
  fprintf(emit->tables, "static const CudaPlan %s = {\n  .json = ", name);
  cstring_write(emit->tables, plan->json);
  fprintf(emit->tables,
          ",\n  .json_bytes = %zu, .n_operands = 3, .uid = {1, 2, 3}, .workspace_bytes = %lld,\n"
          "  .key = \"%s\"};\n\n",
          plan->json_bytes, (long long)plan->workspace, plan->key);
  return name;
}

static const char *matmul_table(Emitter *emit, const Node *node) {
  const int64_t *a = node->arg[0]->type.dim, *out = node->result[0]->type.dim;
  int trans_a = attr_int(node, ATTR_TRANS_A, 0) != 0,
      trans_b = attr_int(node, ATTR_TRANS_B, 0) != 0;
  const char *dtype = cdtype_name(node->result[0]->type.dtype);
  long long rows = out[0], columns = out[1], inner = a[trans_a ? 0 : 1];
  const char *name = arena_printf(emit->arena, "matmul_%s_%d%d_%lld_%lld_%lld", dtype, trans_a,
                                  trans_b, rows, columns, inner);
  if (table_intern(emit, name))
    fprintf(emit->tables,
            "static const CudaMatmul %s = {\n  .dtype = %s, .trans_a = %d, .trans_b = %d, "
            ".rows = %lld, .columns = %lld, .inner = %lld};\n\n",
            name, dtype, trans_a, trans_b, rows, columns, inner);
  return name;
}

void cuda_emit_library(Emitter *emit, const Kernel *kernel, LaunchList *out) {
  const Node *node = only_node(kernel);
  bool product = node->op == OP_MATMUL;
  const int64_t *space = attr_ints(node, ATTR_WORKSPACE, 2);
  Launch launch = {.kind = product ? CUDA_MATMUL : CUDA_PLAN,
                   .kernel = kernel->id,
                   .description = product ? matmul_table(emit, node) : plan_table(emit, node),
                   .n_operands = 3,
                   .operand = {place_of(emit, node->arg[0]), place_of(emit, node->arg[1]),
                               place_of(emit, node->result[0])},
                   .workspace = space ? space[0] : 0,
                   .workspace_bytes = space ? space[1] : 0};
  arena_push(emit->arena, out->launch, out->n, out->cap, launch);
}
