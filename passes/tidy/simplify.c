/* simplify: fold constants, remove what does nothing.
 *
 *   before   %n = const {value=4.0} : f32[]        %y = add %x, %zero : f32[4]
 *            %d = div %one, %n : f32[]             %z = neg %neg_x : f32[4]
 *            %i = identity %x : f32[4]             %r = reshape %reshaped {shape=[4]} : f32[4]
 *   after    %d = const {value=0.25} : f32[]       uses of %y, %z, %i become uses of %x,
 *                                                  %r reads what %reshaped read
 *
 * Constants are computed by the reference evaluator and rounded to their type. Only small tensors
 * are folded, never integers or the ops of a layer. x + 0 and x - 0 become x, although -0 + 0 would
 * be +0. x * 0 does not become 0, since x may be NaN. The sum of a constant over the shards is not
 * known before the program runs. */
#include "ir/eval/eval.h"
#include "passes/edit.h"
#include "passes/pass.h"

#include <string.h>

enum { MAX_FOLD = 256 }; /* elements of an operand or result */

/* ---- constants ---- */

/* A constant whose elements all are `x`. */
static bool is_splat(Value *value, double x) {
  const Node *node = value_resolve(value)->node;
  const Attr *attr = node->op == OP_CONST ? attr_find(node, ATTR_VALUE) : NULL;
  return attr && attr->f == x;
}

static EvalTensor const_tensor(Arena *arena, Value *value) {
  const Node *node = value_resolve(value)->node;
  const Attr *data = attr_find(node, ATTR_DATA);
  EvalTensor tensor = {.type = node->result[0]->type};
  int64_t n = type_count(tensor.type);
  tensor.v = arena_alloc(arena, (size_t)n * sizeof *tensor.v);
  for (int64_t i = 0; i < n; i++)
    tensor.v[i] = data ? data->floats[i] : attr_float(node, ATTR_VALUE, 0);
  return tensor;
}

/* Turns the node into a constant: {value} if all elements have the same bits, else {data}. */
static void become_const(Graph *graph, Node *node, const EvalTensor *result) {
  int64_t n = type_count(result->type), same = 1;
  while (same < n && memcmp(&result->v[same], &result->v[0], sizeof result->v[0]) == 0)
    same++;
  node->op = OP_CONST;
  node->n_args = node->n_attrs = 0;
  if (same == n)
    attr_set_float(graph, node, ATTR_VALUE, result->v[0]);
  else
    attr_set_floats(graph, node, ATTR_DATA, result->v, (int)n);
}

static bool is_foldable(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  if (gen != GEN_POINT && gen != GEN_VIEW && gen != GEN_VECTOR && gen != GEN_REDUCE)
    return false;
  if (!node->n_args || node->n_results != 1 || node->op == OP_ALL_REDUCE ||
      type_count(node->result[0]->type) > MAX_FOLD ||
      !dtype_info[node->result[0]->type.dtype].is_float)
    return false;
  for (int a = 0; a < node->n_args; a++)
    if (value_resolve(node->arg[a])->node->op != OP_CONST ||
        type_count(node->arg[a]->type) > MAX_FOLD)
      return false;
  return true;
}

static bool fold_const(PassContext *context, Graph *graph, Node *node) {
  if (!is_foldable(node))
    return false;
  EvalTensor *args = arena_alloc(context->scratch, (size_t)node->n_args * sizeof *args), result;
  for (int a = 0; a < node->n_args; a++)
    args[a] = const_tensor(context->scratch, node->arg[a]);
  eval_node(node, args, &result, context->scratch);
  eval_round_tensor(&result);
  become_const(graph, node, &result);
  return true;
}

/* ---- what does nothing ---- */

/* The operand that the node merely repeats, or NULL. */
static Value *same_as(const Node *node) {
  Value *x = node->n_args ? value_resolve(node->arg[0]) : NULL;
  switch (node->op) {
  case OP_ADD:
    if (is_splat(node->arg[0], 0))
      return value_resolve(node->arg[1]);
    return is_splat(node->arg[1], 0) ? x : NULL;
  case OP_SUB:
    return is_splat(node->arg[1], 0) ? x : NULL;
  case OP_MUL:
    if (is_splat(node->arg[0], 1))
      return value_resolve(node->arg[1]);
    return is_splat(node->arg[1], 1) ? x : NULL;
  case OP_DIV:
    return is_splat(node->arg[1], 1) ? x : NULL;
  case OP_NEG:
    return x->node->op == OP_NEG ? value_resolve(x->node->arg[0]) : NULL;
  case OP_IDENTITY:
  case OP_CAST:
  case OP_RESHAPE:
  case OP_BROADCAST:
    return x;
  default:
    return NULL;
  }
}

static bool remove_same(Node *node) {
  Value *same = same_as(node);
  if (!same || !type_equal(same->type, node->result[0]->type))
    return false; /* a real cast, reshape or broadcast; a scalar that spreads over a tensor */
  value_replace(node->result[0], same);
  return true;
}

static bool skip_reshape(Node *node) {
  Node *inner = node->op == OP_RESHAPE ? value_resolve(node->arg[0])->node : NULL;
  if (!inner || inner->op != OP_RESHAPE)
    return false;
  node->arg[0] = value_resolve(inner->arg[0]);
  return true;
}

bool pass_simplify(PassContext *context, Graph *graph) {
  bool changed = false;
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *node = graph->node[i];
    changed |= skip_reshape(node);
    changed |= remove_same(node) || fold_const(context, graph, node);
  }
  return changed;
}
