/* The register tile of a filter's gradient: some channels of x times some vectors of channels of
 * dy, for one tap. Its sum over the given results starts from 0 and is then added to `sum`. */
#ifndef AMP_CONV_GRAD_TILE_H
#define AMP_CONV_GRAD_TILE_H

#include "codegen/text/cpu/conv_image.h"

/* AMP_GRAD_OUTS: channels of dy in a group of the gradient, and in a row of `sum`. */
#if defined __AVX512F__
enum { AMP_GRAD_OUTS = 4 * AMP_WIDE };
#else
enum { AMP_GRAD_OUTS = 2 * AMP_WIDE };
#endif

typedef struct AmpGradTile {
  int64_t rows, cols;
  int64_t x_row, x_col, dy_row, dy_col, dy_block; /* from one to the next */
} AmpGradTile;

AMP_INLINE void amp_grad_tile(const AmpGradTile *a, const float *restrict x,
                              const float *restrict dy, float *restrict sum, const int ins,
                              const int vectors) {
  AmpV s[16][4], b[4];
  AMP_UNROLL(16)
  for (int i = 0; i < ins; i++)
    AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++)
    s[i][v] = amp_v_all(0);
  for (int64_t r = 0; r < a->rows; r++, x += a->x_row, dy += a->dy_row) {
    const float *from = x, *by = dy;
    AMP_UNROLL_TWICE
    for (int64_t c = 0; c < a->cols; c++, from += a->x_col, by += a->dy_col) {
      AMP_UNROLL(4)
      for (int v = 0; v < vectors; v++)
        b[v] = amp_v_load(by + v * AMP_WIDE / AMP_BLOCK * a->dy_block + v * AMP_WIDE % AMP_BLOCK);
      AMP_UNROLL(16)
      for (int i = 0; i < ins; i++) {
        const AmpV q = amp_v_all(from[i]);
        AMP_UNROLL(4)
        for (int v = 0; v < vectors; v++)
          s[i][v] = amp_v_fma(q, b[v], s[i][v]);
      }
    }
  }
  AMP_UNROLL(16)
  for (int i = 0; i < ins; i++)
    AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++) {
    float *to = sum + i * AMP_GRAD_OUTS + v * AMP_WIDE;
    amp_v_store(to, amp_v_load(to) + s[i][v]);
  }
}

/* The tiles that fit the registers, the most vectors first: channels of x, vectors of dy. */
#if defined __AVX512F__
#define AMP_GRAD_TILES(T)                                                                          \
  T(4, 4) T(3, 4) T(1, 4) T(8, 2) T(4, 2) T(3, 2) T(1, 2) T(16, 1) T(8, 1) T(4, 1) T(3, 1) T(1, 1)
#else
#define AMP_GRAD_TILES(T) T(6, 2) T(4, 2) T(3, 2) T(1, 2)
#endif

typedef void AmpGradTileFn(const AmpGradTile *a, const float *x, const float *dy, float *sum);
typedef struct AmpGradTileRow {
  int ins, vectors;
  AmpGradTileFn *run;
} AmpGradTileRow;

#define AMP_GRAD_TILE(i, v)                                                                        \
  AMP_FN void amp_grad_tile_##i##x##v(const AmpGradTile *a, const float *x, const float *dy,       \
                                      float *sum) {                                                \
    amp_grad_tile(a, x, dy, sum, i, v);                                                            \
  }
#define AMP_GRAD_TILE_ROW(i, v) {i, v, amp_grad_tile_##i##x##v},

AMP_GRAD_TILES(AMP_GRAD_TILE)
static const AmpGradTileRow amp_grad_tiles[] = {AMP_GRAD_TILES(AMP_GRAD_TILE_ROW)};
enum { AMP_N_GRAD_TILES = sizeof amp_grad_tiles / sizeof *amp_grad_tiles };

/* The tile for the first of n channels of x and of m channels of dy: the fewest vectors that hold
 * these m. */
AMP_INLINE const AmpGradTileRow *amp_grad_tile_for(int n, int m) {
  const AmpGradTileRow *best = NULL;
  for (int i = 0; i < AMP_N_GRAD_TILES; i++) {
    const AmpGradTileRow *row = &amp_grad_tiles[i];
    if (row->ins <= n &&
        (row->vectors * AMP_WIDE >= m || row->vectors * AMP_WIDE == AMP_GRAD_OUTS) &&
        (!best || row->vectors < best->vectors))
      best = row;
  }
  return best;
}

#endif
