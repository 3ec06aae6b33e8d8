/* One run of TensorFlow's auto_mixed_precision over a GraphDef (specs/amp-rewrite.md 2.4). */
#ifndef AMPCC_FRONTEND_TF_PASS_H
#define AMPCC_FRONTEND_TF_PASS_H

#include "frontend/tf/rewrite.h"

typedef struct TfOutcome {
  const char *log;    /* the line that TensorFlow logs */
  const char *failed; /* why the pass fails, NULL: it does not; the GraphDef is spoilt then */
  const char *failed_node;
  bool rewritten; /* `rewrite` is filled */
  TfRewrite rewrite;
} TfOutcome;

/* Rewrites graph->def and tells what came of it. */
void tf_pass(TfGraph *graph, const TfSettings *settings, TfOutcome *out);
/* The name of the mode's optimizer. */
const char *tf_pass_name(const TfSettings *settings);

#endif
