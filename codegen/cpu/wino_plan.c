#include "codegen/cpu/wino_plan.h"

enum { ALIGN = 64, F32 = sizeof(float) };
/* For a filter's gradient. The transformed tiles of x and dy take at most GRAD_BYTES, so that they
 * stay in the second-level cache beside the sums of GRAD_BLOCKS blocks of channels of dy, and are
 * at most GRAD_TILES, so that what one of the products reads stays in the first-level cache. All
 * slots together are small, so that they are added up soon. */
enum { GRAD_BYTES = 640 << 10, GRAD_TILES = 100, GRAD_BLOCKS = 4 };
/* Parts share the transformed tiles only if these take at most SHARED_BYTES; they then lie in the
 * third-level cache or in memory. Each of these parts has SHARED_BLOCKS blocks of channels of dy,
 * whose sums fit the second-level cache. The table says how many times as fast a filter's gradient
 * is with sharing, by batch and by channels @ height and width of the image. The tiles of its last
 * entry take 57 MB, so they are not shared (Zen 3, 2 threads, 2026-11-29, tests/bench/cpu_layers).
 *
 *              256 @14   512 @7   128 @28
 *   batch 8    1.25      1.16     1.09
 *   batch 16   1.34      1.30     1.05
 *   batch 32   1.16      1.35     1.00 */
enum { SHARED_BYTES = 40 << 20, SHARED_BLOCKS = 2 };
enum { SLOTS = 16, SLOTS_BYTES = 5 << 18 };

/* Elements of the largest filters with which it is faster than products of pairs of bf16. */
enum { MOST_OVER_PAIRS = 1 << 16 };

/* Along an axis: 3 taps, stride 1 or 2, and in a data gradient of stride 2 the padding with which
 * the even elements of dx are those of tap 1 (wino_tile.h). */
static bool can_be(const AmpWindow *high, const AmpWindow *wide, bool backward) {
  bool strided = high->stride == 2 && wide->stride == 2;
  bool fits = (high->stride == 1 && wide->stride == 1) ||
              (strided && (!backward || (high->pad == 1 && wide->pad == 1)));
  return high->taps == 3 && wide->taps == 3 && fits;
}

/* Is the method taken wherever it can be? */
static bool is_forced(Winograd winograd) {
  return winograd == WINOGRAD_ALWAYS || winograd == WINOGRAD_BY_CHANNELS;
}

static int64_t image_tiles(const AmpConv *a, int form) {
  return amp_wino_along(form, amp_wino_results(a, &a->high)) *
         amp_wino_along(form, amp_wino_results(a, &a->wide));
}

static int64_t axis_products(const AmpWindow *w, int form) {
  AmpWinoCut cut = amp_wino_cut(w->out, form, 1);
  return cut.tiles * form - cut.less * amp_wino_spared(form);
}

static int64_t products(const AmpWindow *high, const AmpWindow *wide, int form) {
  return axis_products(high, form) * axis_products(wide, form);
}

/* Tiles of 4 x 4 results where they take fewer products than those of 2 x 2. */
static int form_of(const AmpWindow *high, const AmpWindow *wide) {
  if (high->stride == 2)
    return AMP_WINO_STRIDED;
  bool large = products(high, wide, AMP_WINO_LARGE) < products(high, wide, AMP_WINO_SMALL);
  return large ? AMP_WINO_LARGE : AMP_WINO_SMALL;
}

/* How many tiles a block has where a convolution is computed by groups of channels: their products,
 * 590 KB (with stride 2 660 KB), stay in the second-level cache beside 290 KB of the filter. */
static int64_t wave_tiles(int form) {
  return form == AMP_WINO_STRIDED ? 64 : 128;
}

/* Is it computed by groups of channels? Then the transformed filter is large, and a block has whole
 * images. With batch 8 on an Intel CPU (model 207, 2 MB of second-level cache) it is 1.08 times as
 * fast so with 256 channels at 14x14, and 1.5 times with 512 at 7x7, where the transformed filter
 * of tiles of 4 x 4 has 38 MB; with 128 at 28x28, 2.4 MB, it is 0.93. */
static bool by_channels(const AmpConv *a, Winograd winograd) {
  bool whole = image_tiles(a, a->winograd) <= wave_tiles(a->winograd);
  return winograd == WINOGRAD_BY_CHANNELS ||
         (winograd == WINOGRAD_AUTO && amp_wino_is_large(a) && whole);
}

/* Is it faster than a direct kernel with stride 2? With few channels, much of its time goes into
 * transforms, so it is faster only where tiles of 4 x 4 results cover the image without much waste.
 * It is not chosen for a data gradient of 16 channels, which has a direct kernel of its own with
 * AVX-512 (conv_four.h). The table says how many times as fast it is, by the channels of the filter
 * and the size of the image before the stride (batch 128, one thread of a Zen 5, 2026-11-29,
 * tests/bench/cpu_layers).
 *
 *                            16->32 @32   @28    32->64 @16   @14
 *   AVX-512, forward         1.02         0.74   1.17         1.04
 *   AVX-512, data gradient   0.83         0.70   1.08         1.00
 *   AVX2, forward            1.15         0.96   1.36         1.46
 *   AVX2, data gradient      1.06         0.91   1.30         1.36 */
static bool strided_pays(const AmpConv *a) {
  enum { FEW = 1 << 10 }; /* elements of a tap of the filter */
  if (a->backward && a->k <= AMP_BLOCK)
    return false;
  const int64_t results = amp_wino_results(a, &a->high) * amp_wino_results(a, &a->wide);
  const int64_t side = amp_wino_side(AMP_WINO_STRIDED);
  const int64_t computed = image_tiles(a, AMP_WINO_STRIDED) * side * side;
  return a->c * a->k >= FEW || computed * 5 <= results * 6;
}

/* GFLOP/s of one thread, counted as direct products, and the ratio to the direct kernel: batch 8
 * (CIFAR's: 128), Zen 5 with AVX-512, 2026-11-23, tests/bench/cpu_layers.
 *
 *                  64 @56     128 @28    256 @14    512 @7     32 @16     64 @8      16 @32
 *   forward        741 2.89   803 2.92   567 2.19   319 1.44   557 2.37   651 2.64   385 1.74
 *   data gradient  734 2.89   805 2.97   568 2.18   322 1.39   545 2.08   655 2.50   392 1.81
 *
 * With tiles of 2 x 2, as 512 @7 had then: 442, 461, 450, 279, 393, 447 and 271. */
int wino_takes(const AmpConv *a, Winograd winograd) {
  enum { FEWEST = 16, LARGEST = 1 << 17 };
  bool can = can_be(&a->high, &a->wide, a->backward), faster = a->c >= FEWEST && a->k >= FEWEST;
  if (!can || !(is_forced(winograd) || (winograd == WINOGRAD_AUTO && faster)))
    return 0;
  int form = form_of(&a->high, &a->wide);
  if (form == AMP_WINO_STRIDED && !is_forced(winograd) && !strided_pays(a))
    return 0;
  /* The filter of tiles of 4 x 4 is 9/4 as large: here it would come from memory for each block. */
  bool far = a->c * a->k >= LARGEST && image_tiles(a, form) > wave_tiles(form);
  if (!far || (form == AMP_WINO_STRIDED && is_forced(winograd)))
    return form;
  return form == AMP_WINO_STRIDED ? 0 : AMP_WINO_SMALL;
}

/* The same of bf16, and the ratio to products of pairs of bf16:
 *
 *                  64 @56     128 @28    256 @14               32 @16     64 @8
 *   forward        693 1.33   804 1.50   535 1.09              528 1.07   657 1.22
 *   data gradient  697 1.31   802 1.52   546 1.14              529 1.07   664 1.23
 *   filter         634 1.30   624 1.24                         578 1.21   644 1.17
 *
 * In a step with two threads, 256 @14 takes 0.85 of the time of pairs (2026-11-29, 128 channels of
 * the filter at a time), and 512 @7 0.92 forward and no less for the filter's gradient. */
bool wino_beats_pairs(const AmpConv *a, Winograd winograd) {
  enum { FEWEST = 32 };
  bool faster = a->c >= FEWEST && a->k >= FEWEST && a->c * a->k <= MOST_OVER_PAIRS;
  return a->winograd && (is_forced(winograd) || (a->winograd == AMP_WINO_LARGE && faster));
}

/* Floats of the transformed filter: most for the narrowest vectors, with 8 channels in a group. */
static int64_t filter_floats(const AmpConv *a) {
  const int64_t outs = 8, groups = amp_ceil(a->k, AMP_GROUP) / outs;
  return groups * amp_wino_all_filters(a->winograd) *
         amp_odd_lines(amp_ceil(a->c, AMP_BLOCK) * outs);
}

/* Floats that the transformed elements and the products of one tile of a block take. */
static int64_t tile_floats(const AmpConv *a) {
  int64_t group = amp_least(amp_ceil(a->k, AMP_BLOCK), AMP_GROUP);
  int64_t channels = amp_ceil(a->c, AMP_BLOCK) + (amp_wino_in_place(a) ? 0 : group);
  return channels * amp_wino_all(a->winograd);
}

/* A block has as many tiles as leave room in the second-level cache, beside their transformed
 * elements and products, for the filter of a group and what is prefetched. Reading the filter for
 * so many hardly counts. It has LEAST_TILES even if they do not fit: few tiles do not fill their
 * register tiles, and what comes from the third-level cache then is read in its order. 128 channels
 * at 28x28 are 1.06 times as fast so with stride 1, 1.23 and 1.26 times with stride 2, for
 * which 7 tiles would fit (Zen 3, 2 threads, batch 8, tests/bench/cpu_layers). */
static int64_t block_tiles(const AmpConv *a) {
  enum { BLOCK_BYTES = 384 << 10, LEAST_TILES = 21 };
  return amp_most(LEAST_TILES, BLOCK_BYTES / (tile_floats(a) * F32));
}

void wino_cut(AmpConv *a) {
  int64_t across = amp_wino_along(a->winograd, amp_wino_results(a, &a->wide));
  int64_t down = amp_wino_along(a->winograd, a->rows);
  int64_t rows = amp_most(1, amp_least(down, block_tiles(a) / across));
  a->wino_rows = amp_wino_side(a->winograd) * amp_even(down, rows);
  a->wino_images = 1;
}

/* A tile is some blocks, whose results a loop behind finds in the second-level cache. */
void wino_choose_tile(AmpConv *a) {
  enum { PIECE_BYTES = 128 << 10 };
  AmpAxis high = amp_axis_span(&a->high, a->backward);
  a->rows = high.outs;
  a->cols = amp_wino_results(a, &a->wide);
  a->images = 1;
  wino_cut(a);
  int64_t blocks = amp_pieces(a->rows, a->wino_rows);
  int64_t row = high.out_step * a->wide.out * a->k * F32;
  if (blocks > 1) {
    a->rows = a->wino_rows * amp_most(1, amp_least(blocks, PIECE_BYTES / (row * a->wino_rows)));
  } else {
    int64_t tiles = amp_wino_tiles(a);
    a->wino_images = amp_most(1, amp_least(a->n, block_tiles(a) / tiles));
    a->images = a->wino_images * amp_most(1, PIECE_BYTES / (row * a->wino_rows * a->wino_images));
    a->images = amp_least(a->images, a->n);
  }
}

/* Where the convolution is computed by groups of channels: as many images together as have
 * WAVE_TILES tiles, and as many of these blocks at a time as take WAVE_BYTES; or, so that the small
 * shapes of tests have several blocks and waves, much less. Returns the bytes. */
static int64_t cut_wave(AmpConv *a, bool small) {
  enum { WAVE_BYTES = 5 << 20 };
  int64_t tiles = image_tiles(a, a->winograd);
  int64_t images = amp_most(1, (small ? 4 : wave_tiles(a->winograd)) / tiles);
  a->wino_rows = amp_wino_results(a, &a->high);
  a->wino_images = amp_even(a->n, amp_least(a->n, images));
  int64_t each = amp_wino_in_floats(a) * F32;
  int64_t blocks = small ? 2 : amp_most(1, WAVE_BYTES / each);
  blocks = amp_least(blocks, amp_pieces(a->n, a->wino_images));
  a->wino_wave = blocks * a->wino_images;
  return blocks * each;
}

int64_t wino_finish(AmpConv *a, Winograd winograd) {
  int64_t bytes =
      by_channels(a, winograd) ? cut_wave(a, is_forced(winograd)) : filter_floats(a) * F32;
  a->packed = 0;
  a->lane = amp_most(a->lane, amp_ceil(bytes, ALIGN));
  a->lane_bytes = amp_most(a->lane_bytes, amp_wino_lane(a).bytes + AMP_APART);
  return a->lane + AMP_TEAM * a->lane_bytes;
}

/* How many products a direct kernel computes along one axis. */
static int64_t direct_products(const AmpWindow *w) {
  return w->taps * w->out - w->pad * (w->pad + 1);
}

/* The same of filters' gradients:
 *
 *                  64 @56     128 @28    256 @14    512 @7     32 @16     64 @8      16 @32
 *   filter         654 2.63   616 2.45   489 1.97   383 1.55   491 2.01   556 2.05   418 2.18 */
int wino_takes_grad(const AmpConvGrad *a, Winograd winograd) {
  enum { FEWEST = 16 };
  int form = form_of(&a->high, &a->wide);
  bool can = can_be(&a->high, &a->wide, false) && form != AMP_WINO_STRIDED && !a->few;
  bool fewer = products(&a->high, &a->wide, form) * 4 <=
               direct_products(&a->high) * direct_products(&a->wide) * 3;
  bool faster = a->c >= FEWEST && a->k >= FEWEST && fewer;
  return can && (is_forced(winograd) || (winograd == WINOGRAD_AUTO && faster)) ? form : 0;
}

bool wino_beats_pairs_grad(const AmpConvGrad *a, Winograd winograd) {
  bool faster = a->winograd == AMP_WINO_LARGE && a->c * a->k <= MOST_OVER_PAIRS;
  return a->winograd && (is_forced(winograd) || faster);
}

/* How many bytes the transformed tiles of all channels of x and of dy take. */
static int64_t shared_bytes(const AmpConvGrad *a) {
  AmpWinoGradTiles tiles = amp_wino_grad_most(a);
  return (amp_pieces(a->c, AMP_GRAD_GROUP) * tiles.x + amp_pieces(a->k, AMP_BLOCK) * tiles.dy) *
         F32;
}

/* Decides whether parts share the transformed tiles, which makes all images one piece. They do if
 * several parts would transform the same channels and the tiles are few enough. Returns the bytes
 * that the tiles then take, else 0. */
static int64_t share_grad(AmpConvGrad *a, Winograd winograd) {
  AmpConvGrad all = *a;
  all.wino_shared = 1;
  all.wino_images = (int32_t)a->n;
  all.wino_rows = (int32_t)a->high.out;
  all.wino_slots = 1;
  all.wino_blocks = amp_least(a->wino_blocks, SHARED_BLOCKS);
  int64_t bytes = shared_bytes(&all);
  bool again = a->c > AMP_GRAD_GROUP || a->k > a->wino_blocks * AMP_BLOCK;
  bool pays = winograd == WINOGRAD_AUTO && again && bytes <= SHARED_BYTES;
  if (!pays && winograd != WINOGRAD_BY_CHANNELS)
    return 0;
  *a = all;
  return bytes;
}

int64_t wino_plan_grad(AmpConvGrad *a, Winograd winograd) {
  int64_t across = amp_wino_along(a->winograd, a->wide.out);
  int64_t down = amp_wino_along(a->winograd, a->high.out);
  int64_t blocks = amp_pieces(a->k, AMP_BLOCK);
  a->wino_blocks = amp_least(blocks, GRAD_BLOCKS);
  int64_t channels = a->wino_blocks * AMP_BLOCK + amp_wino_grad_ins(a);
  int64_t tile = channels * amp_wino_all(a->winograd) * F32;
  int64_t tiles = amp_least(GRAD_BYTES / tile, GRAD_TILES);
  int64_t rows = amp_most(1, amp_least(down, tiles / across));
  a->wino_rows = amp_wino_side(a->winograd) * amp_even(down, rows);
  a->wino_images = rows < down ? 1 : amp_most(1, amp_least(a->n, tiles / (across * down)));
  int64_t each = amp_wino_grad_sums(a) * F32;
  a->wino_slots =
      amp_most(1, amp_least(amp_wino_grad_pieces(a), amp_least(SLOTS, SLOTS_BYTES / each)));
  int64_t shared = share_grad(a, winograd);
  int64_t slots = a->wino_slots > 1 ? a->wino_slots * amp_wino_grad_slot(a) * F32 : 0;
  a->lane = amp_most(a->lane, amp_ceil(amp_most(shared, slots), ALIGN));
  a->lane_bytes = amp_most(a->lane_bytes, amp_wino_grad_lane(a).all * F32 + AMP_APART);
  return a->lane + AMP_TEAM * a->lane_bytes;
}
