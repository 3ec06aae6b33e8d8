/* Edits of a graph that several passes need and ir.h does not offer. */
#ifndef AMPCC_PASSES_EDIT_H
#define AMPCC_PASSES_EDIT_H

#include "ir/ir.h"
#include "ir/ports.h"

/* Visits every node once, in order; nodes that the rule appends land in front of the node it is
 * visiting. The rule returns whether it changed anything, and so does graph_rewrite. Linear. */
typedef bool RewriteFn(void *user, Graph *graph, Node *node);
bool graph_rewrite(Graph *graph, RewriteFn *rule, void *user);

/* Replaces `old` by `with` at all its uses; `with` also gets the name and the layout of `old`. */
void value_take_over(Graph *graph, Value *old, Value *with);
/* "NAME.SUFFIX" in the graph's arena. */
const char *name_with(Graph *graph, const char *name, const char *suffix);

/* The input of that name; NULL if there is none. */
Value *graph_input(const Graph *graph, const char *name);
/* Appends an input: its attribute is `name`, its value's name the next free one. */
Value *graph_input_add(Graph *graph, const char *name, TensorType type);
/* Reports the nodes that have the name of an input or output which the pass `by` is to add. */
bool ports_are_free(Diag *diag, const Graph *graph, PortBy by);
/* The `output` node of that name; NULL if there is none. */
Node *graph_output(const Graph *graph, const char *name);
Value *graph_output_add(Graph *graph, Value *value, const char *name); /* returns `value` */
/* Appends an update of the variable; without a predicate `pred` is NULL. */
void graph_update_add(Graph *graph, Value *variable, Value *now, Value *pred);
/* Appends a variable of that kind; `value` is its initial value in every element. */
Value *graph_variable_add(Graph *graph, const char *name, VariableKind kind, TensorType type,
                          double value);
/* An op of f32 whatever amp thinks of it; it gets the place of its last operand. */
Value *graph_op_f32(Graph *graph, OpKind op, const char *name, int n, Value *const *args);
/* `value` itself if it is f32, else a cast of it. */
Value *graph_widen(Graph *graph, Value *value);
/* A trainable variable: kind param, of a float type. */
bool node_is_param(const Node *node);
/* A cast from one float type to another, or to the same. */
bool node_is_float_cast(const Node *node);
/* The name of the node's first result; of a node without results, the name of its op. */
const char *node_name(const Node *node);
/* Between autodiff and optimizer the gradients are outputs named PARAM.grad. */
typedef struct ParamGrad {
  Value *param, *grad;
  Node *output;
} ParamGrad;
/* All of them in graph order; returns how many. */
int param_grads(const Graph *graph, Arena *arena, ParamGrad **out);
/* The outputs that report means over the batch: loss and accuracies. Returns how many. */
enum { MAX_REPORTED = 3 };
int reported_means(const Graph *graph, Node *out[MAX_REPORTED]);

#endif
