/* all-reduce: derive the step that trains on one of several shards of a batch.
 *
 *   before   graph @train stage train {
 *              output %loss {name="loss"}
 *              %w.new = opt_sgd %w, %w.grad, %learning_rate, %one : f32[4]
 *   after    @train as it was, and
 *            graph @train_dp stage train {
 *              %shard_factor = input {name="shard_factor"} : f32[]          // 1 / shards
 *              %loss.sum = all_reduce %loss : f32[]
 *              %loss.mean = mul %loss.sum, %shard_factor {compute="f32"} : f32[]
 *              output %loss.mean {name="loss"}
 *              %w.grad.sum = all_reduce %w.grad : f32[4]
 *              %one.share = mul %one, %shard_factor {compute="f32"} : f32[]
 *              %w.new = opt_sgd %w, %w.grad.sum, %learning_rate, %one.share : f32[4]
 *              %stop_vote = input {name="stop_vote"} : f32[]
 *              %stop_votes = all_reduce %stop_vote : f32[]
 *              output %stop_votes {name="stop_votes"}
 *              ... the statistics of a batch that moving averages read become means likewise
 *
 * Each shard computes the mean of its own loss, so the sum of the gradients is as many times too
 * large as there are shards. As for accumulate, nothing is divided but the factor that unscales.
 * Weight decay knows nothing of it and is applied once. The finite test and clipping see sums, so
 * all shards decide alike. Batch normalisation normalises by the shard's own batch, as in
 * TensorFlow; with --sync-batch-norm lower-norm makes its statistics those of all shards, and the
 * moving averages read them as they are.
 *
 * Runs after everything that makes the step, and before simplify and amp. Leaves programs alone
 * whose batches are cut into parts (@accumulate). Tests: tests/passes/grad/all_reduce.amp */
#include "ir/ports.h"
#include "ir/recipe/opt.h"
#include "passes/edit.h"
#include "passes/grad/norm.h"
#include "passes/pass.h"

typedef struct Reduce {
  Graph *graph;
  Value *factor;
  int n;               /* nodes of the graph as it was */
  Value **sum, **mean; /* per result of these: what this pass has made of it */
  bool *gradient;      /* per result of these: an optimizer reads it as its gradient */
} Reduce;

static int slot_of(const Value *value) {
  return value->node->order * MAX_RESULTS + value->index;
}

static Value *sum_of(Reduce *r, Value *part) {
  Value **sum = &r->sum[slot_of(part)];
  if (!*sum) {
    Value *wide = graph_widen(r->graph, part);
    *sum = graph_op(r->graph, OP_ALL_REDUCE, name_with(r->graph, part->name, "sum"),
                    part->node->loc, 1, &wide);
  }
  return *sum;
}

static Value *times_factor(Reduce *r, Value *value, const char *name, SrcLoc loc) {
  Value *product = graph_op_f32(r->graph, OP_MUL, name, 2, (Value *[]){value, r->factor});
  product->node->loc = loc;
  return product;
}

static Value *mean_of(Reduce *r, Value *part) {
  Value **mean = &r->mean[slot_of(part)];
  if (!*mean)
    *mean =
        times_factor(r, sum_of(r, part), name_with(r->graph, part->name, "mean"), part->node->loc);
  return *mean;
}

/* Optimizers, the finite test, clipping and outputs read sums instead of gradients. A backward pass
 * that goes on from a parameter's gradient does not. */
static void sum_gradients(Reduce *r) {
  for (int i = 0; i < r->n; i++) {
    const Node *node = r->graph->node[i];
    if (opt_op(node->op))
      r->gradient[slot_of(node->arg[opt_gradient(node->op)])] = true;
  }
  for (int i = 0; i < r->n; i++) {
    Node *node = r->graph->node[i];
    bool reads = opt_op(node->op) || node->op == OP_ALL_FINITE || node->op == OP_CLIP_NORM ||
                 node->op == OP_OUTPUT;
    for (int k = 0; reads && k < node->n_args; k++) /* reports have been changed already */
      if (node->arg[k]->node->order < r->n && r->gradient[slot_of(node->arg[k])])
        node->arg[k] = sum_of(r, node->arg[k]);
  }
}

/* The factor that unscales: operand 0 of clip_norm, or else of the optimizers. */
static void share_factor(Reduce *r) {
  for (int i = 0; i < r->n; i++) {
    Node *node = r->graph->node[i];
    int k = opt_op(node->op) ? opt_gradient(node->op) + 2 : 0;
    if ((!k && node->op != OP_CLIP_NORM) || node->arg[k]->node->op == OP_CLIP_NORM)
      continue;
    Value *inverse = node->arg[k], **share = &r->mean[slot_of(inverse)];
    if (!*share)
      *share =
          times_factor(r, inverse, name_with(r->graph, inverse->name, "share"), inverse->node->loc);
    node->arg[k] = *share;
  }
}

static Value *f32_scalar(Reduce *r, OpKind op, const char *name, Value *a, Value *b) {
  return graph_op_f32(r->graph, op, name, 2, (Value *[]){a, b});
}

/* Statistics that are those of all M * shards elements already. Bessel's correction of their
 * variance, 1 / (1 - 1 / (M * shards)), is not known when compiling. */
static void correct_variance(Reduce *r, Node *ema) {
  Value *var = ema->arg[1];
  double m = (double)norm_count(var->node);
  const char *name = name_with(r->graph, var->name, "share");
  Value *one = graph_const(r->graph, type_scalar(DT_F32), 1, "one", ema->loc);
  Value *each = graph_const(r->graph, type_scalar(DT_F32), 1 / m, name, ema->loc);
  Value *share = f32_scalar(r, OP_MUL, name, r->factor, each);
  Value *rest = f32_scalar(r, OP_SUB, name_with(r->graph, var->name, "rest"), one, share);
  ema->arg[1] = f32_scalar(r, OP_DIV, name_with(r->graph, var->name, "unbiased"), var, rest);
  attr_remove(ema, ATTR_CORRECTION);
}

static void average_statistics(Reduce *r, bool synchronised) {
  for (int i = 0; i < r->n; i++) {
    Node *ema = r->graph->node[i];
    if (ema->op != OP_EMA)
      continue;
    if (!synchronised || ema->arg[1]->node->op != OP_BATCH_NORM)
      ema->arg[1] = mean_of(r, ema->arg[1]);
    else if (attr_find(ema, ATTR_CORRECTION))
      correct_variance(r, ema);
  }
}

static void average_reports(Reduce *r) {
  Node *output[MAX_REPORTED];
  for (int i = 0, n = reported_means(r->graph, output); i < n; i++)
    output[i]->arg[0] = mean_of(r, output[i]->arg[0]);
}

static void add_votes(Graph *graph) {
  Value *vote = graph_input_add(graph, port_stop_vote, type_scalar(DT_F32));
  graph_output_add(graph,
                   graph_op(graph, OP_ALL_REDUCE, port_stop_votes, vote->node->loc, 1, &vote),
                   port_stop_votes);
}

static bool has_optimizer(const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (opt_op(graph->node[i]->op))
      return true;
  return false;
}

bool pass_all_reduce(PassContext *context, Graph *graph) {
  Module *module = context->module;
  if (!context->options->distributed || module_find(module, "train_dp") ||
      module_find(module, "accumulate") || !has_optimizer(graph) ||
      !ports_are_free(context->diag, graph, BY_ALL_REDUCE))
    return false;
  if (module->n_graphs == MAX_GRAPHS) {
    diag_error(context->diag, (SrcLoc){0}, DIAG_TOO_LARGE, "more than %d graphs", MAX_GRAPHS);
    return false;
  }
  Reduce r = {.graph = graph_clone(module, graph, "train_dp")};
  graph_index_uses(r.graph); /* numbers the nodes */
  r.n = r.graph->n_nodes;
  size_t slots = (size_t)r.n * MAX_RESULTS;
  r.sum = arena_alloc(context->scratch, slots * sizeof(Value *));
  r.mean = arena_alloc(context->scratch, slots * sizeof(Value *));
  r.gradient = arena_alloc(context->scratch, slots);
  r.factor = graph_input_add(r.graph, port_shard_factor, type_scalar(DT_F32));
  average_reports(&r);
  average_statistics(&r, context->options->sync_batch_norm);
  share_factor(&r);
  sum_gradients(&r);
  add_votes(r.graph);
  graph_sort(r.graph);
  return true;
}
