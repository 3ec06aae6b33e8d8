/* The register tile of a filter's gradient by the matrix registers of AMX: a block of units times
 * some vectors, of pairs of bf16. It takes the place of the one in conv_grad_tile.h and reads what
 * that reads; but 16 results are one product, for which the units are turned first. */
#ifndef AMP_CONV_GRAD_AMX_H
#define AMP_CONV_GRAD_AMX_H

#include "codegen/text/cpu/amx.h"
#include "codegen/text/cpu/conv_filter.h"

#ifdef __AVX512BF16__

/* The products of n results. */
#define AMP_AMX_RESULTS(n)                                                                         \
  {                                                                                                \
    .palette = 1, .row_bytes = {64, 64, 64, 64, 4 * (n), 4 * (n), 64, 64}, .rows = {               \
      16,                                                                                          \
      16,                                                                                          \
      16,                                                                                          \
      16,                                                                                          \
      16,                                                                                          \
      16,                                                                                          \
      n,                                                                                           \
      n                                                                                            \
    }                                                                                              \
  }
static const AmpAmxShape amp_amx_results[] = {
    AMP_AMX_RESULTS(1),  AMP_AMX_RESULTS(2),  AMP_AMX_RESULTS(3),  AMP_AMX_RESULTS(4),
    AMP_AMX_RESULTS(5),  AMP_AMX_RESULTS(6),  AMP_AMX_RESULTS(7),  AMP_AMX_RESULTS(8),
    AMP_AMX_RESULTS(9),  AMP_AMX_RESULTS(10), AMP_AMX_RESULTS(11), AMP_AMX_RESULTS(12),
    AMP_AMX_RESULTS(13), AMP_AMX_RESULTS(14), AMP_AMX_RESULTS(15), AMP_AMX_RESULTS(16)};

/* Adds to `sum` what n of columns first..last-1 give at a time. */
AMP_AMX_FN void amp_grad_amx_columns(const AmpGradTile *a, const float *unit, const float *vec,
                                     float *sum, int vectors, int64_t first, int64_t last, int n) {
  float turned[AMP_BLOCK][AMP_AMX_ROWS], sums[AMP_AMX_SUMS][AMP_BLOCK][AMP_WIDE];
  const int64_t bytes = a->vec_col * (int64_t)sizeof *vec;
  amp_amx_use(&amp_amx_results[n - 1]);
  AMP_AMX_ZERO(0);
  AMP_AMX_ZERO(1);
  AMP_AMX_ZERO(2);
  AMP_AMX_ZERO(3);
  for (int64_t i = 0; i < a->images * a->rows; i++) {
    const int64_t image = i / a->rows, row = i % a->rows;
    const float *from = unit + image * a->unit_image + row * a->unit_row;
    const float *by = vec + image * a->vec_image + row * a->vec_row;
    for (int64_t c = first; c < last; c += n) {
      const float *at = by + c * a->vec_col;
      amp_turn(turned[0], AMP_AMX_ROWS, from + c * a->unit_col, a->unit_col, n, AMP_BLOCK);
      AMP_AMX_LOAD(4, turned[0], sizeof turned[0]);
      AMP_AMX_LOAD(6, at, bytes);
      AMP_AMX_DOT(0, 4, 6);
      if (vectors > 1) {
        AMP_AMX_LOAD(7, at + a->vec_block, bytes);
        AMP_AMX_DOT(1, 4, 7);
      }
      if (vectors > 2) {
        AMP_AMX_LOAD(6, at + 2 * a->vec_block, bytes);
        AMP_AMX_DOT(2, 4, 6);
      }
      if (vectors > 3) {
        AMP_AMX_LOAD(7, at + 3 * a->vec_block, bytes);
        AMP_AMX_DOT(3, 4, 7);
      }
    }
  }
  AMP_AMX_STORE(0, sums[0][0], sizeof sums[0][0]);
  AMP_AMX_STORE(1, sums[1][0], sizeof sums[0][0]);
  AMP_AMX_STORE(2, sums[2][0], sizeof sums[0][0]);
  AMP_AMX_STORE(3, sums[3][0], sizeof sums[0][0]);
  for (int v = 0; v < vectors; v++)
    for (int i = 0; i < AMP_BLOCK; i++) {
      float *to = sum + i * a->outs + v * AMP_WIDE;
      amp_v_store(to, amp_v_load(to) + amp_v_load(sums[v][i]));
    }
}

AMP_FN void amp_grad_amx(const AmpGradTile *a, const float *unit, const float *vec, float *sum,
                         int vectors) {
  const int64_t whole = a->cols - a->cols % AMP_AMX_ROWS;
  if (whole)
    amp_grad_amx_columns(a, unit, vec, sum, vectors, 0, whole, AMP_AMX_ROWS);
  if (whole < a->cols)
    amp_grad_amx_columns(a, unit, vec, sum, vectors, whole, a->cols, (int)(a->cols - whole));
}

#endif
#endif
