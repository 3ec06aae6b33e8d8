/* Tests the data set `imagenet`, shards of TFRecords. */
#include "runtime/base/clock.h"
#include "runtime/data/feed.h"
#include "runtime/report/png.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/shards.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *foreign; /* tests/oracle/tfrecord */

static const float ymin[] = {.1f, .2f}, xmin[] = {0, .5f}, ymax[] = {.9f, .25f}, xmax[] = {1, .75f};

/* Image i of the set is the text "image I" and has i % 3 boxes and the label i % 1000 + 1. */
static void add_image(const Shards *shards, int i) {
  char text[32];
  size_t size = (size_t)snprintf(text, sizeof text, "image %d", i);
  const AmprtTfExample example = {
      (const unsigned char *)text, size, i % 1000 + 1, i % 3, ymin, xmin, ymax, xmax, NULL};
  assert_true(shards_add(shards, &example));
}

/* Writes the shards one after the other, each with `each` images. */
static void write_set(const char *dir, const char *part, int count, int each) {
  Shards shards = {dir, part, count, 0, -1};
  for (int s = 0; s < count; s++) {
    assert_true(shards_begin(&shards, s));
    for (int i = 0; i < each; i++)
      add_image(&shards, s * each + i);
    shards_end(&shards);
  }
}

static AmprtStatus open_set(const char *part, AmprtDataset *set, AmprtError *error) {
  *set = (AmprtDataset){0};
  return amprt_open_imagenet(scratch, part, set, error);
}

static void test_records_in_order(void **state) {
  (void)state;
  AmprtDataset set;
  AmprtError error = {0};
  AmprtRoom room = {0};
  write_set(scratch, "train", 7, 13);
  if (open_set("train", &set, &error))
    fail_msg("%s", error.text);
  assert_int_equal(set.n, 91);
  assert_int_equal(set.classes, 1000);
  assert_true(set.exact && set.background && !set.height);
  for (int k = 0; k < 182; k++) {
    int i = k * 5 % 91;
    AmprtRecord record;
    char text[32], place[512], want[512];
    size_t size = (size_t)snprintf(text, sizeof text, "image %d", i);
    if (set.reader->fetch(&set, i, &room, &record, &error))
      fail_msg("%s", error.text);
    assert_int_equal(record.size, size);
    assert_memory_equal(record.data, text, size);
    assert_int_equal(record.label, i % 1000);
    assert_int_equal(record.n_boxes, i % 3);
    for (int b = 0; b < record.n_boxes; b++) {
      const AmprtBox box = {ymin[b], xmin[b], ymax[b], xmax[b]};
      assert_memory_equal(&record.box[b], &box, sizeof box);
    }
    set.reader->ahead(&set, i);
    set.reader->place(&set, i, place, sizeof place);
    snprintf(want, sizeof want, "%s/train-%05d-of-00007, byte ", scratch, i / 13);
    assert_memory_equal(place, want, strlen(want));
    assert_true((strcmp(place + strlen(want), "0") == 0) == (i % 13 == 0));
  }
  free(room.data);
  amprt_dataset_free(&set);
}

/* As some tools leave them: DIR/validation/validation-... */
static void test_inner_folder(void **state) {
  (void)state;
  AmprtDataset set;
  AmprtError error = {0};
  const char *inner = in_scratch("validation");
  assert_int_equal(mkdir(inner, 0777), 0);
  write_set(inner, "validation", 2, 5);
  assert_int_equal(open_set("validation", &set, &error), AMPRT_OK);
  assert_int_equal(set.n, 10);
  amprt_dataset_free(&set);
}

static void assert_refused(const char *part, const char *says) {
  AmprtDataset set;
  AmprtError error = {0};
  assert_int_equal(open_set(part, &set, &error), AMPRT_INPUT);
  if (!strstr(error.text, says))
    fail_msg("expected `%s` in: %s", says, error.text);
  amprt_dataset_free(&set);
}

static void test_refused(void **state) {
  (void)state;
  assert_refused("train", "has no files train-00000-of-...");
  write_set(scratch, "train", 3, 0);
  assert_refused("train", "its 3 files hold no records");
  write_set(scratch, "train", 3, 2);
  assert_refused("validation", "has no files validation-00000-of-...");
  assert_int_equal(unlink(in_scratch("train-00001-of-00003")), 0);
  assert_refused("train", "train-00001-of-00003 is missing (2 of 3 files are there)");
  write_set(scratch, "train", 4, 2);
  assert_refused("train", "has files of two sets");
}

static void test_bad_labels(void **state) {
  static const int64_t label[] = {-1, 0, 1001, 1000};
  (void)state;
  Shards shards = {scratch, "train", 1, 0, -1};
  AmprtDataset set;
  AmprtError error = {0};
  AmprtRoom room = {0};
  AmprtRecord record;
  assert_true(shards_begin(&shards, 0));
  for (int i = 0; i < 4; i++) {
    const AmprtTfExample example = {(const unsigned char *)"x", 1, label[i], .ymin = ymin};
    assert_true(shards_add(&shards, &example));
  }
  shards_end(&shards);
  assert_int_equal(open_set("train", &set, &error), AMPRT_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(set.reader->fetch(&set, i, &room, &record, &error), AMPRT_INPUT);
    assert_non_null(strstr(error.text, "not from 1 to 1000"));
    assert_non_null(strstr(error.text, "train-00000-of-00001: record at byte "));
  }
  assert_int_equal(set.reader->fetch(&set, 3, &room, &record, &error), AMPRT_OK);
  assert_int_equal(record.label, 999);
  free(room.data);
  amprt_dataset_free(&set);
}

/* Wherever a bit flips in a shard, opening the set or fetching one record says so, and every other
 * record is as it was. */
static void test_100_flipped_bits(void **state) {
  (void)state;
  const char *path = in_scratch("train-00001-of-00002");
  write_set(scratch, "train", 2, 50);
  AmprtBytes bytes = read_bytes(path);
  int fd = open(path, O_RDWR);
  uint64_t random = 1;
  for (int k = 0; k < 100; k++) {
    AmprtDataset set;
    AmprtError error = {0};
    AmprtRoom room = {0};
    random = random * 6364136223846793005u + 1442695040888963407u;
    size_t bit = (size_t)(random >> 20) % (bytes.size * 8);
    unsigned char byte = bytes.data[bit / 8] ^ (unsigned char)(1 << bit % 8);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
    AmprtStatus status = open_set("train", &set, &error);
    assert_true(!status || status == AMPRT_INPUT);
    int found = status != 0;
    for (int i = 0; !status && i < 100; i++) {
      AmprtRecord record;
      char text[32];
      snprintf(text, sizeof text, "image %d", i);
      if (set.reader->fetch(&set, i, &room, &record, &error) == AMPRT_OK)
        assert_memory_equal(record.data, text, record.size);
      else
        found++;
    }
    if (found != 1)
      fail_msg("bit %zu: %d of the records are refused", bit, found);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "record at byte "));
    assert_int_equal(pwrite(fd, bytes.data + bit / 8, 1, (off_t)(bit / 8)), 1);
    amprt_dataset_free(&set);
    free(room.data);
  }
  close(fd);
  free(bytes.data);
}

/* There are more shards than the process may have open files. */
static void test_few_descriptors(void **state) {
  (void)state;
  struct rlimit before, few = {32, 32};
  AmprtDataset set;
  AmprtError error = {0};
  AmprtRoom room = {0};
  write_set(scratch, "train", 100, 1);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  few.rlim_max = before.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  if (open_set("train", &set, &error))
    fail_msg("%s", error.text);
  for (int i = 0; i < 200; i++) {
    AmprtRecord record;
    if (set.reader->fetch(&set, i % 100, &room, &record, &error))
      fail_msg("%s", error.text);
    assert_int_equal(record.label, i % 100);
  }
  setrlimit(RLIMIT_NOFILE, &before);
  free(room.data);
  amprt_dataset_free(&set);
}

/* A file that is replaced during the run is an error. */
static void test_changed_file(void **state) {
  (void)state;
  AmprtDataset set;
  AmprtError error = {0};
  AmprtRoom room = {0};
  AmprtRecord record;
  write_set(scratch, "train", 2, 3);
  assert_int_equal(open_set("train", &set, &error), AMPRT_OK);
  assert_int_equal(set.reader->fetch(&set, 0, &room, &record, &error), AMPRT_OK);
  assert_int_equal(truncate(in_scratch("train-00000-of-00002"), 20), 0);
  assert_int_equal(truncate(in_scratch("train-00001-of-00002"), 20), 0);
  assert_int_equal(set.reader->fetch(&set, 2, &room, &record, &error), AMPRT_INPUT);
  assert_non_null(strstr(error.text, "became shorter"));
  assert_int_equal(set.reader->fetch(&set, 4, &room, &record, &error), AMPRT_INPUT);
  assert_non_null(strstr(error.text, "its size has changed"));
  free(room.data);
  amprt_dataset_free(&set);
}

/* PNGs of different sizes, one in each class, as a folder and as shards: batch by batch the same
 * bytes and labels, from the start and from the middle of an epoch. */
static void write_images(int n) {
  Shards shards = {scratch, "train", 3, -1, -1};
  mkdir(in_scratch("train"), 0777);
  for (int i = 0; i < n; i++) {
    static unsigned char pixel[40 * 40];
    char name[32], inner[64];
    AmprtBytes png;
    for (size_t p = 0; p < sizeof pixel; p++)
      pixel[p] = (unsigned char)((size_t)i * 31 + p * p % 251);
    assert_true(amprt_png_write(pixel, 10 + i % 30, 40 - i % 17, 1, &png));
    snprintf(name, sizeof name, "train/c%02d", i);
    snprintf(inner, sizeof inner, "train/c%02d/image.png", i);
    assert_int_equal(mkdir(in_scratch(name), 0777), 0);
    write_bytes(in_scratch(inner), png.data, png.size);
    if (i * 3 / n != shards.index)
      assert_true(shards_begin(&shards, i * 3 / n));
    const AmprtTfExample example = {png.data, png.size, i + 1, .n_boxes = 0};
    assert_true(shards_add(&shards, &example));
    if (i + 1 == n || (i + 1) * 3 / n != shards.index)
      shards_end(&shards);
    free(png.data);
  }
}

static void test_same_batches_as_folder(void **state) {
  enum { N = 20, SIDE = 16, BATCH = 6 };
  (void)state;
  AmprtDataset shards = {0}, folder = {0};
  AmprtError error = {0};
  write_images(N);
  assert_int_equal(amprt_open_imagenet(scratch, "train", &shards, &error), 0);
  assert_int_equal(amprt_open_folder(scratch, "train", &folder, &error), 0);
  assert_int_equal(shards.n, N);
  assert_int_equal(folder.n, N);
  AmprtFeedPlan plan = {.example.image = {SIDE, SIDE, 1, 1, true, true},
                        .example.photo = {SIDE, SIDE, 1, AMPRT_OFFICIAL, true, true},
                        .first_label = 1,
                        .batch_size = BATCH,
                        .seed = 5,
                        .purpose = "train",
                        .shuffle = true,
                        .end = 120,
                        .threads = 3};
  for (plan.position = 0; plan.position <= 24; plan.position += 12) {
    AmprtFeed *a = NULL, *b = NULL;
    const AmprtBatch *x = NULL, *y = NULL;
    plan.set = &shards;
    assert_int_equal(amprt_feed_open(&a, &plan, &error), 0);
    plan.set = &folder;
    assert_int_equal(amprt_feed_open(&b, &plan, &error), 0);
    for (uint64_t at = plan.position; at < plan.end; at += BATCH) {
      if (amprt_feed_next(a, &x, &error) || amprt_feed_next(b, &y, &error))
        fail_msg("%s", error.text);
      assert_int_equal(x->count, BATCH);
      assert_memory_equal(x->pixel, y->pixel, BATCH * SIDE * SIDE);
      assert_memory_equal(x->label, y->label, BATCH * sizeof *x->label);
    }
    amprt_feed_close(a);
    amprt_feed_close(b);
  }
  amprt_dataset_free(&shards);
  amprt_dataset_free(&folder);
}

/* A shard that PyPI's tfrecord 1.14.6 has written (tests/oracle/tfrecord/make.py). */
static void test_foreign_shard(void **state) {
  (void)state;
  AmprtDataset set = {0};
  AmprtError error = {0};
  AmprtRoom room = {0};
  if (amprt_open_imagenet(foreign, "train", &set, &error))
    fail_msg("%s", error.text);
  assert_int_equal(set.n, 3);
  for (int i = 0; i < 3; i++) {
    AmprtRecord record;
    if (set.reader->fetch(&set, i, &room, &record, &error))
      fail_msg("%s", error.text);
    assert_int_equal(record.size, 1000 * i + 5);
    for (size_t k = 0; k < record.size; k++)
      assert_int_equal(record.data[k], (k * 7 + (size_t)i) % 256);
    assert_int_equal(record.label, 499 * i);
    assert_int_equal(record.n_boxes, i);
    for (int b = 0; b < i; b++) {
      const AmprtBox want = {.125f * (float)b, .25f, .5f, .75f + .0625f * (float)b};
      assert_memory_equal(&record.box[b], &want, sizeof want);
    }
  }
  free(room.data);
  amprt_dataset_free(&set);
}

static long resident(void) {
  long total = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%ld %ld", &total, &pages) != 2)
    pages = 0;
  if (file)
    fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

/* As many records as ImageNet has. One offset each is 10 MB; below 2 s on an idle machine, which
 * this one may not be. */
static void test_size_of_imagenet(void **state) {
  (void)state;
  enum { SHARDS = 64, EACH = 20000 };
  AmprtDataset set;
  AmprtError error = {0};
  Shards shards = {scratch, "train", SHARDS, 0, -1};
  assert_true(shards_begin(&shards, 0));
  for (int i = 0; i < EACH; i++)
    add_image(&shards, i);
  shards_end(&shards);
  for (int s = 1; s < SHARDS; s++) { /* the other shards are the same file */
    char name[32];
    snprintf(name, sizeof name, "train-%05d-of-%05d", s, SHARDS);
    assert_int_equal(link(in_scratch("train-00000-of-00064"), in_scratch(name)), 0);
  }
  long before = resident();
  double start = amprt_seconds();
  if (open_set("train", &set, &error))
    fail_msg("%s", error.text);
  double seconds = amprt_seconds() - start;
  double megabytes = (double)(resident() - before) / 1e6;
  print_message("%lld records: %.2f s, %.1f MB\n", (long long)set.n, seconds, megabytes);
  assert_int_equal(set.n, SHARDS * EACH);
  assert_true(megabytes < 100);
  assert_true(seconds < 20);
  amprt_dataset_free(&set);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(int argc, char **argv) {
  foreign = argc > 1 ? argv[1] : "tests/oracle/tfrecord";
  const struct CMUnitTest tests[] = {
      TEST(test_records_in_order),
      TEST(test_inner_folder),
      TEST(test_refused),
      TEST(test_bad_labels),
      TEST(test_100_flipped_bits),
      TEST(test_few_descriptors),
      TEST(test_changed_file),
      TEST(test_size_of_imagenet),
      TEST(test_same_batches_as_folder),
      cmocka_unit_test(test_foreign_shard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
