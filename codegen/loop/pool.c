/* Pooling: calls of functions in text/TARGET/pool.h. oneDNN's pooling cannot be used: the graph
 * needs the index of the first maximum of each window, and a maximum that keeps NaN, but oneDNN's
 * workspace cannot be read and its maximum drops NaN. */
#include "codegen/loop/loop.h"
#include "codegen/loop/planned.h"

/* Which value of the node has the shape of x, the larger image, and which that of y: the number of
 * an operand, or RESULT and the number of a result. */
enum { RESULT = 100 };

typedef struct PoolForm {
  const char *function;
  int x, y, index; /* index: -1 if there is none */
} PoolForm;

static const PoolForm form_MAX_POOL = {"amp_max_pool", 0, RESULT, RESULT + 1};
static const PoolForm form_MAX_POOL_GRAD = {"amp_max_pool_grad", RESULT, 0, 1};
static const PoolForm form_AVG_POOL = {"amp_avg_pool", 0, RESULT, -1};
static const PoolForm form_AVG_POOL_GRAD = {"amp_avg_pool_grad", RESULT, 0, -1};

#define IS_POOL_PLANNED TAKE(FORM)
#define FORM(id)        [OP_##id] = &form_##id,
static const PoolForm *const pool_form[OP_COUNT] = {
#define OP OP_TAKEN
#include "ir/ops.def"
};

static const Value *pick(const Node *node, int which) {
  return which >= RESULT ? node->result[which - RESULT] : node->arg[which];
}

static AmpRef index_ref(Emitter *emit, const Node *node, int which, const char *name) {
  if (which < 0)
    return ref_nowhere();
  if (which >= RESULT)
    return ref_result(pick(node, which));
  return ref_read(emit, pick(node, which), arena_printf(emit->arena, "%s_index", name));
}

const Node *pool_scaled(const Kernel *kernel) {
  const Node *node = kernel_main(kernel);
  return kernel->n_nodes == 3 ? node->arg[0]->node->arg[0]->node : NULL;
}

void pool_emit(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const Node *node = kernel_main(kernel), *affine = pool_scaled(kernel);
  const PoolForm *form = pool_form[node->op];
  CHECK(form && (kernel->n_nodes == 1 || affine), "kernel %d is no pooling", kernel->id);
  Arena *arena = emit->arena;
  const int64_t *x = pick(node, form->x)->type.dim, *y = pick(node, form->y)->type.dim;
  const int64_t *window = attr_ints(node, ATTR_WINDOW, 2),
                *stride = attr_ints(node, ATTR_STRIDE, 2);
  const int64_t *pad = attr_ints(node, ATTR_PAD, 4), *rows = form->x >= RESULT ? x : y;
  const char *name = args_name(emit, kernel);
  const Value *read = affine ? affine->arg[0] : node->arg[0];
  AmpRef in = ref_read(emit, read, arena_printf(arena, "%s_x", name));
  AmpRef index = index_ref(emit, node, form->index, name);
  AmpRef scale = affine ? ref_read(emit, affine->arg[1], name) : ref_nowhere();
  AmpRef shift = affine ? ref_read(emit, affine->arg[2], name) : ref_nowhere();
  file_fill(emit->tables, arena,
            "AMP_ARGS AmpPool $NAME = {\n"
            "  .in = $IN,\n"
            "  .index = $INDEX,\n"
            "  .out = $OUT,\n"
            "  .scale = $SCALE,\n"
            "  .shift = $SHIFT,\n"
            "  .N = $N, .H = $H, .W = $W, .C = $C, .P = $P, .Q = $Q,\n"
            "  .window = {$R,$S}, .stride = {$DOWN,$ACROSS}, .pad = {$TOP,$LEFT},\n"
            "  .include_pad = $COUNTED, .chunks = $CHUNKS,\n"
            "};\n",
            holes({"NAME", name}, {"IN", ref_text(arena, in)}, {"INDEX", ref_text(arena, index)},
                  {"OUT", ref_text(arena, ref_result(node->result[0]))},
                  {"SCALE", affine ? ref_text(arena, scale) : ""},
                  {"SHIFT", affine ? ref_text(arena, shift) : ""}, {"N", .number = x[0]},
                  {"H", .number = x[1]}, {"W", .number = x[2]}, {"C", .number = x[3]},
                  {"P", .number = y[1]}, {"Q", .number = y[2]}, {"R", .number = window[0]},
                  {"S", .number = window[1]}, {"DOWN", .number = stride[0]},
                  {"ACROSS", .number = stride[1]}, {"TOP", .number = pad[0]},
                  {"LEFT", .number = pad[2]},
                  {"COUNTED", .number = attr_int(node, ATTR_INCLUDE_PAD, 0)},
                  {"CHUNKS", .number = chunk_count(x[0] * x[1] * x[2] * x[3], rows[0] * rows[1])}));
  call->function = affine ? "amp_max_pool_scaled" : form->function;
  call->args = arena_printf(arena, "&%s", name);
}
