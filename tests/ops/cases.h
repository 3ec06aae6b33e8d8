/* The rows of cases.def, as text of the IR and as numbers. */
#ifndef AMPCC_TESTS_OPS_CASES_H
#define AMPCC_TESTS_OPS_CASES_H

#include "ir/eval/eval.h"

typedef struct Case {
  OpKind op;
  const char *operands, *values;
  const char *text;    /* attributes, or the nodes if there are no `results` */
  const char *results; /* NULL in TEXT and GRAD rows */
  double ulps;
  bool is_grad; /* a GRAD row */
} Case;

extern const Case ops_case[];
extern const int n_ops_cases;

/* One row at one dtype. Every name in its text starts with `prefix` ("c12.f16."). */
typedef struct CaseAt {
  const Case *row;
  DType dtype; /* what T stands for */
  const char *prefix;
} CaseAt;

bool case_has_dtypes(const Case *row); /* does T occur? */
/* "conv2d (row 41) f16" */
const char *case_name(Arena *arena, CaseAt at);
/* The row's nodes: operands, then its own, then an output per result. Operands are inputs, or, if
 * `as_params`, float operands are parameters where the row wants their gradient. */
void case_print(CaseAt at, bool as_params, FILE *out);
/* The same as a graph @train of its own, in stage model if `as_params`. NULL after a line on
 * stdout.
 */
Module *case_module(Arena *arena, CaseAt at, bool as_params);
/* Values for operand `index`. `is_smooth`: none of the hard ones, for differentiation. */
void case_fill(const Case *row, int index, bool is_smooth, EvalTensor *t);
/* Ordinary values, for anything else that needs some; the same for the same seed. */
void fill_ordinary(uint64_t seed, EvalTensor *t);

#endif
