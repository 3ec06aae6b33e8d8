/* Pooling: functions of pool.h in codegen/text. Generated, not oneDNN's: our index names the first
 * maximum of a window and survives in the graph, and NaN wins; oneDNN's workspace is opaque and its
 * maximum drops NaN. */
#include "codegen/loop/loop.h"

/* Which value has the shape of x and which that of y; results count from RESULT on. */
enum { RESULT = 100 };

typedef struct PoolForm {
  const char *function;
  int x, y, index; /* index: -1 if there is none */
} PoolForm;

static const PoolForm pool_form[OP_COUNT] = {
    [OP_MAX_POOL] = {"amp_max_pool", 0, RESULT, RESULT + 1},
    [OP_MAX_POOL_GRAD] = {"amp_max_pool_grad", RESULT, 0, 1},
    [OP_AVG_POOL] = {"amp_avg_pool", 0, RESULT, -1},
    [OP_AVG_POOL_GRAD] = {"amp_avg_pool_grad", RESULT, 0, -1},
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
  const PoolForm *form = &pool_form[node->op];
  CHECK(form->function && (kernel->n_nodes == 1 || affine), "kernel %d is no pooling", kernel->id);
  const int64_t *x = pick(node, form->x)->type.dim, *y = pick(node, form->y)->type.dim;
  const int64_t *window = attr_ints(node, ATTR_WINDOW, 2),
                *stride = attr_ints(node, ATTR_STRIDE, 2);
  const int64_t *pad = attr_ints(node, ATTR_PAD, 4), *rows = form->x >= RESULT ? x : y;
  const char *name = args_name(emit, kernel);
  Text out = {emit->arena};
  text_format(&out, "static const AmpPool %s = {\n", name);
  const Value *x_value = affine ? affine->arg[0] : node->arg[0];
  AmpRef in = ref_read(emit, x_value, arena_printf(emit->arena, "%s_x", name));
  text_format(&out, "  .in = %s,\n", ref_text(emit->arena, in));
  text_format(&out, "  .index = %s,\n",
              ref_text(emit->arena, index_ref(emit, node, form->index, name)));
  text_format(&out, "  .out = %s,\n", ref_text(emit->arena, ref_result(node->result[0])));
  if (affine)
    text_format(&out, "  .scale = %s,\n  .shift = %s,\n",
                ref_text(emit->arena, ref_read(emit, affine->arg[1], name)),
                ref_text(emit->arena, ref_read(emit, affine->arg[2], name)));
  text_format(&out, "  .N = %lld, .H = %lld, .W = %lld, .C = %lld, .P = %lld, .Q = %lld,\n",
              (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3], (long long)y[1],
              (long long)y[2]);
  text_format(&out, "  .window = {%lld,%lld}, .stride = {%lld,%lld}, .pad = {%lld,%lld},\n",
              (long long)window[0], (long long)window[1], (long long)stride[0],
              (long long)stride[1], (long long)pad[0], (long long)pad[2]);
  text_format(&out, "  .include_pad = %d, .chunks = %lld,\n};\n",
              (int)attr_int(node, ATTR_INCLUDE_PAD, 0),
              (long long)chunk_count(x[0] * x[1] * x[2] * x[3], rows[0] * rows[1]));
  fputs(text_get(&out), emit->tables);
  call->function = affine ? "amp_max_pool_scaled" : form->function;
  call->args = arena_printf(emit->arena, "&%s", name);
}
