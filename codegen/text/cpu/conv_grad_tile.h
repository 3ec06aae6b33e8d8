/* The register tile of a filter's gradient: some units, which are channels of x or dy, times some
 * vectors of channels of the other one, for one tap, or `each` units for each of several taps. Its
 * sum over the given results starts from 0 and is then added to `sum`. An element is a float, or a
 * pair of bf16 where the CPU multiplies those. */
#ifndef AMP_CONV_GRAD_TILE_H
#define AMP_CONV_GRAD_TILE_H

#include "codegen/text/cpu/conv_grad_amx.h"

/* Memory that a register tile prefetches: at `at` with its first result, and `step` bytes further
 * on with each further one. */
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
AMP_INLINE void amp_grad_result(AmpV s[16][4], const AmpGradTile *a, const float *unit,
                                const float *vec, const int units, const int each,
                                const int vectors, const int pairs) {
  AmpV b[4];
  AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++)
    b[v] = amp_v_load(vec + v * AMP_WIDE / AMP_BLOCK * a->vec_block + v * AMP_WIDE % AMP_BLOCK);
  AMP_UNROLL(16)
  for (int i = 0; i < units; i++) {
    const AmpV q = amp_v_all(((const AmpElement *)unit)[i / each * a->unit_row + i % each]);
    AMP_UNROLL(4)
    for (int v = 0; v < vectors; v++)
      s[i][v] = amp_grad_product(q, b[v], s[i][v], pairs);
  }
}

/* Computes so many register tiles, whose vectors follow one another. */
AMP_INLINE void amp_grad_tile(const AmpGradTile *a, const float *restrict unit,
                              const float *restrict vec, float *restrict sum, AmpGradAhead ahead,
                              int tiles, const int units, const int each, const int vectors,
                              const int pairs) {
  const int width = vectors * AMP_WIDE;
  for (; tiles > 0; tiles--, vec += width / AMP_BLOCK * a->vec_block, sum += width) {
    AmpV s[16][4];
    AMP_UNROLL(16)
    for (int i = 0; i < units; i++)
      AMP_UNROLL(4)
    for (int v = 0; v < vectors; v++)
      s[i][v] = amp_v_all(0);
    for (int64_t n = 0; n < a->images; n++)
      for (int64_t r = 0; r < a->rows; r++) {
        const float *from = unit + n * a->unit_image + r * a->unit_row;
        const float *by = vec + n * a->vec_image + r * a->vec_row;
        AMP_UNROLL_BY(AMP_UNROLL_FACTOR)
        for (int64_t c = 0; c < a->cols; c++, from += a->unit_col, by += a->vec_col) {
          if (vectors > 1 || each < units) { /* else there are more loads than products already */
            __builtin_prefetch(ahead.at, 0, 2);
            ahead.at += ahead.step;
          }
          amp_grad_result(s, a, from, by, units, each, vectors, pairs);
        }
      }
    AMP_UNROLL(16)
    for (int i = 0; i < units; i++)
      AMP_UNROLL(4)
    for (int v = 0; v < vectors; v++) {
      float *to = sum + (i / each * AMP_BLOCK + i % each) * a->outs + v * AMP_WIDE;
      amp_v_store(to, amp_v_load(to) + s[i][v]);
    }
  }
}

/* The tiles that fit the registers: units, vectors. Programs of pairs are smaller without 6 x 4. */
#ifdef AMPCC_PAIRS_PAY
#define AMP_GRAD_LARGEST(T)
#else
#define AMP_GRAD_LARGEST(T) T(6, 4)
#endif
#if defined __AVX512F__
#define AMP_GRAD_TILES(T)                                                                          \
  AMP_GRAD_LARGEST(T)                                                                              \
  T(5, 4)                                                                                          \
  T(4, 4)                                                                                          \
  T(3, 4) T(1, 4) T(8, 2) T(4, 2) T(3, 2) T(1, 2) T(16, 1) T(9, 1) T(8, 1) T(4, 1) T(3, 1) T(1, 1)
#else
#define AMP_GRAD_TILES(T) T(6, 2) T(5, 2) T(4, 2) T(3, 2) T(1, 2) T(8, 1) T(3, 1) T(1, 1)
#endif

typedef void AmpGradTileFn(const AmpGradTile *a, const float *unit, const float *vec, float *sum,
                           AmpGradAhead ahead, int tiles);
typedef struct AmpGradTileRow {
  int units, vectors;
  AmpGradTileFn *run, *pairs; /* of pairs of bf16 */
} AmpGradTileRow;

#define AMP_GRAD_TILE_FN(name, i, v, pairs)                                                        \
  AMP_FN void name##i##x##v(const AmpGradTile *a, const float *unit, const float *vec, float *sum, \
                            AmpGradAhead ahead, int tiles) {                                       \
    amp_grad_tile(a, unit, vec, sum, ahead, tiles, i, i, v, pairs);                                \
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
  AMP_FN void amp_grad_amx_##v(const AmpGradTile *a, const float *unit, const float *vec,          \
                               float *sum, AmpGradAhead ahead, int tiles) {                        \
    (void)ahead, (void)tiles; /* amp_grad_steps makes a step of each tile */                       \
    amp_grad_amx(a, unit, vec, sum, v);                                                            \
  }
#define AMP_GRAD_AMX_ROW(v)   {AMP_BLOCK, v, NULL, amp_grad_amx_##v},
#define AMP_GRAD_AMX_TILES(T) T(1) T(2) T(3) T(4)
AMP_GRAD_AMX_TILES(AMP_GRAD_AMX_TILE)
static const AmpGradTileRow amp_grad_amx_tiles[] = {AMP_GRAD_AMX_TILES(AMP_GRAD_AMX_ROW)};
#endif

/* Three units of each of the taps of three rows, with stride 1, and one vector: fewer sums would
 * wait for one another. They fetch vectors that lie AHEAD bytes further on. */
AMP_FN void amp_grad_three_rows(const AmpGradTile *a, const float *unit, const float *vec,
                                float *sum) {
  enum { AHEAD = 8192 };
  const AmpGradAhead ahead = {(const char *)vec + AHEAD, a->vec_col * (int64_t)sizeof *vec};
  amp_grad_tile(a, unit, vec, sum, ahead, 1, 9, 3, 1, 0);
}

/* The tiles of one block of units and one group of vectors. */
typedef struct AmpGradSteps {
  int n;
  struct {
    int unit, vec, tiles; /* so many, whose vectors follow one another */
    int fetches;          /* do they fetch AmpGradAhead? */
    AmpGradTileFn *run;
  } step[AMP_BLOCK * AMP_GRAD_GROUP / AMP_WIDE];
} AmpGradSteps;

/* The tile for the next of n units and m vectors: as many vectors as fit, and equal shares of the
 * units. */
AMP_FN const AmpGradTileRow *amp_grad_step(int n, int m) {
  const AmpGradTileRow *best = NULL;
  for (int t = 0; t < AMP_N_GRAD_TILES; t++) {
    const AmpGradTileRow *row = &amp_grad_tiles[t];
    if (row->vectors > m || (best && row->vectors < best->vectors))
      continue;
    if (!best) /* the largest of its vectors comes first */
      n = (int)amp_even(n, row->units);
    if (!best || best->units > n)
      best = row;
  }
  return best;
}

/* The tiles for n units and m channels of vectors. Those that are as wide as some whole blocks are
 * one step together. */
AMP_FN AmpGradSteps amp_grad_steps(int n, int m, int pairs) {
  AmpGradSteps s = {0};
  const int vectors = (int)amp_pieces(m, AMP_WIDE);
  for (int v = 0, wide = 0; v < vectors; v += wide)
    for (int i = 0, high = 0; i < n; i += high) {
      const AmpGradTileRow *best = amp_grad_step(n - i, vectors - v);
      int tiles = best->vectors * AMP_WIDE % AMP_BLOCK ? 1 : (vectors - v) / best->vectors;
      s.step[s.n].fetches = best->vectors > 1;
#ifdef __AVX512BF16__
      if (amp_amx && pairs && n == AMP_BLOCK) {
        best = &amp_grad_amx_tiles[amp_least(vectors - v, AMP_AMX_SUMS) - 1];
        s.step[s.n].fetches = 0;
        tiles = 1;
      }
#endif
      s.step[s.n].unit = i;
      s.step[s.n].vec = v * AMP_WIDE;
      s.step[s.n].tiles = tiles;
      s.step[s.n++].run = pairs ? best->pairs : best->run;
      wide = tiles * best->vectors;
      high = best->units;
    }
  return s;
}

#endif
