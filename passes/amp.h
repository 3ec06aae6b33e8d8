/* Mixed precision: what amp, fold-casts and weight-copies share, and what the driver prints. */
#ifndef AMPCC_PASSES_AMP_H
#define AMPCC_PASSES_AMP_H

#include "passes/amp_solve.h"

/* amp_ports.c: the table amp_ports.def */
typedef enum AmpPort {
  AMP_PORT_T = 'T',
  AMP_PORT_SCALAR = 'S',
  AMP_PORT_KEEP = 'K',
  AMP_PORT_WIDEN = 'W',
} AmpPort;

typedef enum AmpNarrow { AMP_OTHER, AMP_SELECTS, AMP_ROUNDS } AmpNarrow;

typedef struct AmpPorts {
  const char *operands, *results;
  AmpNarrow narrow;
} AmpPorts;

extern const AmpPorts amp_ports[OP_COUNT];
AmpPort amp_operand(OpKind op, int i);
AmpPort amp_result(OpKind op, int i);
/* Does operand a of this node have the chosen type? (S depends on its rank.) */
bool amp_is_t(const Node *node, int a);

/* amp_why.c: class and chain of reasons, in the graph's arena, e.g. "infer: between conv1 and
 * conv2". Node i of the graph has the vertices 2*i, its T, and 2*i+1, the types that it keeps. */
const char *amp_why(const Graph *graph, const AmpProblem *problem, const AmpVerdict *verdict,
                    int v);

/* fold_casts.c: every value of `from` is one of `to` */
bool dtype_holds(DType to, DType from);
/* If `value` is a cast from a narrower type that loses nothing: what it casts. Else NULL. */
Value *widened_from(Value *value);

/* fold_through.c: low ops instead of  narrow(op(widen(x))) */
bool fold_through(Arena *scratch, Graph *graph);

/* amp_report.c */
/* Casts that cost memory traffic of their own: those that share no kernel with other code, or all
 * of them where nothing is fused yet. With weights_only, those of parameters. */
int cast_count(const Graph *graph, bool weights_only);
/* The text of --print-precision: one line per op whose precision was decided, then the casts left.
 */
void precision_report(const Module *module, FILE *out);

#endif
