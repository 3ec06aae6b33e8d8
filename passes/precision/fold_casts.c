/* fold-casts: remove, merge and absorb casts that change no value.
 *
 *   before   %a = cast %x : f32[4]            // %x : f16[4], widening is exact
 *            %b = relu %a : f32[4]
 *            %c = cast %b : f16[4]
 *            %g.f32 = cast %g : f32[4]        // %g : f16[4]
 *            %ok = all_finite %g.f32 : bool[]
 *   after    %b = relu %x : f16[4]
 *            %ok = all_finite %g : bool[]
 *
 * Runs after amp, which makes the casts. Does only exact rewrites unless --excess-precision says
 * otherwise: f32 -> f16 -> f32 rounds and stays; f16 and bf16 each have values that the other has
 * not, so a cast between them is never skipped. Every cast that is removed leaves a note {folded}
 * on the op whose result it cast. Tests: tests/passes/precision/fold_casts.amp */
#include "ir/eval/eval.h"
#include "ir/ports.h"
#include "ir/space.h"
#include "passes/edit.h"
#include "passes/pass.h"
#include "passes/precision/amp.h"

#include <inttypes.h>

typedef struct Folder {
  PassContext *context;
  Arena *scratch;
  Value **first; /* per source value (order and index) and dtype: its first cast */
  Node **cast;   /* every cast that the graph had before this round */
  int n_casts, cap_casts;
} Folder;

/* Can type `to` represent every value of type `from`? */
static bool dtype_holds(DType to, DType from) {
  const DTypeInfo *wide = &dtype_info[to], *narrow = &dtype_info[from];
  return narrow->digits <= wide->digits && narrow->most <= wide->most &&
         narrow->least >= wide->least;
}

Value *widened_from(Value *value) {
  value = value_resolve(value);
  if (value->node->op != OP_CAST)
    return NULL;
  Value *from = value_resolve(value->node->arg[0]);
  return from->type.dtype != value->type.dtype && dtype_holds(value->type.dtype, from->type.dtype)
             ? from
             : NULL;
}

void fold_note(Graph *graph, Node *cast, const char *class, const char *how) {
  TensorType from = value_resolve(cast->arg[0])->type, to = cast->result[0]->type;
  if (attr_find(cast, ATTR_FOLDED) || from.dtype == to.dtype)
    return;
  const char *note =
      arena_printf(graph->arena, "%s %s, %" PRId64 " bytes: %s", dtype_info[to.dtype].name, class,
                   type_bytes(from) + type_bytes(to), how);
  attr_set_str(graph, cast, ATTR_FOLDED, note);
}

/* A cast to the type that the value has already: readers take the value. */
static bool fold_same(Folder *f, Graph *graph, Node *cast) {
  (void)f, (void)graph;
  Value *from = value_resolve(cast->arg[0]);
  if (from->type.dtype != cast->result[0]->type.dtype)
    return false;
  value_replace(cast->result[0], from);
  return true;
}

/* A cast of a widening cast: casts the narrow value directly. */
static bool fold_pair(Folder *f, Graph *graph, Node *cast) {
  Value *from = widened_from(cast->arg[0]);
  if (!from)
    return false;
  Node *wide = value_resolve(cast->arg[0])->node;
  fold_note(graph, wide, "exact", "it only widened for other casts");
  if (from->type.dtype == cast->result[0]->type.dtype)
    fold_note(graph, cast, "exact", "it narrowed what had been widened");
  cast->arg[0] = from;
  fold_same(f, graph, cast);
  return true;
}

/* Can the loop that makes x also hold every reader of `rounded`, so that it need not be stored? */
static bool stays_in_loop(const Value *x, const Value *rounded) {
  for (int u = 0; u < rounded->n_uses; u++)
    if (!loop_hands_over(x->node, &rounded->use[u]))
      return false;
  return true;
}

/* A cast of a cast that rounds: with --excess-precision it casts the unrounded value. This rule
 * needs a walk of its own, as it asks who reads the casts, which other rules would change. */
static bool fold_rounding(void *user, Graph *graph, Node *cast) {
  Folder *f = user;
  ExcessPrecision excess = f->context->options->excess;
  Node *inner = cast->n_args ? value_resolve(cast->arg[0])->node : cast;
  if (!node_is_float_cast(cast) || !node_is_float_cast(inner))
    return false;
  Value *x = value_resolve(inner->arg[0]);
  DType mid = inner->result[0]->type.dtype, to = cast->result[0]->type.dtype;
  bool back = dtype_holds(to, mid);
  bool fused = back && stays_in_loop(x, inner->result[0]) && stays_in_loop(x, cast->result[0]);
  if (dtype_holds(mid, x->type.dtype) || (excess == EXCESS_FUSED && !fused))
    return false;
  const char *class = fused ? "fused" : "fast";
  const char *how = back ? "the rounding to the low type is left out" : "two roundings become one";
  diag_warning(f->context->diag, cast->loc, WARN_PRECISION_EXCESS,
               "%s of %%%s: %s, so values change", class, x->name, how);
  fold_note(graph, inner, class, how);
  fold_note(graph, cast, class, how);
  cast->arg[0] = x;
  fold_same(f, graph, cast);
  return true;
}

/* A cast of a constant becomes a constant. Each number is rounded to the type that it had, then to
 * the new one. */
static bool fold_const(Folder *f, Graph *graph, Node *cast) {
  Node *node = value_resolve(cast->arg[0])->node;
  TensorType type = cast->result[0]->type;
  DType from = node->n_results ? node->result[0]->type.dtype : type.dtype;
  if (node->op != OP_CONST || !dtype_info[from].is_float || !dtype_info[type.dtype].is_float)
    return false;
  const Attr *data = attr_find(node, ATTR_DATA);
  Node *made = graph_append(graph, OP_CONST, cast->loc, 0, NULL);
  if (data) {
    double *v = arena_alloc(f->scratch, sizeof(double) * ((size_t)data->n + 1));
    for (int i = 0; i < data->n; i++)
      v[i] = eval_round(eval_round(data->floats[i], from), type.dtype);
    attr_set_floats(graph, made, ATTR_DATA, v, data->n);
  } else {
    double value = eval_round(attr_float(node, ATTR_VALUE, 0), from);
    attr_set_float(graph, made, ATTR_VALUE, eval_round(value, type.dtype));
  }
  value_take_over(graph, cast->result[0], node_finish(graph, made, "const", 1, &type));
  return true;
}

/* A cast of a value that an earlier node casts to the same type: readers take that node's result.
 */
static bool fold_equal(Folder *f, Graph *graph, Node *cast) {
  (void)graph;
  Value *from = value_resolve(cast->arg[0]);
  size_t slot = (size_t)(from->node->order * MAX_RESULTS + from->index) * DT_COUNT;
  Value **first = &f->first[slot + cast->result[0]->type.dtype];
  if (*first && *first != cast->result[0]) {
    fold_note(graph, cast, "exact", "there is an equal one");
    value_replace(cast->result[0], *first);
    return true;
  }
  *first = cast->result[0];
  return false;
}

/* An op that computes in f32 anyway (a port W of ir/ops.def) reads the 16-bit value itself. */
static bool absorb(Graph *graph, Node *node) {
  bool changed = false;
  for (int a = 0; a < node->n_args; a++) {
    Value *from = amp_operand(node->op, a) == AMP_PORT_WIDEN ? widened_from(node->arg[a]) : NULL;
    if (from && dtype_info[from->type.dtype].low) {
      fold_note(graph, value_resolve(node->arg[a])->node, "exact",
                "its readers widen by themselves");
      node->arg[a] = from;
      changed = true;
    }
  }
  return changed;
}

static bool fold_one(void *user, Graph *graph, Node *node) {
  if (node->op != OP_CAST)
    return absorb(graph, node);
  return fold_same(user, graph, node) || fold_pair(user, graph, node) ||
         fold_const(user, graph, node) || fold_equal(user, graph, node);
}

/* The program can fill images in any float type and rounds as a cast does. If every reader of the
 * image casts it to the same low type, the input gets that type. */
static bool narrow_image(Graph *graph) {
  Value *image = graph_input(graph, port_image);
  if (!image || image->type.dtype != DT_F32 || !image->n_uses)
    return false;
  const Node *first = image->use[0].node;
  DType low = first->n_results ? first->result[0]->type.dtype : DT_F32;
  if (!dtype_info[low].low)
    return false;
  for (int u = 0; u < image->n_uses; u++)
    if (image->use[u].node->op != OP_CAST || image->use[u].node->result[0]->type.dtype != low)
      return false;
  for (int u = 0; u < image->n_uses; u++)
    fold_note(graph, image->use[u].node, "exact", "the program fills the image in that type");
  image->type.dtype = low;
  return true;
}

/* ---- notes and warnings ---- */

/* Moves the notes of removed casts to the op whose result they cast. */
static void keep_notes(Folder *f, Graph *graph) {
  for (int i = 0; i < f->n_casts; i++) {
    Node *cast = f->cast[i];
    const char *note = attr_str(cast, ATTR_FOLDED, NULL);
    const Value *from = value_resolve(cast->arg[0]);
    if (!note)
      continue;
    if (graph_has(graph, cast)) { /* one reader could do without it, but others still need it */
      if (from->type.dtype != cast->result[0]->type.dtype)
        attr_remove(cast, ATTR_FOLDED);
      continue;
    }
    while (from->node->op == OP_CAST && !graph_has(graph, from->node))
      from = value_resolve(from->node->arg[0]);
    if (!graph_has(graph, from->node))
      continue;
    const char *old = attr_str(from->node, ATTR_FOLDED, NULL);
    attr_set_str(graph, from->node, ATTR_FOLDED,
                 old ? arena_printf(graph->arena, "%s; %s", old, note) : note);
  }
}

/* Warns of values that are rounded twice in a row. amp makes no such casts, and models rarely mean
 * to. */
static void warn_double_rounding(const PassContext *context, const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *cast = graph->node[i], *inner = cast->n_args ? cast->arg[0]->node : cast;
    if (!node_is_float_cast(cast) || !node_is_float_cast(inner))
      continue;
    DType from = inner->arg[0]->type.dtype, mid = inner->result[0]->type.dtype;
    DType to = cast->result[0]->type.dtype;
    if (!dtype_holds(mid, from) && !dtype_holds(to, mid))
      diag_warning(context->diag, cast->loc, WARN_PRECISION_DOUBLE_ROUNDING,
                   "%%%s is rounded from %s to %s and then to %s", cast->result[0]->name,
                   dtype_info[from].name, dtype_info[mid].name, dtype_info[to].name);
  }
}

static bool fold_round(PassContext *context, Graph *graph) {
  Arena *scratch = context->scratch;
  Folder folder = {.context = context, .scratch = scratch};
  graph_sweep(graph);
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_CAST)
      arena_push(scratch, folder.cast, folder.n_casts, folder.cap_casts, graph->node[i]);
  /* fold_const may add a node for each cast */
  size_t slots = (size_t)(graph->n_nodes + folder.n_casts + 1) * MAX_RESULTS * DT_COUNT;
  folder.first = arena_alloc(scratch, slots * sizeof(Value *));
  bool again = graph_rewrite(graph, fold_one, &folder);
  graph_sweep(graph);
  if (context->options->excess != EXCESS_EXACT) {
    again |= graph_rewrite(graph, fold_rounding, &folder);
    graph_sweep(graph);
  }
  again |= fold_through(scratch, graph);
  again |= narrow_image(graph);
  graph_sweep(graph);
  keep_notes(&folder, graph);
  return again;
}

bool pass_fold_casts(PassContext *context, Graph *graph) {
  bool changed = false;
  while (fold_round(context, graph))
    changed = true;
  if (graph == graph->module->graph[0])
    warn_double_rounding(context, graph);
  return changed;
}
