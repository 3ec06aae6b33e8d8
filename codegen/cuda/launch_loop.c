/* Loops as launches: one launch for a loop, two for a loop with sums, and one for many small loops
 * whose texts are equal. */
#include "codegen/cuda/launch.h"
#include "codegen/cuda/loop_text.h"

#include <string.h>

void launch_loop(Emitter *emit, const Kernel *kernel, LaunchList *out) {
  Arena *arena = emit->arena;
  LoopPlan plan = loop_plan(arena, kernel);
  LoopShape shape = loop_shape(kernel);
  const AmpSpace *s = &shape.space;
  const char *stem = loop_stem(arena, kernel), *args = args_name(emit, kernel);
  const char *text = cuda_loop_text(&plan, &shape, false);
  LoopPieces tail = {0};
  if (shape.sums)
    tail = cuda_tail(&plan, &shape);
  /* Both texts add numbers to the plan. They are made before the struct of args, so that it has
   * room for all of them. */
  const char *function = function_intern(emit, arena_printf(arena, "k_%s", stem),
                                         loop_types(&plan, "AmpSpace space"), text);
  const char *space = arena_printf(arena, ".space = {%lld, %lld, %d, %d}", (long long)s->total,
                                   (long long)s->rows, s->channels, s->groups);
  loop_args(emit, &plan, space, plan.n_sums ? kernel_scratch(kernel) : 0, function, args);
  if (!shape.sums) {
    launch_add(emit, kernel, function, args, shape.blocks, 1, out);
    return;
  }
  launch_add(emit, kernel, function, args, shape.panels, s->groups, out);
  const char *end = function_intern(emit, arena_printf(arena, "k_%s_end", stem), "",
                                    cuda_tail_text(&tail, function));
  launch_add(emit, kernel, end, args, loop_tail_blocks(&shape), 1, out);
}

/* ---- many loops in one launch ---- */

enum { SMALL = 1 << 16 }; /* elements of the largest loop that shares a launch */

/* The text of a kernel and of its types. Kernels for which it is equal differ only in their
 * args. */
static const char *whole_text(Arena *arena, const Kernel *kernel) {
  LoopPlan plan = loop_plan(arena, kernel);
  LoopShape shape = loop_shape(kernel);
  const char *text = cuda_loop_text(&plan, &shape, true);
  return arena_printf(arena, "%s%s", loop_types(&plan, ""), text);
}

bool launch_loop_joins(const Kernel *first, int n, const Kernel *next) {
  GenClass gen = op_info[next->node[0]->op].gen;
  if ((gen != GEN_POINT && gen != GEN_VECTOR) || loop_has_channels(next) ||
      node_space(next->node[0]).count > SMALL)
    return false;
  if (n == 0)
    return true;
  Arena *arena = arena_new();
  bool same = strcmp(whole_text(arena, first), whole_text(arena, next)) == 0;
  arena_free(arena);
  return same;
}

static void append(Arena *arena, Bytes *to, const void *from, size_t n) {
  if (!n)
    return;
  if (to->n + n > to->cap) {
    size_t cap = 2 * (to->n + n) + 1024;
    to->byte = arena_grow(arena, to->byte, to->cap, cap);
    to->cap = cap;
  }
  memcpy(to->byte + to->n, from, n);
  to->n += n;
}

void launch_loops(Emitter *emit, const Kernel *kernel, int n, LaunchList *out) {
  Arena *arena = emit->arena;
  const char *stem = arena_printf(arena, "k_%s_all", loop_stem(arena, kernel));
  const char *function = NULL, *args = args_name(emit, kernel);
  Bytes list = {0}; /* the structs of args: every member is a multiple of 8 bytes long */
  int64_t blocks = 0;
  for (int k = 0; k < n; k++) {
    LoopPlan plan = loop_plan(arena, &kernel[k]);
    LoopShape shape = loop_shape(&kernel[k]);
    const char *text = cuda_loop_text(&plan, &shape, true);
    function = function_intern(emit, stem, loop_types(&plan, "AmpSpace space"), text);
    append(arena, &list, &shape.space, sizeof shape.space);
    for (int i = 0; i < plan.n_inputs; i++) {
      AmpRef ref = loop_input_ref(emit, &plan.input[i], "");
      append(arena, &list, &ref, sizeof ref);
    }
    for (int o = 0; o < plan.n_outputs; o++) {
      AmpRef ref = loop_output_ref(&plan.output[o]);
      append(arena, &list, &ref, sizeof ref);
    }
    for (int o = 0; o < loop_predicates(&plan); o++) {
      AmpRef ref = loop_go_ref(emit, &plan.output[o]);
      append(arena, &list, &ref, sizeof ref);
    }
    append(arena, &list, plan.index, (size_t)plan.n_indices * sizeof *plan.index);
    append(arena, &list, plan.number, (size_t)plan.n_numbers * sizeof *plan.number);
    blocks = shape.blocks > blocks ? shape.blocks : blocks;
  }
  AmpMany many = {.list = {.at = constant_intern(emit, list.byte, list.n), .where = AMP_CONST},
                  .piece = ref_nowhere(),
                  .n = n};
  fprintf(emit->tables, "static const AmpMany %s = %s;\n", args, many_text(arena, &many));
  launch_add(emit, kernel, function, args, blocks, n, out);
}
