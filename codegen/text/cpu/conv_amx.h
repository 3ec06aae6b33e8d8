/* The register tiles of convolutions, of pairs of bf16, by the matrix registers of AMX. They take
 * the place of the larger tiles in conv_tile.h where at least one whole block of pairs is read, and
 * read what those read; but the order of their sums is AMX's own. */
#ifndef AMP_CONV_AMX_H
#define AMP_CONV_AMX_H

#include "codegen/text/cpu/amx.h"
#include "codegen/text/cpu/conv_tile.h"

#ifdef __AVX512BF16__

/* A copy of the last elements of a block, where they do not fill the rows of a register, with zeros
 * behind them: of the image, and of the filter. */
typedef struct AmpAmxRest {
  float x[2][AMP_AMX_ROWS][AMP_BLOCK], w[AMP_BLOCK][AMP_OUTS];
} AmpAmxRest;

AMP_FN void amp_amx_rest(AmpAmxRest *rest, const AmpElement *const x[2], int64_t step,
                         const float *w, int near, int64_t n) {
  const size_t bytes = (size_t)n * sizeof(float);
  __builtin_memset(rest, 0, sizeof *rest);
  for (int half = 0; half < 2; half++)
    for (int p = 0; p < near; p++)
      __builtin_memcpy(rest->x[half][p], x[half] + p * step, bytes);
  __builtin_memcpy(rest->w, w, AMP_OUTS * bytes);
}

/* A tile of 2 * `near` results and the channels of a group. `near` results that lie side by side
 * are the rows of one operand a, and as many from a->far on those of the other. */
AMP_AMX_FN void amp_conv_amx(const AmpConvTile *a, const float *x, const float *w, void *y,
                             const AmpAmxShape *shape) {
  const int near = shape->rows[0];
  float sums[2 * AMP_AMX_ROWS][AMP_OUTS];
  AmpAmxRest rest;
  amp_amx_use(shape);
  AMP_AMX_CLEAR();
  for (int64_t left = a->channels; left > 0; left -= AMP_BLOCK) {
    const int64_t n = left < AMP_BLOCK ? left : AMP_BLOCK;
    for (int64_t t = 0; t < a->taps; t++) {
      const AmpElement *in[2] = {x + a->tap[t].x, x + a->tap[t].x + a->far};
      const float *from = w + a->tap[t].filter * n * AMP_OUTS;
      for (int64_t more = n * a->tap[t].run; more > 0; more -= AMP_BLOCK) {
        const float *p = (const float *)in[0], *q = (const float *)in[1], *by = from;
        int64_t step = a->step;
        if (more < AMP_BLOCK) {
          amp_amx_rest(&rest, in, a->step, from, near, more);
          p = rest.x[0][0];
          q = rest.x[1][0];
          by = rest.w[0];
          step = AMP_BLOCK;
        }
        AMP_AMX_LOAD(4, p, step * 4);
        AMP_AMX_LOAD(5, q, step * 4);
        AMP_AMX_LOAD(6, by, sizeof rest.w[0]);
        AMP_AMX_LOAD(7, by + AMP_WIDE, sizeof rest.w[0]);
        AMP_AMX_DOT(0, 4, 6);
        AMP_AMX_DOT(1, 4, 7);
        AMP_AMX_DOT(2, 5, 6);
        AMP_AMX_DOT(3, 5, 7);
        in[0] += AMP_BLOCK;
        in[1] += AMP_BLOCK;
        from += AMP_BLOCK * AMP_OUTS;
      }
    }
    x += a->block;
    w += a->filter_taps * AMP_BLOCK * AMP_OUTS;
  }
  AMP_AMX_STORE(0, sums[0], sizeof sums[0]);
  AMP_AMX_STORE(1, sums[0] + AMP_WIDE, sizeof sums[0]);
  AMP_AMX_STORE(2, sums[near], sizeof sums[0]);
  AMP_AMX_STORE(3, sums[near] + AMP_WIDE, sizeof sums[0]);
  for (int p = 0; p < 2 * near; p++) {
    const AmpV sum[2] = {amp_v_load(sums[p]), amp_v_load(sums[p] + AMP_WIDE)};
    amp_conv_tile_store(a, y, amp_tile_result_at(a, p, 2 * near), sum, 2, 1);
  }
}

#define AMP_CONV_AMX_TILES(T) T(32) T(28) T(16) T(14)
#define AMP_CONV_AMX_TILE(pixels)                                                                  \
  AMP_FN void amp_conv_amx_##pixels(const AmpConvTile *a, const float *x, const float *w, void *y, \
                                    int64_t tiles) {                                               \
    static const AmpAmxShape shape = AMP_AMX_MATRICES(pixels / 2, AMP_BLOCK);                      \
    for (; tiles > 0; tiles--, x += a->x_tile, y = (unsigned char *)y + a->y_tile)                 \
      amp_conv_amx(a, x, w, y, &shape);                                                            \
  }
#define AMP_CONV_AMX_TILE_ROW(pixels) {pixels, amp_conv_amx_##pixels, 1},
AMP_CONV_AMX_TILES(AMP_CONV_AMX_TILE)
static const AmpConvTileRow amp_conv_amx_tiles[] = {AMP_CONV_AMX_TILES(AMP_CONV_AMX_TILE_ROW)
                                                        AMP_CONV_TILES(AMP_CONV_PAIR_TILE_ROW){0}};

#endif
#endif
