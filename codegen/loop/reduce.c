/* Reductions: calls of functions in text/TARGET/reduce.h. */
#include "codegen/loop/loop.h"
#include "codegen/loop/planned.h"

typedef struct ReduceAxes {
  AmpIndex kept, gone;
  int64_t n_kept, n_gone, inner;
  bool inner_gone;
} ReduceAxes;

static void add_axis(AmpIndex *index, int64_t *count, int64_t dim, int64_t stride) {
  index->dim[index->rank] = dim;
  index->stride[index->rank++] = stride;
  *count *= dim;
}

/* Splits the axes for AmpReduce. The last axes, as many as are all kept or all reduced, are taken
 * together as `inner`. The axes in front of them go into two lists with their strides, the kept
 * ones and the reduced ones (`gone`). */
static ReduceAxes reduce_axes(const Node *node) {
  TensorType x = node->arg[0]->type;
  const Attr *axes = attr_find(node, ATTR_AXES);
  bool gone[MAX_RANK] = {false};
  for (int i = 0; axes && i < axes->n; i++)
    gone[axes->ints[i]] = true;
  ReduceAxes r = {.n_kept = 1, .n_gone = 1, .inner = 1};
  int last = x.rank - 1;
  r.inner_gone = x.rank && gone[last];
  for (; last >= 0 && gone[last] == r.inner_gone; last--)
    r.inner *= x.dim[last];
  int64_t stride[MAX_RANK], step = 1;
  for (int d = x.rank - 1; d >= 0; d--) {
    stride[d] = step;
    step *= x.dim[d];
  }
  for (int d = 0; d <= last; d++)
    if (gone[d])
      add_axis(&r.gone, &r.n_gone, x.dim[d], stride[d]);
    else
      add_axis(&r.kept, &r.n_kept, x.dim[d], stride[d]);
  return r;
}

/* The sum over the axes, divided by how many elements went into it if the op is a mean. */
static void emit_axes(Emitter *emit, const Node *node, const char *name, bool is_mean) {
  Arena *arena = emit->arena;
  ReduceAxes r = reduce_axes(node);
  int64_t each = r.n_gone * (r.inner_gone ? r.inner : 1);
  int64_t chunks = chunk_count(type_count(node->arg[0]->type), r.n_kept);
  AmpRef x = ref_read(emit, node->arg[0], arena_printf(arena, "%s_x", name));
  file_fill(emit->tables, arena,
            "AMP_ARGS AmpReduce $NAME = {\n"
            "  .x = $X,\n"
            "  .out = $OUT,\n"
            "  .kept = $KEPT,\n"
            "  .gone = $GONE,\n"
            "  .n_kept = $NKEPT, .n_gone = $NGONE, .inner = $INNER, .inner_gone = $INNERGONE,\n"
            "  .chunks = $CHUNKS, .divide = $DIVIDE,\n"
            "};\n",
            holes({"NAME", name}, {"X", ref_text(arena, x)},
                  {"OUT", ref_text(arena, ref_result(node->result[0]))},
                  {"KEPT", index_text(arena, &r.kept)}, {"GONE", index_text(arena, &r.gone)},
                  {"NKEPT", .number = r.n_kept}, {"NGONE", .number = r.n_gone},
                  {"INNER", .number = r.inner}, {"INNERGONE", .number = r.inner_gone},
                  {"CHUNKS", .number = chunks}, {"DIVIDE", .number = is_mean ? each : 1}));
}

static void emit_sum(Emitter *emit, const Kernel *kernel, const char *name) {
  emit_axes(emit, kernel->node[0], name, false);
}

static void emit_mean(Emitter *emit, const Kernel *kernel, const char *name) {
  emit_axes(emit, kernel->node[0], name, true);
}

/* The operands from number `first` on, as the field `of` of AmpFinite and AmpClipNorm. */
static const char *many_args(Emitter *emit, const Kernel *kernel, int first, const char *name) {
  const Node *node = kernel->node[0];
  int n = node->n_args - first;
  AmpTensor *list = arena_alloc(emit->arena, (size_t)n * sizeof *list);
  for (int k = 0; k < n; k++) {
    const Value *value = node->arg[first + k];
    const char *owner = arena_printf(emit->arena, "%s_x%d", name, k);
    list[k] = (AmpTensor){ref_read(emit, value, owner), type_count(value->type)};
  }
  AmpMany of = {.list = ref_list(emit, list, n, arena_printf(emit->arena, "%s_x", name)), .n = n};
  if (emit->constants)
    many_cut(emit, list, n, kernel_scratch(kernel), &of);
  return many_text(emit->arena, &of);
}

static void emit_all_finite(Emitter *emit, const Kernel *kernel, const char *name) {
  const Node *node = kernel->node[0];
  const char *of = many_args(emit, kernel, 0, name);
  fprintf(emit->tables, "static const AmpFinite %s = {.of = %s, .out = %s};\n", name, of,
          ref_text(emit->arena, ref_result(node->result[0])));
}

static void emit_clip_norm(Emitter *emit, const Kernel *kernel, const char *name) {
  const Node *node = kernel->node[0];
  AmpRef inv = ref_read(emit, node->arg[0], arena_printf(emit->arena, "%s_inv", name));
  const char *of = many_args(emit, kernel, 1, name);
  fprintf(emit->tables, "static const AmpClipNorm %s = {.of = %s, %s, {%s, %s}, %a};\n", name, of,
          ref_text(emit->arena, inv), ref_text(emit->arena, ref_result(node->result[0])),
          ref_text(emit->arena, ref_result(node->result[1])), attr_float(node, ATTR_CLIP, 0));
}

/* The function that is called, and what writes the table of its args. */
typedef struct ReduceForm {
  const char *function;
  void (*emit)(Emitter *emit, const Kernel *kernel, const char *name);
} ReduceForm;

static const ReduceForm form_REDUCE_SUM = {"amp_reduce", emit_sum};
static const ReduceForm form_REDUCE_MEAN = {"amp_reduce", emit_mean};
static const ReduceForm form_ALL_FINITE = {"amp_all_finite", emit_all_finite};
static const ReduceForm form_CLIP_NORM = {"amp_clip_norm", emit_clip_norm};

#define IS_REDUCE_PLANNED TAKE(FORM)
#define FORM(id)          [OP_##id] = &form_##id,
static const ReduceForm *const reduce_form[OP_COUNT] = {
#define OP OP_TAKEN
#include "ir/ops.def"
};

void reduce_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const ReduceForm *form = reduce_form[kernel->node[0]->op];
  CHECK(kernel->n_nodes == 1 && form, "kernel %d is no reduction alone", kernel->id);
  const char *name = args_name(emit, kernel);
  form->emit(emit, kernel, name);
  call->function = form->function;
  call->args = arena_printf(emit->arena, "&%s", name);
}
