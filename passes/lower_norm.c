/* lower-norm: split batch normalisation and its gradient into parts that fuse with neighbours.
 *
 *   before   %y, %mean, %var = batch_norm %x, %gamma, %beta, %mm, %mv {...} : f16[..], f32[C],
 * f32[C] %dx, %dg, %db = batch_norm_grad %dy, %x, %gamma, %mean, %var {...} after    %mean, %var =
 * bn_stats %x : f32[C], f32[C] %scale, %shift = bn_fold %gamma, %beta, %mean, %var {...} : f32[C],
 * f32[C] %y = affine %x, %scale, %shift : f16[..] %sdy, %sdyx = bn_grad_stats %dy, %x, %mean :
 * f32[C], f32[C] %dg, %db, %a, %b, %c = bn_grad_fold %sdy, %sdyx, %gamma, %mean, %var {count=M,
 * ...} %dx = affine2 %dy, %x, %a, %b, %c : f16[..]
 *
 * batch_norm_infer has no bn_stats. Runs after the precision passes, to which batch norm is one op.
 * Every graph moves to stage lowered. Never changes a type: statistics stay f32. */
#include "passes/edit.h"
#include "passes/norm.h"
#include "passes/pass.h"

/* An op with the epsilon of `norm`, named after the value it belongs to. */
static Node *fold(Graph *graph, const Node *norm, OpKind op, int n_args, Value *const *args) {
  Node *node = graph_append(graph, op, norm->loc, n_args, args);
  attr_set(graph, node, *attr_find(norm, ATTR_EPSILON));
  return node;
}

static const char *named(Graph *graph, const Node *norm, const char *suffix) {
  return name_with(graph, norm->result[0]->name, suffix);
}

static void lower_apply(Graph *graph, Node *norm, Value *mean, Value *var) {
  Value *args[] = {norm->arg[1], norm->arg[2], mean, var};
  Node *made = fold(graph, norm, OP_BN_FOLD, 4, args);
  node_finish(graph, made, named(graph, norm, "scale"), 2, NULL);
  graph_rename(graph, made->result[1], graph_fresh_name(graph, named(graph, norm, "shift")));
  Value *apply[] = {norm->arg[0], made->result[0], made->result[1]};
  value_take_over(graph, norm->result[0],
                  graph_op(graph, OP_AFFINE, named(graph, norm, "y"), norm->loc, 3, apply));
}

static void lower_train(Graph *graph, Node *norm) {
  Node *stats = graph_append(graph, OP_BN_STATS, norm->loc, 1, norm->arg);
  node_finish(graph, stats, named(graph, norm, "mean"), 2, NULL);
  value_take_over(graph, norm->result[1], stats->result[0]);
  value_take_over(graph, norm->result[2], stats->result[1]);
  lower_apply(graph, norm, stats->result[0], stats->result[1]);
}

static void lower_infer(Graph *graph, Node *norm) {
  lower_apply(graph, norm, norm->arg[3], norm->arg[4]);
}

static void lower_grad(Graph *graph, Node *norm) {
  Value *dy = norm->arg[0], *x = norm->arg[1];
  Value *gamma = norm->arg[2], *mean = norm->arg[3], *var = norm->arg[4];
  Node *sums = graph_append(graph, OP_BN_GRAD_STATS, norm->loc, 3, (Value *[]){dy, x, mean});
  node_finish(graph, sums, named(graph, norm, "sums"), 2, NULL);
  Value *args[] = {sums->result[0], sums->result[1], gamma, mean, var};
  Node *made = fold(graph, norm, OP_BN_GRAD_FOLD, 5, args);
  attr_set_int(graph, made, ATTR_COUNT, norm_count(norm));
  node_finish(graph, made, named(graph, norm, "fold"), 5, NULL);
  for (int r = 2; r < 5; r++) {
    static const char *const factor[] = {[2] = "a", [3] = "b", [4] = "c"};
    graph_rename(graph, made->result[r], graph_fresh_name(graph, named(graph, norm, factor[r])));
  }
  value_take_over(graph, norm->result[1], made->result[0]);
  value_take_over(graph, norm->result[2], made->result[1]);
  Value *apply[] = {dy, x, made->result[2], made->result[3], made->result[4]};
  value_take_over(graph, norm->result[0],
                  graph_op(graph, OP_AFFINE2, named(graph, norm, "dx"), norm->loc, 5, apply));
}

static bool lower_one(void *user, Graph *graph, Node *node) {
  (void)user;
  switch (node->op) {
  case OP_BATCH_NORM:
    lower_train(graph, node);
    return true;
  case OP_BATCH_NORM_INFER:
    lower_infer(graph, node);
    return true;
  case OP_BATCH_NORM_GRAD:
    lower_grad(graph, node);
    return true;
  default:
    return false;
  }
}

bool pass_lower_norm(PassContext *context, Graph *graph) {
  (void)context;
  graph_rewrite(graph, lower_one, NULL);
  graph->stage = STAGE_LOWERED;
  return true;
}
