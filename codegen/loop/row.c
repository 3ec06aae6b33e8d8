/* Kernels over rows of the last axis: functions of row.h in codegen/text. */
#include "codegen/loop/loop.h"

/* Which operand is what; -1: none. */
typedef struct RowForm {
  const char *function;
  int other, label, dloss;
} RowForm;

static const RowForm row_form[OP_COUNT] = {
    [OP_SOFTMAX] = {"amp_softmax", -1, -1, -1},
    [OP_SOFTMAX_GRAD] = {"amp_softmax_grad", 1, -1, -1},
    [OP_SOFTMAX_XENT] = {"amp_softmax_xent", -1, 1, -1},
    [OP_SOFTMAX_XENT_GRAD] = {"amp_softmax_xent_grad", -1, 1, 2},
    [OP_IN_TOP_K] = {"amp_in_top_k", -1, 1, -1},
};

static void add_ref(Emitter *emit, Text *out, const char *field, const Node *node, int k,
                    const char *name) {
  const char *owner = arena_printf(emit->arena, "%s_%s", name, field);
  AmpRef ref = k < 0 ? ref_nowhere() : ref_read(emit, node->arg[k], owner);
  text_format(out, "  .%s = %s,\n", field, ref_text(emit->arena, ref));
}

void row_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const Node *node = kernel->node[0];
  const RowForm *form = &row_form[node->op];
  CHECK(form->function && kernel->n_nodes == 1, "kernel %d is no row kernel", kernel->id);
  TensorType x = node->arg[0]->type;
  int64_t K = x.dim[x.rank - 1], rows = type_count(x) / K;
  const char *name = args_name(emit, kernel);
  Text out = {emit->arena};
  text_format(&out, "static const AmpRow %s = {\n", name);
  add_ref(emit, &out, "x", node, 0, name);
  add_ref(emit, &out, "other", node, form->other, name);
  add_ref(emit, &out, "label", node, form->label, name);
  add_ref(emit, &out, "dloss", node, form->dloss, name);
  text_format(&out, "  .out = %s,\n", ref_text(emit->arena, ref_result(node->result[0])));
  text_format(&out,
              "  .rows = %lld, .K = %lld, .chunks = %lld, .top = %lld, .smoothing = %a,\n};\n",
              (long long)rows, (long long)K, (long long)chunk_count(rows * K, rows),
              (long long)attr_int(node, ATTR_K, 1), attr_float(node, ATTR_SMOOTHING, 0));
  fputs(text_get(&out), emit->tables);
  call->function = form->function;
  call->args = arena_printf(emit->arena, "&%s", name);
}
