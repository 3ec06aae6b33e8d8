/* The register tile of a filter's gradient by the matrix registers of AMX: a whole block of units
 * times some vectors, of pairs of bf16. It takes the place of those in conv_grad_tile.h and reads
 * what they read. One product of matrices is summed over 16 results; for that, the units of these
 * results are transposed first. */
#ifndef AMP_CONV_GRAD_AMX_H
#define AMP_CONV_GRAD_AMX_H

#include "codegen/text/cpu/amx.h"
#include "codegen/text/cpu/conv_filter.h"

#ifdef __AVX512BF16__

/* The shapes for a block of units where one product is summed over n results. */
#define AMP_GRAD_AMX_SHAPE(n) AMP_AMX_MATRICES(AMP_BLOCK, n)
static const AmpAmxShape amp_grad_amx_shapes[] = {
    AMP_GRAD_AMX_SHAPE(1),  AMP_GRAD_AMX_SHAPE(2),  AMP_GRAD_AMX_SHAPE(3),  AMP_GRAD_AMX_SHAPE(4),
    AMP_GRAD_AMX_SHAPE(5),  AMP_GRAD_AMX_SHAPE(6),  AMP_GRAD_AMX_SHAPE(7),  AMP_GRAD_AMX_SHAPE(8),
    AMP_GRAD_AMX_SHAPE(9),  AMP_GRAD_AMX_SHAPE(10), AMP_GRAD_AMX_SHAPE(11), AMP_GRAD_AMX_SHAPE(12),
    AMP_GRAD_AMX_SHAPE(13), AMP_GRAD_AMX_SHAPE(14), AMP_GRAD_AMX_SHAPE(15), AMP_GRAD_AMX_SHAPE(16)};

/* Adds to `sum` what the results in columns first..last-1 give, n of them with each product. */
AMP_AMX_FN void amp_grad_amx_columns(const AmpGradTile *a, const float *unit, const float *vec,
                                     float *sum, int vectors, int64_t first, int64_t last, int n) {
  float transposed[AMP_BLOCK][AMP_AMX_ROWS], sums[AMP_AMX_SUMS][AMP_BLOCK][AMP_WIDE];
  const int64_t bytes = a->vec_col * (int64_t)sizeof *vec;
  amp_amx_use(&amp_grad_amx_shapes[n - 1]);
  AMP_AMX_CLEAR();
  for (int64_t i = 0; i < a->images * a->rows; i++) {
    const int64_t image = i / a->rows, row = i % a->rows;
    const float *from = unit + image * a->unit_image + row * a->unit_row;
    const float *by = vec + image * a->vec_image + row * a->vec_row;
    for (int64_t c = first; c < last; c += n) {
      const float *at = by + c * a->vec_col;
      amp_transpose(transposed[0], AMP_AMX_ROWS, from + c * a->unit_col, a->unit_col, n, AMP_BLOCK);
      AMP_AMX_LOAD(4, transposed[0], sizeof transposed[0]);
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
