/* Tests packed data sets: records are read as they were written, and damaged ones are refused. */
#include "runtime/data/feed.h"
#include "runtime/data/pack.h"
#include "runtime/pack/write.h"
#include "runtime/record/crc32c.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static AmprtError error;

static void write_pack(const char *name, const AmprtDataset *set) {
  PackWriter writer;
  AmprtRoom room = {0};
  assert_int_equal(pack_write_begin(&writer, in_scratch(name), set, "made by a test", &error), 0);
  for (int64_t i = 0; i < set->n; i++) {
    AmprtRecord record;
    assert_int_equal(set->reader->fetch(set, i, &room, &record, &error), 0);
    assert_int_equal(pack_write_record(&writer, &record, &error), 0);
  }
  assert_int_equal(pack_write_tables(&writer, &error), 0);
  assert_int_equal(pack_write_end(&writer, true, &error), 0);
  free(room.data);
}

/* A set of four records of any bytes, with boxes, wide labels and names. */
static const AmprtBox boxes[] = {{0, 0.25f, 0.5f, 1}, {0.125f, 0, 1, 0.75f}};
static const AmprtRecord sample[] = {
    {(const unsigned char *)"\xff\xd8 one", 6, 0, NULL, 0},
    {(const unsigned char *)"two", 3, 69999, boxes, 2},
    {(const unsigned char *)"3", 1, 2, NULL, 0},
    {(const unsigned char *)"four and more", 13, 70000, boxes + 1, 1},
};
enum { N_SAMPLE = sizeof sample / sizeof *sample, SAMPLE_CLASSES = 70001 };

static AmprtStatus sample_fetch(const AmprtDataset *set, int64_t index, AmprtRoom *room,
                                AmprtRecord *record, AmprtError *failed) {
  (void)set, (void)room, (void)failed;
  *record = sample[index];
  return AMPRT_OK;
}

static const AmprtReader sample_reader = {.fetch = sample_fetch};
static const AmprtDataset sample_set = {
    .n = N_SAMPLE, .classes = SAMPLE_CLASSES, .background = true, .reader = &sample_reader};

static AmprtStatus try_open(const char *name, AmprtDataset *set) {
  *set = (AmprtDataset){0};
  return amprt_pack_open(in_scratch(name), set, &error);
}

static void assert_same_sets(const AmprtDataset *a, const AmprtDataset *b) {
  AmprtRoom rooms[2] = {{0}};
  assert_int_equal(a->n, b->n);
  assert_int_equal(a->classes, b->classes);
  assert_int_equal(a->height, b->height);
  assert_int_equal(a->width, b->width);
  assert_int_equal(a->channels, b->channels);
  assert_int_equal(a->exact, b->exact);
  assert_int_equal(a->background, b->background);
  assert_int_equal(!a->class_name, !b->class_name);
  for (int64_t c = 0; a->class_name && c < a->classes; c++)
    assert_string_equal(a->class_name[c], b->class_name[c]);
  for (int64_t i = 0; i < a->n; i++) {
    AmprtRecord x, y;
    assert_int_equal(a->reader->fetch(a, i, &rooms[0], &x, &error), 0);
    assert_int_equal(b->reader->fetch(b, i, &rooms[1], &y, &error), 0);
    assert_int_equal(x.label, y.label);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    assert_int_equal(x.n_boxes, y.n_boxes);
    if (x.n_boxes)
      assert_memory_equal(x.box, y.box, (size_t)x.n_boxes * sizeof *x.box);
  }
  free(rooms[0].data);
  free(rooms[1].data);
}

static void test_records(void **state) {
  (void)state;
  AmprtDataset set;
  char place[600], want[600];
  write_pack("sample", &sample_set);
  assert_int_equal(try_open("sample", &set), 0);
  assert_same_sets(&sample_set, &set);
  assert_string_equal(amprt_pack_note(&set), "made by a test");
  assert_int_equal(amprt_pack_label(&set, 3), 70000);
  assert_int_equal(amprt_pack_size(&set, 1), 35);
  set.reader->ahead(&set, 1);
  set.reader->place(&set, 1, place, sizeof place);
  snprintf(want, sizeof want, "%s/sample: record 1 at byte %d", scratch,
           AMPRT_PACK_HEADER + 14 + 6);
  assert_string_equal(place, want);
  amprt_dataset_free(&set);
}

static void test_names(void **state) {
  (void)state;
  static const char *const name[] = {"ant", "", "a name with \xc3\xa9", "zebra"};
  static unsigned char pixel[3 * 8], label[] = {3, 0, 3};
  for (size_t i = 0; i < sizeof pixel; i++)
    pixel[i] = (unsigned char)(i * 37);
  AmprtDataset like = {.n = 3,
                       .classes = 4,
                       .height = 2,
                       .width = 4,
                       .channels = 1,
                       .exact = true,
                       .reader = &amprt_memory_reader,
                       .pixel = pixel,
                       .label = label,
                       .class_name = name},
               set;
  write_pack("names", &like);
  assert_int_equal(try_open("names", &set), 0);
  assert_same_sets(&like, &set);
  amprt_dataset_free(&set);
}

/* What no reader would take is not written. */
static void test_refused_records(void **state) {
  (void)state;
  static const AmprtDataset pixels = {.n = 1, .classes = 3, .height = 2, .width = 2, .channels = 1};
  static const AmprtRecord bad[] = {{(const unsigned char *)"1234", 4, 3, NULL, 0},
                                    {(const unsigned char *)"1234", 4, -1, NULL, 0},
                                    {(const unsigned char *)"123", 3, 0, NULL, 0},
                                    {(const unsigned char *)"", 0, 0, NULL, 0},
                                    {NULL, AMPRT_PACK_RECORD + 1, 0, NULL, 0}};
  PackWriter writer;
  AmprtError failed;
  assert_int_equal(pack_write_begin(&writer, in_scratch("refused"), &pixels, "", &error), 0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(pack_write_record(&writer, &bad[i], &error), AMPRT_INPUT);
  assert_int_equal(pack_write_tables(&writer, &failed), AMPRT_INPUT);
  assert_non_null(strstr(failed.text, "would have no records"));
  assert_int_equal(pack_write_end(&writer, false, &error), 0);
  assert_false(amprt_is_file(in_scratch("refused")) || amprt_is_file(in_scratch("refused.tmp")));
}

/* ---- the same batches as from the source ---- */

static void assert_same_batches(const AmprtDataset *a, const AmprtDataset *b,
                                const AmprtImageSpec *image) {
  AmprtFeed *feed[2] = {NULL, NULL};
  AmprtFeedPlan plan = toy_plan(a);
  plan.example.image = *image;
  plan.threads = 3;
  size_t n = (size_t)(8 * image->height * image->width * image->channels);
  assert_int_equal(amprt_feed_open(&feed[0], &plan, &error), 0);
  plan.set = b;
  assert_int_equal(amprt_feed_open(&feed[1], &plan, &error), 0);
  for (int i = 0; i < 40; i++) {
    const AmprtBatch *x, *y;
    assert_int_equal(amprt_feed_next(feed[0], &x, &error), 0);
    assert_int_equal(amprt_feed_next(feed[1], &y, &error), 0);
    assert_memory_equal(x->image, y->image, n * sizeof(float));
    assert_memory_equal(x->label, y->label, 8 * sizeof *x->label);
  }
  amprt_feed_close(feed[0]);
  amprt_feed_close(feed[1]);
}

static void test_idx(void **state) {
  (void)state;
  AmprtData idx, pack;
  toy_write_data(scratch, 203, 50);
  assert_int_equal(open_data(&idx, &toy_fp32, "fashion_mnist", scratch, &error), 0);
  write_pack("train.ampack", &idx.train);
  write_pack("val.ampack", &idx.test);
  assert_int_equal(open_data(&pack, &toy_fp32, "pack", scratch, &error), 0);
  assert_same_sets(&idx.train, &pack.train);
  assert_same_sets(&idx.test, &pack.test);
  assert_same_batches(&idx.train, &pack.train, &(AmprtImageSpec){8, 8, 1, 1, true, true});
  amprt_data_close(&idx);
  amprt_data_close(&pack);
}

static void test_cifar(void **state) {
  (void)state;
  static unsigned char file[20 * 3073];
  const AmprtProgram program = {.n_classes = 10, .height = 32, .width = 32, .channels = 3};
  AmprtData cifar, pack;
  for (size_t i = 0; i < sizeof file; i++)
    file[i] = (unsigned char)(i % 3073 ? (i * i) >> 3 : i / 3073 % 10);
  for (int i = 1; i <= 5; i++) {
    char name[32];
    snprintf(name, sizeof name, "data_batch_%d.bin", i);
    file[1] = (unsigned char)i;
    write_bytes(in_scratch(name), file, sizeof file);
  }
  write_bytes(in_scratch("test_batch.bin"), file, 3073);
  assert_int_equal(open_data(&cifar, &program, "cifar10", scratch, &error), 0);
  write_pack("train.ampack", &cifar.train);
  write_pack("val.ampack", &cifar.test);
  assert_int_equal(open_data(&pack, &program, "pack", scratch, &error), 0);
  assert_same_sets(&cifar.train, &pack.train);
  assert_same_sets(&cifar.test, &pack.test);
  assert_same_batches(&cifar.train, &pack.train, &(AmprtImageSpec){32, 32, 3, 4, true, true});
  amprt_data_close(&cifar);
  amprt_data_close(&pack);
}

/* ---- damage ---- */

/* Can the file be opened and all of its records be read? Any error must be about the file. */
static bool all_is_read(const char *name) {
  AmprtDataset set;
  AmprtRoom room = {0};
  AmprtRecord record;
  AmprtStatus status = try_open(name, &set);
  for (int64_t i = 0; !status && i < set.n; i++)
    status = set.reader->fetch(&set, i, &room, &record, &error);
  assert_true(!status || status == AMPRT_INPUT);
  assert_true(!status || strstr(error.text, name));
  amprt_dataset_free(&set);
  free(room.data);
  return !status;
}

/* Every bit of a small file, and 100 of a larger one. */
static void test_flipped_bits(void **state) {
  (void)state;
  AmprtData idx;
  write_pack("small", &sample_set);
  toy_write_data(scratch, 203, 50);
  assert_int_equal(open_data(&idx, &toy_fp32, "fashion_mnist", scratch, &error), 0);
  write_pack("large", &idx.train);
  amprt_data_close(&idx);
  assert_true(all_is_read("small") && all_is_read("large"));
  AmprtBytes small = read_bytes(in_scratch("small")), large = read_bytes(in_scratch("large"));
  for (size_t bit = 0; bit < 8 * small.size; bit++) {
    small.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    write_bytes(in_scratch("small"), small.data, small.size);
    if (all_is_read("small"))
      fail_msg("bit %zu of byte %zu was not missed", bit % 8, bit / 8);
    small.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  for (uint32_t i = 0; i < 100; i++) {
    size_t bit = amprt_rng_below(amprt_rng_at(amprt_rng_key(1, "flips"), i, 0).v[0],
                                 (uint32_t)(8 * large.size));
    large.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    write_bytes(in_scratch("large"), large.data, large.size);
    assert_false(all_is_read("large"));
    large.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  free(small.data);
  free(large.data);
}

static void test_lengths(void **state) {
  (void)state;
  write_pack("long", &sample_set);
  AmprtBytes whole = read_bytes(in_scratch("long"));
  for (size_t size = 0; size < whole.size; size++) {
    write_bytes(in_scratch("long"), whole.data, size);
    assert_false(all_is_read("long"));
  }
  unsigned char *more = calloc(1, whole.size + 100);
  assert_non_null(more);
  memcpy(more, whole.data, whole.size);
  for (size_t size = whole.size + 1; size <= whole.size + 100; size += 9) {
    write_bytes(in_scratch("long"), more, size);
    assert_false(all_is_read("long"));
  }
  free(more);
  free(whole.data);
}

/* If somebody changes the file while it is in use, that is an error and not a signal. */
static void test_cut_off_in_use(void **state) {
  (void)state;
  AmprtDataset set;
  AmprtRoom room = {0};
  AmprtRecord record;
  write_pack("used", &sample_set);
  assert_int_equal(try_open("used", &set), 0);
  assert_int_equal(truncate(in_scratch("used"), AMPRT_PACK_HEADER + 14 + 6), 0);
  assert_int_equal(set.reader->fetch(&set, 0, &room, &record, &error), 0);
  assert_int_equal(set.reader->fetch(&set, 1, &room, &record, &error), AMPRT_INPUT);
  assert_non_null(strstr(error.text, "became shorter"));
  amprt_dataset_free(&set);
  free(room.data);
}

/* ---- headers that somebody made on purpose: all checksums are right ---- */

/* `index`: bytes of the index. */
static void seal(AmprtBytes *file, size_t index) {
  uint64_t more = amprt_little(file->data + 36, 4) + amprt_little(file->data + 40, 8);
  size_t head = AMPRT_PACK_HEADER + (more < 100 ? (size_t)more : 0);
  unsigned char *trailer = file->data + file->size - AMPRT_PACK_TRAILER;
  amprt_put_little(trailer, amprt_crc32c(file->data, head), 4);
  amprt_put_little(trailer + 4, amprt_crc32c(trailer - index, index), 4);
}

static void test_hostile(void **state) {
  (void)state;
  enum { HEAD = AMPRT_PACK_HEADER + 14, INDEX = N_SAMPLE * AMPRT_PACK_ENTRY };
  write_pack("hostile", &sample_set);
  AmprtBytes file = read_bytes(in_scratch("hostile"));
  size_t entry = file.size - AMPRT_PACK_TRAILER - INDEX;
  const struct {
    size_t at;
    int bytes;
    uint64_t value;
    const char *says;
  } change[] = {
      {0, 1, 'A', "is no pack"},
      {8, 4, 2, "version 2; this reads 1"},
      {12, 4, 8, "header is damaged"},
      {12, 4, AMPRT_PACK_NAMES, "header is damaged"}, /* and there are none */
      {16, 4, 0, "header is damaged"},
      {16, 4, N_SAMPLE - 1, "header is damaged"},
      {16, 4, N_SAMPLE + 1, "should have"},
      {16, 4, UINT32_MAX, "should have"},
      {20, 4, 0, "header is damaged"},
      {20, 4, UINT32_MAX, "header is damaged"},
      {20, 4, 70000, "label 70000"},
      {24, 4, 7, "header is damaged"}, /* a height without a width */
      {36, 4, 15, "makes no sense"},   /* the note reaches into the records */
      {36, 4, UINT32_MAX, "header is damaged"},
      {40, 8, 1, "header is damaged"}, /* names, but no flag */
      {40, 8, UINT64_MAX - HEAD + 1, "header is damaged"},
      {48, 8, 0, "header is damaged"},
      {48, 8, UINT64_MAX, "header is damaged"},
      {48, 8, file.size, "should have"},
      {entry, 8, HEAD - 1, "makes no sense"},
      {entry, 8, UINT64_MAX, "makes no sense"},
      {entry, 8, file.size, "makes no sense"},
      {entry + 8, 4, 0, "makes no sense"},
      {entry + 8, 4, UINT32_MAX, "makes no sense"},
      {entry + 8, 4, 200, "makes no sense"}, /* reaches into the index */
      {entry + 12, 4, 1, "makes no sense"},  /* more boxes than bytes */
      {entry + 12, 4, UINT32_MAX, "makes no sense"},
      {entry + 16, 4, SAMPLE_CLASSES, "makes no sense"},
      {entry + 16, 4, UINT32_MAX, "makes no sense"},
      {file.size - 16, 8, file.size - 1, "trailer is damaged"},
      {file.size - 8, 1, 0, "trailer is damaged"},
  };
  for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
    uint64_t before = amprt_little(file.data + change[i].at, change[i].bytes);
    amprt_put_little(file.data + change[i].at, change[i].value, change[i].bytes);
    seal(&file, INDEX);
    write_bytes(in_scratch("hostile"), file.data, file.size);
    AmprtDataset set;
    if (try_open("hostile", &set) != AMPRT_INPUT || !strstr(error.text, change[i].says))
      fail_msg("case %zu: expected `%s`, got `%s`", i, change[i].says, error.text);
    amprt_dataset_free(&set);
    amprt_put_little(file.data + change[i].at, before, change[i].bytes);
  }
  seal(&file, INDEX);
  write_bytes(in_scratch("hostile"), file.data, file.size);
  assert_true(all_is_read("hostile"));
  free(file.data);
}

/* Pixels of another size than the records; a wrong number of names. */
static void test_hostile_names(void **state) {
  (void)state;
  static const char *const name[] = {"a", "b"};
  static unsigned char pixel[2 * 6], label[] = {1, 0};
  AmprtDataset like = {.n = 2,
                       .classes = 2,
                       .height = 2,
                       .width = 3,
                       .channels = 1,
                       .reader = &amprt_memory_reader,
                       .pixel = pixel,
                       .label = label,
                       .class_name = name},
               set;
  enum { NAMES = AMPRT_PACK_HEADER + 14, INDEX = 2 * AMPRT_PACK_ENTRY };
  write_pack("names", &like);
  AmprtBytes file = read_bytes(in_scratch("names"));
  const struct {
    size_t at;
    unsigned char value;
    const char *says;
  } change[] = {
      {24, 3, "makes no sense"},       {28, 0, "header is damaged"},
      {32, 2, "makes no sense"},       {20, 5, "fewer names than classes"},
      {NAMES + 3, 'x', "fewer names"}, {NAMES, 0, "more names than classes"},
  };
  for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
    unsigned char before = file.data[change[i].at];
    file.data[change[i].at] = change[i].value;
    seal(&file, INDEX);
    write_bytes(in_scratch("names"), file.data, file.size);
    if (try_open("names", &set) != AMPRT_INPUT || !strstr(error.text, change[i].says))
      fail_msg("case %zu: expected `%s`, got `%s`", i, change[i].says, error.text);
    amprt_dataset_free(&set);
    file.data[change[i].at] = before;
  }
  free(file.data);
}

/* ---- whole runs ---- */

static void test_training(void **state) {
  (void)state;
  AmprtData idx;
  assert_int_equal(open_data(&idx, &toy_fp32, "fashion_mnist", scratch, &error), 0);
  write_pack("train.ampack", &idx.train);
  write_pack("val.ampack", &idx.test);
  amprt_data_close(&idx);
  run_good(&toy_fp32, "--dataset=fashion_mnist --data-dir=$ --model-dir=$/a --train-epochs=2");
  run_good(&toy_fp32, "--dataset=pack --data-dir=$ --model-dir=$/b --train-epochs=2");
  AmprtTensors a = load_tensors("a/ckpt-51.safetensors"), b = load_tensors("b/ckpt-51.safetensors");
  assert_int_equal(a.n_tensors, b.n_tensors);
  for (int i = 0; i < a.n_tensors; i++) {
    const AmprtTensor *x = &a.tensor[i], *y = amprt_tensors_find(&b, x->name);
    assert_non_null(y);
    assert_memory_equal(x->data, y->data, x->size);
  }
  amprt_tensors_free(&a);
  amprt_tensors_free(&b);
  AmprtBytes file = read_bytes(in_scratch("train.ampack"));
  file.data[AMPRT_PACK_HEADER + 14 + 36 * 100 + 7] ^= 4; /* of record 100 */
  write_bytes(in_scratch("train.ampack"), file.data, file.size);
  free(file.data);
  run_bad(&toy_fp32, "--dataset=pack --data-dir=$ --model-dir=$/c --train-epochs=2", AMPRT_INPUT,
          "train.ampack: record 100 at byte 3670: its checksum is wrong");
  run_good(&toy_fp32, "--dataset=pack --data-dir=$ --model-dir=$/d --train-epochs=2 "
                      "--max-bad-examples=2");
  assert_said("its checksum is wrong");
  remove(in_scratch("val.ampack"));
  run_bad(&toy_fp32, "--dataset=pack --data-dir=$ --model-dir=$/e", AMPRT_INPUT, "val.ampack");
}

int main(void) {
  const struct CMUnitTest test[] = {
      cmocka_unit_test_setup_teardown(test_records, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_names, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_refused_records, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_idx, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_cifar, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_flipped_bits, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_lengths, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_cut_off_in_use, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_hostile, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_hostile_names, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_training, toy_setup, scratch_teardown),
  };
  return cmocka_run_group_tests(test, NULL, NULL);
}
