/* Gradient rules: one function per word in the grad column of ir/ops.def. A rule gets a node and
 * dy, the gradient of the loss by the node's first result, and sends each operand that wants one
 * its gradient. It builds nodes by grad_op and its friends, which name and place them. */
#ifndef AMPCC_PASSES_GRAD_GRAD_H
#define AMPCC_PASSES_GRAD_GRAD_H

#include "ir/ir.h"

typedef struct Grad Grad;
typedef void GradFn(Grad *grad, Node *node, Value *dy);

#define OP(id, name, lo, hi, rlo, rhi, shape, eval, rule, ...) GradFn grad_##rule;
#include "ir/ops.def"

/* grad_point.c: rules for any op that has a partner NAME_grad, used or not */
GradFn grad_by_result, grad_by_operand;

/* autodiff.c */
/* Does a parameter stand behind operand `arg`? If not, its gradient is not computed. */
bool grad_wants(const Grad *grad, const Node *node, int arg);
/* Adds `dx` to the gradient of operand `arg`; the types must be equal. */
void grad_send(Grad *grad, const Node *node, int arg, Value *dx);
/* A new op, named after operand `arg`, with the location of `node`. */
Value *grad_op(Grad *grad, const Node *node, int arg, OpKind op, int n_args, Value *const *args);
Value *grad_op1(Grad *grad, const Node *node, int arg, OpKind op, Value *a);
Value *grad_op2(Grad *grad, const Node *node, int arg, OpKind op, Value *a, Value *b);
/* A scalar of type `dtype`. */
Value *grad_scalar(Grad *grad, const Node *node, int arg, DType dtype, double value);
/* For ops with attributes: grad_begin, set them, grad_end. grad_begin takes over from `node` what
 * attributes the new op knows too; grad_shape sets `shape` to that of operand `arg`. */
Node *grad_begin(Grad *grad, const Node *node, OpKind op, int n_args, Value *const *args);
void grad_shape(Grad *grad, Node *made, const Node *node, int arg);
void grad_set_ints(Grad *grad, Node *made, AttrKey key, const int64_t *ints, int n);
void grad_set_flag(Grad *grad, Node *made, AttrKey key, bool on); /* absent when off */
Value *grad_end(Grad *grad, const Node *node, int arg, Node *made, int n_results);

#endif
