/* The text of a loop kernel: structure and types only; all numbers and places come from its args.
 *
 *     typedef struct @_args { AmpGrid grid; AmpRef x[3], y[1], go[1]; ... } @_args;
 *     static void @(const AmprtRun *run, const void *args) {
 *       addresses, scalars
 *       for each chunk, in parallel:
 *         vectors over the channels into local buffers, sums = 0
 *         for each block of about a thousand elements:
 *           16-bit operands to f32 buffers
 *           for each element: the body
 *           16-bit results from f32 buffers, now and then the sums to doubles
 *       the groups' sums added
 *       for each channel: the tail
 *     }
 */
#include "codegen/cpu/loop_text.h"

#include "codegen/loop/statement.h"

typedef struct Writer {
  LoopPlan *plan;
  Text head, chunk, load, body, flush, store, tail;
} Writer;

/* ---- operands ---- */

static const char *tail_load(const LoopPlan *plan, int i) {
  DType dtype = plan->input[i].dtype;
  if (!input_is_low(&plan->input[i]))
    return arena_printf(plan->arena, "x%d[c]", i);
  return arena_printf(plan->arena, "amp_from_%s(x%d[c])", low_name(dtype), i);
}

static const char *input_name(const LoopPlan *plan, int i) {
  const LoopInput *in = &plan->input[i];
  if (in->form == LOAD_SPLAT || in->form == LOAD_SCALAR)
    return arena_printf(plan->arena, "k%d", i);
  if (in->form == LOAD_WHOLE)
    return arena_printf(plan->arena, "x%d", i);
  if (in->part == PART_TAIL)
    return tail_load(plan, i);
  if (in->form == LOAD_EACH && !input_is_low(in))
    return arena_printf(plan->arena, "x%d[start + i]", i);
  return arena_printf(plan->arena, "b%d[i]", i);
}

static void declare_splat(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  const char *type = held_type(in->dtype);
  text_format(&w->head, "  const %s k%d = ", type, i);
  if (is_low(in->dtype))
    text_format(&w->head, "amp_round_%s((float)f[%d]);\n", low_name(in->dtype), in->extra);
  else
    text_format(&w->head, "(%s)f[%d];\n", type, in->extra);
}

static void declare_scalar(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  const char *held = held_type(in->dtype);
  if (input_is_low(in))
    text_format(&w->head,
                "  const float k%d = amp_from_%s(*(const uint16_t *)amp_at(run, &a->x[%d]));\n", i,
                low_name(in->dtype), i);
  else
    text_format(&w->head, "  const %s k%d = *(const %s *)amp_at(run, &a->x[%d]);\n", held, i, held,
                i);
}

static void load_gather(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  const char *raw = input_is_low(in) ? ctype_of(in->dtype) : held_type(in->dtype);
  text_format(&w->load, "      %s b%d[AMP_BUFFER];\n", held_type(in->dtype), i);
  if (!input_is_low(in)) {
    text_format(&w->load, "      amp_gather(b%d, x%d, &a->ix[%d], start, n, sizeof *b%d);\n", i, i,
                in->extra, i);
    return;
  }
  text_format(&w->load, "      %s r%d[AMP_BUFFER];\n", raw, i);
  text_format(&w->load, "      amp_gather(r%d, x%d, &a->ix[%d], start, n, sizeof *r%d);\n", i, i,
              in->extra, i);
  text_format(&w->load, "      amp_load_%s(b%d, r%d, n);\n", low_name(in->dtype), i, i);
}

static void declare_input(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  if (in->form == LOAD_SPLAT) {
    declare_splat(w, i);
    return;
  }
  if (in->form == LOAD_SCALAR) {
    declare_scalar(w, i);
    return;
  }
  const char *type = input_is_low(in) ? ctype_of(in->dtype) : held_type(in->dtype);
  text_format(&w->head, "  const %s *x%d = (const %s *)amp_at(run, &a->x[%d]);\n", type, i, type,
              i);
  if (in->part == PART_TAIL || in->form == LOAD_WHOLE)
    return;
  if (in->form == LOAD_VECTOR) {
    text_format(&w->chunk, "    float b%d[AMP_BUFFER];\n", i);
    text_format(&w->chunk, "    amp_vector(b%d, &a->x[%d], x%d, grid, &at);\n", i, i, i);
  } else if (in->form == LOAD_GATHER) {
    load_gather(w, i);
  } else if (input_is_low(in)) {
    text_format(&w->load, "      float b%d[AMP_BUFFER];\n", i);
    text_format(&w->load, "      amp_load_%s(b%d, x%d + start, n);\n", low_name(in->dtype), i, i);
  }
}

/* ---- sums ---- */

/* s and q are short sums per position, ps and pq the chunk's doubles per channel. */
static void write_sums(Writer *w, const Node *node, int first) {
  int i = node_number(w->plan, node);
  const char *x = operand_name(w->plan, input_name, node, 0);
  text_format(&w->chunk, "    float s%d[AMP_BUFFER] = {0};\n", i);
  text_format(&w->chunk, "    double *ps%d = amp_sum_begin(part, %d, grid, &at);\n", i, first);
  if (node->op == OP_BIAS_GRAD) {
    text_format(&w->body, "        s%d[i] += %s;\n", i, x);
    text_format(&w->flush, "        amp_sum_flush(ps%d, s%d, grid, &at, n);\n", i, i);
    return;
  }
  text_format(&w->chunk, "    float q%d[AMP_BUFFER] = {0};\n", i);
  text_format(&w->chunk, "    double *pq%d = amp_sum_begin(part, %d, grid, &at);\n", i, first + 1);
  if (node->op == OP_BN_STATS) {
    text_format(&w->chunk, "    float shift%d[AMP_BUFFER] = {0};\n", i);
    text_format(&w->body, "        const float d%d = %s - shift%d[i];\n", i, x, i);
    text_format(&w->body, "        s%d[i] += d%d;\n        q%d[i] += d%d * d%d;\n", i, i, i, i, i);
    text_format(&w->flush,
                "        amp_stats_flush(ps%d, pq%d, shift%d, s%d, q%d, grid, &at, n, count);\n", i,
                i, i, i, i);
    return;
  }
  text_format(&w->body, "        s%d[i] += %s;\n", i, x);
  text_format(&w->body, "        q%d[i] += %s * %s;\n", i, x,
              sum_factor(w->plan, input_name, node));
  text_format(&w->flush, "        amp_sum_flush(ps%d, s%d, grid, &at, n);\n", i, i);
  text_format(&w->flush, "        amp_sum_flush(pq%d, q%d, grid, &at, n);\n", i, i);
}

static void finish_sums(Writer *w, const Node *node, int first) {
  declare_results(w->plan, &w->tail, "    ", node);
  const char *v0 = result_name(w->plan, node, 0);
  if (node->op == OP_BN_STATS) {
    int m = loop_number(w->plan, (double)(w->plan->total / w->plan->channels));
    text_format(&w->tail, "    amp_bn_stats(sum[%d * C + c], sum[%d * C + c], f[%d], &%s, &%s);\n",
                first, first + 1, m, v0, result_name(w->plan, node, 1));
    return;
  }
  for (int r = 0; r < node->n_results; r++) {
    text_format(&w->tail, "    %s = (float)sum[%d * C + c];\n", result_name(w->plan, node, r),
                first + r);
    round_result(w->plan, &w->tail, "    ", node->result[r]);
  }
}

/* ---- results ---- */

static void write_tail_output(Writer *w, int o) {
  const LoopOutput *out = &w->plan->output[o];
  DType dtype = out->value->type.dtype;
  const char *from = output_source(w->plan, input_name, out);
  text_add(&w->tail, "    ");
  if (out->go)
    text_format(&w->tail, "if (go%d)\n      ", o);
  if (is_low(dtype))
    text_format(&w->tail, "y%d[c] = amp_to_%s(%s);\n", o, low_name(dtype), from);
  else
    text_format(&w->tail, "y%d[c] = %s;\n", o, from);
}

/* Straight to memory where it can be, else by a buffer: conversions and predicated stores go block
 * by block. */
static void write_body_output(Writer *w, int o) {
  const LoopOutput *out = &w->plan->output[o];
  DType dtype = out->value->type.dtype;
  const char *from = output_source(w->plan, input_name, out);
  if (!is_low(dtype) && !out->go) {
    text_format(&w->body, "        y%d[start + i] = %s;\n", o, from);
    return;
  }
  text_format(&w->load, "      %s o%d[AMP_BUFFER];\n", held_type(dtype), o);
  text_format(&w->body, "        o%d[i] = %s;\n", o, from);
  text_add(&w->store, "      ");
  if (out->go)
    text_format(&w->store, "if (go%d)\n        ", o);
  if (is_low(dtype))
    text_format(&w->store, "amp_store_%s(y%d + start, o%d, n);\n", low_name(dtype), o, o);
  else
    text_format(&w->store, "amp_copy(y%d + start, o%d, n * (int)sizeof *o%d);\n", o, o, o);
}

static void write_output(Writer *w, int o) {
  const LoopOutput *out = &w->plan->output[o];
  const char *type = ctype_of(out->value->type.dtype);
  text_format(&w->head, "  %s *y%d = (%s *)amp_at(run, &a->y[%d]);\n", type, o, type, o);
  if (out->go)
    text_format(&w->head, "  const int go%d = amp_go(run, &a->go[%d]);\n", o, o);
  if (out->part == PART_TAIL)
    write_tail_output(w, o);
  else
    write_body_output(w, o);
}

/* ---- the whole ---- */

static void write_nodes(Writer *w) {
  const Kernel *kernel = w->plan->kernel;
  for (int i = 0, sums = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    if (op_info[node->op].gen == GEN_CHANNEL) {
      write_sums(w, node, sums);
      finish_sums(w, node, sums);
      sums += loop_sums_of(node);
    } else if (node->op != OP_UPDATE) {
      bool tail = loop_part(node, kernel) == PART_TAIL;
      write_point(w->plan, input_name, tail ? &w->tail : &w->body, tail ? "    " : "        ",
                  node);
    }
  }
}

/* One element: no loop, no threads. */
static void write_single(Writer *w, Text *out) {
  text_add(out, "  const int64_t start = 0;\n  const int n = 1, i = 0;\n"
                "  (void)grid, (void)start, (void)n, (void)i; /* not every body needs them */\n");
  text_add(out, text_get(&w->load));
  text_add(out, text_get(&w->body));
  text_add(out, text_get(&w->store));
}

/* Sums go to doubles as the very last of a block. */
static void write_blocks(Writer *w, Text *out) {
  text_add(out, "  const int64_t chunks = grid->groups * grid->panels;\n"
                "  AMP_PARALLEL(chunks)\n"
                "  for (int64_t chunk = 0; chunk < chunks; chunk++) {\n"
                "    const AmpChunk at = amp_chunk(grid, chunk);\n");
  if (w->plan->n_sums)
    text_format(out,
                "    double *part = sum + at.group * %d * grid->channels;\n"
                "    int64_t count = 0;\n",
                w->plan->n_sums);
  text_add(out, text_get(&w->chunk));
  text_add(out, "    for (int64_t block = at.first; block < at.last; block++) {\n"
                "      const int64_t start = block * grid->stride + at.column;\n"
                "      const int n = amp_block(grid, &at, start);\n");
  text_add(out, text_get(&w->load));
  text_add(out, "      AMP_SIMD\n      for (int i = 0; i < n; i++) {\n");
  text_add(out, text_get(&w->body));
  text_add(out, "      }\n");
  text_add(out, text_get(&w->store));
  text_add(out, "    }\n  }\n");
}

static void write_tail(Writer *w, Text *out) {
  text_format(out, "  amp_sum_groups(sum, grid->groups, %d * C);\n", w->plan->n_sums);
  text_add(out, "  for (int64_t c = 0; c < C; c++) {\n");
  text_add(out, text_get(&w->tail));
  text_add(out, "  }\n");
}

static void write_function(Writer *w, Text *out) {
  bool sums = w->plan->n_sums > 0;
  text_add(out, "static void @(const AmprtRun *run, const void *args) {\n"
                "  const @_args *a = (const @_args *)args;\n"
                "  const AmpGrid *grid = &a->grid;\n");
  if (sums)
    text_add(out, "  const int64_t C = grid->channels;\n"
                  "  double *sum = (double *)(void *)(run->arena + a->scratch);\n");
  if (w->plan->n_numbers)
    text_add(out, "  const double *const f = a->f;\n");
  text_add(out, text_get(&w->head));
  if (w->plan->total == 1 && !sums)
    write_single(w, out);
  else
    write_blocks(w, out);
  if (sums)
    write_tail(w, out);
  text_add(out, "}\n\n");
}

const char *loop_text(LoopPlan *plan) {
  Arena *m = plan->arena;
  Writer w = {plan, {m}, {m}, {m}, {m}, {m}, {m}, {m}};
  for (int i = 0; i < plan->n_inputs; i++)
    declare_input(&w, i);
  write_nodes(&w);
  for (int o = 0; o < plan->n_outputs; o++)
    write_output(&w, o);
  if (plan->n_sums)
    text_format(
        &w.store,
        "      count++;\n      if (amp_run_ends(&at, block)) {\n%s        count = 0;\n      }\n",
        text_get(&w.flush));
  Text out = {m};
  write_function(&w, &out);
  return text_get(&out);
}
