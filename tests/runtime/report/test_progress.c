/* Tests the line that says how far a training is. */
#include "runtime/core/progress.h"
#include "tests/runtime/harness.h"

#include <math.h>
#include <string.h>

static const AmprtStanding middle = {.epoch = 41.25,
                                     .epochs = 90,
                                     .step = 15012,
                                     .loss = 2.31237,
                                     .accuracy = .48211,
                                     .learning_rate = .128,
                                     .loss_scale = 32768,
                                     .rate = 2412.4,
                                     .waiting = .012,
                                     .seconds_left = 5025};

static const char *drawn(const AmprtStanding *standing, int columns) {
  static char text[256];
  amprt_progress_drawn(standing, columns, text, sizeof text);
  return text;
}

/* Tools parse this form of the line, so it may not change. */
static void test_plain(void **state) {
  char text[256];
  (void)state;
  amprt_progress_plain(&middle, text, sizeof text);
  assert_string_equal(text,
                      "epoch 41.25/90  step 15012  loss 2.3124  accuracy 0.4821  lr 0.128  scale "
                      "32768  2412 img/s  1:23:45 left");
}

static void test_drawn(void **state) {
  (void)state;
  assert_string_equal(drawn(&middle, 140),
                      "epoch 42/90   25% [=====>..............]  step 15012  loss 2.3124  accuracy "
                      "0.4821  lr 0.128  scale 32768  2412 img/s  data 1%  1:23:45 left");
  assert_string_equal(drawn(&middle, 80),
                      "epoch 42/90   25% [==>......]  step 15012  loss 2.3124  2412 "
                      "img/s  1:23:45 left");
  assert_string_equal(drawn(&middle, 60),
                      "epoch 42/90   25% [===>.........]  loss 2.3124  1:23:45 left");
}

/* At every width the line fits, and no field is lost that a narrower one has. */
static void test_widths(void **state) {
  static const char *const fields[] = {"loss",     "left", "step", "img/s",
                                       "accuracy", "data", "lr",   "scale"};
  bool seen[8] = {false};
  (void)state;
  for (int columns = 1; columns < 200; columns++) {
    const char *text = drawn(&middle, columns);
    assert_true((int)strlen(text) <= (columns < 11 ? 11 : columns));
    for (int i = 0; i < 8; i++)
      seen[i] |= strstr(text, fields[i]) != NULL;
    if (columns > 60)
      for (int i = 0; i < 2; i++)
        assert_non_null(strstr(text, fields[i]));
  }
  for (int i = 0; i < 8; i++)
    assert_true(seen[i]);
}

/* The bar is the epoch's. At an epoch's end it is full; a part of an epoch is a whole bar. */
static void test_bars(void **state) {
  static const struct {
    double epoch, epochs;
    const char *begins;
  } cases[] = {{0, 2, "epoch 1/2    0% [>......"},    {.5, 2, "epoch 1/2   50% [======"},
               {1, 2, "epoch 1/2  100% [======="},    {1.001, 2, "epoch 2/2    0% [>......"},
               {2, 2, "epoch 2/2  100% [======="},    {.25, .5, "epoch 1/1   50% [======"},
               {1.25, 1.5, "epoch 2/2   50% [====="}, {2.004, 2, "epoch 2/2  100% [======="},
               {0, 0, "epoch 1/1    0% [>....."}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AmprtStanding standing = {.epoch = cases[i].epoch, .epochs = cases[i].epochs, .waiting = NAN};
    const char *text = drawn(&standing, 100);
    if (strncmp(text, cases[i].begins, strlen(cases[i].begins)) != 0)
      fail_msg("%g of %g: %s", cases[i].epoch, cases[i].epochs, text);
    assert_null(strstr(text, "scale"));
    assert_null(strstr(text, "data"));
  }
}

static void test_eval(void **state) {
  char text[256];
  (void)state;
  amprt_progress_eval(4000, 10000, 60, text, sizeof text);
  assert_string_equal(text, "evaluating   40% [========>.............]  4000/10000 images");
  for (int columns = 1; columns < 200; columns++) {
    amprt_progress_eval(4000, 10000, columns, text, sizeof text);
    assert_true((int)strlen(text) <= (columns < 29 ? 29 : columns));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_drawn),
                                     cmocka_unit_test(test_widths), cmocka_unit_test(test_bars),
                                     cmocka_unit_test(test_eval)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
