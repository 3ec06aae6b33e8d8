/* The colouring of mixed precision: which (node, type) vertices run in the low type.
 *
 * A solver over a plain graph of vertices; it knows no op and no IR. It follows TensorFlow's
 * auto_mixed_precision (specs/amp-rewrite.md 2.2-2.6, 2.11) rule for rule, so that our graphs and
 * TensorFlow's can be fed to the same code: passes/precision/amp.c makes the vertices for ours.
 * Loop frames and casts that the graph already has (2.8, 2.9) are for the caller to settle on the
 * result.
 *
 * A vertex is one type variable of a node, e.g. T of a convolution, or all its ports of one fixed
 * type, e.g. the f32 statistics of a batch normalisation. Edges go from the vertex of a result to
 * the vertex of an operand that reads it; there is none between two vertices of one node. */
#ifndef AMPCC_PASSES_PRECISION_AMP_SOLVE_H
#define AMPCC_PASSES_PRECISION_AMP_SOLVE_H

#include "ir/ir.h"

typedef enum AmpPin {
  AMP_FREE, /* the rules decide                                                      */
  AMP_KEEP, /* never low, no walk to low goes through it (TensorFlow: not processable) */
  AMP_TAKE, /* low whatever its class                                                */
  AMP_BAN,  /* denied from the start                                                 */
} AmpPin;

typedef struct AmpVertex {
  AmpClass amp; /* of its op */
  AmpPin pin;
  bool f32;         /* is f32 now: nothing else is ever converted    */
  bool fits;        /* the op admits the low type here               */
  bool kernel;      /* and there is a kernel for it                  */
  bool reads_state; /* reads a variable in place: no cast in between */
  int group;        /* > 0: shares storage, hence type, with the others of its group */
} AmpVertex;

typedef struct AmpEdge {
  int from, to;
} AmpEdge;

typedef struct AmpProblem {
  int n_vertices, n_edges, cap_edges;
  AmpVertex *vertex; /* in topological order: "follow" goes through them in this order */
  AmpEdge *edge;     /* parallel ones are harmless */
  bool follow; /* an infer vertex right behind a low one is low too: TensorFlow from 2.20 on, and
                  always for bfloat16 */
  bool follow_blind; /* ... and nobody asks for a kernel there, as TensorFlow does not */
  bool force;        /* deny does not spread: TensorFlow's UNSAFE_FORCE_ALL */
} AmpProblem;

typedef enum AmpColour { AMP_PLAIN, AMP_LOW, AMP_DENIED } AmpColour;

/* What gave a vertex its colour. */
typedef enum AmpRule {
  AMP_RULE_NONE,    /* plain: nothing reached it, or `from` did and nothing low is behind it */
  AMP_RULE_OWN,     /* low or denied: its own class                                        */
  AMP_RULE_PIN,     /* low or denied: its pin                                              */
  AMP_RULE_BETWEEN, /* low: on a path between two allow vertices                           */
  AMP_RULE_FOLLOW,  /* low: infer, right behind a low one                                  */
  AMP_RULE_JOIN,    /* low: clear, next to a low one                                       */
  AMP_RULE_FED,     /* denied: fed by a denied one                                         */
  AMP_RULE_GROUP,   /* low or denied: as another of its group                              */
  AMP_RULE_UNFIT,   /* plain: allow, but the op does not admit the low type here           */
} AmpRule;

typedef struct AmpVerdict {
  AmpColour colour;
  AmpRule rule;
  int from; /* the neighbour that the colour came from, -1 if none. Following it ends at the vertex
               that started it */
  int to;   /* BETWEEN: the next one on the way down to an allow vertex; else -1 */
} AmpVerdict;

/* One verdict per vertex, in `arena`. A vertex is to be converted if it is LOW and f32. Without an
 * allow or taken vertex there is nothing to do, and every verdict is PLAIN. */
AmpVerdict *amp_solve(Arena *arena, const AmpProblem *problem);
/* The vertex at the end of `from` (or, with `down`, of `to`). */
int amp_origin(const AmpVerdict *verdict, int vertex, bool down);

#endif
