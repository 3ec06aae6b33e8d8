/* Tests that nothing in a model folder is lost: damaged and forged checkpoints, those of other
 * settings, old logs, --clean, full disks. */
#include "runtime/state/safetensors.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static AmprtError error;

static void test_folder(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/a/b --max-train-steps=20 --checkpoint-every=3 "
                      "--keep-checkpoints=2");
  assert_true(amprt_is_file(in_scratch("a/b/ckpt-20.safetensors")));
  assert_true(amprt_is_file(in_scratch("a/b/ckpt-18.safetensors")));
  assert_false(amprt_is_file(in_scratch("a/b/ckpt-15.safetensors")));
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/a/b", 1, "already holds checkpoints");
  run_bad(&toy_other, "--data-dir=$ --model-dir=$/a/b --resume", 1, "is a checkpoint of `toy`");
  write_bytes(in_scratch("a/b/ckpt-21.safetensors.tmp"), "x", 1);
  write_bytes(in_scratch("a/b/mine.txt"), "x", 1);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/a/b --clean --max-train-steps=1");
  assert_true(amprt_is_file(in_scratch("a/b/mine.txt")));
  assert_false(amprt_is_file(in_scratch("a/b/ckpt-20.safetensors")));
  assert_false(amprt_is_file(in_scratch("a/b/ckpt-21.safetensors.tmp")));
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/train-images-idx3-ubyte", 1, "is not a folder");
  run_good(&toy_fp16, "--data-dir=$ --model-dir= --max-train-steps=1");
}

static void test_damaged(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=20 --checkpoint-every=5");
  AmprtBytes bytes = read_bytes(in_scratch("m/ckpt-20.safetensors"));
  bytes.data[bytes.size - 5] ^= 1;
  write_bytes(in_scratch("m/ckpt-20.safetensors"), bytes.data, bytes.size);
  write_bytes(in_scratch("m/ckpt-15.safetensors"), bytes.data, bytes.size / 2);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --max-train-steps=12 "
                      "--keep-checkpoints=1");
  assert_said("ckpt-20.safetensors: its checksum is wrong");
  assert_said("ckpt-15.safetensors: tensor");
  assert_said("resuming from");
  assert_said("a checkpoint that cannot be read is kept as");
  assert_true(amprt_is_file(in_scratch("m/ckpt-12.safetensors")));
  /* kept as they are, and no later checkpoint takes their place */
  assert_true(amprt_is_file(in_scratch("m/ckpt-15.safetensors.unreadable")));
  run_bad(&toy_fp16, "--data-dir=$ --init-from=$/m/ckpt-20.safetensors.unreadable", 1,
          "checksum is wrong");
  write_bytes(in_scratch("want"), bytes.data, bytes.size);
  assert_same_file(in_scratch("m/ckpt-20.safetensors.unreadable"), in_scratch("want"));
  write_bytes(in_scratch("m/ckpt-20.safetensors"), "x", 1);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --max-train-steps=13");
  assert_said("m/ckpt-20.safetensors.unreadable-2");
  assert_same_file(in_scratch("m/ckpt-20.safetensors.unreadable"), in_scratch("want"));
  free(bytes.data);
}

/* A run with --resume does not start anew if none of its checkpoints can be read. */
static void test_unreadable(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=20");
  AmprtBytes good = read_bytes(in_scratch("m/ckpt-20.safetensors"));
  AmprtBytes log = read_bytes(in_scratch("m/log.jsonl"));
  write_bytes(in_scratch("log"), log.data, log.size);
  good.data[good.size - 5] ^= 1;
  for (int i = 0; i < 3; i++) { /* a flipped bit, a file that was cut, an empty file */
    const size_t size[] = {good.size, good.size / 2, 0};
    write_bytes(in_scratch("want"), good.data, size[i]);
    write_bytes(in_scratch("m/ckpt-20.safetensors"), good.data, size[i]);
    run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume", 1,
            "its only checkpoint cannot be read: ");
    assert_said("m/ckpt-20.safetensors: ");
    assert_said("nothing was changed");
    run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/m --eval-only", 1, "cannot be read");
    assert_same_file(in_scratch("m/ckpt-20.safetensors"), in_scratch("want"));
    assert_same_file(in_scratch("m/log.jsonl"), in_scratch("log"));
  }
  assert_int_equal(mkdir(in_scratch("m/ckpt-30.safetensors"), 0777), 0);
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume", 1,
          "none of its 2 checkpoints can be read; the newest: ");
  assert_said("m/ckpt-30.safetensors: not a regular file");
  assert_said("warning: ");
  free(good.data);
  free(log.data);
}

/* A new run in the folder of a run that saved nothing keeps that one's log. */
static void test_old_log(void **state) {
  (void)state;
  assert_int_equal(mkdir(in_scratch("m"), 0777), 0);
  for (int i = 1; i <= 3; i++) {
    run_bad(&toy_nan, "--data-dir=$ --model-dir=$/m --max-skipped-steps=7", 1, "not been finite");
    assert_int_equal(count_log("m/log.jsonl", "\"event\":\"start\""), 1);
  }
  assert_said("the log of an earlier run is kept as");
  assert_said("m/log.jsonl.old-2");
  assert_int_equal(count_log("m/log.jsonl.old", "\"event\":\"start\""), 1);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --max-train-steps=1");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"start\""), 2);
  /* a log that --log-file names is appended to, whatever the file holds */
  write_bytes(in_scratch("mine"), "{\"mine\":1}", 10);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/n --log-file=$/mine --max-train-steps=1");
  assert_int_equal(count_log("mine", "{\"mine\":1}"), 1);
  assert_int_equal(count_log("mine", "\"event\":\"start\""), 1);
}

/* --clean deletes once everything else has been checked. */
static void test_clean_last(void **state) {
  (void)state;
  static const struct {
    const char *flags;
    int status;
  } bad[] = {{"--data-dir=$/none", 1},
             {"--data-dir=$ --init-from=$/none", 1},
             {"--data-dir=$ --init-from=$/train-labels-idx1-ubyte", 1},
             {"--data-dir=$ --inject=inf@3:none", 2},
             {"--data-dir=$ --lr-schedule=piecewise --lr-boundaries=1", 2},
             {"--data-dir=$ --train-epochs=0", 2},
             {"--data-dir=$ --log-file=$/none/log", 3},
             {"--data-dir=$ --log-file=$", 3},
             {"--data-dir=$ --trap=x", 2}};
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=1");
  AmprtBytes log = read_bytes(in_scratch("m/log.jsonl"));
  write_bytes(in_scratch("log"), log.data, log.size);
  free(log.data);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char line[200];
    snprintf(line, sizeof line, "--model-dir=$/m --clean %s", bad[i].flags);
    run_bad(&toy_fp16, line, bad[i].status, "error: ");
    assert_true(amprt_is_file(in_scratch("m/ckpt-1.safetensors")));
    assert_same_file(in_scratch("m/log.jsonl"), in_scratch("log"));
  }
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --clean --max-train-steps=2");
  assert_false(amprt_is_file(in_scratch("m/ckpt-1.safetensors")));
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"start\""), 1);
  run_good(&toy_fp16,
           "--data-dir=$ --model-dir=$/m --clean --log-file=$/m/log.jsonl --max-train-steps=3");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"start\""), 1);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --clean --log-file=$/log --max-train-steps=3");
  assert_false(amprt_is_file(in_scratch("m/log.jsonl")));
}

/* A checkpoint whose counters are forged, with a right checksum. */
static void test_forged(void **state) {
  (void)state;
  static const int64_t most = INT64_MAX, least = INT64_MIN;
  static const float zero = 0, nan = NAN, inf = INFINITY, minus = -1;
  static const int32_t good = -1;
  static const struct {
    const char *tensor, *key; /* either message will do */
    const void *value;
    const char *says;
  } forged[] = {
      {"global_step", NULL, &most, "its `global_step` is 9223372036854775808 and the step"},
      {"global_step", NULL, &least, "and the step of its metadata 20"},
      {"loss_scale", NULL, &zero, "its `loss_scale` is 0"},
      {"loss_scale", NULL, &nan, "its `loss_scale` is nan"},
      {"loss_scale", NULL, &inf, "its `loss_scale` is inf"},
      {"loss_scale", NULL, &minus, "its `loss_scale` is -1"},
      {"good_steps", NULL, &good, "its `good_steps` is -1"},
      {NULL, "step", "9223372036854775807", "is no checkpoint of ampcc (metadata)"},
      {NULL, "step", "21", "and the step of its metadata 21"},
      {NULL, "examples", "9223372036854775807", "is no checkpoint of ampcc (metadata)"},
      {NULL, "examples", "-1", "is no checkpoint of ampcc (metadata)"},
      {NULL, "step", "1e3", "is no checkpoint of ampcc (metadata)"}};
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=20");
  AmprtTensors file = load_tensors("m/ckpt-20.safetensors");
  for (size_t f = 0; f < sizeof forged / sizeof *forged; f++) {
    AmprtTensorOut out[16];
    AmprtMeta meta[64];
    int n_meta = 0;
    for (int i = 0; i < file.n_tensors; i++) {
      const AmprtTensor *t = &file.tensor[i];
      bool hit = forged[f].tensor && !strcmp(t->name, forged[f].tensor);
      const void *data = hit ? forged[f].value : t->data;
      out[i] = (AmprtTensorOut){t->name, t->dtype, t->rank, t->dim, data, false};
    }
    for (int i = 0; i < file.n_meta; i++) {
      bool hit = forged[f].key && !strcmp(file.meta[i].key, forged[f].key);
      if (strcmp(file.meta[i].key, "crc32")) /* the writer adds this key itself */
        meta[n_meta++] = hit ? (AmprtMeta){file.meta[i].key, forged[f].value} : file.meta[i];
    }
    if (amprt_tensors_write(in_scratch("m/ckpt-20.safetensors"), out, file.n_tensors, meta, n_meta,
                            &error))
      fail_msg("%s", error.text);
    run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume", 1, forged[f].says);
  }
  amprt_tensors_free(&file);
}

/* A checkpoint says with which settings it was made, and a resumed run says which differ now. */
static void test_made(void **state) {
  (void)state;
  static const AmprtSetting lars[] = {{"batch-size", "8"}, {"optimizer", "lars"}};
  static const AmprtSetting other[] = {
      {"batch-size", "4"}, {"optimizer", "momentum"}, {"weight-decay", "0.5"}};
  AmprtProgram program = toy_fp16;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=20");
  AmprtTensors file = load_tensors("m/ckpt-20.safetensors");
  assert_string_equal(amprt_tensors_meta(&file, "optimizer"), "momentum");
  assert_string_equal(amprt_tensors_meta(&file, "batch-size"), "8");
  assert_string_equal(amprt_tensors_meta(&file, "learning-rate"), "0.05");
  assert_string_equal(amprt_tensors_meta(&file, "lr-boundaries"), "");
  assert_string_equal(amprt_tensors_meta(&file, "seed"), "1");
  amprt_tensors_free(&file);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --max-train-steps=21");
  assert_null(strstr(caught, "other settings"));
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/m --resume --max-train-steps=22");
  assert_null(strstr(caught, "other settings")); /* a precision is none */
  program.made = other;
  run_good(&program, "--data-dir=$ --model-dir=$/m --resume --max-train-steps=23 "
                     "--learning-rate=0.01 --lr-schedule=piecewise --lr-boundaries=1,2.5 "
                     "--lr-multipliers=1,.1,.01");
  assert_said("ckpt-22.safetensors was made with other settings: batch-size=8 (now 4), "
              "weight-decay=0.0 (now 0.5), learning-rate=0.05 (now 0.01), lr-schedule=cosine (now "
              "piecewise), lr-boundaries= (now 1,2.5), lr-multipliers= (now 1,0.1,0.01)\n");
  program.made = lars;
  program.n_made = 2;
  run_bad(&program, "--data-dir=$ --model-dir=$/m --resume", 1,
          "was made with --optimizer=momentum and this program with --optimizer=lars");
  assert_said("m/ckpt-23.safetensors starts with its parameters and statistics");
  run_good(&program, "--data-dir=$ --model-dir=$/m --eval-only"); /* an evaluation needs no slots */
  assert_null(strstr(caught, "other settings"));
  run_good(&program, "--data-dir=$ --model-dir=$/n --init-from=$/m/ckpt-23.safetensors "
                     "--max-train-steps=1");
}

static void test_bad_data_first(void **state) {
  (void)state;
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/m --max-train-steps=1");
  run_bad(&toy_fp32, "--data-dir=$/m --model-dir=$/m --clean", 1, "is not there");
  assert_true(amprt_is_file(in_scratch("m/ckpt-1.safetensors"))); /* nothing was cleaned */
}

/* A disk that is full while a checkpoint is written: one line, and what was there stays. */
static void test_disk_full(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=5");
  struct rlimit before, small = {1000, RLIM_INFINITY};
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  int status = run_program(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --log-file=/dev/null");
  setrlimit(RLIMIT_FSIZE, &before);
  assert_int_equal(status, 3);
  assert_said("ckpt-26.safetensors.tmp: write failed: File too large");
  assert_false(amprt_is_file(in_scratch("m/ckpt-26.safetensors.tmp")));
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --max-train-steps=6");
  assert_said("resuming from");
}

static void test_lock(void **state) {
  (void)state;
  int folder = open(scratch, O_RDONLY | O_DIRECTORY);
  assert_int_equal(flock(folder, LOCK_EX), 0);
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$ --clean", 3, "another run is using this folder");
  close(folder);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$ --max-train-steps=1");
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, toy_setup, scratch_teardown)
int main(int argc, char **argv) {
  on_device = argc > 1 && !strcmp(argv[1], "device");
  const struct CMUnitTest tests[] = {
      RUN_TEST(test_folder),  RUN_TEST(test_damaged),        RUN_TEST(test_unreadable),
      RUN_TEST(test_old_log), RUN_TEST(test_clean_last),     RUN_TEST(test_forged),
      RUN_TEST(test_made),    RUN_TEST(test_bad_data_first), RUN_TEST(test_disk_full),
      RUN_TEST(test_lock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
