#include "codegen/cpu/wino_plan.h"

enum { ALIGN = 64, F32 = sizeof(float) };
/* The transformed tiles of a piece stay in the second-level cache. */
enum { TILES_BYTES = 1 << 20 };

static bool is_3x3(const AmpWindow *high, const AmpWindow *wide) {
  return high->taps == 3 && wide->taps == 3 && high->stride == 1 && wide->stride == 1;
}

/* GFLOP/s of one thread, counted as direct products, and the ratio to the direct kernel: batch 8
 * (CIFAR's: 128), Zen 5 with AVX-512, 2026-11-23, tests/bench/cpu_layers.
 *
 *                  64 @56     128 @28    256 @14    512 @7     32 @16     64 @8      16 @32
 *   forward        377 1.59   467 1.83   469 1.89   288 1.29   307 1.43   414 1.68   186 1.05
 *   data gradient  369 1.57   446 1.82   464 1.84   282 1.23   298 1.35   394 1.71   192 1.05
 *
 * With 16 channels the transforms cost what the products save. */
bool wino_takes(const AmpConv *a, Winograd winograd) {
  enum { FEWEST = 32 };
  bool can = is_3x3(&a->high, &a->wide), faster = a->c >= FEWEST && a->k >= FEWEST;
  return can && (winograd == WINOGRAD_ALWAYS || (winograd == WINOGRAD_AUTO && faster));
}

int64_t wino_plan(AmpConv *a) {
  int64_t across = amp_pieces(a->wide.out, 2), down = amp_pieces(a->high.out, 2);
  int64_t row = across * amp_ceil(a->c, AMP_BLOCK) * AMP_WINO * F32;
  int64_t rows = amp_most(1, amp_least(down, TILES_BYTES / row));
  a->rows = 2 * amp_even(down, rows);
  a->cols = a->wide.out;
  a->images = rows < down ? 1 : amp_most(1, amp_least(a->n, TILES_BYTES / (row * down)));
  a->packed = 0;
  a->lane = amp_ceil(amp_ceil(a->k, AMP_GROUP) * amp_ceil(a->c, AMP_BLOCK) * AMP_WINO * F32, ALIGN);
  a->lane_bytes = amp_wino_lane(a).bytes;
  return a->lane + AMP_TEAM * a->lane_bytes;
}

/* The same:
 *
 *                  64 @56     128 @28    256 @14    512 @7
 *   filter         328 1.42   327 1.37   316 1.38   244 1.08
 *
 * The last plane has 16 tiles, which compute 64 results for 49. */
bool wino_takes_grad(const AmpConvGrad *a, Winograd winograd) {
  enum { FEWEST = 64, SMALLEST = 14 };
  bool can = is_3x3(&a->high, &a->wide) && !a->few;
  bool faster =
      a->c >= FEWEST && a->k >= FEWEST && a->high.out >= SMALLEST && a->wide.out >= SMALLEST;
  return can && (winograd == WINOGRAD_ALWAYS || (winograd == WINOGRAD_AUTO && faster));
}

int64_t wino_plan_grad(AmpConvGrad *a, int64_t bytes) {
  enum { BLOCKS = 8, PIECE_BYTES = 768 << 10 };
  int64_t across = amp_pieces(a->wide.out, 2), down = amp_pieces(a->high.out, 2);
  a->wino_blocks = amp_least(amp_pieces(a->c, AMP_BLOCK), BLOCKS);
  int64_t row = across * (a->wino_blocks * AMP_BLOCK + AMP_GRAD_GROUP) * AMP_WINO * F32;
  int64_t rows = amp_most(1, amp_least(down, PIECE_BYTES / row));
  a->wino_rows = 2 * amp_even(down, rows);
  a->wino_images = rows < down ? 1 : amp_most(1, amp_least(a->n, PIECE_BYTES / (row * down)));
  int64_t lane = amp_most(a->lane_bytes, amp_wino_grad_lane(a).all * F32);
  bytes += AMP_TEAM * (lane - a->lane_bytes);
  a->lane_bytes = lane;
  return bytes;
}
