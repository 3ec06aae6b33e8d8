/* Tests the random changes of batches and images: mixup, CutMix, random erasing. */
#include "runtime/data/feed.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 20000, SIDE = 32 };

/* Mean and variance of Beta(a, a) are 1/2 and 1 / (4 (2 a + 1)). */
static void test_mixup(void **state) {
  (void)state;
  static const double alphas[] = {0.01, 0.2, 1, 8};
  AmprtKey key = amprt_rng_key(3, "train.mix");
  for (size_t k = 0; k < sizeof alphas / sizeof *alphas; k++) {
    double sum = 0, squares = 0, want = 1 / (4 * (2 * alphas[k] + 1));
    for (uint64_t i = 0; i < DRAWS; i++) {
      AmprtMix mix = amprt_mix_draw((AmprtMixSpec){.mixup = alphas[k]}, key, i * 8, SIDE, SIDE);
      assert_true(mix.other >= 0 && mix.other <= 1);
      assert_true(mix.bottom == 0 && mix.right == 0);
      sum += mix.other;
      squares += (mix.other - 0.5) * (mix.other - 0.5);
    }
    assert_true(fabs(sum / DRAWS - 0.5) < 0.015);
    assert_true(fabs(squares / DRAWS - want) < 0.02 * want);
  }
}

/* With alpha 1 lambda is uniform; a box that is not cut off has 1 - lambda of the area, and its
 * centre is anywhere. What is filled in says of every pixel whose it is. */
static void test_cutmix(void **state) {
  (void)state;
  AmprtKey key = amprt_rng_key(3, "train.mix");
  static float own[SIDE * 2 * SIDE * 3];
  int64_t whole = 0, touches = 0, most = 0, least = (int64_t)SIDE * SIDE * 2;
  for (uint64_t i = 0; i < DRAWS / 10; i++) {
    AmprtMix mix = amprt_mix_draw((AmprtMixSpec){.cutmix = 1}, key, i, SIDE, 2 * SIDE);
    assert_true(mix.other == 0);
    assert_true(0 <= mix.top && mix.top <= mix.bottom && mix.bottom <= SIDE);
    assert_true(0 <= mix.left && mix.left <= mix.right && mix.right <= 2 * SIDE);
    int64_t area = (int64_t)(mix.bottom - mix.top) * (mix.right - mix.left), pasted = 0;
    amprt_mix_fill(&mix, SIDE, 2 * SIDE, 3, own);
    for (int p = 0; p < SIDE * 2 * SIDE * 3; p++) {
      int y = p / 3 / (2 * SIDE), x = p / 3 % (2 * SIDE);
      bool inside = y >= mix.top && y < mix.bottom && x >= mix.left && x < mix.right;
      assert_true(own[p] == (inside ? 0.0f : 1.0f));
      pasted += inside;
    }
    assert_int_equal(pasted, 3 * area);
    touches += mix.top == 0 || mix.left == 0 || mix.bottom == SIDE || mix.right == 2 * SIDE;
    whole += area == 0;
    most = area > most ? area : most;
    least = area < least ? area : least;
  }
  assert_true(touches > DRAWS / 20 && whole < DRAWS / 100);
  assert_true(most > SIDE * SIDE * 2 * 7 / 10 && least < SIDE * SIDE / 20);
}

static void test_mix_of_both(void **state) {
  (void)state;
  AmprtKey key = amprt_rng_key(3, "train.mix");
  int cuts = 0;
  for (uint64_t i = 0; i < DRAWS; i++)
    cuts += amprt_mix_draw((AmprtMixSpec){0.2, 1}, key, i, SIDE, SIDE).other == 0;
  assert_in_range(cuts, DRAWS / 2 - 300, DRAWS / 2 + 300); /* deviation 71 */
  AmprtMix none = amprt_mix_draw((AmprtMixSpec){0}, key, 5, SIDE, SIDE);
  assert_true(none.other == 0 && none.bottom == 0);
  AmprtMix some = amprt_mix_draw((AmprtMixSpec){.cutmix = 1}, key, 5, SIDE, SIDE), back;
  double number[AMPRT_MIX_NUMBERS];
  amprt_mix_numbers(&some, number);
  back = amprt_mix_of(number);
  assert_true(back.other == some.other && back.top == some.top && back.bottom == some.bottom &&
              back.left == some.left && back.right == some.right);
}

/* ---- erasing ---- */

/* The rectangle of pixels that differ from `before`; false if there are none, or not exactly those
 * of a rectangle have become `fill`. */
static bool find_box(const unsigned char *before, const unsigned char *after, const int *fill,
                     int box[4]) {
  int top = SIDE, left = SIDE, bottom = 0, right = 0;
  for (int p = 0; p < SIDE * SIDE * 3; p++) {
    int y = p / 3 / SIDE, x = p / 3 % SIDE;
    if (before[p] == after[p])
      continue;
    top = y < top ? y : top;
    bottom = y + 1 > bottom ? y + 1 : bottom;
    left = x < left ? x : left;
    right = x + 1 > right ? x + 1 : right;
  }
  for (int y = top; y < bottom; y++)
    for (int x = left; x < right; x++)
      for (int c = 0; c < 3; c++)
        if (after[(y * SIDE + x) * 3 + c] != fill[c])
          return false;
  memcpy(box, (int[]){top, left, bottom, right}, 4 * sizeof *box);
  return bottom > top;
}

static void test_erase(void **state) {
  (void)state;
  static unsigned char before[SIDE * SIDE * 3], after[SIDE * SIDE * 3];
  const AmprtImageSpec spec = {SIDE, SIDE, 3, 0, false, false};
  const AmprtScaling scaling[] = {{124.4, 58}, {0, 255}, {300, 1}};
  const int fill[] = {124, 0, 255};
  AmprtKey key = amprt_rng_key(3, "train.erase");
  int erased = 0, wide = 0, again = 0;
  double least = 1, most = 0;
  memset(before, 7, sizeof before);
  for (uint32_t i = 0; i < 4000; i++) {
    int box[4];
    memcpy(after, before, sizeof after);
    amprt_image_erase(&spec, 0.25, key, 2, i, scaling, after);
    if (!memcmp(after, before, sizeof after))
      continue;
    assert_true(find_box(before, after, fill, box));
    double height = box[2] - box[0], width = box[3] - box[1], area = height * width / SIDE / SIDE;
    assert_true(height >= 1 && width >= 1 && height < SIDE && width < SIDE);
    least = area < least ? area : least;
    most = area > most ? area : most;
    wide += width > height;
    erased++;
    unsigned char first[sizeof after];
    memcpy(first, after, sizeof after);
    memcpy(after, before, sizeof after);
    amprt_image_erase(&spec, 0.25, key, 2, i, scaling, after);
    assert_memory_equal(first, after, sizeof after);
    memcpy(after, before, sizeof after);
    amprt_image_erase(&spec, 0.25, key, 3, i, scaling, after);
    again += !memcmp(first, after, sizeof after);
  }
  assert_in_range(erased, 900, 1100); /* 1000 expected, deviation 27 */
  assert_true(least > 0.012 && least < 0.04 && most < 0.36 && most > 0.28);
  assert_in_range(wide, erased * 2 / 5, erased * 3 / 5);
  assert_true(again < 10); /* another epoch has another box */
  amprt_image_erase(&spec, 0, key, 2, 0, scaling, after);
}

/* ---- in the feed ---- */

static AmprtError error;

/* Reads how n batches are to be mixed, and the bytes of their images. */
static void read_mixes(AmprtFeedPlan plan, int n, AmprtMix *mix, unsigned char *pixel) {
  AmprtFeed *feed = NULL;
  assert_int_equal(amprt_feed_open(&feed, &plan, &error), 0);
  for (int i = 0; i < n; i++) {
    const AmprtBatch *batch;
    assert_int_equal(amprt_feed_next(feed, &batch, &error), 0);
    mix[i] = batch->mix;
    memcpy(pixel + i * 8 * 64, batch->pixel, 8 * 64);
  }
  amprt_feed_close(feed);
}

static void test_feed_mixes(void **state) {
  (void)state;
  enum { N = 30, SKIP = 11 };
  static AmprtData data;
  static unsigned char a[N * 8 * 64], b[N * 8 * 64];
  AmprtMix one[N], other[N];
  toy_write_data(scratch, 43, 10);
  assert_int_equal(open_data(&data, &toy_fp32, "fashion_mnist", scratch, &error), 0);
  AmprtFeedPlan plan = toy_plan(&data.train);
  plan.example.image.pad = 1;
  plan.example.image.flip = plan.example.image.standardize = true;
  plan.example.erase = 0.5;
  plan.mix = (AmprtMixSpec){0.2, 1};
  read_mixes(plan, N, one, a);
  plan.threads = 5; /* any number of threads gives the same */
  read_mixes(plan, N, other, b);
  assert_memory_equal(a, b, sizeof a);
  for (int i = 0; i < N; i++)
    assert_true(one[i].other == other[i].other && one[i].right == other[i].right);
  plan.position = SKIP * 8; /* and so does a start in the middle */
  read_mixes(plan, N - SKIP, other, b);
  assert_memory_equal(a + SKIP * 512, b, sizeof a - SKIP * 512);
  for (int i = SKIP; i < N; i++)
    assert_true(one[i].other == other[i - SKIP].other && one[i].left == other[i - SKIP].left);
  plan.position = 0;
  plan.example.erase = 0; /* erasing does not depend on the other draws */
  plan.mix.cutmix = 0;
  read_mixes(plan, N, other, b);
  assert_memory_not_equal(a, b, sizeof a);
  for (int i = 0; i < N; i++)
    assert_true(other[i].other > 0 && (one[i].other == 0 || one[i].other == other[i].other));
  amprt_data_close(&data);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mixup),
      cmocka_unit_test(test_cutmix),
      cmocka_unit_test(test_mix_of_both),
      cmocka_unit_test(test_erase),
      cmocka_unit_test_setup_teardown(test_feed_mixes, scratch_setup, scratch_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
