/* Tests the stream of batches: order, threads, and examples that cannot be read. */
#include "runtime/data/feed.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static AmprtError error;
static AmprtData data;

static void open_toy_data(int n_train, int n_test) {
  toy_write_data(scratch, n_train, n_test);
  assert_int_equal(open_data(&data, &toy_fp32, "fashion_mnist", scratch, &error), 0);
}

enum { BATCHES = 30 };

static const AmprtBatch *next(AmprtFeed *feed) {
  const AmprtBatch *batch;
  assert_int_equal(amprt_feed_next(feed, &batch, &error), 0);
  return batch;
}

static void read_feed(AmprtFeedPlan plan, int skip, float *image, int32_t *label) {
  AmprtFeed *feed = NULL;
  plan.position += (uint64_t)(skip * plan.batch_size);
  assert_int_equal(amprt_feed_open(&feed, &plan, &error), 0);
  for (int i = skip; i < BATCHES; i++) {
    const AmprtBatch *batch = next(feed);
    assert_non_null(batch);
    assert_int_equal(batch->count, plan.batch_size);
    memcpy(image + i * 8 * 64, batch->image, 8 * 64 * sizeof *image);
    memcpy(label + i * 8, batch->label, 8 * sizeof *label);
  }
  amprt_feed_close(feed);
}

static void test_feed(void **state) {
  (void)state;
  static float a[BATCHES * 8 * 64], b[BATCHES * 8 * 64];
  int32_t la[BATCHES * 8], lb[BATCHES * 8];
  open_toy_data(43, 10);
  AmprtFeedPlan plan = toy_plan(&data.train);
  plan.example.image.pad = 1;
  plan.example.image.flip = plan.example.image.standardize = true;
  read_feed(plan, 0, a, la);
  plan.threads = 5; /* any number of threads gives the same */
  read_feed(plan, 0, b, lb);
  assert_memory_equal(a, b, sizeof a);
  assert_memory_equal(la, lb, sizeof la);
  memset(b, 0, sizeof b);
  read_feed(plan, 17, b, lb); /* and so does a start in the middle */
  assert_memory_equal(a + 17 * 512, b + 17 * 512, sizeof a - 17 * 512 * sizeof *a);
  plan.seed = 4;
  read_feed(plan, 0, b, lb);
  assert_memory_not_equal(a, b, sizeof a);
  amprt_data_close(&data);
}

/* An epoch holds every example once; batches run on into the next. */
static void test_feed_epochs(void **state) {
  (void)state;
  static float image[BATCHES * 8 * 64];
  int32_t label[BATCHES * 8];
  open_toy_data(43, 10);
  AmprtFeedPlan plan = toy_plan(&data.train);
  plan.threads = 2;
  read_feed(plan, 0, image, label);
  for (int epoch = 0; epoch < 5; epoch++) {
    bool seen[43] = {false};
    for (int i = 0; i < 43; i++) {
      int found = -1;
      const float *x = image + (epoch * 43 + i) * 64;
      for (int e = 0; e < 43 && found < 0; e++) {
        int same = 0;
        for (int p = 0; p < 36; p++) /* 6x6 in the middle of 8x8 zeros */
          same += x[8 * (p / 6 + 1) + p % 6 + 1] == (float)(data.train.pixel[36 * e + p] / 255.0);
        for (int p = 0; p < 8; p++)
          same += x[p] == 0 && x[56 + p] == 0 && x[8 * p] == 0 && x[8 * p + 7] == 0;
        found = same == 44 ? e : -1;
      }
      assert_in_range(found, 0, 42);
      assert_false(seen[found]);
      seen[found] = true;
      assert_int_equal(label[epoch * 43 + i], data.train.label[found]);
    }
  }
  amprt_data_close(&data);
}

static void test_feed_end(void **state) {
  (void)state;
  open_toy_data(43, 19);
  for (int threads = 1; threads <= 3; threads++) {
    AmprtFeed *feed = NULL;
    AmprtFeedPlan plan = {.set = &data.test,
                          .example.image = {8, 8, 1},
                          .batch_size = 8,
                          .purpose = "test",
                          .end = 19,
                          .threads = threads};
    assert_int_equal(amprt_feed_open(&feed, &plan, &error), 0);
    assert_int_equal(next(feed)->count, 8);
    assert_int_equal(next(feed)->count, 8);
    const AmprtBatch *last = next(feed);
    assert_int_equal(last->count, 3);
    assert_true(last->label[0] == data.test.label[16] && last->label[3] == 0);
    for (int i = 3 * 64; i < 8 * 64; i++)
      assert_true(last->image[i] == 0);
    assert_null(next(feed));
    assert_null(next(feed));
    amprt_feed_close(feed);
  }
  amprt_data_close(&data);
}

/* ---- records that cannot be read ---- */

enum { RECORDS = 40, BATCH = 8 };
static bool is_bad[RECORDS];
static AmprtStatus bad_status;

/* Record i is one byte, i, of class i; the class is 100 on for the program. */
static AmprtStatus fetch(const AmprtDataset *set, int64_t index, AmprtRoom *room,
                         AmprtRecord *record, AmprtError *failed) {
  (void)set;
  unsigned char *byte = amprt_room(room, 1, failed);
  if (is_bad[index])
    return amprt_fail(failed, bad_status, "record %d: is bad", (int)index);
  *byte = (unsigned char)index;
  *record = (AmprtRecord){.data = byte, .size = 1, .label = (int32_t)index};
  return AMPRT_OK;
}

static const AmprtReader reader = {.fetch = fetch};
static const AmprtDataset records = {
    .n = RECORDS, .classes = RECORDS, .height = 1, .width = 1, .channels = 1, .reader = &reader};

/* The labels of each batch as text, "0 1 2 | 3 4 5", or the error that ended the stream. */
static const char *stream(AmprtFeedPlan plan) {
  static char out[4096];
  size_t used = 0;
  AmprtFeed *feed = NULL;
  const AmprtBatch *batch = NULL;
  plan.set = &records;
  plan.example.image = (AmprtImageSpec){1, 1, 1};
  plan.batch_size = BATCH;
  plan.purpose = "test";
  plan.end = plan.end ? plan.end : RECORDS;
  out[0] = '\0';
  assert_int_equal(amprt_feed_open(&feed, &plan, &error), 0);
  AmprtStatus status = AMPRT_OK;
  for (int b = 0; !(status = amprt_feed_next(feed, &batch, &error)) && batch; b++) {
    used += (size_t)sprintf(out + used, "%s", b ? " |" : "");
    for (int64_t i = 0; i < BATCH; i++) {
      int32_t label = batch->label[i];
      bool kept = i < batch->count;
      assert_true(batch->pixel[i] == (kept ? label - plan.first_label : 0));
      assert_true(batch->image[i] == (kept ? (float)(batch->pixel[i] / 255.0) : 0));
      assert_true(kept || label == 0);
      if (kept)
        used += (size_t)sprintf(out + used, " %d", label);
    }
  }
  if (status)
    snprintf(out + used, sizeof out - used, " ! %d %s", status, error.text);
  amprt_feed_close(feed);
  return out + 1;
}

static void test_bad_records(void **state) {
  (void)state;
  bad_status = AMPRT_INPUT;
  is_bad[1] = is_bad[2] = is_bad[7] = is_bad[12] = true;
  for (int threads = 1; threads < 4; threads++) {
    AmprtFeedPlan plan = {.threads = threads, .end = 16, .max_bad = 4, .masks = true};
    assert_string_equal(stream(plan), "0 3 4 5 6 | 8 9 10 11 13 14 15");
    plan.masks = false; /* others stand in, each once before any does so twice */
    assert_string_equal(stream(plan), "0 0 3 3 4 5 6 4 | 8 9 10 11 8 13 14 15");
    plan.first_label = 100;
    assert_string_equal(stream(plan),
                        "100 100 103 103 104 105 106 104 | 108 109 110 111 108 113 114 115");
    plan.max_bad = 3;
    assert_string_equal(stream(plan), "100 100 103 103 104 105 106 104 ! 1 record 12: is bad; "
                                      "--max-bad-examples=N goes on past N such examples (4 so "
                                      "far)");
    plan.max_bad = 0;
    assert_string_equal(stream(plan),
                        "! 1 record 1: is bad; --max-bad-examples=N goes on past N such "
                        "examples (1 so far)");
  }
  for (int i = 16; i < 24; i++)
    is_bad[i] = true;
  AmprtFeedPlan whole = {.threads = 2, .max_bad = RECORDS};
  assert_non_null(strstr(stream(whole), "! 1 a whole batch of examples could not be read"));
  whole.masks = true;
  whole.position = 16, whole.end = 26;
  assert_string_equal(stream(whole), "| 24 25");
  bad_status = AMPRT_ENV; /* no record is to blame */
  whole.position = 0;
  assert_string_equal(stream(whole), "! 3 record 1: is bad");
  memset(is_bad, 0, sizeof is_bad);
}

/* A shuffle buffer of one record changes nothing, and one as large as the set gives the order
 * without a buffer. One between them leaves no record out, and moves none forward by more than its
 * size. */
static void test_shuffle_buffer(void **state) {
  (void)state;
  AmprtFeedPlan plan = {.threads = 2, .shuffle = true, .seed = 5, .shuffle_buffer = 1, .end = 80};
  int at = 0;
  char *text = (char *)(uintptr_t)stream(plan), *save = NULL;
  for (char *word = strtok_r(text, " |", &save); word; word = strtok_r(NULL, " |", &save))
    assert_int_equal(atoi(word), at++ % RECORDS);
  assert_int_equal(at, 80);
  char whole[4096];
  plan.shuffle_buffer = 0;
  snprintf(whole, sizeof whole, "%s", stream(plan));
  plan.shuffle_buffer = RECORDS;
  assert_string_equal(stream(plan), whole);
  plan.shuffle_buffer = 10;
  int seen[2][RECORDS] = {{0}}, moved = 0;
  at = 0;
  text = (char *)(uintptr_t)stream(plan);
  for (char *word = strtok_r(text, " |", &save); word; word = strtok_r(NULL, " |", &save), at++) {
    int record = atoi(word);
    seen[at / RECORDS][record]++;
    moved += record != at % RECORDS;
    assert_true(record - at % RECORDS < 10);
  }
  for (int i = 0; i < 2 * RECORDS; i++)
    assert_int_equal(seen[i / RECORDS][i % RECORDS], 1);
  assert_true(moved > RECORDS);
}

/* Epochs shorter than the set leave out other records each time. */
static void test_short_epochs(void **state) {
  (void)state;
  AmprtFeedPlan plan = {.threads = 1, .shuffle = true, .seed = 1, .epoch = 24, .end = 48};
  int seen[2][RECORDS] = {{0}}, at = 0, both = 0;
  char *text = (char *)(uintptr_t)stream(plan), *save = NULL;
  for (char *word = strtok_r(text, " |", &save); word; word = strtok_r(NULL, " |", &save), at++)
    assert_int_equal(seen[at / 24][atoi(word)]++, 0);
  for (int i = 0; i < RECORDS; i++)
    both += seen[0][i] && seen[1][i];
  assert_in_range(both, 8, 20);
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(test_feed),
      SCRATCH_TEST(test_feed_epochs),
      SCRATCH_TEST(test_feed_end),
      cmocka_unit_test(test_bad_records),
      cmocka_unit_test(test_shuffle_buffer),
      cmocka_unit_test(test_short_epochs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
