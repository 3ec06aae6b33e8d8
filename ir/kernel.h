/* Kernels: runs of neighbouring nodes that carry the same {kernel=N}. Views, inputs, variables and
 * constants carry none. */
#ifndef AMPCC_IR_KERNEL_H
#define AMPCC_IR_KERNEL_H

#include "ir/ir.h"

typedef struct Kernel {
  int id; /* the attribute's value; equal to its place in the list once fused */
  int n_nodes;
  Node **node; /* in graph order */
} Kernel;

typedef struct KernelList {
  int n;
  Kernel *kernel;
} KernelList;

/* Does the node become code: everything but inputs, variables, outputs, constants and views. */
bool node_has_code(const Node *node);
/* A main op: CONV, MATMUL, POOL. */
bool node_is_main(const Node *node);
/* The graph's kernels in execution order. BUGs if a kernel's nodes are not neighbours (other than
 * for nodes without code between them). */
KernelList kernels_of(Arena *arena, const Graph *graph);
/* Node order -> kernel id; -1 for nodes without code. */
int kernel_of(const Node *node);
/* Follows views and identities down to the value that owns the storage. */
Value *value_storage(Value *value);
/* The main op (CONV, MATMUL, POOL) of a kernel, or NULL. */
Node *kernel_main(const Kernel *kernel);
/* Layer name for messages and generated code: the main op's, else the first node's. "" if none. */
const char *kernel_layer(const Kernel *kernel);

#endif
