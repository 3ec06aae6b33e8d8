/* Convolutions and matrix products, as calls of libamprt_dnn: each is a DnnOp in the tables and has
 * no text of its own. */
#include "codegen/cpu/onednn.h"

#include "codegen/cpu/library.h"
#include "codegen/loop/bits.h"
#include "runtime/cpu/dnn_rt.h"

#include <string.h>

/* Workspace is planned for this many threads; where a program runs more, dnn_open adds a buffer. A
 * constant, so that a program does not depend on the machine that compiled it. */
enum { PLANNED_THREADS = 4 };

static DnnKind kind_of(OpKind op) {
  switch (op) {
  case OP_CONV2D:
    return DNN_CONV;
  case OP_CONV2D_DGRAD:
    return DNN_DGRAD;
  case OP_CONV2D_WGRAD:
    return DNN_WGRAD;
  case OP_MATMUL:
    return DNN_MATMUL;
  default:
    BUG("`%s` is no library kernel", op_info[op].name);
  }
}

static void matmul_shape(const Node *node, DnnOp *op) {
  const int64_t *a = node->arg[0]->type.dim, *out = node->result[0]->type.dim;
  op->trans_a = attr_int(node, ATTR_TRANS_A, 0) != 0;
  op->trans_b = attr_int(node, ATTR_TRANS_B, 0) != 0;
  op->n = out[0];
  op->k = out[1];
  op->c = a[op->trans_a ? 0 : 1];
}

static void conv_shape(const Node *node, DnnOp *op) {
  const Value *a = node->arg[0], *b = node->arg[1], *out = node->result[0];
  const int64_t *x = (op->kind == DNN_DGRAD ? out : a)->type.dim;
  const int64_t *w = (op->kind == DNN_WGRAD ? out : b)->type.dim;
  const int64_t *y = (op->kind == DNN_CONV ? out : op->kind == DNN_DGRAD ? a : b)->type.dim;
  const int64_t *stride = attr_ints(node, ATTR_STRIDE, 2), *pad = attr_ints(node, ATTR_PAD, 4);
  CHECK(stride && pad, "`%s` without stride or pad", op_info[node->op].name);
  op->n = x[0], op->h = x[1], op->w = x[2], op->c = x[3];
  op->k = w[0], op->r = w[1], op->s = w[2];
  op->ho = y[1], op->wo = y[2];
  op->groups = attr_int(node, ATTR_GROUPS, 1);
  for (int i = 0; i < 2; i++)
    op->stride[i] = stride[i];
  for (int i = 0; i < 4; i++)
    op->pad[i] = pad[i];
}

/* The DnnOp of a kernel, except where its operands lie. */
static DnnOp dnn_op(const Kernel *kernel) {
  const Node *node = kernel_main(kernel);
  CHECK(kernel->n_nodes == 1, "a library kernel takes one node, not %d", kernel->n_nodes);
  DType dtype = node->result[0]->type.dtype;
  CHECK(dtype == DT_F32 || dtype == DT_F16 || dtype == DT_BF16, "`%s` in %s",
        op_info[node->op].name, dtype_info[dtype].name);
  DnnOp op = {.kind = (uint8_t)kind_of(node->op), .dtype = (uint8_t)dtype};
  if (op.kind == DNN_MATMUL)
    matmul_shape(node, &op);
  else
    conv_shape(node, &op);
  onednn_choose(&op);
  return op;
}

static int64_t workspace(const CpuLibrary *library, const Kernel *kernel) {
  (void)library;
  static bool planned;
  char error[300];
  if (!planned) {
    dnn_plan_for(PLANNED_THREADS);
    planned = true;
  }
  DnnOp op = dnn_op(kernel);
  int64_t bytes = dnn_workspace(&op, error, sizeof error);
  CHECK(bytes >= 0, "%s", error);
  return bytes;
}

static const char *const kind_text[] = {"DNN_CONV", "DNN_DGRAD", "DNN_WGRAD", "DNN_MATMUL"};
static const char *const method_text[] = {"DNN_NHWC", "DNN_BLOCK", "DNN_GEMM"};

/* The name of a table with the bits of a constant's elements, written if it is not there yet. */
static const char *const_table(Emitter *emit, const Value *value) {
  const Node *node = value->node;
  const Attr *data = attr_find(node, ATTR_DATA);
  DType dtype = value->type.dtype;
  const char *name =
      arena_printf(emit->arena, "bits_%s_%s", ident_of(emit->arena, emit->graph->name),
                   ident_of(emit->arena, value->name));
  if (!table_intern(emit, name))
    return name;
  fprintf(emit->tables, "static const uint%d_t %s[] = {", dtype == DT_F32 ? 32 : 16, name);
  for (int64_t i = 0, n = type_count(value->type); i < n; i++) {
    double x = data ? data->floats[i] : attr_float(node, ATTR_VALUE, 0);
    fprintf(emit->tables, "%s0x%x", i == 0 ? "\n  " : i % 8 ? ", " : ",\n  ", float_bits(x, dtype));
  }
  fputs("};\n", emit->tables);
  return name;
}

static const char *ref_text(Emitter *emit, const Value *value) {
  const Value *storage = value_storage((Value *)value);
  if (storage->node->op == OP_CONST)
    return arena_printf(emit->arena, "{.data = %s}", const_table(emit, storage));
  return arena_printf(emit->arena, "{%lld, %d}", (long long)value_at(value), value_in_state(value));
}

static void write_op(Emitter *emit, const char *name, const DnnOp *op, const Node *node,
                     const int64_t *workspace) {
  const char *a = ref_text(emit, node->arg[0]), *b = ref_text(emit, node->arg[1]);
  const char *result = ref_text(emit, node->result[0]);
  bool is_matmul = op->kind == DNN_MATMUL;
  file_fill(emit->tables, emit->arena,
            "static const DnnOp $NAME = {\n"
            "  .kind = $KIND, .method = $METHOD, .dtype = $DTYPE, .slot = $SLOT,\n"
            "$if MATMUL\n"
            "  .n = $N, .c = $C, .k = $K, .trans_a = $TRANSA, .trans_b = $TRANSB,\n"
            "$end\n"
            "$if CONV\n"
            "  .n = $N, .c = $C, .k = $K, .chunk = $CHUNK, .h = $H, .w = $W, .r = $R, .s = $S,"
            " .ho = $HO, .wo = $WO,\n"
            "  .stride = {$DOWN, $ACROSS}, .pad = {$TOP, $BOTTOM, $LEFT, $RIGHT},\n"
            "$end\n"
            "$if GROUPS\n"
            "  .groups = $GROUPS,\n"
            "$end\n"
            "  .a = $A, .b = $B, .out = $OUT,\n"
            "$if WORKSPACE\n"
            "  .workspace = $WORKSPACE, .workspace_bytes = $BYTES,\n"
            "$end\n"
            "};\n",
            holes({"NAME", name}, {"KIND", kind_text[op->kind]},
                  {"METHOD", method_text[op->method]}, {"DTYPE", cdtype_name(op->dtype)},
                  {"SLOT", .number = emit->n_library}, {"MATMUL", is_matmul ? "yes" : ""},
                  {"CONV", is_matmul ? "" : "yes"}, {"N", .number = op->n}, {"C", .number = op->c},
                  {"K", .number = op->k}, {"TRANSA", .number = op->trans_a},
                  {"TRANSB", .number = op->trans_b}, {"CHUNK", .number = op->chunk},
                  {"H", .number = op->h}, {"W", .number = op->w}, {"R", .number = op->r},
                  {"S", .number = op->s}, {"GROUPS", hole_count(op->groups > 1 ? op->groups : 0)},
                  {"HO", .number = op->ho}, {"WO", .number = op->wo},
                  {"DOWN", .number = op->stride[0]}, {"ACROSS", .number = op->stride[1]},
                  {"TOP", .number = op->pad[0]}, {"BOTTOM", .number = op->pad[1]},
                  {"LEFT", .number = op->pad[2]}, {"RIGHT", .number = op->pad[3]}, {"A", a},
                  {"B", b}, {"OUT", result},
                  {"WORKSPACE", workspace ? NULL : "", workspace ? workspace[0] : 0},
                  {"BYTES", .number = workspace ? workspace[1] : 0}));
}

static void emit_kernel(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const Node *node = kernel_main(kernel);
  DnnOp op = dnn_op(kernel);
  const char *name =
      arena_printf(emit->arena, "dnn_%s_%d", ident_of(emit->arena, emit->graph->name), kernel->id);
  write_op(emit, name, &op, node, attr_ints(kernel->node[0], ATTR_WORKSPACE, 2));
  arena_push(emit->arena, emit->library, emit->n_library, emit->cap_library, name);
  call->function = "dnn_run";
  call->args = arena_printf(emit->arena, "&%s", name);
  call->name = arena_printf(emit->arena, "k%d_%s", kernel->id, op_info[node->op].name);
}

static void emit_hooks(const Emitter *emit, FILE *out) {
  Text tables = {emit->arena};
  for (int i = 0; i < emit->n_library; i++)
    text_format(&tables, "&%s,\n", emit->library[i]);
  file_fill(out, emit->arena,
            "static const DnnOp *const library[] = {\n"
            "  $TABLES\n"
            "  NULL};\n"
            "\n"
            "static int amp_open(const AmprtRun *run, char *error, size_t error_size) {\n"
            "  return dnn_open(library, $N, run, error, error_size);\n"
            "}\n"
            "static void amp_close(void) { dnn_close(); }\n"
            "static const char *amp_describe(void) { return dnn_describe(); }\n"
            "\n",
            holes({"TABLES", text_get(&tables)}, {"N", .number = emit->n_library}));
}

const char *const cpu_onednn_linked[] = {"libamprt_dnn.a", "-fopenmp", "-ldnnl", NULL};

const CpuLibrary cpu_onednn = {
    .name = "onednn",
    .workspace = workspace,
    .emit_kernel = emit_kernel,
    .include = "#include \"dnn_rt.h\"\n\n",
    .emit_hooks = emit_hooks,
};
