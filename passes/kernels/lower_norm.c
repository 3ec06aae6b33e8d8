/* lower-norm: split batch normalisation and its gradient into parts that fuse with neighbours.
 *
 *   before   %y, %mean, %var = batch_norm %x, %gamma, %beta, %mm, %mv {...} : f16[..], ..
 *            %dx, %dg, %db = batch_norm_grad %dy, %x, %gamma, %mean, %var {...} : f16[..], ..
 *   after    %mean, %var = bn_stats %x : f32[C], f32[C]
 *            %scale, %shift = bn_fold %gamma, %beta, %mean, %var {...} : f32[C], f32[C]
 *            %y = affine %x, %scale, %shift : f16[..]
 *            %sdy, %sdyx = bn_grad_stats %dy, %x, %mean : f32[C], f32[C]
 *            %dg, %db, %a, %b, %c = bn_grad_fold %sdy, %sdyx, %gamma, %mean, %var {count=M, ...}
 *            %dx = affine2 %dy, %x, %a, %b, %c : f16[..]
 *
 * With --sync-batch-norm, in @train_dp:
 *
 *            %sum, %squares = bn_sums %x : f32[C], f32[C]
 *            %sum.all = all_reduce %sum : f32[C]
 *            %sum.mean = mul %sum.all, %shard_factor : f32[C]              // and %squares
 *            %mean, %var = bn_moments %sum.mean, %squares.mean {count=M} : f32[C], f32[C]
 *            ...
 *            %dg, %db, .. = bn_grad_fold %sdy, %sdyx, ..    // the shard's part of their gradients
 *            .., %a, %b, %c = bn_grad_fold %sdy.mean, %sdyx.mean, ..
 *
 * A batch_norm_infer needs no bn_stats, since it reads moving statistics. Runs after the precision
 * passes, to which batch norm is one op. Every graph moves to stage lowered. Never changes a type:
 * statistics stay f32. */
#include "ir/ports.h"
#include "passes/edit.h"
#include "passes/grad/norm.h"
#include "passes/pass.h"

/* A part of `norm`. The part that makes the result of norm's type also takes over its notes. */
static Node *part(Graph *graph, const Node *norm, OpKind op, int n_args, Value *const *args) {
  Node *node = graph_append(graph, op, norm->loc, n_args, args);
  for (int i = 0; i < norm->n_attrs && (op == OP_AFFINE || op == OP_AFFINE2); i++)
    if (attr_info[norm->attr[i].key].note)
      attr_set(graph, node, norm->attr[i]);
  if (op_info[op].attrs >> ATTR_EPSILON & 1)
    attr_set(graph, node, *attr_find(norm, ATTR_EPSILON));
  return node;
}

static const char *named(Graph *graph, const Node *norm, const char *suffix) {
  return name_with(graph, norm->result[0]->name, suffix);
}

static void finish(Graph *graph, const Node *norm, Node *node, int n, const char *const *suffix) {
  node_finish(graph, node, named(graph, norm, suffix[0]), n, NULL);
  for (int r = 1; r < n; r++)
    graph_rename(graph, node->result[r], graph_fresh_name(graph, named(graph, norm, suffix[r])));
}

static void lower_apply(Graph *graph, Node *norm, Value *mean, Value *var) {
  Value *args[] = {norm->arg[1], norm->arg[2], mean, var};
  Node *fold = part(graph, norm, OP_BN_FOLD, 4, args);
  finish(graph, norm, fold, 2, (const char *[]){"scale", "shift"});
  Value *apply[] = {norm->arg[0], fold->result[0], fold->result[1]};
  Node *affine = part(graph, norm, OP_AFFINE, 3, apply);
  finish(graph, norm, affine, 1, (const char *[]){"y"});
  value_take_over(graph, norm->result[0], affine->result[0]);
}

/* The mean over the shards of what a part makes. */
static Value *over_shards(Graph *graph, Value *value, Value *factor) {
  const Node *node = value->node;
  const char *name = value->name;
  Value *sum = graph_op(graph, OP_ALL_REDUCE, name_with(graph, name, "all"), node->loc, 1, &value);
  return graph_op(graph, OP_MUL, name_with(graph, name, "mean"), node->loc, 2,
                  (Value *[]){sum, factor});
}

static Node *stats_of_all(Graph *graph, const Node *norm, Value *factor) {
  Node *sums = part(graph, norm, OP_BN_SUMS, 1, norm->arg);
  finish(graph, norm, sums, 2, (const char *[]){"sum", "squares"});
  Value *sum = over_shards(graph, sums->result[0], factor);
  Value *squares = over_shards(graph, sums->result[1], factor);
  Node *moments = part(graph, norm, OP_BN_MOMENTS, 2, (Value *[]){sum, squares});
  attr_set_int(graph, moments, ATTR_COUNT, norm_count(norm));
  return moments;
}

/* `factor` is 1 / shards if the statistics are to be those of all shards; else NULL. */
static void lower_train(Graph *graph, Node *norm, Value *factor) {
  Node *stats =
      factor ? stats_of_all(graph, norm, factor) : part(graph, norm, OP_BN_STATS, 1, norm->arg);
  finish(graph, norm, stats, 2, (const char *[]){"mean", "var"});
  value_take_over(graph, norm->result[1], stats->result[0]);
  value_take_over(graph, norm->result[2], stats->result[1]);
  lower_apply(graph, norm, stats->result[0], stats->result[1]);
}

static Node *grad_fold(Graph *graph, const Node *norm, Value *sum, Value *sum_x) {
  Value *args[] = {sum, sum_x, norm->arg[2], norm->arg[3], norm->arg[4]};
  Node *fold = part(graph, norm, OP_BN_GRAD_FOLD, 5, args);
  attr_set_int(graph, fold, ATTR_COUNT, norm_count(norm));
  finish(graph, norm, fold, 5, (const char *[]){"gamma", "beta", "a", "b", "c"});
  return fold;
}

static void lower_grad(Graph *graph, Node *norm, Value *factor) {
  Value *dy = norm->arg[0], *x = norm->arg[1];
  Node *sums = part(graph, norm, OP_BN_GRAD_STATS, 3, (Value *[]){dy, x, norm->arg[3]});
  finish(graph, norm, sums, 2, (const char *[]){"sum", "sum_x"});
  Node *fold = grad_fold(graph, norm, sums->result[0], sums->result[1]);
  value_take_over(graph, norm->result[1], fold->result[0]);
  value_take_over(graph, norm->result[2], fold->result[1]);
  if (factor) { /* dx depends on the sums over all shards */
    Value *sum = over_shards(graph, sums->result[0], factor);
    Value *sum_x = over_shards(graph, sums->result[1], factor);
    fold = grad_fold(graph, norm, sum, sum_x);
  }
  Value *apply[] = {dy, x, fold->result[2], fold->result[3], fold->result[4]};
  Node *affine = part(graph, norm, OP_AFFINE2, 5, apply);
  finish(graph, norm, affine, 1, (const char *[]){"dx"});
  value_take_over(graph, norm->result[0], affine->result[0]);
}

static bool lower_one(void *user, Graph *graph, Node *node) {
  Value *factor = user;
  switch (node->op) {
  case OP_BATCH_NORM:
    lower_train(graph, node, factor);
    return true;
  case OP_BATCH_NORM_INFER:
    lower_apply(graph, node, node->arg[3], node->arg[4]);
    return true;
  case OP_BATCH_NORM_GRAD:
    lower_grad(graph, node, factor);
    return true;
  default:
    return false;
  }
}

bool pass_lower_norm(PassContext *context, Graph *graph) {
  /* Only @train_dp has it; its statistics may be those of all shards. */
  Value *factor = context->options->sync_batch_norm ? graph_input(graph, port_shard_factor) : NULL;
  graph_rewrite(graph, lower_one, factor);
  if (factor)
    graph_sort(graph); /* the input may have stood behind the first normalisation */
  graph->stage = STAGE_LOWERED;
  return true;
}
