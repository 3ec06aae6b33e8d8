/* Tests which parts of photographs are chosen: those of evaluation against sizes computed by hand,
 * those of training by counting how often each is drawn. */
#include "runtime/image/photo.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* clang-format off: cmocka.h needs the others before it */
#include <cmocka.h>
/* clang-format on */

static AmprtError error;

static AmprtPhotoView view_of(AmprtPhotoSpec spec, const AmprtPhoto *photo, int64_t height,
                              int64_t width, uint64_t epoch, uint64_t example) {
  static const AmprtPhoto none = {.n_boxes = 0};
  AmprtPhotoView view;
  AmprtPhotoDraw draw = {amprt_rng_key(3, "views"), epoch, example};
  if (amprt_photo_view(&spec, photo ? photo : &none, height, width, draw, &view, &error))
    fail_msg("%s", error.text);
  return view;
}

/* Worked out by hand from what view.c cites. 256 / 107 in float makes 255 of the shorter side. */
static void test_evaluation(void **state) {
  (void)state;
  static const struct {
    AmprtPreprocessing preprocessing;
    int64_t size, height, width;
    AmprtPhotoView view;
  } cases[] = {
      {AMPRT_OFFICIAL, 224, 375, 500, {0, 0, 375, 500, 256, 341, 16, 58, false}},
      {AMPRT_OFFICIAL, 224, 512, 512, {0, 0, 512, 512, 256, 256, 16, 16, false}},
      {AMPRT_OFFICIAL, 224, 107, 500, {0, 0, 107, 500, 255, 1196, 15, 486, false}},
      {AMPRT_OFFICIAL, 448, 375, 500, {0, 0, 375, 500, 512, 682, 32, 117, false}},
      {AMPRT_OFFICIAL, 1, 9, 9, {0, 0, 9, 9, 1, 1, 0, 0, false}},
      {AMPRT_TORCHVISION, 224, 375, 500, {0, 0, 375, 500, 256, 341, 16, 58, false}},
      {AMPRT_TORCHVISION, 224, 500, 333, {0, 0, 500, 333, 384, 256, 80, 16, false}},
      {AMPRT_TORCHVISION, 224, 333, 331, {0, 0, 333, 331, 257, 256, 16, 16, false}},
      {AMPRT_TORCHVISION, 224, 100, 103, {0, 0, 100, 103, 256, 263, 16, 20, false}},
      {AMPRT_KERAS, 224, 375, 500, {0, 62, 375, 375, 224, 224, 0, 0, false}},
      {AMPRT_KERAS, 224, 500, 333, {83, 0, 333, 333, 224, 224, 0, 0, false}},
      {AMPRT_PLAIN, 32, 32, 30, {0, 0, 32, 30, 32, 30, 0, -1, false}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AmprtPhotoSpec spec = {cases[i].size, cases[i].size, 3, cases[i].preprocessing, .flip = true};
    AmprtPhotoView got = view_of(spec, NULL, cases[i].height, cases[i].width, 0, i);
    const AmprtPhotoView *want = &cases[i].view;
    if (memcmp(&got, want, offsetof(AmprtPhotoView, mirrored)) != 0 || got.mirrored)
      fail_msg("case %zu: part %d %d %d %d, resized %d %d, from %d %d", i, (int)got.y, (int)got.x,
               (int)got.height, (int)got.width, (int)got.resized_height, (int)got.resized_width,
               (int)got.top, (int)got.left);
  }
}

/* Every draw is a function of key, epoch and example; half of them are mirrored, and what is chosen
 * does not depend on whether they may be. */
static void test_draws(void **state) {
  (void)state;
  enum { N = 4000 };
  int mirrored = 0, same_epoch = 0, same_example = 0;
  for (uint64_t i = 0; i < N; i++) {
    AmprtPhotoSpec spec = {224, 224, 3, i % 2 ? AMPRT_OFFICIAL : AMPRT_TORCHVISION, true, true};
    AmprtPhotoView a = view_of(spec, NULL, 375, 500, 1, i), b = view_of(spec, NULL, 375, 500, 1, i);
    assert_memory_equal(&a, &b, offsetof(AmprtPhotoView, mirrored));
    assert_int_equal(a.mirrored, b.mirrored);
    mirrored += a.mirrored;
    b = view_of(spec, NULL, 375, 500, 2, i);
    same_epoch += memcmp(&a, &b, offsetof(AmprtPhotoView, mirrored)) == 0;
    b = view_of(spec, NULL, 375, 500, 1, i + N);
    same_example += memcmp(&a, &b, offsetof(AmprtPhotoView, mirrored)) == 0;
    spec.flip = false;
    b = view_of(spec, NULL, 375, 500, 1, i);
    assert_memory_equal(&a, &b, offsetof(AmprtPhotoView, mirrored));
    assert_false(b.mirrored);
  }
  assert_in_range(mirrored, N / 2 - 130, N / 2 + 130); /* four standard deviations */
  assert_in_range(same_epoch, 0, 3);
  assert_in_range(same_example, 0, 3);
}

enum { N = 20000, HEIGHT = 375, WIDTH = 500 };

static void assert_near(const char *what, double got, double want, double tolerance) {
  if (!(fabs(got - want) <= tolerance))
    fail_msg("%s is %g, not %g", what, got, want);
}

/* TensorFlow's sampler: for an aspect ratio r in .75 to 1.33 a uniform integer between
 * round(sqrt(.05 * area / r)) and the largest height that fits; a try whose part is less than a
 * tenth of the object, here of everything, is thrown away. The means follow from that by summing
 * over all ratios and heights. Tolerances are four standard deviations of the means. */
static void test_distorted(void **state) {
  (void)state;
  double sum = 0, want_height = 0, want_width = 0, height = 0, width = 0, y = 0;
  for (int i = 0; i < 1000; i++) {
    double r = .75 + .58 * (i + .5) / 1000, least = round(sqrt(.05 * HEIGHT * WIDTH / r));
    double most = fmin(HEIGHT, floor((WIDTH + .5) / r));
    for (double h = least; h <= most; h++) {
      double share = h * round(h * r) >= .1 * HEIGHT * WIDTH ? 1 / (most - least + 1) : 0;
      sum += share;
      want_height += share * h;
      want_width += share * h * r;
    }
  }
  AmprtPhotoSpec spec = {224, 224, 3, AMPRT_OFFICIAL, true};
  for (uint64_t i = 0; i < N; i++) {
    AmprtPhotoView v = view_of(spec, NULL, HEIGHT, WIDTH, 0, i);
    double area = (double)(v.height * v.width) / (HEIGHT * WIDTH);
    double ratio = (double)v.width / (double)v.height;
    assert_true(area >= .1 && area <= 1);
    assert_true(ratio > .75 - .01 && ratio < 1.33 + .01);
    assert_true(v.y >= 0 && v.x >= 0);
    /* that sampler never chooses the last of the places */
    assert_true(v.height == HEIGHT ? v.y == 0 : v.y + v.height < HEIGHT);
    assert_true(v.width == WIDTH ? v.x == 0 : v.x + v.width < WIDTH);
    height += (double)v.height / N;
    width += (double)v.width / N;
    y += v.height < HEIGHT ? (double)v.y / (double)(HEIGHT - v.height) / N : .5 / N;
  }
  assert_near("mean height", height, want_height / sum, 2.2);
  assert_near("mean width", width, want_width / sum, 2.5);
  assert_near("mean place", y, .5, .02); /* a little below: the last is left out */
}

static void test_boxes(void **state) {
  (void)state;
  AmprtPhotoSpec spec = {224, 224, 3, AMPRT_OFFICIAL, true};
  const AmprtBox corner[] = {{.9f, .9f, 1, 1}, {.5f, .5f, .5f, .5f}};
  const AmprtPhoto photo = {.box = corner, .n_boxes = 2};
  int whole = 0, seen = 0;
  for (uint64_t i = 0; i < 2000; i++) {
    AmprtPhotoView v = view_of(spec, &photo, 400, 500, 0, i);
    int64_t below = v.y + v.height - 360, beside = v.x + v.width - 450;
    whole += v.height == 400 && v.width == 500;
    seen += below > 0 && beside > 0 && below * beside >= 200; /* a tenth of 40 x 50 */
  }
  assert_int_equal(seen, 2000);
  assert_in_range(whole, 0, 20);
  const AmprtBox unseen[] = {
      {0, 0, .001f, .001f}}; /* no pixel: cannot be covered, all tries fail */
  AmprtPhotoView v = view_of(spec, &(AmprtPhoto){.box = unseen, .n_boxes = 1}, 400, 500, 0, 1);
  assert_true(v.height == 400 && v.width == 500 && v.y == 0 && v.x == 0);
  const AmprtBox wrong[] = {{0, 0, 1, 1}, {0, NAN, 1, 1}};
  AmprtStatus status = amprt_photo_view(&spec, &(AmprtPhoto){.box = wrong, .n_boxes = 2}, 400, 500,
                                        (AmprtPhotoDraw){0}, &v, &error);
  assert_int_equal(status, AMPRT_INPUT);
  assert_non_null(strstr(error.text, "box 1"));
}

/* RandomResizedCrop: areas are uniform in .08 to 1, and so are the logarithms of the ratio; tries
 * that do not fit are thrown away; every place is equally likely. */
static void test_random_resized(void **state) {
  (void)state;
  enum { STEPS = 400 };
  double sum = 0, want_area = 0, want_log = 0, area = 0, log_ratio = 0, last = 0, want_last = 0;
  for (int i = 0; i < STEPS * STEPS; i++) {
    double a = (.08 + .92 * (i / STEPS + .5) / STEPS) * HEIGHT * WIDTH;
    double l = log(4. / 3) * ((i % STEPS + .5) / STEPS * 2 - 1);
    double w = round(sqrt(a * exp(l))), h = round(sqrt(a / exp(l)));
    if (w > WIDTH || h > HEIGHT)
      continue;
    sum++;
    want_area += w * h / (HEIGHT * WIDTH);
    want_log += log(w / h);
    want_last += 1 / (HEIGHT - h + 1);
  }
  AmprtPhotoSpec spec = {224, 224, 3, AMPRT_TORCHVISION, true};
  for (uint64_t i = 0; i < N; i++) {
    AmprtPhotoView v = view_of(spec, NULL, HEIGHT, WIDTH, 0, i);
    assert_true(v.y >= 0 && v.y + v.height <= HEIGHT && v.x >= 0 && v.x + v.width <= WIDTH);
    area += (double)(v.height * v.width) / (HEIGHT * WIDTH) / N;
    log_ratio += log((double)v.width / (double)v.height) / N;
    last += v.y + v.height == HEIGHT;
  }
  assert_near("mean area", area, want_area / sum, .007);
  assert_near("mean log ratio", log_ratio, want_log / sum, .005);
  assert_near("share at the bottom", last / N, want_last / sum, .006);
  AmprtPhotoView wide = view_of(spec, NULL, 30, 1000, 0, 0);
  assert_true(wide.height == 30 && wide.width == 40 && wide.y == 0 && wide.x == 480);
  AmprtPhotoView high = view_of(spec, NULL, 1000, 30, 0, 0);
  assert_true(high.height == 40 && high.width == 30 && high.y == 480 && high.x == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_evaluation),
                                     cmocka_unit_test(test_draws), cmocka_unit_test(test_distorted),
                                     cmocka_unit_test(test_boxes),
                                     cmocka_unit_test(test_random_resized)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
