/* Tests the event files for TensorBoard. tests/oracle/tensorboard tests that TensorBoard reads them
 * as meant. */
#include "runtime/record/event.pb-c.h"
#include "runtime/record/record.h"
#include "runtime/report/events.h"
#include "runtime/report/png.h"
#include "runtime/report/tensorboard.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define RUN "--data-dir=$ --model-dir=$/m --quiet "

/* ---- event files ---- */

typedef struct Scalar {
  char tag[64];
  int64_t step;
  float value;
} Scalar;

typedef struct Events {
  const AmprtRecordFile *file;
  Scalar scalar[4096];
  int n, n_events, n_images, n_histograms;
  int64_t start; /* -1 if no event says so */
} Events;

static bool read_event(void *context, uint64_t offset, uint64_t length) {
  Events *events = context;
  AmprtError error;
  unsigned char *room = malloc(length + AMPRT_RECORD_HEAD + AMPRT_RECORD_TAIL);
  assert_int_equal(amprt_record_read(events->file, offset, length, room, &error), 0);
  Amprt__Event *event = amprt__event__unpack(NULL, length, room + AMPRT_RECORD_HEAD);
  assert_non_null(event);
  if (events->n_events++ == 0)
    assert_string_equal(event->file_version, "brain.Event:2");
  if (event->what_case == AMPRT__EVENT__WHAT_SESSION_LOG)
    events->start = event->step;
  for (size_t i = 0; event->what_case == AMPRT__EVENT__WHAT_SUMMARY && i < event->summary->n_value;
       i++) {
    const Amprt__Summary__Value *value = event->summary->value[i];
    events->n_images += value->value_case == AMPRT__SUMMARY__VALUE__VALUE_IMAGE;
    events->n_histograms += value->value_case == AMPRT__SUMMARY__VALUE__VALUE_HISTO;
    if (value->value_case == AMPRT__SUMMARY__VALUE__VALUE_SIMPLE_VALUE && events->n < 4096) {
      Scalar *scalar = &events->scalar[events->n++];
      snprintf(scalar->tag, sizeof scalar->tag, "%s", value->tag);
      scalar->step = event->step;
      scalar->value = value->simple_value;
    }
  }
  amprt__event__free_unpacked(event, NULL);
  free(room);
  return true;
}

static int count_files(const char *dir) {
  DIR *folder = opendir(in_scratch(dir));
  int n = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder));)
    n += amprt_events_is_name(entry->d_name);
  if (folder)
    closedir(folder);
  return n;
}

/* The folder's only file. */
static Events *read_events(const char *dir) {
  static Events events;
  char path[1024] = "";
  AmprtRecordFile file;
  AmprtError error;
  assert_int_equal(count_files(dir), 1);
  DIR *folder = opendir(in_scratch(dir));
  for (struct dirent *entry; (entry = readdir(folder));)
    if (amprt_events_is_name(entry->d_name))
      snprintf(path, sizeof path, "%s/%s", in_scratch(dir), entry->d_name);
  closedir(folder);
  events = (Events){.file = &file, .start = -1};
  assert_int_equal(amprt_records_open(&file, path, &error), 0);
  assert_int_equal(amprt_records_walk(&file, read_event, &events, &error), 0);
  amprt_records_close(&file);
  return &events;
}

/* The value of a tag at a step; NaN if there is none. */
static float scalar_at(const Events *events, const char *tag, int64_t step) {
  for (int i = 0; i < events->n; i++)
    if (events->scalar[i].step == step && !strcmp(events->scalar[i].tag, tag))
      return events->scalar[i].value;
  return NAN;
}

static int count_scalars(const Events *events, const char *tag) {
  int n = 0;
  for (int i = 0; i < events->n; i++)
    n += !strcmp(events->scalar[i].tag, tag);
  return n;
}

/* The number behind "KEY": in a line of JSON. */
static double number_in(const char *line, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(line, quoted);
  return at ? strtod(at + strlen(quoted), NULL) : (double)NAN;
}

/* A summary and a line of the log for every step: they hold the same numbers. */
static void test_scalars_are_those_of_the_log(void **state) {
  (void)state;
  run_good(&toy_fp16, RUN "--train-epochs=2 --tensorboard --summary-every=1 --log-every=1");
  Events *events = read_events("m");
  AmprtBytes log = read_bytes(in_scratch("m/log.jsonl"));
  int steps = 0;
  log.data[log.size] = '\0';
  for (char *line = strtok((char *)log.data, "\n"); line; line = strtok(NULL, "\n")) {
    static const char *const names[][2] = {{"loss", "loss"},
                                           {"accuracy", "train_accuracy"},
                                           {"learning_rate", "learning_rate"},
                                           {"loss_scale", "loss_scale"}};
    int64_t step = (int64_t)number_in(line, "step");
    if (!strstr(line, "\"event\":\"train\""))
      continue;
    steps++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      assert_true((float)number_in(line, names[i][0]) == scalar_at(events, names[i][1], step));
  }
  assert_int_equal(steps, 51);
  assert_int_equal(count_scalars(events, "cross_entropy"), 51);
  assert_int_equal(count_scalars(events, "images_per_second"), 50);
  assert_int_equal(events->n_images, 51 * 6);
  assert_int_equal(events->start, 0);
  free(log.data);
}

static void test_evaluations(void **state) {
  (void)state;
  run_good(&toy_fp32, RUN "--train-epochs=2 --tensorboard");
  Events *events = read_events("m/eval");
  assert_int_equal(events->n, 4); /* accuracy and loss of two evaluations */
  assert_true(scalar_at(events, "accuracy", 26) > .5f);
  assert_true(scalar_at(events, "loss", 51) < 1.f);
  assert_int_equal(events->start, -1);
  assert_int_equal(count_scalars(read_events("m"), "loss"), 1); /* of step 1 alone, as 100 follow */
}

/* Every k-th batch of the stream, also after a resumption; TensorBoard is told where it goes on. */
static void test_resume(void **state) {
  (void)state;
  run_good(&toy_fp32, RUN "--train-epochs=4 --max-train-steps=30 --tensorboard --summary-every=8");
  Events *events = read_events("m");
  for (int64_t step = 1; step <= 30; step++)
    assert_int_equal(!isnan(scalar_at(events, "loss", step)), step % 8 == 1);
  run_good(&toy_fp32, "--init-from=$/m/ckpt-30.safetensors --model-dir=$/n --data-dir=$ --quiet");
  run_good(&toy_fp32, RUN "--train-epochs=4 --max-train-steps=50 --resume");
  assert_int_equal(count_files("m"), 1);
  run_good(&toy_fp32, RUN "--train-epochs=4 --max-train-steps=60 --resume --tensorboard");
  assert_int_equal(count_files("m"), 2);
}

static void test_clean(void **state) {
  (void)state;
  run_good(&toy_fp32, RUN "--train-epochs=1 --tensorboard");
  write_bytes(in_scratch("m/eval/mine"), "x", 1);
  run_good(&toy_fp32, RUN "--eval-only --tensorboard");
  assert_int_equal(count_files("m"), 1);
  assert_int_equal(count_files("m/eval"), 2);
  run_good(&toy_fp32, RUN "--train-epochs=1 --clean");
  assert_int_equal(count_files("m"), 0);
  assert_int_equal(count_files("m/eval"), 0);
  free(read_bytes(in_scratch("m/eval/mine")).data);
}

static void test_histograms(void **state) {
  (void)state;
  run_good(&toy_fp16, RUN "--train-epochs=1 --tensorboard --grad-histogram-every=10");
  assert_int_equal(read_events("m")->n_histograms, 2 * 3);
}

/* ProfilerHook: the second step, one bar for each kernel; on a device, too. */
static void test_timeline(void **state) {
  (void)state;
  run_good(&toy_fp16, RUN "--train-epochs=1 --hooks=ProfilerHook --tensorboard");
  AmprtBytes trace = read_bytes(in_scratch("m/timeline-2.json"));
  trace.data[trace.size] = '\0';
  static const char *const kernel[] = {"k0_forward", "k1_backward", "k2_update", "k3_interrupt"};
  const char *at = (const char *)trace.data;
  for (int i = 0; i < 4; i++) {
    at = strstr(at, kernel[i]);
    assert_non_null(at);
  }
  assert_int_equal(count_scalars(read_events("m"), "loss"), 1);
  free(trace.data);
}

static void test_refused(void **state) {
  (void)state;
  run_bad(&toy_fp32, "--data-dir=$ --model-dir= --tensorboard", 2, "--model-dir says where");
  run_bad(&toy_fp32, RUN "--summary-every=5", 2, "--summary-every needs --tensorboard");
  run_bad(&toy_fp32, RUN "--tensorboard --summary-every=0", 2, "larger than 0");
  write_bytes(in_scratch("file"), "x", 1);
  assert_int_equal(mkdir(in_scratch("k"), 0777), 0);
  write_bytes(in_scratch("k/eval"), "x", 1);
  run_bad(&toy_fp32, "--data-dir=$ --model-dir=$/k --tensorboard", 1, "k/eval: is not a folder");
}

/* ---- what is in them ---- */

static void test_buckets(void **state) {
  static const float x[] = {-3, -2, -.5f, 0, 0, .25f, 1, 1.5f, 7, INFINITY, NAN};
  static const struct {
    double limit, count;
  } want[] = {{-4, 0},  {-2, 2}, {-1, 0}, {-.5, 1}, {-0x1p-149, 0}, {0x1p-149, 2},
              {.25, 0}, {.5, 1}, {1, 0},  {2, 2},   {4, 0},         {8, 1}};
  enum { N = sizeof want / sizeof *want };
  (void)state;
  for (double factor = 1; factor > .1; factor /= 4) {
    AmprtHistogram histogram = {0};
    AmprtEvents events;
    AmprtError error;
    amprt_histogram_add(&histogram, AMPRT_F16, x, sizeof x / sizeof *x);
    assert_int_equal(amprt_events_open(&events, scratch, &error), 0);
    amprt_events_histogram(&events, "h", &histogram, factor);
    assert_int_equal(events.n, 1);
    const Amprt__HistogramProto *h = events.value[0]->histo;
    assert_int_equal(h->n_bucket, N);
    assert_int_equal(h->n_bucket_limit, N);
    for (int i = 0; i < N; i++) {
      assert_true(h->bucket_limit[i] == want[i].limit * factor);
      assert_true(h->bucket[i] == want[i].count);
    }
    assert_true(h->num == 9 && h->min == -3 * factor && h->max == 7 * factor);
    assert_true(h->sum == 4.25 * factor && h->sum_squares == 65.5625 * factor * factor);
    amprt_events_close(&events);
  }
}

static void test_top5(void **state) {
  (void)state;
  const float logits[] = {7, 6, 5, 4, 3, 2, 1, /* */ 1, 2, 3,   4, 5, 6, 7, /* */
                          1, 1, 1, 1, 1, 1, 1, /* */ 0, 0, NAN, 0, 0, 0, 0};
  const int32_t fifth[] = {4, 2, 6, 2}, sixth[] = {5, 1, 0, 3};
  assert_true(amprt_share_in_top5(logits, fifth, 2, 7) == 1);
  assert_true(amprt_share_in_top5(logits, sixth, 2, 7) == 0);
  assert_true(amprt_share_in_top5(logits, fifth, 3, 7) == 1);
  assert_true(amprt_share_in_top5(logits + 21, fifth + 3, 1, 7) == 0);
  assert_true(amprt_share_in_top5(logits + 21, sixth + 3, 1, 7) == 1);
}

/* Chunk by chunk, as RFC 2083 has them. */
static void test_png(void **state) {
  enum { H = 5, W = 7, C = 3, ROW = W * C + 1 };
  unsigned char pixel[H * W * C], rows[H * ROW];
  AmprtBytes file;
  (void)state;
  for (int i = 0; i < H * W * C; i++)
    pixel[i] = (unsigned char)(i * 5);
  assert_true(amprt_png_write(pixel, H, W, C, &file));
  static const unsigned char begin[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0,
                                        0,    13,  'I', 'H', 'D',  'R',  0,    0,    0, W,
                                        0,    0,   0,   H,   8,    2,    0,    0,    0};
  assert_memory_equal(file.data, begin, sizeof begin);
  size_t packed = file.data[33 + 2] * 256u + file.data[33 + 3];
  uLongf n = sizeof rows;
  assert_memory_equal(file.data + 37, "IDAT", 4);
  assert_int_equal(uncompress(rows, &n, file.data + 41, (uLong)packed), Z_OK);
  assert_int_equal(n, sizeof rows);
  for (int y = 0; y < H; y++) {
    assert_int_equal(rows[y * ROW], 0);
    assert_memory_equal(rows + y * ROW + 1, pixel + y * W * C, W * C);
  }
  static const unsigned char end[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
  assert_int_equal(file.size, 41 + packed + 4 + sizeof end);
  assert_memory_equal(file.data + file.size - sizeof end, end, sizeof end);
  free(file.data);
  assert_false(amprt_png_write(pixel, H, W, 2, &file));
  assert_false(amprt_png_write(pixel, 0, W, 1, &file));
}

#define RUNS(test) cmocka_unit_test_setup_teardown(test, toy_setup, scratch_teardown)

int main(int argc, char **argv) {
  on_device = argc > 1 && !strcmp(argv[1], "device");
  const struct CMUnitTest tests[] = {
      RUNS(test_scalars_are_those_of_the_log),
      RUNS(test_evaluations),
      RUNS(test_resume),
      RUNS(test_clean),
      RUNS(test_histograms),
      RUNS(test_timeline),
      RUNS(test_refused),
      RUNS(test_buckets),
      cmocka_unit_test(test_top5),
      cmocka_unit_test(test_png),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
