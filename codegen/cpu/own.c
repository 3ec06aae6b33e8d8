/* Convolutions and matrix products as kernels of the program itself: calls of functions in
 * text/cpu/conv.h, conv_grad.h and wino.h, and functions that run a loop behind a convolution. */
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/library.h"
#include "codegen/cpu/loop_text.h"
#include "codegen/cpu/own_plan.h"
#include "codegen/cpu/wino_bound.h"
#include "codegen/loop/loop.h"
#include "codegen/text/prelude_text.h"

static int64_t workspace(const CpuLibrary *library, const Kernel *kernel) {
  return own_plan(kernel, library->winograd).workspace;
}

static const double *error_bound(const CpuLibrary *library, Arena *arena, const Node *node,
                                 const EvalTensor *args) {
  return wino_bound(arena, node, library->winograd, args);
}

static const char *window_text(Arena *arena, const AmpWindow *w) {
  return arena_printf(arena, "{%lld, %lld, %lld, %lld, %lld}", (long long)w->in, (long long)w->out,
                      (long long)w->taps, (long long)w->stride, (long long)w->pad);
}

typedef struct Operands { /* as C initialisers */
  const char *a, *b, *out;
} Operands;

/* Threads need so many bytes for themselves. */
static void need_lane(Emitter *emit, int64_t bytes) {
  emit->largest_lane = bytes > emit->largest_lane ? bytes : emit->largest_lane;
}

static void write_conv(Emitter *emit, const char *name, const AmpConv *a, const Operands *at,
                       int64_t base) {
  need_lane(emit, a->lane_bytes);
  file_fill(emit->tables, emit->arena,
            "AMP_ARGS AmpConv $NAME = {\n"
            "  .in = $IN, .filter = $FILTER, .out = $OUT,\n"
            "  .high = $HIGH, .wide = $WIDE, .n = $N, .c = $C, .k = $K,\n"
            "  .in_pixel = $PIXEL, .in_channel = $CHANNEL, .groups = $GROUPS,\n"
            "  .filter_out = $FOUT, .filter_tap = $FTAP, .filter_in = $FIN,\n"
            "  .rows = $ROWS, .cols = $COLS, .images = $IMAGES, .packed = $PACKED,\n"
            "  .lane = $LANE, .lane_bytes = $BYTES, .backward = $BACKWARD,\n"
            "  .copy = $COPY, .copy_pairs = $PAIRS, .passing = $PASSING, .winograd = $WINOGRAD,\n"
            "  .over_pairs = $OVER, .wino_images = $WIMAGES, .wino_rows = $WROWS,\n"
            "  .wino_wave = $WAVE,\n"
            "};\n",
            holes({"NAME", name}, {"IN", at->a}, {"FILTER", at->b}, {"OUT", at->out},
                  {"HIGH", window_text(emit->arena, &a->high)},
                  {"WIDE", window_text(emit->arena, &a->wide)}, {"N", .number = a->n},
                  {"C", .number = a->c}, {"K", .number = a->k}, {"PIXEL", .number = a->in_pixel},
                  {"CHANNEL", .number = a->in_channel}, {"GROUPS", .number = a->groups},
                  {"FOUT", .number = a->filter_out}, {"FTAP", .number = a->filter_tap},
                  {"FIN", .number = a->filter_in}, {"ROWS", .number = a->rows},
                  {"COLS", .number = a->cols}, {"IMAGES", .number = a->images},
                  {"WINOGRAD", .number = a->winograd}, {"OVER", .number = a->over_pairs},
                  {"WIMAGES", .number = a->wino_images}, {"WROWS", .number = a->wino_rows},
                  {"WAVE", .number = a->wino_wave}, {"PACKED", .number = base + a->packed},
                  {"LANE", .number = base + a->lane}, {"BYTES", .number = a->lane_bytes},
                  {"BACKWARD", .number = a->backward}, {"COPY", .number = a->copy},
                  {"PAIRS", .number = a->copy_pairs}, {"PASSING", .number = a->passing}));
}

static void write_grad(Emitter *emit, const char *name, const AmpConvGrad *a, const Operands *at,
                       int64_t base) {
  need_lane(emit, a->lane_bytes);
  file_fill(emit->tables, emit->arena,
            "AMP_ARGS AmpConvGrad $NAME = {\n"
            "  .x = $X, .dy = $DY, .out = $OUT,\n"
            "  .high = $HIGH, .wide = $WIDE, .n = $N, .c = $C, .k = $K,\n"
            "  .groups = $NGROUPS,\n"
            "  .few = $FEW, .vec_x = $VECX, .images = $IMAGES, .rows = $ROWS, .cols = $COLS,\n"
            "  .part_blocks = $BLOCKS, .part_groups = $GROUPS,\n"
            "  .copy_x = $COPYX, .copy_dy = $COPYDY, .slots = $SLOTS,\n"
            "  .sums = $SUMS, .sums_bytes = $SUMBYTES, .lane = $LANE, .lane_bytes = $BYTES,\n"
            "  .x_at = $XAT, .dy_at = $DYAT, .sums_at = $SUMSAT,\n"
            "  .winograd = $WINOGRAD, .over_pairs = $OVER,\n"
            "  .wino_images = $WIMAGES, .wino_rows = $WROWS,\n"
            "  .wino_blocks = $WBLOCKS, .wino_slots = $WSLOTS, .wino_shared = $WSHARED,\n"
            "};\n",
            holes({"NAME", name}, {"X", at->a}, {"DY", at->b}, {"OUT", at->out},
                  {"HIGH", window_text(emit->arena, &a->high)},
                  {"WIDE", window_text(emit->arena, &a->wide)}, {"N", .number = a->n},
                  {"C", .number = a->c}, {"K", .number = a->k}, {"NGROUPS", .number = a->groups},
                  {"FEW", .number = a->few}, {"VECX", .number = a->vec_x},
                  {"IMAGES", .number = a->images}, {"ROWS", .number = a->rows},
                  {"COLS", .number = a->cols}, {"BLOCKS", .number = a->part_blocks},
                  {"GROUPS", .number = a->part_groups}, {"COPYX", .number = a->copy_x},
                  {"COPYDY", .number = a->copy_dy}, {"SLOTS", .number = a->slots},
                  {"SUMS", .number = base + a->sums}, {"SUMBYTES", .number = a->sums_bytes},
                  {"LANE", .number = base + a->lane}, {"BYTES", .number = a->lane_bytes},
                  {"XAT", .number = a->x_at}, {"DYAT", .number = a->dy_at},
                  {"SUMSAT", .number = a->sums_at}, {"WINOGRAD", .number = a->winograd},
                  {"OVER", .number = a->over_pairs}, {"WIMAGES", .number = a->wino_images},
                  {"WROWS", .number = a->wino_rows}, {"WBLOCKS", .number = a->wino_blocks},
                  {"WSLOTS", .number = a->wino_slots}, {"WSHARED", .number = a->wino_shared}));
}

static void write_grouped(Emitter *emit, const char *name, const AmpGrouped *a, const Operands *at,
                          int64_t base) {
  need_lane(emit, a->lane_bytes);
  file_fill(emit->tables, emit->arena,
            "AMP_ARGS AmpGrouped $NAME = {\n"
            "  .in = $IN, .filter = $FILTER, .out = $OUT,\n"
            "  .high = $HIGH, .wide = $WIDE, .n = $N, .c = $C, .k = $K, .groups = $GROUPS,\n"
            "  .filter_group = $FGROUP, .filter_out = $FOUT, .filter_tap = $FTAP,\n"
            "  .filter_in = $FIN, .rows = $ROWS, .cols = $COLS, .packed = $PACKED,\n"
            "  .lane = $LANE, .lane_bytes = $BYTES, .backward = $BACKWARD,\n"
            "  .passing = $PASSING,\n"
            "};\n",
            holes({"NAME", name}, {"IN", at->a}, {"FILTER", at->b}, {"OUT", at->out},
                  {"PASSING", .number = a->passing}, {"HIGH", window_text(emit->arena, &a->high)},
                  {"WIDE", window_text(emit->arena, &a->wide)}, {"N", .number = a->n},
                  {"C", .number = a->c}, {"K", .number = a->k}, {"GROUPS", .number = a->groups},
                  {"FGROUP", .number = a->filter_group}, {"FOUT", .number = a->filter_out},
                  {"FTAP", .number = a->filter_tap}, {"FIN", .number = a->filter_in},
                  {"ROWS", .number = a->rows}, {"COLS", .number = a->cols},
                  {"PACKED", .number = base + a->packed}, {"LANE", .number = base + a->lane},
                  {"BYTES", .number = a->lane_bytes}, {"BACKWARD", .number = a->backward}));
}

static void write_grouped_grad(Emitter *emit, const char *name, const AmpGroupedGrad *a,
                               const Operands *at, int64_t base) {
  need_lane(emit, a->lane_bytes);
  file_fill(emit->tables, emit->arena,
            "AMP_ARGS AmpGroupedGrad $NAME = {\n"
            "  .x = $X, .dy = $DY, .out = $OUT,\n"
            "  .high = $HIGH, .wide = $WIDE, .n = $N, .c = $C, .k = $K, .groups = $GROUPS,\n"
            "  .rows = $ROWS, .cols = $COLS, .slots = $SLOTS, .sums_bytes = $SUMBYTES,\n"
            "  .sums = $SUMS, .lane = $LANE, .lane_bytes = $BYTES,\n"
            "  .dy_at = $DYAT,\n"
            "};\n",
            holes({"NAME", name}, {"X", at->a}, {"DY", at->b}, {"OUT", at->out},
                  {"HIGH", window_text(emit->arena, &a->high)},
                  {"WIDE", window_text(emit->arena, &a->wide)}, {"N", .number = a->n},
                  {"C", .number = a->c}, {"K", .number = a->k}, {"GROUPS", .number = a->groups},
                  {"ROWS", .number = a->rows}, {"COLS", .number = a->cols},
                  {"SLOTS", .number = a->slots}, {"SUMBYTES", .number = a->sums_bytes},
                  {"SUMS", .number = base + a->sums}, {"LANE", .number = base + a->lane},
                  {"BYTES", .number = a->lane_bytes}, {"DYAT", .number = a->dy_at}));
}

/* The functions of text/cpu/ that compute main ops, and the types of their args. */
static const struct {
  const char *function, *args;
} own_kernel[] = {[OWN_CONV] = {"amp_conv", "AmpConv"},
                  [OWN_GRAD] = {"amp_conv_grad", "AmpConvGrad"},
                  [OWN_GROUPED] = {"amp_grouped", "AmpGrouped"},
                  [OWN_GROUPED_GRAD] = {"amp_grouped_grad", "AmpGroupedGrad"}};

/* A loop behind the convolution whose args are named `conv`: a function of its own, with its own
 * args. */
static void emit_behind(Emitter *emit, const Kernel *kernel, const OwnPlan *own, const char *conv,
                        KernelCall *call) {
  Arena *arena = emit->arena;
  Kernel loop = loop_behind(kernel);
  LoopPlan plan = loop_plan_behind(arena, &loop, kernel->node[0]->result[0]);
  AmpGrid grid = cpu_grid_behind(&loop, own->tiles);
  const char *stem = arena_printf(arena, "k_%s", loop_stem(arena, kernel));
  const char *args = arena_printf(arena, "%s_behind", conv), *text = loop_text(&plan);
  const char *space = arena_printf(arena, ".conv = &%s, %s", conv, cpu_grid_text(arena, &grid));
  const char *fields =
      arena_printf(arena, "const %s *conv;\n  AmpGrid grid", own_kernel[own->kind].args);
  call->function = function_intern(emit, stem, loop_types(&plan, fields), text);
  loop_args(emit, &plan, space, kernel_scratch(kernel) + own->sums, call->function, args);
  call->args = arena_printf(arena, "&%s", args);
  emit->loops_behind_groups |= own->kind == OWN_GROUPED;
}

static void emit_kernel(Emitter *emit, const Kernel *kernel, KernelCall *call) {
  const Node *node = kernel_main(kernel);
  const char *name = args_name(emit, kernel);
  OwnPlan plan = own_plan(kernel, cpu_library(emit->target)->winograd);
  int64_t base = kernel_scratch(kernel);
  AmpRef a = ref_read(emit, node->arg[0], arena_printf(emit->arena, "%s_a", name));
  AmpRef b = ref_read(emit, node->arg[1], arena_printf(emit->arena, "%s_b", name));
  AmpRef out = ref_result(node->result[0]);
  if (out.where == AMP_NOWHERE)
    out = (AmpRef){base + plan.made, AMP_ARENA, (uint8_t)node->result[0]->type.dtype};
  Operands at = {ref_text(emit->arena, a), ref_text(emit->arena, b), ref_text(emit->arena, out)};
  switch (plan.kind) {
  case OWN_CONV:
    write_conv(emit, name, &plan.conv, &at, base);
    break;
  case OWN_GRAD:
    write_grad(emit, name, &plan.grad, &at, base);
    break;
  case OWN_GROUPED:
    write_grouped(emit, name, &plan.grouped, &at, base);
    break;
  case OWN_GROUPED_GRAD:
    write_grouped_grad(emit, name, &plan.grouped_grad, &at, base);
    break;
  }
  call->function = own_kernel[plan.kind].function;
  call->args = arena_printf(emit->arena, "&%s", name);
  call->name = arena_printf(emit->arena, "k%d_%s", kernel->id, loop_stem(emit->arena, kernel));
  if (kernel->n_nodes > 1)
    emit_behind(emit, kernel, &plan, name, call);
}

static void emit_hooks(const Emitter *emit, FILE *out) {
  file_fill(
      out, emit->arena,
      "void *aligned_alloc(size_t, size_t);\n"
      "void free(void *);\n"
      "\n"
      "int amp_amx, amp_pairs;\n"
      "unsigned char *amp_more_lanes;\n"
      "int64_t amp_more_lanes_each = $EACH;\n"
      "\n"
      "/* Finds out what the CPU has that functions choose by themselves, and makes room for\n"
      " * the threads for which none was planned. */\n"
      "static int amp_open(const AmprtRun *run, char *error, size_t error_size) {\n"
      "#ifdef AMP_AMX_IN_C\n"
      "  amp_amx = 1;\n"
      "#else\n"
      "  amp_amx = amprt_amx();\n"
      "#endif\n"
      "  amp_pairs = amprt_bf16_pairs_pay();\n"
      "  const int more = run->threads->count() - AMP_TEAM;\n"
      "  if (more <= 0 || !amp_more_lanes_each)\n"
      "    return 0;\n"
      "  amp_more_lanes = aligned_alloc(64, (size_t)more * $EACH);\n"
      "  if (!amp_more_lanes)\n"
      "    snprintf(error, error_size, \"workspace of %d threads: out of memory\", more);\n"
      "  return amp_more_lanes ? 0 : -1;\n"
      "}\n"
      "static void amp_close(void) {\n"
      "  free(amp_more_lanes);\n"
      "  amp_more_lanes = NULL;\n"
      "}\n"
      "AMP_FN const char *amp_level(void);\n"
      "static const char *amp_describe(void) {\n"
      "  static char text[64];\n"
      "  snprintf(text, sizeof text, \"own kernels, %s%s\", amp_level(), amp_amx ? \", AMX\" : "
      "\"\");\n"
      "  return text;\n"
      "}\n"
      "\n",
      holes({"EACH", .number = emit->largest_lane}));
}

const char *const cpu_own_linked[] = {NULL};

#define OWN(form)                                                                                  \
  {                                                                                                \
    .name = "own", .winograd = (form), .takes_loop = own_takes_loop, .workspace = workspace,       \
    .error_bound = error_bound, .emit_kernel = emit_kernel, .multiplies_bf16 = true,               \
    .text = cpu_conv_calls, .kernels = cpu_convolutions, .emit_hooks = emit_hooks,                 \
  }
const CpuLibrary cpu_own[] = {OWN(WINOGRAD_AUTO), OWN(WINOGRAD_OFF), OWN(WINOGRAD_ALWAYS),
                              OWN(WINOGRAD_BY_CHANNELS)};
