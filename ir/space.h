/* Iteration spaces, and which nodes may share one loop. A loop kernel has up to four parts, in this
 * order:
 *
 *   body      POINT and VECTOR nodes over one space, all computed for one element after the other
 *   sums      CHANNEL nodes: sums per channel over elements that the body computes or loads
 *   tail      VECTOR nodes and casts over the channels, once the sums are known
 *   updates   what stores results of the other parts in variables
 *
 * The passes that make loops, the verifier of kernels and the code generators all ask here. */
#ifndef AMPCC_IR_SPACE_H
#define AMPCC_IR_SPACE_H

#include "ir/kernel.h"

enum { MAX_LOOP = 24 }; /* nodes of one loop: limits its code and the registers that it needs */

/* What a loop iterates over: `count` elements, with `channels` in the last dimension. */
typedef struct Space {
  int64_t count, channels;
} Space;

Space node_space(const Node *node);
bool space_equal(Space a, Space b);
/* Does operand k have an element for each point of the node's space, read at that point only? */
bool arg_is_elementwise(const Node *node, int k);

bool node_is_loop(const Node *node); /* POINT, VECTOR or CHANNEL */
typedef enum LoopPart { PART_BODY, PART_SUM, PART_TAIL, PART_UPDATE } LoopPart;
/* May these n nodes, makers before readers, be one loop? Fills `part`. Does not ask whether other
 * nodes must run between them. A loop node or update alone always may. */
bool loop_parts(Node *const *node, int n, LoopPart part[MAX_LOOP]);
/* The part of a node of a loop kernel. */
LoopPart loop_part(const Node *node, const Kernel *kernel);
/* The loop behind the main op of a kernel that has the main op first: all nodes but that. */
Kernel loop_behind(const Kernel *kernel);
/* Does the loop read the main op's result only element by element, where its body is? */
bool loop_follows(const Kernel *loop, const Node *main);
/* May the body of one loop make a value and hand it to this reader, without storing it? */
bool loop_hands_over(const Node *maker, const Use *use);

#endif
