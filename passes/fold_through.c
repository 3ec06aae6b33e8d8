/* The part of fold-casts that moves casts: an op that only selects among its operands' elements
 * (relu, reshape, max_pool, ...) gives the same in the narrow type, so where all its operands are
 * widened and all its readers narrow again (or widen themselves), the op is done narrow and the
 * casts on both sides go. Chains and joins of such ops go together or not at all. */
#include "passes/amp.h"

typedef struct Through {
  Graph *graph;
  DType *low; /* per node: the narrow type it could be done in; DT_COUNT: none */
} Through;

static bool is_t(const Node *node, int a) {
  return amp_operand(node->op, a) == AMP_PORT_T;
}

/* The narrow value behind operand a, or NULL: of a widening cast, or of an op that is to be narrow.
 */
static DType narrow_type(const Through *t, const Node *node, int a) {
  Value *value = value_resolve(node->arg[a]), *from = widened_from(value);
  if (from)
    return from->type.dtype;
  return amp_result(value->node->op, value->index) == AMP_PORT_T ? t->low[value->node->order]
                                                                 : DT_COUNT;
}

/* The one narrow type of all T operands, or DT_COUNT. */
static DType narrow_operands(const Through *t, const Node *node) {
  DType low = DT_COUNT;
  for (int a = 0; a < node->n_args; a++) {
    if (!is_t(node, a))
      continue;
    DType this = narrow_type(t, node, a);
    if (this == DT_COUNT || !dtype_info[this].low || (low != DT_COUNT && low != this))
      return DT_COUNT;
    low = this;
  }
  return low;
}

/* Does operand a of `reader` do as well with the value in type `low`? */
static bool takes(const Through *t, const Node *reader, int a, DType low) {
  if (reader->op == OP_CAST)
    return reader->result[0]->type.dtype == low;
  if (amp_operand(reader->op, a) == AMP_PORT_WIDEN)
    return true;
  return is_t(reader, a) && t->low[reader->order] == low;
}

/* Takes back what one unfit operand or reader forbids; true if anything went. */
static bool narrow_down(Through *t) {
  bool changed = false;
  for (int i = 0; i < t->graph->n_nodes; i++) {
    Node *node = t->graph->node[i];
    if (t->low[i] != DT_COUNT && narrow_operands(t, node) != t->low[i]) {
      t->low[i] = DT_COUNT;
      changed = true;
    }
    for (int a = 0; a < node->n_args; a++) {
      const Value *value = value_resolve(node->arg[a]);
      DType *low = &t->low[value->node->order];
      if (*low != DT_COUNT && amp_result(value->node->op, value->index) == AMP_PORT_T &&
          !takes(t, node, a, *low)) {
        *low = DT_COUNT;
        changed = true;
      }
    }
  }
  return changed;
}

static void do_narrow(Node *node, DType low) {
  for (int a = 0; a < node->n_args; a++)
    if (is_t(node, a) && widened_from(node->arg[a]))
      node->arg[a] = widened_from(node->arg[a]);
  for (int r = 0; r < node->n_results; r++)
    if (amp_result(node->op, r) == AMP_PORT_T)
      node->result[r]->type.dtype = low;
}

bool fold_through_selects(Arena *scratch, Graph *graph) {
  Through t = {graph, arena_alloc(scratch, sizeof(DType) * ((size_t)graph->n_nodes + 1))};
  bool changed = false;
  for (int i = 0; i < graph->n_nodes; i++) {
    t.low[i] = DT_COUNT;
    if (amp_ports[graph->node[i]->op].selects)
      t.low[i] = narrow_operands(&t, graph->node[i]);
  }
  while (narrow_down(&t))
    ;
  for (int i = 0; i < graph->n_nodes; i++)
    if (t.low[i] != DT_COUNT) {
      do_narrow(graph->node[i], t.low[i]);
      changed = true;
    }
  return changed;
}
