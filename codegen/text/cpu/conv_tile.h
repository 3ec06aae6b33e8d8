/* The register tile of convolutions, their data gradients and matrix products: some neighbouring
 * results times the channels of a group, all in registers while the channels that are read and the
 * taps of the window pass by. Each result is one sum in f32, in the order block, tap, channel,
 * whatever tile computes it. */
#ifndef AMP_CONV_TILE_H
#define AMP_CONV_TILE_H

#include "codegen/text/cpu/conv_filter.h"

/* Taps of the window that lie side by side in the image and in the packed filter: where the first
 * one reads, its number in the filter, and how many there are. */
typedef struct AmpTap {
  int64_t x, filter, run;
} AmpTap;

/* Of a tile of several remainders together (conv_four.h). */
typedef struct AmpFourTap AmpFourTap;

/* While a convolution computes, its register tiles prefetch what the loop behind it will read
 * (AmpFetch in conv_fetch.h): so many cache lines with each element that a tile reads. A tile of
 * AVX-512 has some four times as many results for each element as one of AVX2, so that one line
 * would not be enough: data gradients with an addition behind would take 1.05 times as long
 * (ResNet-50, f32, batch 8, Zen 5). */
#if defined __AVX512F__
enum { AMP_FETCH_LINES = 2 };
#else
enum { AMP_FETCH_LINES = 1 };
#endif

/* What the tiles of an image have in common. The later half of a tile with an even number of
 * results may lie elsewhere than behind the earlier half, as in the next row: `far` is the distance
 * between what their first results read. */
typedef struct AmpConvTile {
  const AmpTap *tap;
  int64_t taps, filter_taps; /* used here; of the whole filter */
  int64_t channels, run;     /* that are read; of these, that lie side by side: a block, or all */
  int64_t step, block, far;  /* in the image: to the next result, block; to the later half */
  int64_t y_step, y_far;     /* in the result */
  const void *next;          /* AMP_FETCH_LINES lines to fetch with each element that is read, */
  int64_t next_step;         /* so many bytes from the one before */
  int64_t x_tile, y_tile;    /* from a tile to the next: in the image, and bytes of the result */
  int64_t group;             /* in the packed filter: to the next group */
  int narrow;                /* results of pairs are stored as bf16 */
  const AmpFourTap *four; /* of all remainders together, or NULL; where each lies in the result */
  int64_t four_y[4];
} AmpConvTile;

AMP_INLINE AmpV amp_conv_tile_add(AmpV sum, AmpV x, AmpV w, const int pairs) {
#ifdef __AVX512BF16__
  if (pairs)
    return amp_v_dot(x, w, sum);
#endif
  (void)pairs;
  return amp_v_fma(x, w, sum);
}

/* Where result p of a tile of so many lies, in elements from the first. */
AMP_INLINE int64_t amp_tile_result_at(const AmpConvTile *a, int p, const int pixels) {
  const int near = pixels % 2 ? pixels : pixels / 2;
  return p < near ? p * a->y_step : a->y_far + (p - near) * a->y_step;
}

/* Stores the sums of one result. */
AMP_INLINE void amp_conv_tile_store(const AmpConvTile *a, void *y, int64_t at, const AmpV *sum,
                                    const int vectors, const int pairs) {
#ifdef __AVX512BF16__
  if (pairs && a->narrow) {
    amp_v_store_bf16((uint16_t *)y + at, sum, vectors);
    return;
  }
#endif
  (void)a, (void)pairs;
  AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++)
    amp_v_store((float *)y + at + v * AMP_WIDE, sum[v]);
}

/* Fetches the place of a result, which is written long after. */
AMP_INLINE void amp_conv_tile_fetch(const AmpConvTile *a, const void *y, int64_t at,
                                    const int vectors, const int pairs) {
  if (pairs && a->narrow) {
    __builtin_prefetch((const uint16_t *)y + at, 1);
    return;
  }
  AMP_UNROLL(4)
  for (int i = 0; i < vectors * AMP_WIDE; i += AMP_LINE / (int)sizeof(float))
    __builtin_prefetch((const float *)y + at + i, 1);
}

/* Adds the products of one element of each result with the filter at w to the sums. The elements of
 * results that follow one another are `step` apart, from x on and for the later half from far_x. */
AMP_INLINE void amp_conv_tile_element(AmpV sum[16][4], const AmpElement *x, const AmpElement *far_x,
                                      int64_t step, const float *w, int64_t group, const int pixels,
                                      const int vectors, const int pairs) {
  const int near = pixels % 2 ? pixels : pixels / 2;
  AmpV b[4];
  AMP_UNROLL(4)
  for (int v = 0; v < vectors; v++)
    b[v] = amp_v_load(w + v / 2 * group + v % 2 * AMP_WIDE);
  AMP_UNROLL(16)
  for (int p = 0; p < pixels; p++) {
    const AmpV q = amp_v_all(p < near ? x[p * step] : far_x[(p - near) * step]);
    AMP_UNROLL(4)
    for (int v = 0; v < vectors; v++)
      sum[p][v] = amp_conv_tile_add(sum[p][v], q, b[v], pairs);
  }
}

/* Computes so many register tiles, one behind the other. */
AMP_INLINE void amp_conv_tile(const AmpConvTile *a, const float *restrict x,
                              const float *restrict w, void *restrict y, int64_t tiles,
                              const int pixels, const int vectors, const int pairs) {
  const int fetches = pixels >= 6 || pixels * vectors >= 12,
            early = fetches && vectors >= 2; /* smaller: over too soon */
  const int64_t step = a->step, next_step = a->next_step, group = a->group;
  const unsigned char *next = (const unsigned char *)a->next;
  for (; tiles > 0; tiles--, x += a->x_tile, y = (unsigned char *)y + a->y_tile) {
    AmpV sum[16][4];
    AMP_UNROLL(16)
    for (int p = 0; p < pixels && early; p++)
      amp_conv_tile_fetch(a, y, amp_tile_result_at(a, p, pixels), vectors, pairs);
    AMP_UNROLL(16)
    for (int p = 0; p < pixels; p++)
      AMP_UNROLL(4)
    for (int v = 0; v < vectors; v++)
      sum[p][v] = amp_v_all(0);
    const float *block = x, *filter = w;
    for (int64_t left = a->channels; left > 0; left -= a->run) {
      const int64_t n = left < a->run ? left : a->run;
      for (int64_t t = 0; t < a->taps; t++) {
        const AmpElement *near_x = block + a->tap[t].x, *far_x = near_x + a->far;
        const float *from = filter + a->tap[t].filter * n * AMP_OUTS;
        const int64_t each = n * a->tap[t].run;
        AMP_UNROLL_BY(AMP_UNROLL_FACTOR)
        for (int64_t i = 0; i < each; i++, from += AMP_OUTS, near_x++, far_x++) {
          AMP_FORGET(near_x, far_x);
          if (fetches) {
            AMP_UNROLL(2)
            for (int l = 0; l < AMP_FETCH_LINES; l++)
              __builtin_prefetch(next + l * AMP_LINE);
            next += next_step;
          }
          amp_conv_tile_element(sum, near_x, far_x, step, from, group, pixels, vectors, pairs);
        }
      }
      block += a->block;
      filter += a->filter_taps * a->run * AMP_OUTS;
    }
    AMP_UNROLL(16)
    for (int p = 0; p < pixels; p++)
      amp_conv_tile_store(a, y, amp_tile_result_at(a, p, pixels), sum[p], vectors, pairs);
  }
}

/* The tiles that fit the registers, the largest first: how many results, and vectors of channels.
 * GCC keeps 14 x 2 in the 32 registers of AVX-512 and clang does not. */
#if defined __AVX512F__ && !defined __clang__
#define AMP_CONV_TILES(T) T(14, 2) T(8, 2) T(7, 2) T(4, 2) T(2, 2) T(1, 2)
#elif defined __AVX512F__
#define AMP_CONV_TILES(T) T(8, 2) T(7, 2) T(4, 2) T(2, 2) T(1, 2)
#else
#define AMP_CONV_TILES(T) T(6, 2) T(4, 2) T(2, 2) T(1, 2)
#endif
/* The same for a group of which only the first vector is used. */
#if defined __AVX512F__
#define AMP_CONV_THIN_TILES(T) T(16, 1) T(14, 1) T(8, 1) T(4, 1) T(2, 1) T(1, 1)
#else
#define AMP_CONV_THIN_TILES(T) T(14, 1) T(8, 1) T(4, 1) T(2, 1) T(1, 1)
#endif

/* Those of floats. Where convolutions are of pairs there are only a few, as the program is to stay
 * small. Where there are 32 registers, there are those of two neighbouring groups together, of four
 * vectors: 6 x 4 take 10 loads for 24 products, and 14 x 2 take 16 for 28. Another program that
 * shares the core leaves less of the loads than of the products. */
#if defined AMPCC_PAIRS_PAY
#define AMP_CONV_F32_TILES(T)      T(8, 2) T(4, 2) T(2, 2) T(1, 2)
#define AMP_CONV_THIN_F32_TILES(T) T(8, 1) T(4, 1) T(2, 1) T(1, 1)
#else
#define AMP_CONV_F32_TILES      AMP_CONV_TILES
#define AMP_CONV_THIN_F32_TILES AMP_CONV_THIN_TILES
#if defined __AVX512F__
#define AMP_CONV_WIDE_TILES(T) T(6, 4) T(5, 4) T(4, 4) T(3, 4) T(2, 4) T(1, 4)
#endif
#endif

typedef void AmpConvTileFn(const AmpConvTile *a, const float *x, const float *w, void *y,
                           int64_t tiles);
typedef struct AmpConvTileRow {
  int pixels;
  AmpConvTileFn *run;
  int amx; /* is it of conv_amx.h, and AMP_AMX_SPEED times as fast? */
} AmpConvTileRow;

#define AMP_CONV_TILE(p, v)                                                                        \
  AMP_FN void amp_conv_tile_##p##x##v(const AmpConvTile *a, const float *x, const float *w,        \
                                      void *y, int64_t tiles) {                                    \
    amp_conv_tile(a, x, w, y, tiles, p, v, 0);                                                     \
  }
#define AMP_CONV_TILE_ROW(p, v) {p, amp_conv_tile_##p##x##v, 0},
#define AMP_CONV_PAIR_TILE(p, v)                                                                   \
  AMP_FN void amp_conv_pair_tile_##p##x##v(const AmpConvTile *a, const float *x, const float *w,   \
                                           void *y, int64_t tiles) {                               \
    amp_conv_tile(a, x, w, y, tiles, p, v, 1);                                                     \
  }
#define AMP_CONV_PAIR_TILE_ROW(p, v) {p, amp_conv_pair_tile_##p##x##v, 0},

AMP_CONV_F32_TILES(AMP_CONV_TILE)
AMP_CONV_THIN_F32_TILES(AMP_CONV_TILE)
#ifdef AMP_CONV_WIDE_TILES
AMP_CONV_WIDE_TILES(AMP_CONV_TILE)
static const AmpConvTileRow amp_conv_wide_tiles[] = {AMP_CONV_WIDE_TILES(AMP_CONV_TILE_ROW){0}};
#endif
static const AmpConvTileRow amp_conv_tiles[] = {AMP_CONV_F32_TILES(AMP_CONV_TILE_ROW){0}};
static const AmpConvTileRow amp_conv_thin_tiles[] = {AMP_CONV_THIN_F32_TILES(AMP_CONV_TILE_ROW){0}};
#ifdef __AVX512BF16__
AMP_CONV_TILES(AMP_CONV_PAIR_TILE)
AMP_CONV_THIN_TILES(AMP_CONV_PAIR_TILE)
static const AmpConvTileRow amp_conv_pair_tiles[] = {AMP_CONV_TILES(AMP_CONV_PAIR_TILE_ROW){0}};
static const AmpConvTileRow amp_conv_thin_pair_tiles[] = {
    AMP_CONV_THIN_TILES(AMP_CONV_PAIR_TILE_ROW){0}};
#endif

/* How runs of results are cut into register tiles. A tile of few sums takes as long as one of more,
 * as it waits for its own sums. A tile of an even number of results can also compute one half of
 * them in each of two rows. */
enum { AMP_CUT_MOST = 32 };
typedef struct AmpCut {
  const AmpConvTileRow *row; /* all tiles */
  uint8_t next[2]
              [AMP_CUT_MOST + 1]; /* of one row, of two: by the length of what is left, which tile
                                        comes next */
  uint8_t two[AMP_CUT_MOST + 1];  /* by length: are two rows at once faster */
} AmpCut;

enum { AMP_CUT_SUMS = 8, AMP_CUT_PAIR_SUMS = 12, AMP_CUT_WIDE_SUMS = 12 }; /* that do not wait */
/* AMX adds 512 products of bf16 in a cycle, vectors 64. */
enum { AMP_AMX_SPEED = 8 };
AMP_FN AmpCut amp_cut(const AmpConvTileRow *row, int vectors, int enough) {
  enum { NEVER = 1 << 20 };
  AmpCut cut = {.row = row, .next = {{0}}};
  int cost[2][AMP_CUT_MOST + 1] = {{0}};
  for (int n = 1; n <= AMP_CUT_MOST; n++) {
    for (int two = 0; two < 2; two++) {
      cost[two][n] = NEVER;
      for (int i = 0; row[i].run; i++) {
        const int sums = row[i].pixels * vectors / (row[i].amx ? AMP_AMX_SPEED : 1);
        const int width = row[i].pixels >> two;
        if (width > n || width << two != row[i].pixels)
          continue;
        const int c = 2 * (sums < enough ? enough : sums) + 1 + cost[two][n - width];
        if (c < cost[two][n]) {
          cost[two][n] = c;
          cut.next[two][n] = (uint8_t)i;
        }
      }
    }
    cut.two[n] = cost[1][n] < 2 * cost[0][n];
  }
  return cut;
}

AMP_INLINE const AmpConvTileRow *amp_cut_next(const AmpCut *cut, int two, int64_t left) {
  return &cut->row[left > AMP_CUT_MOST ? 0 : cut->next[two][left]];
}
AMP_INLINE int amp_cut_two(const AmpCut *cut, int64_t n) {
  return n <= AMP_CUT_MOST && cut->two[n];
}

#endif
