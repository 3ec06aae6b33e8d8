/* Kernels over rows of the last axis: calls of functions in text/TARGET/row.h. */
#include "codegen/loop/loop.h"
#include "codegen/loop/planned.h"

/* The function of an op, and which operand is what; -1: there is none. */
typedef struct RowForm {
  const char *function;
  int other, label, dloss;
} RowForm;

static const RowForm form_SOFTMAX = {"amp_softmax", -1, -1, -1};
static const RowForm form_SOFTMAX_GRAD = {"amp_softmax_grad", 1, -1, -1};
static const RowForm form_SOFTMAX_XENT = {"amp_softmax_xent", -1, 1, -1};
static const RowForm form_SOFTMAX_XENT_GRAD = {"amp_softmax_xent_grad", -1, 1, 2};
static const RowForm form_SIGMOID_XENT = {"amp_sigmoid_xent", -1, 1, -1};
static const RowForm form_SIGMOID_XENT_GRAD = {"amp_sigmoid_xent_grad", -1, 1, 2};
static const RowForm form_SQUARED_ERROR = {"amp_squared_error", -1, 1, -1};
static const RowForm form_SQUARED_ERROR_GRAD = {"amp_squared_error_grad", -1, 1, 2};
static const RowForm form_IN_TOP_K = {"amp_in_top_k", -1, 1, -1};

#define IS_ROW_PLANNED TAKE(FORM)
#define FORM(id)       [OP_##id] = &form_##id,
static const RowForm *const row_form[OP_COUNT] = {
#define OP OP_TAKEN
#include "ir/ops.def"
};

static const char *operand_text(Emitter *emit, const Node *node, int k, const char *owner) {
  return ref_text(emit->arena, k < 0 ? ref_nowhere() : ref_read(emit, node->arg[k], owner));
}

void row_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const Node *node = kernel->node[0];
  const RowForm *form = row_form[node->op];
  CHECK(form && kernel->n_nodes == 1, "kernel %d is no row kernel", kernel->id);
  Arena *arena = emit->arena;
  TensorType type = node->arg[0]->type;
  int64_t K = type.dim[type.rank - 1], rows = type_count(type) / K;
  const char *name = args_name(emit, kernel);
  const char *x = operand_text(emit, node, 0, arena_printf(arena, "%s_x", name));
  const char *other = operand_text(emit, node, form->other, arena_printf(arena, "%s_other", name));
  const char *label = operand_text(emit, node, form->label, arena_printf(arena, "%s_label", name));
  const char *dloss = operand_text(emit, node, form->dloss, arena_printf(arena, "%s_dloss", name));
  double smoothing = attr_float(node, ATTR_SMOOTHING, 0);
  file_fill(emit->tables, arena,
            "AMP_ARGS AmpRow $NAME = {\n"
            "  .x = $X,\n"
            "  .other = $OTHER,\n"
            "  .label = $LABEL,\n"
            "  .dloss = $DLOSS,\n"
            "  .out = $OUT,\n"
            "  .rows = $ROWS, .K = $K, .chunks = $CHUNKS, .top = $TOP, .smoothing = $SMOOTHING,\n"
            "};\n",
            holes({"NAME", name}, {"X", x}, {"OTHER", other}, {"LABEL", label}, {"DLOSS", dloss},
                  {"OUT", ref_text(arena, ref_result(node->result[0]))}, {"ROWS", .number = rows},
                  {"K", .number = K}, {"CHUNKS", .number = chunk_count(rows * K, rows)},
                  {"TOP", .number = attr_int(node, ATTR_K, 1)},
                  {"SMOOTHING", arena_printf(arena, "%a", smoothing)}));
  call->function = form->function;
  call->args = arena_printf(arena, "&%s", name);
}
