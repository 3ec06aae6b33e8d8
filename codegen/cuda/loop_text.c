/* The text of a loop kernel: structure and types only; all numbers and places come from its args.
 *
 *     AMP_KERNEL(@, @_args) {
 *       addresses, scalars, this thread's part of vectors over the channels
 *       for each group of 8 (4, 2, 1) elements that is this thread's:
 *         operands to local arrays
 *         for each of the 8: the body
 *         results from local arrays
 *     }
 *
 * With sums per channel a thread stays with its channels and goes down the rows; after the loop a
 * block's sums go to the workspace, and a second kernel adds them and computes the tail, one thread
 * a channel. */
#include "codegen/cuda/loop_text.h"

#include "codegen/loop/statement.h"

typedef struct Writer {
  LoopPlan *plan;
  const LoopShape *shape;
  bool numbers; /* does it use any? */
  Text head, once, load, body, store, after;
} Writer;

/* ---- operands ---- */

static const char *spell_body(const LoopPlan *plan, int i) {
  LoadForm form = plan->input[i].form;
  if (form == LOAD_SPLAT || form == LOAD_SCALAR)
    return arena_printf(plan->arena, "k%d", i);
  return arena_printf(plan->arena, form == LOAD_WHOLE ? "x%d" : "b%d[i]", i);
}

static const char *spell_tail(const LoopPlan *plan, int i) {
  const LoopInput *in = &plan->input[i];
  if (in->form != LOAD_EACH)
    return spell_body(plan, i);
  if (!input_is_low(in))
    return arena_printf(plan->arena, "x%d[c]", i);
  return arena_printf(plan->arena, "amp_from_%s(x%d[c])", low_name(in->dtype), i);
}

static bool is_float(DType dtype) {
  return dtype_info[dtype].low || dtype == DT_F32;
}

/* As amp_load and amp_store know it. */
static const char *float_name(DType dtype) {
  return dtype == DT_F16 ? "AMPRT_F16" : dtype == DT_BF16 ? "AMPRT_BF16" : "AMPRT_F32";
}
static const char *loaded_name(const LoopInput *in) {
  return input_is_low(in) ? float_name(in->dtype) : "AMPRT_F32";
}

static void declare_splat(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  if (is_low(in->dtype))
    text_format(&w->head, "  const float k%d = amp_round_%s((float)f[%d]);\n", i,
                low_name(in->dtype), in->extra);
  else
    text_format(&w->head, "  const %s k%d = (%s)f[%d];\n", held_type(in->dtype), i,
                held_type(in->dtype), in->extra);
}

static void declare_scalar(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  const char *held = held_type(in->dtype);
  if (is_float(in->dtype))
    text_format(&w->head, "  const float k%d = amp_load1(%s, amp_at(&run, &a.x[%d]), 0);\n", i,
                loaded_name(in), i);
  else
    text_format(&w->head, "  const %s k%d = *(const %s *)amp_at(&run, &a.x[%d]);\n", held, i, held,
                i);
}

/* Do groups of elements stay within the broadcast's innermost run? */
static const char *gather_form(const Writer *w, const AmpIndex *index) {
  int last = index->rank - 1;
  if (index->dim[last] % w->shape->vector)
    return "AMP_EACH";
  return index->stride[last] == 1 ? "AMP_RUN" : index->stride[last] == 0 ? "AMP_SAME" : "AMP_EACH";
}

static void load_gather(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  int n = w->shape->vector, wide = w->shape->wide;
  if (is_float(in->dtype))
    text_format(&w->load, "    amp_gather(%s, %d, %s, %d, x%d, &a.ix[%d], start, b%d);\n",
                loaded_name(in), n, gather_form(w, &w->plan->index[in->extra]), wide, i, in->extra,
                i);
  else
    text_format(&w->load,
                "    AMP_UNROLL\n    for (int i = 0; i < %d; i++)\n"
                "      b%d[i] = x%d[amp_index(&a.ix[%d], start + i, %d)];\n",
                n, i, i, in->extra, wide);
}

static void declare_body_input(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  int n = w->shape->vector;
  if (in->form == LOAD_WHOLE)
    return;
  Text *to = in->form == LOAD_VECTOR ? &w->once : &w->load;
  const char *indent = in->form == LOAD_VECTOR ? "  " : "    ";
  text_format(to, "%s%s b%d[%d];\n", indent, held_type(in->dtype), i, n);
  if (in->form == LOAD_VECTOR)
    text_format(to, "  amp_load(%s, %d, x%d, column, b%d);\n", loaded_name(in), n, i, i);
  else if (in->form == LOAD_GATHER)
    load_gather(w, i);
  else if (is_float(in->dtype))
    text_format(to, "    amp_load(%s, %d, x%d, start, b%d);\n", loaded_name(in), n, i, i);
  else
    text_format(to, "    amp_fetch(b%d, x%d + start, %d * (int)sizeof *b%d);\n", i, i, n, i);
}

static void declare_input(Writer *w, int i) {
  const LoopInput *in = &w->plan->input[i];
  if (in->form == LOAD_SPLAT) {
    declare_splat(w, i);
  } else if (in->form == LOAD_SCALAR) {
    declare_scalar(w, i);
  } else {
    const char *type = input_is_low(in) ? ctype_of(in->dtype) : held_type(in->dtype);
    text_format(&w->head, "  const %s *x%d = (const %s *)amp_at(&run, &a.x[%d]);\n", type, i, type,
                i);
    if (in->part == PART_BODY)
      declare_body_input(w, i);
  }
}

/* ---- results ---- */

static void declare_output(Writer *w, int o) {
  const LoopOutput *out = &w->plan->output[o];
  const char *type = ctype_of(out->value->type.dtype);
  text_format(&w->head, "  %s *y%d = (%s *)amp_at(&run, &a.y[%d]);\n", type, o, type, o);
  if (out->go)
    text_format(&w->head, "  const int go%d = amp_go(&run, &a.go[%d]);\n", o, o);
}

static void write_body_output(Writer *w, int o) {
  const LoopOutput *out = &w->plan->output[o];
  DType dtype = out->value->type.dtype;
  int n = w->shape->vector;
  declare_output(w, o);
  text_format(&w->load, "    %s o%d[%d];\n", held_type(dtype), o, n);
  text_format(&w->body, "      o%d[i] = %s;\n", o, output_source(w->plan, spell_body, out));
  if (out->go)
    text_format(&w->store, "    if (go%d)\n  ", o);
  if (is_float(dtype))
    text_format(&w->store, "    amp_store(%s, %d, y%d, start, o%d);\n", float_name(dtype), n, o, o);
  else
    text_format(&w->store, "    amp_put(y%d + start, o%d, %d * (int)sizeof *o%d);\n", o, o, n, o);
}

static void write_tail_output(Writer *w, int o) {
  const LoopOutput *out = &w->plan->output[o];
  DType dtype = out->value->type.dtype;
  const char *from = output_source(w->plan, spell_tail, out);
  declare_output(w, o);
  if (out->go)
    text_format(&w->store, "  if (go%d)\n  ", o);
  if (is_low(dtype))
    text_format(&w->store, "  y%d[c] = amp_to_%s(%s);\n", o, low_name(dtype), from);
  else
    text_format(&w->store, "  y%d[c] = %s;\n", o, from);
}

/* ---- sums ---- */

/* After the loop: the sum `name` to its place number k. */
static void leave_sum(Writer *w, const char *name, int node, int k) {
  text_format(&w->after, "  amp_tile_sum(&tile, %d, %s%d, shared);\n", w->shape->vector, name,
              node);
  text_format(&w->after, "  amp_tile_store(&tile, &a.space, %d, %d, %d, part, %s%d);\n",
              w->shape->vector, w->shape->partials, k, name, node);
}

/* The first row that a thread sees, if finite, is the shift of its squares. */
static void write_stats(Writer *w, int node, const char *x, int k) {
  int n = w->shape->vector;
  text_format(&w->once, "  float s%d[%d] = {0}, q%d[%d] = {0}, shift%d[%d] = {0};\n", node, n, node,
              n, node, n);
  text_format(&w->body, "      if (count == 0 && %s - %s == 0)\n        shift%d[i] = %s;\n", x, x,
              node, x);
  text_format(&w->body, "      const float d%d = %s - shift%d[i];\n", node, x, node);
  text_format(&w->body, "      s%d[i] += d%d;\n      q%d[i] += d%d * d%d;\n", node, node, node,
              node, node);
  text_format(&w->after, "  amp_tile_shift(&tile, %d, count, shift%d, s%d, q%d, shared);\n", n,
              node, node, node);
  leave_sum(w, "s", node, k);
  leave_sum(w, "q", node, k + 1);
  text_format(&w->after, "  amp_tile_store(&tile, &a.space, %d, %d, %d, part, shift%d);\n", n,
              w->shape->partials, k + 2, node);
}

static void write_sums(Writer *w, const Node *node, int k) {
  int i = node_number(w->plan, node), n = w->shape->vector;
  const char *x = operand_name(w->plan, spell_body, node, 0);
  if (node->op == OP_BN_STATS) {
    write_stats(w, i, x, k);
    return;
  }
  text_format(&w->once, "  float s%d[%d] = {0};\n", i, n);
  text_format(&w->body, "      s%d[i] += %s;\n", i, x);
  leave_sum(w, "s", i, k);
  if (node->op == OP_BIAS_GRAD)
    return;
  text_format(&w->once, "  float q%d[%d] = {0};\n", i, n);
  text_format(&w->body, "      q%d[i] += %s * %s;\n", i, x, sum_factor(w->plan, spell_body, node));
  leave_sum(w, "q", i, k + 1);
}

static void finish_sums(Writer *w, const Node *node, int k) {
  declare_results(w->plan, &w->once, "  ", node);
  const char *v0 = result_name(w->plan, node, 0);
  if (node->op == OP_BN_STATS) {
    text_format(&w->once, "  amp_finish_stats(&a.space, part, %d, %d, c, shared, &%s, &%s);\n",
                w->shape->partials, k, v0, result_name(w->plan, node, 1));
    return;
  }
  for (int r = 0; r < node->n_results; r++) {
    text_format(&w->once, "  %s = (float)amp_finish_sum(&a.space, part, %d, %d, c, shared);\n",
                result_name(w->plan, node, r), w->shape->partials, k + r);
    round_result(w->plan, &w->once, "  ", node->result[r]);
  }
}

/* ---- the kernels ---- */

static void write_nodes(Writer *w, LoopPart part) {
  const Kernel *kernel = w->plan->kernel;
  for (int i = 0, k = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    if (op_info[node->op].gen == GEN_CHANNEL) {
      if (part == PART_BODY)
        write_sums(w, node, k);
      else
        finish_sums(w, node, k);
      k += node->op == OP_BN_STATS ? 3 : loop_sums_of(node);
    } else if (node->op != OP_UPDATE && loop_part(node, kernel) == part) {
      if (part == PART_BODY)
        write_point(w->plan, spell_body, &w->body, "      ", node);
      else
        write_point(w->plan, spell_tail, &w->body, "  ", node);
    }
  }
}

static Writer write_part(LoopPlan *plan, const LoopShape *shape, LoopPart part) {
  Arena *m = plan->arena;
  Writer w = {plan, shape, false, {m}, {m}, {m}, {m}, {m}, {m}};
  int before = plan->n_numbers;
  for (int i = 0; i < plan->n_inputs; i++)
    if (plan->input[i].part == part) {
      declare_input(&w, i);
      w.numbers |= plan->input[i].form == LOAD_SPLAT;
    }
  write_nodes(&w, part);
  for (int o = 0; o < plan->n_outputs; o++)
    if (plan->output[o].part == part && part == PART_BODY)
      write_body_output(&w, o);
    else if (plan->output[o].part == part)
      write_tail_output(&w, o);
  w.numbers |= plan->n_numbers > before;
  return w;
}

static void add_head(const Writer *w, Text *out) {
  if (w->numbers)
    text_add(out, "  const double *const f = a.f;\n");
  text_add(out, w->head.s ? w->head.s : "");
}

static void add_all(Text *out, const char *open, const Text *text, const char *close) {
  text_add(out, open);
  text_add(out, text->s ? text->s : "");
  text_add(out, close);
}

static void write_group(const Writer *w, Text *out) {
  add_all(out, "", &w->load, "");
  text_format(out, "    AMP_UNROLL\n    for (int i = 0; i < %d; i++) {\n", w->shape->vector);
  add_all(out, "", &w->body, "    }\n");
  add_all(out, "", &w->store, "");
}

/* All elements as one line; a thread goes on by all threads of the launch. */
static void write_line(const Writer *w, Text *out) {
  const char *type = w->shape->wide ? "int64_t" : "uint32_t";
  int n = w->shape->vector;
  text_format(out,
              "  const %s total = (%s)a.space.total, step = (%s)gridDim.x * AMP_THREADS * %d;\n"
              "  %s start = ((%s)blockIdx.x * AMP_THREADS + threadIdx.x) * %d;\n",
              type, type, type, n, type, type, n);
  if (w->once.len)
    text_format(out, "  const int column = (int)(start %% (%s)a.space.channels);\n", type);
  add_all(out, "", &w->once, "  for (; start < total; start += step) {\n");
  write_group(w, out);
  text_add(out, "  }\n");
}

static void write_rows(const Writer *w, Text *out) {
  int n = w->shape->vector;
  text_format(out,
              "  AMP_SHARED(float, shared, AMP_THREADS * %d);\n"
              "  const AmpTile tile = amp_tile(&a.space, %d);\n"
              "  float *part = (float *)(run.arena + a.scratch);\n"
              "  const int column = tile.column;\n"
              "  int count = 0;\n",
              n, n);
  add_all(out, "", &w->once,
          "  for (int64_t row = tile.first + tile.row; tile.active && row < tile.last;"
          " row += tile.tall) {\n");
  text_format(out, "    const %s start = (%s)(row * a.space.channels + column);\n",
              w->shape->wide ? "int64_t" : "uint32_t", w->shape->wide ? "int64_t" : "uint32_t");
  write_group(w, out);
  add_all(out, "    count++;\n  }\n  (void)count;\n", &w->after, "");
}

const char *cuda_loop_text(LoopPlan *plan, const LoopShape *shape) {
  Writer w = write_part(plan, shape, PART_BODY);
  Text out = {plan->arena};
  text_add(&out, "AMP_KERNEL(@, @_args) {\n");
  add_head(&w, &out);
  if (shape->sums)
    write_rows(&w, &out);
  else
    write_line(&w, &out);
  text_add(&out, "}\n\n");
  return text_get(&out);
}

/* An `a` of its own hides the kernel's. */
const char *cuda_joined_text(LoopPlan *plan, const LoopShape *shape) {
  Writer w = write_part(plan, shape, PART_BODY);
  Text out = {plan->arena};
  text_add(&out, "AMP_KERNEL(@, AmpMany) {\n"
                 "  const @_args *const own = (const @_args *)amp_at(&run, &a.list) + blockIdx.y;\n"
                 "  {\n  const @_args a = *own;\n");
  add_head(&w, &out);
  write_line(&w, &out);
  text_add(&out, "  }\n}\n\n");
  return text_get(&out);
}

const char *cuda_tail_text(LoopPlan *plan, const LoopShape *shape) {
  Writer w = write_part(plan, shape, PART_TAIL);
  Text out = {plan->arena};
  text_add(&out, "AMP_KERNEL(@, $_args) {\n");
  add_head(&w, &out);
  add_all(&out,
          "  AMP_SHARED(double, shared, AMP_THREADS);\n"
          "  const float *part = (const float *)(run.arena + a.scratch);\n"
          "  const int c = amp_finish_channel();\n",
          &w.once, "  if (threadIdx.x >= AMP_COLUMNS || c >= a.space.channels)\n    return;\n");
  add_all(&out, "", &w.body, "");
  add_all(&out, "", &w.store, "}\n\n");
  return text_get(&out);
}
