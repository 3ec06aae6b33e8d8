/* mix: mixup and CutMix.
 *   before   recipe {mixup=0.2}
 *            graph @train stage model {
 *              %y = relu %image : f32[8,2,2,3]
 *              ...
 *              %loss = reduce_mean %each {axes=[0]} : f32[]
 *              output %loss {name="loss"}
 *   after    graph @train stage model {
 *              %mix = input {name="mix"} : f32[2,2,3]
 *              %image.mixed = ... %image * %mix + the reversed %image * (1 - %mix)
 *              %y = relu %image.mixed : f32[8,2,2,3]
 *              ...
 *              %loss.partner = ... the same, of the reversed %label
 *              %loss.mixed = ... %loss * the mean of %mix + %loss.partner * (1 - that)
 *              output %loss.mixed {name="loss"}
 *
 * Example n of a batch of N is mixed with example N-1-n. The program fills the input `mix` for each
 * batch: the share of an example's own number in every element of its image. For mixup all are
 * lambda; for CutMix they are 0 in the box that is pasted, and 1 around it. Their mean is the share
 * of the example's own label, which for CutMix is the share of its own pixels that are left. All
 * outputs that depend on the label, such as the loss and the accuracy, are mixed by that. Runs
 * after eval-graph, as evaluation does not mix, and before autodiff, which needs no rule of its own
 * for this. Never changes a graph but @train. */
#include "ir/ports.h"
#include "ir/recipe/recipe.h"
#include "passes/edit.h"
#include "passes/pass.h"

typedef struct Mix {
  Graph *graph;
  int n_nodes;     /* before this pass */
  Value **partner; /* [order * MAX_RESULTS + result]: the same value, of the partner's label */
  Value *own, *share, *rest; /* input `mix`, its mean, and 1 - that */
} Mix;

/* These sums are f32 whatever amp thinks of them. */
static Value *f32_op(Graph *graph, OpKind op, const char *name, Value *a, Value *b) {
  Node *node = graph_append(graph, op, a->node->loc, 2, (Value *[]){a, b});
  attr_set_str(graph, node, ATTR_COMPUTE, "f32");
  return node_finish(graph, node, name, 1, NULL);
}

/* a * share + b * rest; `rest` is 1 - share. */
static Value *blend(Graph *graph, const char *stem, Value *a, Value *share, Value *b, Value *rest) {
  Value *own = f32_op(graph, OP_MUL, name_with(graph, stem, "own"), a, share);
  Value *other = f32_op(graph, OP_MUL, name_with(graph, stem, "other"), b, rest);
  return f32_op(graph, OP_ADD, name_with(graph, stem, "mixed"), own, other);
}

static Value *with_axes(Graph *graph, OpKind op, const char *name, Value *x, int n_axes) {
  static const int64_t axes[] = {0, 1, 2};
  Node *node = graph_append(graph, op, x->node->loc, 1, &x);
  attr_set_ints(graph, node, ATTR_AXES, axes, n_axes);
  return node_finish(graph, node, name, 1, NULL);
}

/* The input `mix`, repeated for each example of the batch. */
static Value *spread(Graph *graph, const char *name, Value *mix, TensorType image) {
  Node *node = graph_append(graph, OP_BROADCAST, mix->node->loc, 1, &mix);
  attr_set_ints(graph, node, ATTR_SHAPE, image.dim, image.rank);
  attr_set_ints(graph, node, ATTR_AXES, (int64_t[]){0}, 1);
  return node_finish(graph, node, name, 1, NULL);
}

static void mix_image(const Mix *m, Value *image) {
  Graph *graph = m->graph;
  const Use *use = image->use; /* as they were before this pass */
  int n_uses = image->n_uses;
  Value *partner = with_axes(graph, OP_REVERSE, "image.partner", image, 1);
  Value *share = spread(graph, "mix.each", m->own, image->type);
  Value *ones = graph_const(graph, image->type, 1, "ones", image->node->loc);
  Value *rest = f32_op(graph, OP_SUB, "mix.rest", ones, share);
  Value *mixed = blend(graph, image->name, image, share, partner, rest);
  for (int u = 0; u < n_uses; u++)
    use[u].node->arg[use[u].arg] = mixed;
}

/* ---- labels ---- */

static Value **place_of(const Mix *m, const Value *value) {
  return &m->partner[(size_t)value->node->order * MAX_RESULTS + (size_t)value->index];
}

/* NULL if the value does not depend on the label, as no value does that this pass has made. */
static Value *partner_of(const Mix *m, const Value *value) {
  return value->node->order < m->n_nodes ? *place_of(m, value) : NULL;
}

/* A copy of a node that depends on the label, of the partner's label. */
static void copy_node(const Mix *m, const Node *node) {
  Graph *graph = m->graph;
  Node *made = graph_append(graph, node->op, node->loc, node->n_args, node->arg);
  for (int k = 0; k < node->n_args; k++)
    if (partner_of(m, node->arg[k]))
      made->arg[k] = partner_of(m, node->arg[k]);
  for (int i = 0; i < node->n_attrs; i++)
    attr_set(graph, made, node->attr[i]);
  TensorType written = node->result[0]->type; /* only a cast's type is not inferred */
  node_finish(graph, made, name_with(graph, node->result[0]->name, "partner"), node->n_results,
              node->op == OP_CAST ? &written : NULL);
  for (int r = 0; r < node->n_results; r++)
    *place_of(m, node->result[r]) = made->result[r];
}

/* Copies what depends on the label, and mixes the outputs that do. */
static void mix_outputs(const Mix *m, Value *label) {
  Graph *graph = m->graph;
  *place_of(m, label) = with_axes(graph, OP_REVERSE, "label.partner", label, 1);
  for (int i = 0; i < m->n_nodes; i++) {
    Node *node = graph->node[i];
    bool depends = false;
    for (int k = 0; k < node->n_args && !depends; k++)
      depends = partner_of(m, node->arg[k]) != NULL;
    if (!depends)
      continue;
    if (node->n_results)
      copy_node(m, node);
    else if (node->op == OP_OUTPUT && dtype_info[node->arg[0]->type.dtype].is_float)
      node->arg[0] = blend(graph, node->arg[0]->name, node->arg[0], m->share,
                           partner_of(m, node->arg[0]), m->rest);
  }
}

bool pass_mix(PassContext *context, Graph *graph) {
  const Recipe *recipe = context->module->recipe;
  Value *image = graph_input(graph, port_image), *label = graph_input(graph, port_label);
  bool wanted = recipe->mixup > 0 || recipe->cutmix > 0;
  if (!wanted || graph_input(graph, port_mix))
    return false;
  if (!image || image->type.rank != 4 || image->type.dtype != DT_F32 || !label ||
      label->type.rank != 1) {
    diag_error(context->diag, (SrcLoc){0}, DIAG_RECIPE,
               "mixup and cutmix need the inputs image f32[N,H,W,C] and label i32[N] in @train");
    return false;
  }
  Mix m = {.graph = graph, .n_nodes = graph->n_nodes};
  m.partner =
      arena_alloc(context->scratch, (size_t)(m.n_nodes + 1) * MAX_RESULTS * sizeof *m.partner);
  TensorType each = type_of(DT_F32, image->type.rank - 1, image->type.dim + 1);
  m.own = graph_input_add(graph, port_mix, each);
  m.share = with_axes(graph, OP_REDUCE_MEAN, "mix.share", m.own, 3);
  Value *one = graph_const(graph, type_scalar(DT_F32), 1, "one", (SrcLoc){0});
  m.rest = f32_op(graph, OP_SUB, "mix.rest", one, m.share);
  mix_image(&m, image);
  mix_outputs(&m, label);
  graph_sort(graph);
  return true;
}
