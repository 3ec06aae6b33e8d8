/* Tests the readers of data sets in memory, and augmentation. */
#include "runtime/data/augment.h"
#include "runtime/data/data.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static AmprtError error;
static AmprtData data;

static void assert_fails(const AmprtProgram *program, const char *dataset, const char *says) {
  assert_int_equal(open_data(&data, program, dataset, scratch, &error), AMPRT_INPUT);
  amprt_data_close(&data);
  if (!strstr(error.text, says))
    fail_msg("expected `%s`, got `%s`", says, error.text);
}

static void gzip(const char *name, const void *bytes, size_t size) {
  gzFile out = gzopen(in_scratch(name), "wb");
  assert_non_null(out);
  assert_int_equal(gzwrite(out, bytes, (unsigned)size), size);
  gzclose(out);
}

static void test_idx(void **state) {
  (void)state;
  toy_write_data(scratch, 20, 10);
  assert_int_equal(open_data(&data, &toy_fp32, "fashion_mnist", scratch, &error), 0);
  AmprtBytes raw = read_bytes(in_scratch("train-images-idx3-ubyte"));
  assert_int_equal(data.train.n, 20);
  assert_int_equal(data.test.n, 10);
  for (int y = 0; y < 6; y++)
    for (int x = 0; x < 6; x++)
      assert_int_equal(data.train.pixel[36 * 3 + 6 * y + x], raw.data[16 + 36 * 3 + 6 * y + x]);
  amprt_data_close(&data);
  gzip("train-images-idx3-ubyte.gz", raw.data, raw.size);
  remove(in_scratch("train-images-idx3-ubyte"));
  assert_int_equal(open_data(&data, &toy_fp32, "fashion_mnist", scratch, &error), 0);
  assert_int_equal(data.train.pixel[36], raw.data[16 + 36]);
  amprt_data_close(&data);
  free(raw.data);
}

static void test_idx_wrong(void **state) {
  (void)state;
  const char *images = "train-images-idx3-ubyte", *labels = "train-labels-idx1-ubyte";
  toy_write_data(scratch, 20, 10);
  AmprtBytes good = read_bytes(in_scratch(images)), marks = read_bytes(in_scratch(labels));
  static const struct {
    size_t at;
    unsigned char to;
    const char *says;
  } flip[] = {
      {0, 1, "no idx file"},         {2, 9, "no idx file"},      {3, 1, "no idx file"},
      {7, 21, "promises 756 bytes"}, {7, 0, "dimension 0 is 0"}, {4, 255, "dimension 0"},
      {11, 7, "promises 840"},
  };
  for (size_t i = 0; i < sizeof flip / sizeof *flip; i++) {
    unsigned char before = good.data[flip[i].at];
    good.data[flip[i].at] = flip[i].to;
    write_bytes(in_scratch(images), good.data, good.size);
    assert_fails(&toy_fp32, "fashion_mnist", flip[i].says);
    good.data[flip[i].at] = before;
  }
  write_bytes(in_scratch(images), good.data, good.size - 1);
  assert_fails(&toy_fp32, "fashion_mnist", "promises 720 bytes, 719");
  write_bytes(in_scratch(images), good.data, 3);
  assert_fails(&toy_fp32, "fashion_mnist", "no idx file");
  write_bytes(in_scratch(images), good.data, good.size);
  marks.data[10] = 4;
  write_bytes(in_scratch(labels), marks.data, marks.size);
  assert_fails(&toy_fp32, "fashion_mnist", "training image 2 has label 4, the model has 4 classes");
  marks.data[7] = 19;
  write_bytes(in_scratch(labels), marks.data, marks.size - 1);
  assert_fails(&toy_fp32, "fashion_mnist", "19 labels for 20 images");
  remove(in_scratch(images));
  assert_fails(&toy_fp32, "fashion_mnist", "--data-dir says where");
  gzip("train-images-idx3-ubyte.gz", good.data, good.size);
  AmprtBytes packed = read_bytes(in_scratch("train-images-idx3-ubyte.gz"));
  write_bytes(in_scratch("train-images-idx3-ubyte.gz"), packed.data, packed.size - 9);
  assert_fails(&toy_fp32, "fashion_mnist", "damaged or short");
  packed.data[packed.size / 2] ^= 0x55;
  write_bytes(in_scratch("train-images-idx3-ubyte.gz"), packed.data, packed.size);
  assert_fails(&toy_fp32, "fashion_mnist", "damaged or short");
  free(packed.data);
  free(good.data);
  free(marks.data);
  AmprtProgram small = toy_fp32;
  small.height = 4;
  toy_write_data(scratch, 20, 10);
  assert_fails(&small, "fashion_mnist", "6x6, larger than the model's 4x8");
  small.channels = 3;
  assert_fails(&small, "fashion_mnist", "have 1 channels, the model wants 3");
}

enum { RECORD = 3073 };
static AmprtProgram cifar = {
    .n_classes = 10, .height = 32, .width = 32, .channels = 3, .batch_size = 2};

static void write_cifar(const char *prefix, size_t last_size) {
  static unsigned char record[2 * RECORD];
  char name[64];
  for (int file = 1; file <= 6; file++) {
    record[0] = (unsigned char)file;
    record[RECORD] = 7; /* specs/resnet.md 5.1: the planes hold 0, 1 and 2 */
    for (int i = 0; i < 3072; i++)
      record[RECORD + 1 + i] = (unsigned char)(i / 1024);
    snprintf(name, sizeof name, file < 6 ? "%sdata_batch_%d.bin" : "%stest_batch.bin", prefix,
             file);
    write_bytes(in_scratch(name), record, file == 5 ? last_size : sizeof record);
  }
}

/* Bytes, then floats. */
static void prepare(const AmprtImageSpec *spec, const unsigned char *pixel, AmprtWords random,
                    float *out) {
  unsigned char bytes[3072];
  size_t n = (size_t)(spec->height * spec->width * spec->channels);
  AmprtScaling scaling = amprt_image_prepare(spec, pixel, spec->height, spec->width, random, bytes);
  AmprtScaling all[3] = {scaling, scaling, scaling};
  amprt_image_floats(bytes, n, (size_t)spec->channels, all, out);
}

static void test_cifar(void **state) {
  (void)state;
  write_cifar("", 2 * RECORD);
  assert_int_equal(open_data(&data, &cifar, "cifar10", scratch, &error), 0);
  assert_int_equal(data.train.n, 10);
  assert_int_equal(data.test.n, 2);
  assert_int_equal(data.train.label[4], 3);
  assert_int_equal(data.train.label[5], 7);
  float out[3072];
  AmprtImageSpec spec = {32, 32, 3, .standardize = true};
  prepare(&spec, data.train.pixel + 5 * 3072, (AmprtWords){{0}}, out);
  static const double want[] = {-1.224745, 0, 1.224745};
  for (int i = 0; i < 3072; i++)
    assert_true(fabs(out[i] - want[i % 3]) < 1e-5);
  amprt_data_close(&data);
  AmprtProgram nine = cifar;
  nine.n_classes = 7;
  assert_fails(&nine, "cifar10", "cifar10 has 10 classes, this program's model 7");
}

static void test_cifar_wrong(void **state) {
  (void)state;
  assert_int_equal(open_data(&data, &cifar, "cifar10", "", &error), AMPRT_USAGE);
  assert_non_null(strstr(error.text, "needs --data-dir"));
  assert_fails(&cifar, "cifar10", "cannot open");
  write_cifar("", 2 * RECORD - 1);
  assert_fails(&cifar, "cifar10", "data_batch_5.bin: has 6145 bytes");
  write_cifar("", 0);
  assert_fails(&cifar, "cifar10", "has 0 bytes");
  write_cifar("", 2 * RECORD);
  write_bytes(in_scratch("data_batch_3.bin"), (unsigned char[RECORD]){10}, RECORD);
  assert_fails(&cifar, "cifar10", "record 0 has label 10");
  assert_int_equal(open_data(&data, &cifar, "mnist", "", &error), AMPRT_USAGE);
}

/* CIFAR-100's records: a coarse label, a fine one, three planes. */
static void test_cifar100(void **state) {
  (void)state;
  enum { TWO_LABELS = 3074 };
  static unsigned char records[3 * TWO_LABELS];
  for (int i = 0; i < 3; i++) {
    unsigned char *at = records + i * TWO_LABELS;
    at[0] = (unsigned char)(19 - i);
    at[1] = (unsigned char)(97 + i);
    for (int p = 0; p < 3072; p++)
      at[2 + p] = (unsigned char)(10 * i + p / 1024);
  }
  assert_int_equal(mkdir(in_scratch("cifar-100-binary"), 0777), 0);
  write_bytes(in_scratch("cifar-100-binary/train.bin"), records, sizeof records);
  write_bytes(in_scratch("cifar-100-binary/test.bin"), records + TWO_LABELS, TWO_LABELS);
  AmprtProgram program = cifar;
  program.n_classes = 100;
  assert_int_equal(open_data(&data, &program, "cifar100", scratch, &error), 0);
  assert_string_equal(data.dir, in_scratch("cifar-100-binary"));
  assert_int_equal(data.train.n, 3);
  assert_int_equal(data.test.n, 1);
  assert_memory_equal(data.train.label, ((unsigned char[]){97, 98, 99}), 3);
  assert_int_equal(data.test.label[0], 98);
  for (int i = 0; i < 3 * 3072; i++)
    assert_int_equal(data.train.pixel[i], 10 * (i / 3072) + i % 3);
  amprt_data_close(&data);
  assert_fails(&program, "cifar100_coarse",
               "cifar100_coarse has 20 classes, this program's model 100");
  program.n_classes = 20;
  assert_fails(&program, "cifar100", "ampcc-zoo NAME --classes=100");
  assert_int_equal(
      open_data(&data, &program, "cifar100_coarse", in_scratch("cifar-100-binary"), &error), 0);
  assert_memory_equal(data.train.label, ((unsigned char[]){19, 18, 17}), 3);
  amprt_data_close(&data);
  records[TWO_LABELS + 1] = 100; /* the fine label is checked although the coarse one is wanted */
  write_bytes(in_scratch("cifar-100-binary/train.bin"), records, sizeof records);
  assert_fails(&program, "cifar100_coarse",
               "train.bin: record 1 has label 100; CIFAR-100 has 0 to 99");
  records[TWO_LABELS + 1] = 0, records[0] = 20;
  write_bytes(in_scratch("cifar-100-binary/train.bin"), records, sizeof records);
  assert_fails(&program, "cifar100_coarse", "record 0 has label 20; CIFAR-100 has 0 to 19");
  write_bytes(in_scratch("cifar-100-binary/train.bin"), records, 3 * RECORD);
  assert_fails(&program, "cifar100_coarse",
               "train.bin: has 9219 bytes; CIFAR-100 records have 3074");
}

static void test_synthetic(void **state) {
  (void)state;
  AmprtProgram program = toy_fp32;
  program.batch_size = 500;
  assert_int_equal(open_data(&data, &program, "synthetic", "", &error), 0);
  int n = 500 * 64, count[4] = {0};
  double sum = 0, squares = 0;
  for (int i = 0; i < n; i++) {
    float x = data.train.batch_image[i];
    assert_true(x >= 7 && x <= 247);
    sum += x, squares += (double)x * x;
  }
  sum /= n;
  assert_true(fabs(sum - 127) < 1);
  assert_true(fabs(sqrt(squares / n - sum * sum) - 60 * .8796) < 1);
  for (int i = 0; i < 500; i++)
    count[data.train.batch_label[i]]++;
  assert_int_equal(count[3], 0); /* the last class is never drawn */
  for (int i = 0; i < 3; i++)
    assert_in_range(count[i], 120, 220);
  assert_int_equal(data.train.n, 1281167);
  amprt_data_close(&data);
}

/* Every place and both directions occur, each pixel is where it should be, and zeros come in. */
static void test_augment(void **state) {
  (void)state;
  AmprtImageSpec spec = {4, 4, 1, .pad = 1, .flip = true};
  unsigned char pixel[16];
  int seen[3][3][2] = {{{0}}};
  float out[16];
  for (int i = 0; i < 16; i++)
    pixel[i] = (unsigned char)(i + 1);
  AmprtKey key = amprt_rng_key(1, "augment");
  for (uint64_t draw = 0; draw < 400; draw++) {
    AmprtWords words = amprt_rng_at(key, draw, 0);
    int dy = (int)amprt_rng_below(words.v[0], 3), dx = (int)amprt_rng_below(words.v[1], 3);
    int flip = words.v[2] >> 31;
    seen[dy][dx][flip]++;
    prepare(&spec, pixel, words, out);
    for (int y = 0; y < 4; y++)
      for (int x = 0; x < 4; x++) {
        int sy = y + dy - 1, sx = (flip ? 3 - x : x) + dx - 1;
        bool inside = sy >= 0 && sy < 4 && sx >= 0 && sx < 4;
        float want = inside ? (float)(pixel[4 * sy + sx] / 255.0) : 0;
        assert_true(out[4 * y + x] == want);
      }
  }
  for (int i = 0; i < 18; i++)
    assert_in_range(((int *)seen)[i], 5, 50);
}

static void test_standardize_flat(void **state) {
  (void)state;
  AmprtImageSpec spec = {2, 2, 1, .standardize = true};
  float out[4];
  prepare(&spec, (unsigned char[]){9, 9, 9, 9}, (AmprtWords){{0}}, out);
  assert_true(out[0] == 0);
  /* variance 3/16, below 1/4 = (1/sqrt 4)^2: the floor of the deviation decides */
  prepare(&spec, (unsigned char[]){9, 9, 9, 10}, (AmprtWords){{0}}, out);
  assert_true(out[3] == 1.5f && out[0] == -.5f);
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(test_idx),         SCRATCH_TEST(test_idx_wrong),
      SCRATCH_TEST(test_cifar),       SCRATCH_TEST(test_cifar_wrong),
      SCRATCH_TEST(test_cifar100),    cmocka_unit_test(test_synthetic),
      cmocka_unit_test(test_augment), cmocka_unit_test(test_standardize_flat),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
