/* Tests the data set `folder`: classes, order, the same batches as from raw pixels, and errors. */
#include "runtime/data/classes.h"
#include "runtime/data/feed.h"
#include "runtime/report/png.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 6, AREA = SIDE * SIDE, PER_CLASS = 5, CLASSES = 4, N = PER_CLASS * CLASSES };
static const char *const class_name[CLASSES] = {"Zebra", "ant", "bee hive",
                                                "\xc3\xa9l\xc3\xa9phant"};
static AmprtError error;
static AmprtData data;
static AmprtOptions options;

static void write_image(const char *path, unsigned seed, int side) {
  unsigned char pixel[16 * 16];
  AmprtBytes png;
  for (int i = 0; i < side * side; i++)
    pixel[i] = (unsigned char)(seed * 31 + (unsigned)i * 7);
  assert_true(amprt_png_write(pixel, side, side, 1, &png));
  write_bytes(path, png.data, png.size);
  free(png.data);
}

static const char *in_part(const char *part, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", part, name);
  return in_scratch(path);
}

/* PART/CLASS/NAME: written in no order, one of them in a folder of its own, and files between that
 * are no images. Record i is image i. */
static void write_part(const char *part) {
  mkdir(in_scratch(part), 0777);
  for (int c = CLASSES - 1; c >= 0; c--) {
    char name[128], inner[256];
    mkdir(in_part(part, class_name[c]), 0777);
    snprintf(name, sizeof name, "%s/deep", class_name[c]);
    mkdir(in_part(part, name), 0777);
    static const char *const file[PER_CLASS] = {"1.PNG", "10.png", "2.png", "deep/a.Png", "x.png"};
    for (int i = PER_CLASS - 1; i >= 0; i--) {
      snprintf(inner, sizeof inner, "%s/%s", class_name[c], file[i]);
      write_image(in_part(part, inner), (unsigned)(c * PER_CLASS + i), SIDE);
    }
    snprintf(inner, sizeof inner, "%s/notes.txt", class_name[c]);
    write_bytes(in_part(part, inner), "x", 1);
  }
  write_bytes(in_part(part, "LICENSE.png"), "x", 1);
}

static void assert_fails(const AmprtProgram *program, const char *says) {
  assert_int_equal(open_data(&data, program, "folder", scratch, &error), AMPRT_INPUT);
  amprt_data_close(&data);
  if (!strstr(error.text, says))
    fail_msg("expected `%s`, got `%s`", says, error.text);
}

static void test_order(void **state) {
  (void)state;
  write_part("train");
  write_part("val");
  assert_int_equal(open_data(&data, &toy_fp32, "folder", scratch, &error), 0);
  assert_int_equal(data.train.n, N);
  assert_int_equal(data.train.classes, CLASSES);
  for (int c = 0; c < CLASSES; c++)
    assert_string_equal(data.train.class_name[c], class_name[c]);
  AmprtRoom room = {0};
  for (int i = 0; i < N; i++) {
    AmprtRecord record;
    char place[512];
    assert_int_equal(data.train.reader->fetch(&data.train, i, &room, &record, &error), 0);
    assert_int_equal(record.label, i / PER_CLASS);
    data.train.reader->place(&data.train, i, place, sizeof place);
    AmprtBytes file = read_bytes(place);
    assert_int_equal(file.size, record.size);
    assert_memory_equal(file.data, record.data, file.size);
    free(file.data);
  }
  free(room.data);
  amprt_data_close(&data);
  AmprtProgram program = toy_fp32; /* official programs: class 0 is none of the classes */
  program.n_classes = CLASSES + 1;
  assert_int_equal(open_data(&data, &program, "folder", scratch, &error), 0);
  assert_int_equal(data.first_label, 1);
  amprt_data_close(&data);
}

/* The same images as raw pixels give the same bytes, augmentation included. */
static void test_as_raw(void **state) {
  (void)state;
  static unsigned char pixel[N * AREA], label[N];
  write_part("train");
  write_part("val");
  assert_int_equal(open_data(&data, &toy_fp32, "folder", scratch, &error), 0);
  for (int i = 0; i < N; i++) {
    label[i] = (unsigned char)(i / PER_CLASS);
    for (int p = 0; p < AREA; p++)
      pixel[i * AREA + p] = (unsigned char)(i * 31 + p * 7);
  }
  AmprtDataset raw = {.n = N,
                      .classes = CLASSES,
                      .height = SIDE,
                      .width = SIDE,
                      .channels = 1,
                      .reader = &amprt_memory_reader,
                      .pixel = pixel,
                      .label = label};
  AmprtFeedPlan plan = {.example.image = {8, 8, 1, 1, true, true},
                        .example.photo = {8, 8, 1, .training = true, .flip = true},
                        .batch_size = 8,
                        .seed = 3,
                        .purpose = "train",
                        .shuffle = true,
                        .end = 80};
  for (int threads = 1; threads <= 8; threads *= 2) {
    AmprtFeed *a = NULL, *b = NULL;
    const AmprtBatch *x, *y;
    plan.threads = threads;
    plan.set = &data.train;
    assert_int_equal(amprt_feed_open(&a, &plan, &error), 0);
    plan.set = &raw;
    assert_int_equal(amprt_feed_open(&b, &plan, &error), 0);
    for (int i = 0; i < 10; i++) {
      assert_int_equal(amprt_feed_next(a, &x, &error), 0);
      assert_int_equal(amprt_feed_next(b, &y, &error), 0);
      assert_memory_equal(x->image, y->image, 8 * 64 * sizeof *x->image);
      assert_memory_equal(x->label, y->label, 8 * sizeof *x->label);
    }
    amprt_feed_close(a);
    amprt_feed_close(b);
  }
  amprt_data_close(&data);
}

static void test_wrong(void **state) {
  (void)state;
  assert_fails(&toy_fp32, "has no folder train with a folder of images for each class");
  mkdir(in_scratch("train"), 0777);
  assert_fails(&toy_fp32, "train: has 0 .jpg, .jpeg or .png files in 0 classes");
  write_part("train");
  assert_fails(&toy_fp32, "has no folder val|validation|test");
  write_part("test"); /* a folder `test` is read like `val` */
  assert_int_equal(open_data(&data, &toy_fp32, "folder", scratch, &error), 0);
  amprt_data_close(&data);
  mkdir(in_part("test", "cat"), 0777);
  assert_fails(&toy_fp32, "the test images have 5 classes, the model has 4");
  rmdir(in_part("test", "cat"));
  rename(in_part("test", "ant"), in_part("test", "aunt"));
  assert_fails(&toy_fp32, "class 1 is ant in the training set and aunt in the test set");
  rename(in_part("test", "aunt"), in_part("test", "ant"));
  AmprtProgram program = toy_fp32;
  program.n_classes = 3;
  assert_fails(&program, "has 4 classes, this program's model 3");
  program.n_classes = 7; /* the program has more outputs than there are classes */
  assert_int_equal(open_data(&data, &program, "folder", scratch, &error), 0);
  assert_int_equal(data.first_label, 0);
  amprt_data_close(&data);
  mkdir(in_part("train", "two\nlines"), 0777);
  assert_fails(&toy_fp32, "line break");
}

/* Whole runs: a file that is no image, one that is too large, and how a run goes on past them. */
static void test_runs(void **state) {
  (void)state;
  write_part("train");
  write_part("val");
  const char *bad = in_part("train", "ant/2.png"), *large = in_part("val", "ant/2.png");
  write_bytes(bad, "not a PNG", 9);
  run_bad(&toy_fp32, "--dataset=folder --data-dir=$ --train-epochs=2 --model-dir=", 1,
          "train/ant/2.png: ");
  assert_said("--max-bad-examples=N goes on past N such examples (1 so far)");
  write_image(bad, 1, SIDE);
  write_image(large, 1, 16);
  run_bad(&toy_fp32, "--dataset=folder --data-dir=$ --train-epochs=2 --model-dir=", 1,
          "val/ant/2.png: is 16x16, larger than the model's 8x8; --preprocessing=official");
  write_bytes(bad, "not a PNG", 9);
  run_good(&toy_fp32,
           "--dataset=folder --data-dir=$ --train-epochs=2 --model-dir=$/m --max-bad-examples=4 "
           "--preprocessing=official");
  assert_said("train/ant/2.png: ");
  assert_said("2 examples could not be read");
  assert_said("(20 images"); /* of the test set, which is whole */
  AmprtBytes names = read_bytes(in_scratch("m/classes.txt"));
  assert_int_equal(names.size, 5 + 1 + 3 + 1 + 8 + 1 + 10 + 1);
  assert_memory_equal(names.data, "Zebra\nant\nbee", 13);
  free(names.data);
  write_image(bad, 1, SIDE);
  run_good(&toy_fp32, "--dataset=folder --data-dir=$ --eval-only --model-dir=$/m "
                      "--preprocessing=official");
  rename(in_part("train", "bee hive"), in_part("train", "wasp"));
  rename(in_part("val", "bee hive"), in_part("val", "wasp"));
  run_bad(&toy_fp32, "--dataset=folder --data-dir=$ --train-epochs=3 --resume --model-dir=$/m", 1,
          "m/classes.txt: class 2 is bee hive, of the data set it is wasp");
  run_bad(&toy_fp32, "--dataset=folder --data-dir=$ --skip-eval --eval-only --model-dir=$/m", 2,
          "--skip-eval and --eval-only contradict each other");
}

/* What the flags about photographs make of the specification of an example. */
static void test_flags(void **state) {
  (void)state;
  AmprtExampleSpec spec;
  for (int on = 0; on < 2; on++) {
    char *argv[] = {(char *)"toy", (char *)"--preprocessing=official", (char *)"--fast-decode",
                    (char *)"--exif-orientation", NULL};
    assert_int_equal(amprt_options_parse(&options, &toy_fp32, on ? 4 : 2, argv, &error), 0);
    for (int training = 0; training < 2; training++) {
      assert_int_equal(amprt_example_spec(&toy_fp32, &options, training, &spec, &error), 0);
      assert_int_equal(spec.photo.fast, on);
      assert_int_equal(spec.photo.orientation, on);
      assert_int_equal(spec.photo.training, training);
      assert_int_equal(spec.photo.preprocessing, AMPRT_OFFICIAL);
    }
  }
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(test_order), SCRATCH_TEST(test_as_raw),
                                     SCRATCH_TEST(test_wrong), SCRATCH_TEST(test_runs),
                                     cmocka_unit_test(test_flags)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
