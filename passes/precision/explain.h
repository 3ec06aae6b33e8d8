/* Why every op has its precision, and what that costs in casts: read off the notes that amp and
 * fold-casts leave in the graph, so that a graph from text explains itself as well. */
#ifndef AMPCC_PASSES_PRECISION_EXPLAIN_H
#define AMPCC_PASSES_PRECISION_EXPLAIN_H

#include "passes/precision/amp.h"

/* A cast that an op reads. */
typedef struct ExplainedCast {
  const Value *value; /* the cast's result */
  int64_t bytes;      /* read and written if it is a kernel of its own */
  int readers;        /* ops that share it */
  int64_t kernel;     /* -1 before fuse */
  bool alone;         /* shares no kernel with other code */
} ExplainedCast;

/* A cast of the op's result that fold-casts took out. */
typedef struct ExplainedFold {
  const char *to, *class, *how;
  int64_t bytes; /* what it would have read and written */
} ExplainedFold;

typedef struct Explanation {
  const Graph *graph;
  const Node *node;
  const char *name, *layer; /* layer: or NULL */
  DType dtype;              /* of its first result */
  const char *class, *why;
  AmpReason reason;
  /* Names from the op that began it to the op that it ends at; `at` is this one's place. */
  const char **chain;
  int n_chain, at;
  ExplainedCast *cast;
  ExplainedFold *fold;
  int n_casts, n_folds, cap_casts, cap_folds;
} Explanation;

/* False if the op's precision was not chosen, so needs no reason. */
bool explain_node(Arena *arena, const Graph *graph, const Node *node, Explanation *out);

/* Is the cast alone in its kernel, or nothing fused yet? */
bool cast_is_alone(const Graph *graph, const Node *cast);
/* What a cast reads and writes if it is a kernel of its own. */
int64_t cast_bytes(const Node *cast);

typedef struct PrecisionTotals {
  int ops_low, ops_f32; /* that make a float: no state, constants, casts              */
  int casts_own, casts_weights,
      casts_inside; /* kernels of their own, of these of weights, others */
  int folded_exact, folded_changing;
  int copies;         /* weights whose low copy the optimizer writes */
  int64_t bytes_own;  /* that casts of their own read and write      */
  int64_t bytes_gone; /* that folded casts would                      */
} PrecisionTotals;

PrecisionTotals precision_totals(const Graph *graph);

/* explain_text.c: --explain-precision. `pattern` names values or layers as in a precision file;
 * NULL: a line for every op, then totals. False after an error if it names none. */
bool explain_text(const Module *module, const char *pattern, FILE *out, Diag *diag);
/* --print-precision: a line for every op of @train, then totals of every graph. */
void precision_report(const Module *module, FILE *out);
/* The totals of every graph, a line each. */
void precision_print_totals(const Module *module, FILE *out);
/* Warns of every cast of the whole step that is a kernel of its own. */
void precision_warn_casts(const Module *module, Diag *diag);

#endif
