/* A convolution, its data gradient or a matrix product, by the method that was planned for it, and
 * the loop behind it. */
#ifndef AMP_CONV_RUN_H
#define AMP_CONV_RUN_H

#include "codegen/text/cpu/conv_calls.h"
#include "codegen/text/cpu/wino.h"
#include "codegen/text/cpu/wino_grad.h"

AMP_FN void amp_conv_direct(const AmprtRun *run, const AmpConvLoop *l, AmpConvPart *p,
                            int64_t first, int64_t last) {
  const int64_t end = amp_least(p->image + l->a->images, l->a->n);
  for (; p->image < end; p->image++)
    amp_conv_part(run, p, &l->cuts, first, last, l->bad);
}

/* Packs or transforms the filter, and chooses what computes the tiles. Returns how many tiles each
 * thread should have at least, or parts of tiles where there are fewer. */
AMP_FN int64_t amp_conv_prepare(const AmprtRun *run, AmpConvLoop *l) {
  const AmpConv *a = l->a;
  if (a->winograd && !amp_in_pairs(a)) {
    amp_wino_whole_filter(run, a);
    l->compute = amp_wino_tile;
    l->groups = amp_pieces(a->k, AMP_GROUP);
    return 1; /* each part transforms all that the tile reads */
  }
  l->bad = amp_pack_filter(run, a,
                           amp_leaves(&a->high, a->backward) || amp_leaves(&a->wide, a->backward));
  l->compute = amp_conv_direct;
  l->groups = amp_pieces(a->k, AMP_OUTS);
  return 4;
}

/* Computes one group. The loop behind it, if there is one, runs on each tile as soon as its results
 * are there or, where tiles are too few for the threads, when all results are. */
AMP_FN void amp_conv_one(const AmprtRun *run, AmpConvLoop *l) {
  const AmpConv *a = l->a;
  const int64_t threads = run->threads->count();
  if (a->wino_wave && !amp_in_pairs(a)) {
    amp_wino_waves(run, l);
    if (l->behind)
      amp_parallel(run, l->tiles.all, amp_conv_behind_chunk, l);
    return;
  }
  const int64_t least = amp_conv_prepare(run, l);
  l->parts = amp_least(amp_pieces(least * threads, l->tiles.all), l->groups);
  l->reuse = a->passing && l->behind && l->parts == 1 && threads <= l->tiles.all;
  amp_parallel(run, l->tiles.all * l->parts, amp_conv_chunk, l);
  if (l->behind && l->parts > 1)
    amp_parallel(run, l->tiles.all, amp_conv_behind_chunk, l);
}

/* Computes several groups, one after the other, and then runs the loop behind on all tiles. */
AMP_FN void amp_conv_several(const AmprtRun *run, AmpConvLoop *l) {
  AmpConv one = *l->a;
  const int64_t filter = one.k * amp_filter_taps(&one) * one.c;
  AmpConvLoop part = *l;
  part.a = &one;
  part.behind = NULL;
  part.each = 0;
  for (int64_t g = 0; g < l->a->groups; g++) {
    amp_conv_one(run, &part);
    one.in.at += one.c * amp_size(one.in.dtype);
    one.filter.at += filter * amp_size(one.filter.dtype);
    one.out.at += one.k * amp_size(one.out.dtype);
  }
  if (l->behind)
    amp_parallel(run, l->tiles.all, amp_conv_behind_chunk, l);
}

/* `behind`, unless it is NULL, is a loop that is cut as `grid` says and runs on each tile of the
 * result. */
AMP_FN void amp_conv_with(const AmprtRun *run, const AmpConv *a, const AmpGrid *grid,
                          AmpLoopFn *behind, const void *args, const AmpRef *reads, uint64_t each) {
  AmpConvLoop loop = {.a = a,
                      .cuts = amp_conv_cuts(a),
                      .high = amp_axis_span(&a->high, a->backward),
                      .wide = amp_axis_span(&a->wide, a->backward),
                      .tiles = amp_tiles(a),
                      .grid = grid,
                      .behind = behind,
                      .args = args,
                      .reads = reads,
                      .each = each};
  (a->groups > 1 ? amp_conv_several : amp_conv_one)(run, &loop);
}

AMP_LIBRARY_FN(amp_conv)(const AmprtRun *run, const void *args) {
  amp_conv_with(run, (const AmpConv *)args, NULL, NULL, NULL, NULL, 0);
}

#ifdef AMPCC_KERNELS
const AmpConvolutions AMPCC_KERNELS = {AMP_NEEDS, amp_conv_with};
#endif

#endif
