/* norm-forms: write batch normalisations beside convolutions in the form for which the target has
 * kernels.
 *
 *   before   %mean, %var = bn_stats %z : f32[C], f32[C]            // %z = conv2d ...
 *            %y = affine %z, %scale, %shift : f16[..]
 *            %h = relu %y : f16[..]
 *            %a = conv2d %h, %w ...                                // and %b = conv2d_wgrad %h, %d
 *   after    %sum, %squares = bn_sums %z : f32[C], f32[C]
 *            %mean, %var = bn_moments %sum, %squares {count=M} : f32[C], f32[C]
 *            %s = cast %scale : f16[C]                             // and %t of %shift
 *            %y.1 = affine %z, %s, %t : f16[..]
 *            %h.1 = relu %y.1 : f16[..]
 *            %a = conv2d %h.1, %w ...                              // %b with a clone of its own
 *
 * Does so only where the target has such kernels (Target.has_form). Where it has one that computes
 * the end of a residual block, %o = relu(affine + z), with the next convolution, the scale and
 * shift of that affine are rounded too. All this changes values, so a pass writes it into the graph
 * and fuse only joins what it finds. Either all main ops that read %h get clones or none does. Its
 * other readers may only be masks, which fuse computes again from the affine before rounding. Runs
 * after lower-norm and cse, before fuse, which joins each clone to its main op. Does nothing at
 * --fuse-level=1 or --no-fuse, nor for forms that a target has only at a level that was not asked
 * for. Tests: tests/passes/kernels/norm_forms.amp */
#include "passes/edit.h"
#include "passes/pass.h"

typedef struct Forms {
  Graph *graph;
  const Target *target;
} Forms;

/* ---- statistics from plain sums ---- */

static Node *finish_two(Graph *graph, Node *node, const char *first, const char *second) {
  node_finish(graph, node, first, 2, NULL);
  graph_rename(graph, node->result[1], graph_fresh_name(graph, second));
  return node;
}

static bool split_stats(void *user, Graph *graph, Node *stats) {
  const Forms *f = user;
  Value *z = stats->n_args ? stats->arg[0] : NULL;
  if (stats->op != OP_BN_STATS || z->node->op != OP_CONV2D ||
      !f->target->has_form(f->target, z->node, NORM_SUMS))
    return false;
  const char *name = z->name;
  Node *sums = graph_append(graph, OP_BN_SUMS, stats->loc, 1, &z);
  finish_two(graph, sums, name_with(graph, name, "sum"), name_with(graph, name, "squares"));
  Node *moments = graph_append(graph, OP_BN_MOMENTS, stats->loc, 2, sums->result);
  attr_set_int(graph, moments, ATTR_COUNT, type_count(z->type) / type_count(sums->result[0]->type));
  finish_two(graph, moments, stats->result[0]->name, stats->result[1]->name);
  value_take_over(graph, stats->result[0], moments->result[0]);
  value_take_over(graph, stats->result[1], moments->result[1]);
  return true;
}

/* ---- apply and ReLU in front of each reader ---- */

/* Does the target compute main op `node` in this form? A conv2d must have a bn_sums behind it. The
 * uses of values are those at the sweep before the walk: a step of the walk changes the readers of
 * its own %h and adds clones, but nothing that a later step asks about. */
static bool takes(const Forms *f, const Node *node, NormForm form) {
  bool has_sums = node->op != OP_CONV2D;
  if (!f->target->has_form(f->target, node, form))
    return false;
  for (int u = 0; !has_sums && u < node->result[0]->n_uses; u++)
    has_sums = node->result[0]->use[u].node->op == OP_BN_SUMS;
  return has_sums;
}

/* A relu_grad reads the value only as a mask, which fuse computes again from the affine before
 * rounding. */
static bool is_mask(const Use *use) {
  return use->node->op == OP_RELU_GRAD && use->arg == 1;
}

/* Is `h` read only by main ops that can compute it themselves, at least one, and as a mask? */
static bool only_takers(const Forms *f, const Value *h) {
  bool any = false;
  for (int u = 0; u < h->n_uses; u++) {
    const Node *node = h->use[u].node;
    if (is_mask(&h->use[u]))
      continue;
    if (h->use[u].arg != 0 || !(takes(f, node, NORM_RELU_SUMS) || takes(f, node, NORM_RELU)))
      return false;
    any = true;
  }
  return any;
}

static Value *clone(Graph *graph, const Node *node, Value *const *args) {
  Node *copy = graph_append(graph, node->op, node->loc, node->n_args, args);
  for (int i = 0; i < node->n_attrs; i++)
    attr_set(graph, copy, node->attr[i]);
  Value *value = node_finish(graph, copy, node->result[0]->name, 1, NULL);
  value->layout = node->result[0]->layout;
  return value;
}

static Value *round_vector(Graph *graph, Value *vector, DType dtype) {
  return graph_cast(graph, vector, dtype, name_with(graph, vector->name, dtype_info[dtype].name));
}

static bool clone_relu(Forms *f, const Node *relu) {
  Graph *graph = f->graph;
  Value *h = relu->result[0];
  const Node *affine = relu->op == OP_RELU ? relu->arg[0]->node : NULL;
  if (!affine || affine->op != OP_AFFINE || !only_takers(f, h))
    return false;
  DType dtype = h->type.dtype;
  Value *args[] = {affine->arg[0], round_vector(graph, affine->arg[1], dtype),
                   round_vector(graph, affine->arg[2], dtype)};
  for (int u = 0; u < h->n_uses; u++)
    if (!is_mask(&h->use[u])) {
      Value *applied = clone(graph, affine, args);
      h->use[u].node->arg[0] = clone(graph, relu, &applied);
    }
  return true;
}

/* ---- ends of residual blocks ---- */

/* The affine that makes operand k of a sum and has no other reader; else NULL. */
static Node *term(const Node *sum, int k) {
  Node *node = sum->arg[k]->node;
  return node->op == OP_AFFINE && sum->arg[k]->n_uses == 1 ? node : NULL;
}

static void round_vectors(Graph *graph, Node *affine) {
  DType dtype = affine->result[0]->type.dtype;
  for (int k = 1; k <= 2; k++)
    affine->arg[k] = round_vector(graph, affine->arg[k], dtype);
}

/* relu(affine + affine) or relu(affine + z), which a convolution computes and stores for its other
 * readers. */
static bool round_block_end(Forms *f, const Node *relu) {
  const Node *sum = relu->op == OP_RELU ? relu->arg[0]->node : NULL;
  if (!sum || sum->op != OP_ADD || relu->arg[0]->n_uses != 1 || relu->result[0]->n_uses < 2)
    return false;
  Node *a = term(sum, 0), *b = term(sum, 1);
  bool taken = false;
  for (int u = 0; (a || b) && u < relu->result[0]->n_uses; u++) {
    const Use *use = &relu->result[0]->use[u];
    taken |= use->node->op == OP_CONV2D && use->arg == 0 &&
             takes(f, use->node, a && b ? NORM_DUAL_SUMS : NORM_ADD_SUMS);
  }
  if (!taken)
    return false;
  if (a)
    round_vectors(f->graph, a);
  if (b)
    round_vectors(f->graph, b);
  return true;
}

/* ---- the pass ---- */

bool pass_norm_forms(PassContext *context, Graph *graph) {
  Forms f = {graph, context->target};
  if (!f.target->has_form || context->options->fuse_level < FUSE_MAINS || context->options->unfused)
    return false;
  bool changed = graph_rewrite(graph, split_stats, &f);
  graph_sweep(graph);
  int n = graph->n_nodes;
  for (int i = 0; i < n; i++)
    changed |= clone_relu(&f, graph->node[i]) || round_block_end(&f, graph->node[i]);
  graph_sort(graph);
  return changed;
}
