/* Kernels without a library call as launches. */
#include "codegen/cuda/launch.h"

#include "codegen/cuda/loop_text.h"
#include "codegen/loop/prelude_text.h"

#include <string.h>

void cuda_emit_prelude(FILE *out) {
  for (const char *const *line = cuda_prelude; *line; line++)
    fputs(*line, out);
}

void launch_add(Emitter *emit, const Kernel *kernel, const char *function, const char *args,
                int64_t blocks, int64_t down, LaunchList *out) {
  Launch launch = {
      .kind = CUDA_KERNEL,
      .kernel = kernel->id,
      .name = arena_printf(emit->arena, "k%d_%s", kernel->id, loop_stem(emit->arena, kernel)),
      .function = function,
      .args = args,
      .grid = {blocks, down, 1},
      .block = {LAUNCH_THREADS, 1, 1}};
  CHECK(blocks > 0 && blocks <= INT32_MAX && down > 0 && down <= UINT16_MAX,
        "kernel %d: a grid of %lld x %lld", kernel->id, (long long)blocks, (long long)down);
  arena_push(emit->arena, out->launch, out->n, out->cap, launch);
}

const char *launch_wrap(Emitter *emit, const char *stem, const char *args_type, const char *shared,
                        const char *call) {
  const char *text =
      arena_printf(emit->arena, "AMP_KERNEL(@, %s) {\n%s  %s;\n}\n\n", args_type, shared, call);
  return function_intern(emit, stem, "", text);
}

/* ---- loops ---- */

/* `$` becomes the name of the first kernel. */
static const char *name_first(Arena *arena, const char *text, const char *first) {
  Text out = {arena};
  for (const char *dollar; (dollar = strchr(text, '$')); text = dollar + 1)
    text_format(&out, "%.*s%s", (int)(dollar - text), text, first);
  text_add(&out, text);
  return text_get(&out);
}

static void launch_loop(Emitter *emit, const Kernel *kernel, LaunchList *out) {
  Arena *arena = emit->arena;
  LoopPlan plan = loop_plan(arena, kernel);
  LoopShape shape = loop_shape(kernel);
  const AmpSpace *s = &shape.space;
  const char *stem = loop_stem(arena, kernel), *args = args_name(emit, kernel);
  const char *text = cuda_loop_text(&plan, &shape);
  const char *tail = shape.sums ? cuda_tail_text(&plan, &shape) : "";
  const char *function = function_intern(emit, arena_printf(arena, "k_%s", stem),
                                         loop_types(&plan, "AmpSpace space"), text);
  const char *space = arena_printf(arena, ".space = {%lld, %lld, %d, %d}", (long long)s->total,
                                   (long long)s->rows, s->channels, s->groups);
  loop_args(emit, &plan, space, function, args);
  if (!shape.sums) {
    launch_add(emit, kernel, function, args, shape.blocks, 1, out);
    return;
  }
  launch_add(emit, kernel, function, args, shape.panels, s->groups, out);
  const char *end = function_intern(emit, arena_printf(arena, "k_%s_end", stem), "",
                                    name_first(arena, tail, function));
  launch_add(emit, kernel, end, args, loop_tail_blocks(&shape), 1, out);
}

/* ---- all kinds ---- */

void cuda_emit_loops(Emitter *emit, const Kernel *kernel, int n, LaunchList *out) {
  static void (*const table[])(Emitter *, const Kernel *, LaunchList *) = {
      [GEN_ROW] = launch_row, [GEN_REDUCE] = launch_reduce, [GEN_POOL] = launch_pool};
  GenClass gen = op_info[kernel->node[0]->op].gen;
  CHECK(n == 1 || gen == GEN_OPT, "kernels %d and on cannot share a launch", kernel->id);
  if (gen == GEN_OPT)
    launch_opt(emit, kernel, n, out);
  else if (gen < sizeof table / sizeof *table && table[gen])
    table[gen](emit, kernel, out);
  else
    launch_loop(emit, kernel, out);
}

int64_t cuda_loop_workspace(const Kernel *kernel) {
  const Node *node = kernel->node[0];
  int64_t pieces = 0;
  for (int k = node->op == OP_CLIP_NORM; k < node->n_args; k++)
    pieces += many_pieces(type_count(node->arg[k]->type));
  if (node->op == OP_ALL_FINITE)
    return pieces;
  if (node->op == OP_CLIP_NORM)
    return pieces * (int64_t)sizeof(double);
  if (op_info[node->op].gen == GEN_OPT)
    return launch_opt_workspace(node);
  if (op_info[node->op].gen == GEN_ROW || op_info[node->op].gen == GEN_REDUCE ||
      op_info[node->op].gen == GEN_POOL)
    return 0;
  LoopShape shape = loop_shape(kernel);
  return loop_scratch(&shape);
}
