/* What operands, sums and results add to the text of a loop, codegen/text/cpu/loop.c.in. */
#include "codegen/cpu/loop_text.h"

#include "codegen/cpu/own_grouped.h"
#include "codegen/loop/loop_lines.h"
#include "codegen/loop/planned.h"
#include "codegen/text/prelude_text.h"

/* ---- operands ---- */

#define POINTER .pointers = "const $TYPE *x$I = (const $TYPE *)amp_at(run, &a->x[$I]);\n"

#define VECTOR                                                                                     \
  POINTER, .use = "b$I[i]",                                                                        \
           .once = "float b$I[AMP_BUFFER];\n"                                                      \
                   "amp_vector(b$I, &a->x[$I], x$I, grid, at);\n"

#define MADE .pointers = "const $TYPE *x$I = (const $TYPE *)at->made;\n"

/* How an element is stored: as the kernel holds it, in bf16, which vectors of integers convert
 * inside the loop, or in f16, for which there are other instructions, so that it is converted block
 * by block. */
enum { AS_HELD, AS_BF16, AS_F16, N_STORED };

static int stored_as(DType dtype, bool low) {
  return !low ? AS_HELD : dtype == DT_BF16 ? AS_BF16 : AS_F16;
}

#define CONVERTED                                                                                  \
  .loads = "float b$I[AMP_BUFFER];\n"                                                              \
           "amp_load_$LOW(b$I, x$I + start, n);\n",                                                \
  .use = "b$I[i]"

/* Each element is read whether or not it is used: AVX2 has no instruction to read only some of the
 * elements of a vector of 16 bits, so GCC 12 would leave the whole loop scalar. */
#define HELD_EACH .body = "const $HELD b$I = x$I[start + i];\n", .use = "b$I"
#define BF16_EACH .body = "const float b$I = amp_from_bf16(x$I[start + i]);\n", .use = "b$I"

/* Operands that are read element by element like the loop's space: by form, and by how they are
 * stored. */
static const LoopLines element_lines[][N_STORED] = {
    [LOAD_EACH] = {{POINTER, HELD_EACH}, {POINTER, BF16_EACH}, {POINTER, CONVERTED}},
    [LOAD_MADE] = {{MADE, HELD_EACH}, {MADE, BF16_EACH}, {MADE, CONVERTED}}};

/* Other operands: by form, and by whether the kernel holds them as they are stored or they are
 * stored in 16 bits. */
static const LoopLines input_lines[][2] = {
    [LOAD_VECTOR] = {{VECTOR}, {VECTOR}},
    [LOAD_GATHER] = {{POINTER,
                      .loads = "$HELD b$I[AMP_BUFFER];\n"
                               "amp_gather(b$I, x$I, &a->ix[$AT], start, n, sizeof *b$I);\n",
                      .use = "b$I[i]"},
                     {POINTER,
                      .loads = "float b$I[AMP_BUFFER];\n"
                               "uint16_t r$I[AMP_BUFFER];\n"
                               "amp_gather(r$I, x$I, &a->ix[$AT], start, n, sizeof *r$I);\n"
                               "amp_load_$LOW(b$I, r$I, n);\n",
                      .use = "b$I[i]"}},
    [LOAD_SCALAR] = {{.pointers = "const $HELD k$I = *(const $HELD *)amp_at(run, &a->x[$I]);\n",
                      .use = "k$I"},
                     {.pointers = "const float k$I = "
                                  "amp_from_$LOW(*(const uint16_t *)amp_at(run, &a->x[$I]));\n",
                      .use = "k$I"}},
    [LOAD_SPLAT] = {{.pointers = "const $HELD k$I = ($HELD)f[$AT];\n", .use = "k$I"},
                    {.pointers = "const float k$I = amp_round_$LOW((float)f[$AT]);\n",
                     .use = "k$I"}},
    [LOAD_WHOLE] = {{POINTER, .use = "x$I"}, {POINTER, .use = "x$I"}}};

/* A vector over the channels that the tail reads, which runs once for each channel: by whether it
 * is stored in 16 bits. */
static const LoopLines tail_input_lines[2] = {{POINTER, .use = "x$I[c]"},
                                              {POINTER, .use = "amp_from_$LOW(x$I[c])"}};

static const LoopLines *input(const LoopInput *in) {
  bool low = in->form == LOAD_SPLAT ? is_low(in->dtype) : input_is_low(in);
  bool is_scalar = in->form == LOAD_SPLAT || in->form == LOAD_SCALAR || in->form == LOAD_WHOLE;
  if (in->part == PART_TAIL && !is_scalar)
    return &tail_input_lines[low];
  bool each = in->form == LOAD_EACH || in->form == LOAD_MADE;
  return each ? &element_lines[in->form][stored_as(in->dtype, low)] : &input_lines[in->form][low];
}

static const char *spelling(const LoopPlan *plan, int i) {
  return loop_use(plan, input(&plan->input[i]), i);
}

/* ---- sums ---- */

/* s and q are sums in f32 for each place of a block, ps and pq the chunk's in f64 per channel. */
#define TWO_SUMS                                                                                   \
  .once = "float s$I[AMP_BUFFER], q$I[AMP_BUFFER];\n"                                              \
          "double *ps$I = amp_sum_begin(part, $FIRST, grid, at, s$I);\n"                           \
          "double *pq$I = amp_sum_begin(part, $SECOND, grid, at, q$I);\n",                         \
  .body = "s$I[i] += $X;\n"                                                                        \
          "q$I[i] += $X * $BY;\n",                                                                 \
  .sums = "amp_sum_flush(ps$I, s$I, grid, at, n);\n"                                               \
          "amp_sum_flush(pq$I, q$I, grid, at, n);\n"

static const LoopLines sum_BIAS_GRAD = {
    .once = "float s$I[AMP_BUFFER];\n"
            "double *ps$I = amp_sum_begin(part, $FIRST, grid, at, s$I);\n",
    .body = "s$I[i] += $X;\n",
    .sums = "amp_sum_flush(ps$I, s$I, grid, at, n);\n"};
static const LoopLines sum_BN_SUMS = {TWO_SUMS};
static const LoopLines sum_BN_GRAD_STATS = {TWO_SUMS};
static const LoopLines sum_BN_STATS = {
    .once = "float s$I[AMP_BUFFER], q$I[AMP_BUFFER], shift$I[AMP_BUFFER];\n"
            "double *ps$I = amp_sum_begin(part, $FIRST, grid, at, s$I);\n"
            "double *pq$I = amp_sum_begin(part, $SECOND, grid, at, q$I);\n"
            "amp_zero_sums(shift$I, at);\n",
    .body = "const float d$I = $X - shift$I[i];\n"
            "s$I[i] += d$I;\n"
            "q$I[i] += d$I * d$I;\n",
    .stores = "if (block == 0)\n"
              "  amp_stats_begin(shift$I, s$I, q$I, n);\n",
    .sums = "amp_stats_flush(ps$I, pq$I, shift$I, s$I, q$I, grid, at, n, count);\n"};

#define IS_CHANNEL_PLANNED TAKE(SUM)
#define SUM(id)            [OP_##id] = &sum_##id,
static const LoopLines *const sum_lines[OP_COUNT] = {
#define OP OP_TAKEN
#include "ir/ops.def"
};

/* ---- results ---- */

#define RESULT    .pointers = "$TYPE *y$I = ($TYPE *)amp_at(run, &a->y[$I]);\n"
#define RESULT_IF RESULT "const int go$I = amp_go(run, &a->go[$I]);\n"
#define RESULT_LOW_IF                                                                              \
  RESULT_IF, .loads = "$HELD o$I[AMP_BUFFER];\n", .body = "o$I[i] = $FROM;\n",                     \
             .stores = "if (go$I)\n"                                                               \
                       "  amp_store_$LOW(y$I + start, o$I, n);\n"

/* Results by whether they are stored under a predicate, and by how they are stored. With a
 * predicate they go block by block. */
static const LoopLines output_lines[2][N_STORED] = {
    {{RESULT, .body = "y$I[start + i] = $FROM;\n"},
     {RESULT, .body = "y$I[start + i] = (uint16_t)(amp_bits($FROM) >> 16);\n"},
     {RESULT, .loads = "$HELD o$I[AMP_BUFFER];\n", .body = "o$I[i] = $FROM;\n",
      .stores = "amp_store_$LOW(y$I + start, o$I, n);\n"}},
    {{RESULT_IF, .loads = "$HELD o$I[AMP_BUFFER];\n", .body = "o$I[i] = $FROM;\n",
      .stores = "if (go$I)\n"
                "  amp_copy(y$I + start, o$I, n * (int)sizeof *o$I);\n"},
     {RESULT_LOW_IF},
     {RESULT_LOW_IF}}};

static const LoopLines tail_output_lines[2][2] = {
    {{RESULT, .tail = "y$I[c] = $FROM;\n"}, {RESULT, .tail = "y$I[c] = amp_to_$LOW($FROM);\n"}},
    {{RESULT_IF, .tail = "if (go$I)\n"
                         "  y$I[c] = $FROM;\n"},
     {RESULT_IF, .tail = "if (go$I)\n"
                         "  y$I[c] = amp_to_$LOW($FROM);\n"}}};

static const LoopLines *output(const LoopOutput *out) {
  DType dtype = out->value->type.dtype;
  bool low = is_low(dtype), go = out->go != NULL;
  return out->part == PART_TAIL ? &tail_output_lines[go][low]
                                : &output_lines[go][stored_as(dtype, low)];
}

/* ---- the whole ---- */

static const LoopStyle style = {
    .input = input,
    .output = output,
    .sum = sum_lines,
    .end_sum = {.tail = "$RESULT = (float)sum[$FIRST * C + c];\n"},
    .end_stats = {.tail = "amp_bn_stats(sum[$FIRST * C + c], sum[$SECOND * C + c], f[$COUNT], "
                          "&$RESULT, &$OTHER);\n"},
    .stats_places = 2,
    .counts = true};

/* Runs the loop: by itself, or behind a convolution. That is told which operands are read element
 * by element, a bit for each, as it prefetches them. */
static const char *run_text(const LoopPlan *plan) {
  enum { BITS = 63 };
  uint64_t each = 0;
  for (int i = 0; i < plan->n_inputs && i < BITS; i++)
    if (plan->input[i].form == LOAD_EACH && plan->input[i].part != PART_TAIL)
      each |= (uint64_t)1 << i;
  if (!plan->made)
    return "amp_loop(run, &a->grid, @_on, a);";
  if (is_grouped(plan->made->node))
    return "amp_grouped_with(run, a->conv, &a->grid, @_on, a);";
  return arena_printf(plan->arena, "amp_conv_with(run, a->conv, &a->grid, @_on, a, a->x, %#llx);",
                      (unsigned long long)each);
}

const char *loop_text(LoopPlan *plan) {
  LoopPieces body = {.plan = plan, .style = &style, .spelling = spelling, .vector = 1}, tail = body;
  loop_pieces(&body, true, false);
  loop_pieces(&tail, false, true);
  bool one = plan->total == 1 && !plan->n_sums && !plan->made;
  Text out = {plan->arena};
  text_fill_lines(&out, one ? cpu_loop_one : cpu_loop,
                  holes_and(loop_holes(&body, NULL), {"NSUMS", hole_count(plan->n_sums)},
                            {"TAILNUMBERS", tail.numbers ? "f" : ""},
                            {"TAILPOINTERS", text_get(&tail.pointers)},
                            {"TAIL", text_get(&tail.tail)}, {"RUN", run_text(plan)}));
  return text_get(&out);
}
