/* The rows of cases.def as one planned module per dtype, and what they should give: for tests that
 * run a target's code. Graph 0, @train, holds the rows whose op lower-norm removes, graph 1, @late,
 * all others. */
#ifndef AMPCC_TESTS_OPS_ROWS_H
#define AMPCC_TESTS_OPS_ROWS_H

#include "passes/pass.h"
#include "tests/eval_env.h"
#include "tests/ops/cases.h"

enum { ROW_GRAPHS = 2 };

typedef struct RowSet {
  Arena *arena;
  DType dtype;
  bool (*takes)(const Case *row); /* NULL: all rows */
  CompileOptions options;
  const Target *target;
  Module *plain, *planned;     /* as written; after the passes */
  EvalEnv *filled[ROW_GRAPHS]; /* inputs and variables: NULL until rows_fill */
  /* What the evaluator gives, and the sums of the terms' magnitudes: NULL until compared with. */
  EvalEnv *want[ROW_GRAPHS], *terms[ROW_GRAPHS];
  /* Of each value of `want`, what the target states about its error; NULL until then, too. */
  const double **bound[ROW_GRAPHS];
} RowSet;

/* For RowSet.takes. row_multiplies takes the rows of cases.def with a convolution or a matrix
 * product, and row_multiplies_one_in those of them whose number in cases.def leaves `first` when it
 * is divided by n. Both take all rows of batch_norm as well, because graph 0 of a RowSet must not
 * be empty. */
bool row_multiplies(const Case *row);
bool row_multiplies_one_in(const Case *row, int n, int first);
RowSet rows_plan(DType dtype, const Target *target, bool (*takes)(const Case *row));
int rows_count(const RowSet *set);
/* What belongs to a value "c12.3", or "output:c12.y": its row, and the operand it is, or -1. */
const Case *row_of(const char *name, int *operand);
const char *row_name(const RowSet *set, const char *value); /* "conv2d (row 41) f16" */
/* The inputs and variables of graph g, in `arena`. */
EvalEnv *rows_fill(RowSet *set, Arena *arena, int g);
/* Compares the outputs and the new state of graph g with what the evaluator gives. They may differ
 * by the bound that the target states for the op, or by that of the row if the target states none.
 * Prints each failure and returns how many there were. */
int rows_compare(RowSet *set, EvalEnv *got, int g);
/* If both sets have the same rows at the same dtype, `set` takes over what was filled and evaluated
 * for `like`, whose arena must then live as long as that of `set`. */
void rows_expect(RowSet *set, const RowSet *like);
/* Compares the results of two runs of one graph, which must have the same bits. Rows for which
 * `spares` returns true are left out; if it is NULL, none is. Prints each failure, with `again` at
 * the end, which says how the second run was made, and returns how many there were. */
int rows_same(const RowSet *set, const EvalEnv *first, EvalEnv *second,
              bool (*spares)(const Case *row), const char *again);

#endif
