/* Which nodes without a main op may share a kernel, on every target that makes loops of them. */
#include "codegen/loop/loop.h"

static GenClass gen_of(const Node *node) {
  return op_info[node->op].gen;
}
static bool in_body(GenClass gen) {
  return gen == GEN_POINT || gen == GEN_VECTOR;
}

/* Does `node` read a result of `from`, perhaps through vectors? */
static bool reads(const Node *node, const Node *from) {
  for (int k = 0; k < node->n_args; k++) {
    const Node *source = value_storage(node->arg[k])->node;
    if (source == from || (gen_of(source) == GEN_VECTOR && reads(source, from)))
      return true;
  }
  return false;
}

static bool same_space(const Node *a, const Node *b) {
  return loop_count(a) == loop_count(b) && loop_channels(a) == loop_channels(b);
}

/* The body's values are not known before the loop ends, those of sums not before the tail. */
static bool loop_pair(const Node *a, const Node *b) {
  GenClass ga = gen_of(a), gb = gen_of(b);
  if (in_body(ga) && in_body(gb) && same_space(a, b))
    return !(b->op == OP_BROADCAST && reads(b, a));
  if (ga == GEN_POINT && gb == GEN_CHANNEL)
    return same_space(a, b);
  if (ga == GEN_CHANNEL && gb == GEN_CHANNEL)
    return same_space(a, b) && !reads(b, a);
  bool in_tail = gb == GEN_VECTOR || b->op == OP_CAST;
  if (ga == GEN_CHANNEL && in_tail)
    return loop_channels(a) == loop_count(b);
  if (ga == GEN_POINT && in_tail) /* with sums between them: the tail */
    return loop_channels(a) == loop_count(b) && !reads(b, a);
  return false;
}

/* An update joins the node whose result it stores; what other nodes of that kernel are does not
 * matter, but its predicate comes from outside. */
static bool update_pair(const Node *a, const Node *update) {
  const Value *go = update->n_args > 2 ? update->arg[2] : NULL;
  GenClass gen = gen_of(a);
  if (go && value_storage((Value *)go)->node == a)
    return false;
  return a->op == OP_UPDATE || in_body(gen) || gen == GEN_CHANNEL || gen == GEN_OPT;
}

bool loop_fuses(const Node *a, const Node *b) {
  if (b->op == OP_UPDATE)
    return update_pair(a, b);
  return a->op != OP_UPDATE && loop_pair(a, b);
}
