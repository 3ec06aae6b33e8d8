/* The register tile of a filter's gradient: some channels of x times some vectors of channels of
 * dy, for one tap. Its sum over the given results starts from 0 and is then added to `sum`. An
 * element is a float, or a pair of bf16 where the CPU multiplies those. */
#ifndef AMP_CONV_GRAD_TILE_H
#define AMP_CONV_GRAD_TILE_H

#include "codegen/text/cpu/conv_grad_amx.h"

/* Memory that is read later is fetched meanwhile, for each result from so many bytes further on. */
typedef struct AmpGradAhead {
  const char *at;
  int64_t step;
} AmpGradAhead;

AMP_INLINE AmpV amp_grad_product(AmpV a, AmpV b, AmpV sum, const int pairs) {
#ifdef __AVX512BF16__
  if (pairs)
    return amp_v_dot(a, b, sum);
#endif
  (void)pairs;
  return amp_v_fma(a, b, sum);
}

/* One result: adds the products of its elements to the sums. */
AMP_INLINE void amp_grad_result(AmpV s[16][4], const AmpGradTile *a, const float *x,
                                const float *dy, const int ins, const int vectors,
                                const int pairs) {
  AmpV b[4];
  AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++)
    b[v] = amp_v_load(dy + v * AMP_WIDE / AMP_BLOCK * a->dy_block + v * AMP_WIDE % AMP_BLOCK);
  AMP_UNROLL(16)
  for (int i = 0; i < ins; i++) {
    const AmpV q = amp_v_all(((const AmpElement *)x)[i]);
    AMP_UNROLL(4)
    for (int v = 0; v < vectors; v++)
      s[i][v] = amp_grad_product(q, b[v], s[i][v], pairs);
  }
}

AMP_INLINE void amp_grad_tile(const AmpGradTile *a, const float *restrict x,
                              const float *restrict dy, float *restrict sum, AmpGradAhead ahead,
                              const int ins, const int vectors, const int pairs) {
  AmpV s[16][4];
  AMP_UNROLL(16)
  for (int i = 0; i < ins; i++)
    AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++)
    s[i][v] = amp_v_all(0);
  for (int64_t n = 0; n < a->images; n++)
    for (int64_t r = 0; r < a->rows; r++) {
      const float *from = x + n * a->x_image + r * a->x_row;
      const float *by = dy + n * a->dy_image + r * a->dy_row;
      AMP_UNROLL_TWICE
      for (int64_t c = 0; c < a->cols; c++, from += a->x_col, by += a->dy_col) {
        if (vectors > 1) { /* else there are more loads than products already */
          __builtin_prefetch(ahead.at, 0, 2);
          ahead.at += ahead.step;
        }
        amp_grad_result(s, a, from, by, ins, vectors, pairs);
      }
    }
  AMP_UNROLL(16)
  for (int i = 0; i < ins; i++)
    AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++) {
    float *to = sum + i * a->outs + v * AMP_WIDE;
    amp_v_store(to, amp_v_load(to) + s[i][v]);
  }
}

/* The tiles that fit the registers: channels of x, vectors of dy. */
#if defined __AVX512F__
#define AMP_GRAD_TILES(T)                                                                          \
  T(5, 4)                                                                                          \
  T(4, 4)                                                                                          \
  T(3, 4) T(1, 4) T(8, 2) T(4, 2) T(3, 2) T(1, 2) T(16, 1) T(9, 1) T(8, 1) T(4, 1) T(3, 1) T(1, 1)
#else
#define AMP_GRAD_TILES(T) T(6, 2) T(4, 2) T(3, 2) T(1, 2) T(8, 1) T(3, 1) T(1, 1)
#endif

typedef void AmpGradTileFn(const AmpGradTile *a, const float *x, const float *dy, float *sum,
                           AmpGradAhead ahead);
typedef struct AmpGradTileRow {
  int ins, vectors;
  AmpGradTileFn *run, *pairs; /* of pairs of bf16 */
} AmpGradTileRow;

#define AMP_GRAD_TILE_FN(name, i, v, pairs)                                                        \
  AMP_FN void name##i##x##v(const AmpGradTile *a, const float *x, const float *dy, float *sum,     \
                            AmpGradAhead ahead) {                                                  \
    amp_grad_tile(a, x, dy, sum, ahead, i, v, pairs);                                              \
  }
#ifdef __AVX512BF16__
#define AMP_GRAD_TILE(i, v)                                                                        \
  AMP_GRAD_TILE_FN(amp_grad_tile_, i, v, 0) AMP_GRAD_TILE_FN(amp_grad_tile_pairs_, i, v, 1)
#define AMP_GRAD_TILE_ROW(i, v) {i, v, amp_grad_tile_##i##x##v, amp_grad_tile_pairs_##i##x##v},
#else
#define AMP_GRAD_TILE(i, v)     AMP_GRAD_TILE_FN(amp_grad_tile_, i, v, 0)
#define AMP_GRAD_TILE_ROW(i, v) {i, v, amp_grad_tile_##i##x##v, NULL},
#endif

AMP_GRAD_TILES(AMP_GRAD_TILE)
static const AmpGradTileRow amp_grad_tiles[] = {AMP_GRAD_TILES(AMP_GRAD_TILE_ROW)};
enum { AMP_N_GRAD_TILES = sizeof amp_grad_tiles / sizeof *amp_grad_tiles };

#ifdef __AVX512BF16__
/* Whole blocks of pairs, where the CPU has AMX. */
#define AMP_GRAD_AMX_TILE(v)                                                                       \
  AMP_FN void amp_grad_amx_##v(const AmpGradTile *a, const float *x, const float *dy, float *sum,  \
                               AmpGradAhead ahead) {                                               \
    (void)ahead;                                                                                   \
    amp_grad_amx(a, x, dy, sum, v);                                                                \
  }
#define AMP_GRAD_AMX_ROW(v)   {AMP_BLOCK, v, NULL, amp_grad_amx_##v},
#define AMP_GRAD_AMX_TILES(T) T(1) T(2) T(3) T(4)
AMP_GRAD_AMX_TILES(AMP_GRAD_AMX_TILE)
static const AmpGradTileRow amp_grad_amx_tiles[] = {AMP_GRAD_AMX_TILES(AMP_GRAD_AMX_ROW)};
#endif

/* The tiles of one block of channels of x and one group of channels of dy. */
typedef struct AmpGradSteps {
  int n;
  struct {
    int in, out;
    AmpGradTileFn *run;
  } step[AMP_BLOCK * AMP_GRAD_GROUP / AMP_WIDE];
} AmpGradSteps;

/* The tile for the next of n channels of x and m vectors of dy: as many vectors as fit, and equal
 * shares of x. */
AMP_FN const AmpGradTileRow *amp_grad_step(int n, int m) {
  const AmpGradTileRow *best = NULL;
  for (int t = 0; t < AMP_N_GRAD_TILES; t++) {
    const AmpGradTileRow *row = &amp_grad_tiles[t];
    if (row->vectors > m || (best && row->vectors < best->vectors))
      continue;
    if (!best) /* the largest of its vectors comes first */
      n = (n + (n + row->ins - 1) / row->ins - 1) / ((n + row->ins - 1) / row->ins);
    if (!best || best->ins > n)
      best = row;
  }
  return best;
}

/* For n channels of x and m of dy. */
AMP_FN AmpGradSteps amp_grad_steps(int n, int m, int pairs) {
  AmpGradSteps s = {0};
  const int vectors = (m + AMP_WIDE - 1) / AMP_WIDE;
  for (int v = 0, wide = 0; v < vectors; v += wide)
    for (int i = 0, high = 0; i < n; i += high) {
      const AmpGradTileRow *best = amp_grad_step(n - i, vectors - v);
#ifdef __AVX512BF16__
      if (amp_amx && pairs && n == AMP_BLOCK)
        best = &amp_grad_amx_tiles[amp_least(vectors - v, AMP_AMX_SUMS) - 1];
#endif
      s.step[s.n].in = i;
      s.step[s.n].out = v * AMP_WIDE;
      s.step[s.n++].run = pairs ? best->pairs : best->run;
      wide = best->vectors;
      high = best->ins;
    }
  return s;
}

#endif
