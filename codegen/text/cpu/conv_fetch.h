/* Prefetching for the loop behind a convolution. While the convolution computes a tile, its
 * register tiles prefetch what the loop will read of other tensors for the results of the tile. */
#ifndef AMP_CONV_FETCH_H
#define AMP_CONV_FETCH_H

#include "codegen/text/cpu/conv_tile.h"

/* The calls that compute some register tiles each take turns: `turns` of every AMP_FETCH_TURNS
 * prefetch for the loop, and the others for the convolution itself. */
enum { AMP_FETCHES = 8, AMP_FETCH_TURNS = 64 };
typedef struct AmpFetch {
  const char *at[AMP_FETCHES]; /* where the elements for the tile begin, of each tensor */
  int n, left;                 /* tensors; those that remain, of which the last is next */
  int64_t bytes;               /* to prefetch of each tensor */
  int64_t each, step;          /* bytes that a register tile prefetches in its turn, and with each
                                  element that it reads: at most AMP_FETCH_LINES lines */
  int64_t now;                 /* bytes of the current tensor that are prefetched already */
  int64_t turns, turn;         /* `turn` grows by `turns` with each call; one whose `turn` reaches
                                  AMP_FETCH_TURNS prefetches */
} AmpFetch;

/* Shares the prefetching out to so many register tiles, which are to prefetch `other` bytes for the
 * convolution as well. */
AMP_INLINE void amp_fetch_share(AmpFetch *f, int64_t tiles, int64_t other) {
  const int64_t all = f->n * f->bytes;
  f->left = f->n;
  f->turns = all ? amp_pieces(all * AMP_FETCH_TURNS, all + other) : 0;
  f->each = amp_pieces(all * AMP_FETCH_TURNS, tiles * f->turns + 1);
}

/* Says what register tiles that read so many elements prefetch for the loop behind. Returns whether
 * it is their turn. */
AMP_INLINE int amp_fetch_next(AmpFetch *f, int64_t elements, AmpConvTile *tile) {
  if (!f->left || (f->turn += f->turns) < AMP_FETCH_TURNS)
    return 0;
  f->turn -= AMP_FETCH_TURNS;
  tile->next = f->at[f->left - 1] + f->now;
  tile->next_step = f->step;
  f->now += f->step * elements;
  if (f->now >= f->bytes) {
    f->now = 0;
    f->left--;
  }
  return 1;
}

#endif
