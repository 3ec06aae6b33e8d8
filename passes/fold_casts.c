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
 * Runs after amp, which makes the casts. Exact rewrites only: f32 -> f16 -> f32 rounds and stays,
 * f16 -> bf16 loses on both sides and is never skipped. Tests: tests/passes/fold_casts.amp */
#include "ir/eval/eval.h"
#include "passes/amp.h"
#include "passes/edit.h"
#include "passes/pass.h"

#include <string.h>

typedef struct Folder {
  Arena *scratch;
  Value **first; /* per source value and dtype: its first cast */
} Folder;

/* Significant bits, and the exponents of the largest and smallest magnitude (integers: 0). */
static const struct {
  int digits, top, bottom;
} range[DT_COUNT] = {
    [DT_F32] = {24, 128, -149},   [DT_F16] = {11, 16, -24}, [DT_BF16] = {8, 128, -133},
    [DT_F64] = {53, 1024, -1074}, [DT_I32] = {31, 31, 0},   [DT_I64] = {63, 63, 0},
    [DT_U8] = {8, 8, 0},          [DT_BOOL] = {1, 1, 0},
};

bool dtype_holds(DType to, DType from) {
  return range[from].digits <= range[to].digits && range[from].top <= range[to].top &&
         range[from].bottom >= range[to].bottom;
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

/* cast to the type that it has */
static bool fold_same(Folder *f, Graph *graph, Node *cast) {
  (void)f, (void)graph;
  Value *from = value_resolve(cast->arg[0]);
  if (from->type.dtype != cast->result[0]->type.dtype)
    return false;
  value_replace(cast->result[0], from);
  return true;
}

/* cast of a widening cast: from the narrow value directly */
static bool fold_pair(Folder *f, Graph *graph, Node *cast) {
  Value *from = widened_from(cast->arg[0]);
  if (!from)
    return false;
  cast->arg[0] = from;
  fold_same(f, graph, cast);
  return true;
}

/* A constant is rounded to its own type first, then to the new one. */
static double const_cast(double x, DType from, DType to) {
  return eval_round(eval_round(x, from), to);
}

/* cast of a constant: a constant */
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
      v[i] = const_cast(data->floats[i], from, type.dtype);
    attr_set_floats(graph, made, ATTR_DATA, v, data->n);
  } else {
    double value = const_cast(attr_float(node, ATTR_VALUE, 0), from, type.dtype);
    attr_set_float(graph, made, ATTR_VALUE, value);
  }
  value_take_over(graph, cast->result[0], node_finish(graph, made, "const", 1, &type));
  return true;
}

/* cast like an earlier one of the same value */
static bool fold_equal(Folder *f, Graph *graph, Node *cast) {
  (void)graph;
  Value *from = value_resolve(cast->arg[0]);
  size_t slot = (size_t)(from->node->mark * MAX_RESULTS + from->index) * DT_COUNT;
  Value **first = &f->first[slot + cast->result[0]->type.dtype];
  if (*first && *first != cast->result[0]) {
    value_replace(cast->result[0], *first);
    return true;
  }
  *first = cast->result[0];
  return false;
}

/* An op that computes in f32 whatever it reads takes the 16-bit value itself. */
static bool absorb(Node *node) {
  bool changed = false;
  for (int a = 0; a < node->n_args; a++) {
    Value *from = amp_operand(node->op, a) == AMP_PORT_WIDEN ? widened_from(node->arg[a]) : NULL;
    if (from && dtype_info[from->type.dtype].low) {
      node->arg[a] = from;
      changed = true;
    }
  }
  return changed;
}

static bool fold_one(void *user, Graph *graph, Node *node) {
  if (node->op != OP_CAST)
    return absorb(node);
  return fold_same(user, graph, node) || fold_pair(user, graph, node) ||
         fold_const(user, graph, node) || fold_equal(user, graph, node);
}

static Value *find_image(const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_INPUT &&
        strcmp(attr_str(graph->node[i], ATTR_NAME, ""), "image") == 0)
      return graph->node[i]->result[0];
  return NULL;
}

/* The one dtype that all readers cast the value to; DT_COUNT if there is none such. */
static DType read_as(const Graph *graph, const Value *value) {
  DType as = DT_COUNT;
  for (int i = 0; i < graph->n_nodes; i++)
    for (int a = 0; a < graph->node[i]->n_args; a++) {
      const Node *node = graph->node[i];
      if (value_resolve(node->arg[a]) != value)
        continue;
      if (node->op != OP_CAST || (as != DT_COUNT && as != node->result[0]->type.dtype))
        return DT_COUNT;
      as = node->result[0]->type.dtype;
    }
  return as;
}

/* The program fills images in any float type, rounding as a cast does: if all that read them want
 * one low type, they come in that. */
static bool narrow_image(const Graph *graph) {
  Value *image = find_image(graph);
  DType low = image && image->type.dtype == DT_F32 ? read_as(graph, image) : DT_COUNT;
  if (low == DT_COUNT || !dtype_info[low].low)
    return false;
  image->type.dtype = low;
  return true;
}

bool pass_fold_casts(PassContext *context, Graph *graph) {
  bool changed = false, again = true;
  while (again) {
    size_t slots = (size_t)(graph->n_nodes + 1) * MAX_RESULTS * DT_COUNT;
    Folder folder = {context->scratch, arena_alloc(context->scratch, slots * sizeof(Value *))};
    graph_sweep(graph);
    for (int i = 0; i < graph->n_nodes; i++)
      graph->node[i]->mark = i;
    again = graph_rewrite(graph, fold_one, &folder);
    graph_sweep(graph);
    again |= fold_through(context->scratch, graph);
    again |= narrow_image(graph);
    changed |= again;
  }
  return changed;
}
