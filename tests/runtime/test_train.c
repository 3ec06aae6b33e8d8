/* Whole runs of the toy program: training, checkpoints, resuming, stopping, reports. */
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

static int setup(void **state) {
  if (scratch_setup(state))
    return -1;
  toy_write_data(scratch, 203, 50); /* 26 batches of 8 an epoch, 25.4 to be exact */
  toy_signal_at = 0;
  return 0;
}

static void run_good(const AmprtProgram *program, const char *line) {
  int status = run_program(program, line);
  if (status)
    fail_msg("%s: status %d\n%s", line, status, caught);
}

static void run_bad(const AmprtProgram *program, const char *line, int want, const char *says) {
  int status = run_program(program, line);
  if (status != want)
    fail_msg("%s: status %d, not %d\n%s", line, status, want, caught);
  assert_said(says);
}

static AmprtTensors load(const char *name) {
  AmprtTensors in = {0};
  if (amprt_tensors_read(in_scratch(name), &in, &error))
    fail_msg("%s", error.text);
  return in;
}

static float first_float(const AmprtTensors *file, const char *name) {
  const AmprtTensor *tensor = amprt_tensors_find(file, name);
  float x;
  if (!tensor)
    fail_msg("no tensor %s", name);
  memcpy(&x, tensor->data, sizeof x);
  return x;
}

/* The log is one object per line, with no NaN; returns how many lines hold `text`. */
static int count_log(const char *name, const char *text) {
  AmprtBytes log = read_bytes(in_scratch(name));
  int n = 0;
  log.data[log.size] = '\0';
  for (char *line = strtok((char *)log.data, "\n"); line; line = strtok(NULL, "\n")) {
    assert_true(line[0] == '{' && line[strlen(line) - 1] == '}');
    assert_null(strstr(line, ":nan"));
    assert_null(strstr(line, ":-nan"));
    assert_null(strstr(line, ":inf"));
    assert_null(strstr(line, ":-inf"));
    n += strstr(line, text) != NULL;
  }
  free(log.data);
  return n;
}

static void test_train(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --log-every=10");
  assert_said("test accuracy 1.0000");
  assert_said("(50 images");
  assert_said("scale ");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"eval\""), 4);
  /* 25.375 batches an epoch: the four evaluations come after 26, 51, 77 and 102 batches */
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"eval\",\"step\":51"), 1);
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"train\""), 3 + 3 + 3 + 3);
  static const char *const there[] = {"m/ckpt-26.safetensors", "m/ckpt-51.safetensors",
                                      "m/ckpt-77.safetensors", "m/ckpt-102.safetensors"};
  for (int i = 0; i < 4; i++)
    assert_true(amprt_is_file(in_scratch(there[i])));
  AmprtTensors last = load("m/ckpt-102.safetensors");
  assert_string_equal(amprt_tensors_meta(&last, "model"), "toy");
  assert_string_equal(amprt_tensors_meta(&last, "examples"), "816");
  assert_null(amprt_tensors_find(&last, "fc.weight.f16")); /* copies are not saved */
  const AmprtTensor *w = amprt_tensors_find(&last, "fc.weight");
  static const int64_t kcrs[] = {4, 1, 8, 8};
  assert_memory_equal(w->dim, kcrs, sizeof kcrs);
  amprt_tensors_free(&last);
}

static void test_same_bytes(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/a --max-train-steps=40 -q");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/b --max-train-steps=40 -q --data-threads=4");
  assert_same_file(in_scratch("a/ckpt-40.safetensors"), in_scratch("b/ckpt-40.safetensors"));
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/c --max-train-steps=40 -q --seed=2");
  AmprtTensors a = load("a/ckpt-40.safetensors"), c = load("c/ckpt-40.safetensors");
  assert_true(first_float(&a, "fc.weight") != first_float(&c, "fc.weight"));
  amprt_tensors_free(&a);
  amprt_tensors_free(&c);
}

static void test_resume(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/a");
  for (int stop = 1; stop < 100; stop += 23) { /* in the middle of epochs, and of windows */
    char line[200];
    snprintf(line, sizeof line, "--data-dir=$ --model-dir=$/b --clean --max-train-steps=%d", stop);
    run_good(&toy_fp16, line);
    run_good(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume");
    assert_said("resuming from");
    assert_same_file(in_scratch("a/ckpt-102.safetensors"), in_scratch("b/ckpt-102.safetensors"));
  }
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume"); /* done already: evaluates again */
  assert_said("test accuracy");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/new --resume --max-train-steps=1");
  assert_said("no checkpoint in");
}

static void test_signal(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/a");
  toy_signal = SIGTERM;
  toy_signal_at = 37;
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/b", 143, "stopped by SIGTERM at step 37");
  toy_signal = SIGINT;
  toy_signal_at = 20;
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume", 130, "by SIGINT at step 57");
  toy_signal = SIGHUP;
  toy_signal_at = 3;
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume", 129, "by SIGHUP at step 60");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume");
  assert_same_file(in_scratch("a/ckpt-102.safetensors"), in_scratch("b/ckpt-102.safetensors"));
}

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

/* A run that was to go on does not start anew because none of its checkpoints can be read. */
static void test_unreadable(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=20");
  AmprtBytes good = read_bytes(in_scratch("m/ckpt-20.safetensors"));
  AmprtBytes log = read_bytes(in_scratch("m/log.jsonl"));
  write_bytes(in_scratch("log"), log.data, log.size);
  good.data[good.size - 5] ^= 1;
  for (int i = 0; i < 3; i++) { /* a flipped bit, a cut, nothing at all */
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
  /* a log that is named is written after what it holds, even if it holds something else */
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
    const char *tensor, *key; /* one or the other */
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
  AmprtTensors file = load("m/ckpt-20.safetensors");
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
      if (strcmp(file.meta[i].key, "crc32")) /* the writer's own */
        meta[n_meta++] = hit ? (AmprtMeta){file.meta[i].key, forged[f].value} : file.meta[i];
    }
    if (amprt_tensors_write(in_scratch("m/ckpt-20.safetensors"), out, file.n_tensors, meta, n_meta,
                            &error))
      fail_msg("%s", error.text);
    run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume", 1, forged[f].says);
  }
  amprt_tensors_free(&file);
}

/* A checkpoint says what made it, and a resumed run what is different now. */
static void test_made(void **state) {
  (void)state;
  static const AmprtSetting lars[] = {{"batch-size", "8"}, {"optimizer", "lars"}};
  static const AmprtSetting other[] = {
      {"batch-size", "4"}, {"optimizer", "momentum"}, {"weight-decay", "0.5"}};
  AmprtProgram program = toy_fp16;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=20");
  AmprtTensors file = load("m/ckpt-20.safetensors");
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
  run_good(&program, "--data-dir=$ --model-dir=$/m --eval-only"); /* needs no slots */
  assert_null(strstr(caught, "other settings"));
  run_good(&program, "--data-dir=$ --model-dir=$/n --init-from=$/m/ckpt-23.safetensors "
                     "--max-train-steps=1");
}

static void test_precisions(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=20");
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/m --max-train-steps=30 --resume");
  assert_said("note: the checkpoint's `loss_scale` is not used");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=40 --resume");
  assert_said("note: the checkpoint has no `loss_scale`: it starts anew");
  AmprtTensors file = load("m/ckpt-40.safetensors");
  assert_true(first_float(&file, "loss_scale") == 4096); /* 1024, doubled twice in ten steps */
  amprt_tensors_free(&file);
}

static void test_init_from(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m");
  run_good(&toy_fp32, "--data-dir=$ --eval-only --init-from=$/m/ckpt-102.safetensors");
  assert_said("test accuracy 1.0000");
  assert_said("5 other tensors in it are not used");
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/n --init-from=$/m/ckpt-102.safetensors "
                      "--max-train-steps=2 --no-augment --no-shuffle");
  AmprtTensors file = load("n/ckpt-2.safetensors");
  assert_string_equal(amprt_tensors_meta(&file, "step"), "2");
  amprt_tensors_free(&file);
  run_bad(
      &toy_other, "--data-dir=$ --init-from=$/m/ckpt-102.safetensors", 1,
      "`fc.weight` is [4,1,8,8] in the file and [4,2,8,4] in the program; `fc.scale` is not in");
  run_bad(&toy_fp32, "--data-dir=$ --init-from=$/none", 1, "none: cannot open");
  run_bad(&toy_fp32, "--data-dir=$ --model-dir=$/empty --eval-only", 1, "no such folder");
}

static void test_dump(void **state) {
  (void)state;
  run_good(&toy_fp32, "--data-dir=$ --dump-step=$/a.safetensors");
  run_good(&toy_fp16, "--data-dir=$ --dump-step=$/b.safetensors");
  AmprtTensors a = load("a.safetensors"), b = load("b.safetensors");
  static const char *const names[] = {"fc.weight.grad", "fc.bias.grad", "loss", "logits", "image"};
  for (int i = 0; i < 5; i++) { /* the scale of 1024 has been divided out */
    const AmprtTensor *x = amprt_tensors_find(&a, names[i]), *y = amprt_tensors_find(&b, names[i]);
    assert_true(x && y && x->size == y->size && x->dtype == AMPRT_F32);
    for (int64_t e = 0; e < x->elements; e++) {
      float p, q;
      memcpy(&p, x->data + 4 * e, sizeof p);
      memcpy(&q, y->data + 4 * e, sizeof q);
      assert_true(fabsf(p - q) <= 3e-3f * (1 + fabsf(p)));
    }
  }
  static const int64_t kcrs[] = {4, 1, 8, 8}, nhwc[] = {8, 8, 8, 1};
  assert_memory_equal(amprt_tensors_find(&a, "fc.weight.grad")->dim, kcrs, sizeof kcrs);
  assert_memory_equal(amprt_tensors_find(&a, "image")->dim, nhwc, sizeof nhwc);
  assert_int_equal(amprt_tensors_find(&a, "label")->dtype, AMPRT_I32);
  amprt_tensors_free(&a);
  amprt_tensors_free(&b);
  assert_false(amprt_is_file("toy_model"));
}

static void test_not_finite(void **state) {
  (void)state;
  run_bad(&toy_nan, "--data-dir=$ --model-dir=$/m --log-every=20", 1, "not been finite for 100");
  assert_said("loss nan");
  assert_true(count_log("m/log.jsonl", "\"loss\":null") >= 5);
  assert_false(amprt_is_file(in_scratch("m/ckpt-100.safetensors")));
  run_bad(&toy_nan, "--data-dir=$ --model-dir=$/n --max-skipped-steps=7 --log-every=1", 1,
          "not been finite for 7 steps");
  assert_int_equal(count_log("n/log.jsonl", "\"event\":\"train\""), 7);
  run_good(&toy_nan, "--data-dir=$ --model-dir=$/o --max-skipped-steps=0 --train-epochs=5");
}

/* Inf or NaN in the state: status 1, and the last finite checkpoint stays the newest. */
static void test_diverged(void **state) {
  (void)state;
  static const char spoiled[] = "fc.bias (variable of layer fc), F32: 0 Inf, 1 NaN of 4 elements";
  run_bad(
      &toy_fp32, "--data-dir=$ --model-dir=$/m --inject=nan@30:fc.bias.grad", 1,
      "the training has diverged after step 51: fc.weight (variable), F32: 0 Inf, 256 NaN of 256 "
      "elements");
  assert_said("; the loss has not been finite since step 31; this state is not saved; the newest "
              "checkpoint is ");
  assert_said("m/ckpt-26.safetensors; try a smaller --learning-rate");
  assert_false(amprt_is_file(in_scratch("m/ckpt-51.safetensors")));
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/m --resume --max-train-steps=30");
  /* the last step spoils what its loss could not show yet */
  run_bad(&toy_fp32, "--data-dir=$ --model-dir= --max-train-steps=9 --inject=nan@8:fc.bias.grad", 1,
          "diverged after step 9: ");
  assert_said(spoiled);
  run_bad(&toy_fp32,
          "--data-dir=$ --model-dir=$/n --checkpoint-every=4 --max-skipped-steps=0 "
          "--inject=nan@5:fc.bias.grad",
          1, "diverged after step 8: ");
  assert_said(spoiled);
  assert_said("n/ckpt-4.safetensors; try");
  toy_signal = SIGTERM;
  toy_signal_at = 9;
  run_bad(&toy_fp32, "--data-dir=$ --model-dir=$/o --inject=nan@5:fc.bias.grad", 1, "diverged");
  run_bad(&toy_nan, "--data-dir=$ --model-dir=$/o --clean --train-epochs=1", 1,
          "diverged after step 26: its loss is nan; the loss has not been finite since step 0");
  assert_false(amprt_is_file(in_scratch("o/ckpt-26.safetensors")));
  /* a program that tests its gradients skips such steps */
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/p --inject=nan@101:fc.bias.grad");
}

/* A dynamic loss scale that cannot fall any further, to the end of a run of fewer steps than would
 * end it early. */
static void test_stuck_at_end(void **state) {
  (void)state;
  char line[1024] = "--data-dir=$ --model-dir=$/m --train-epochs=2 --inject=";
  for (int i = 11; i < 51; i++)
    snprintf(line + strlen(line), sizeof line - strlen(line), "%snan@%d:image", i > 11 ? "," : "",
             i);
  run_bad(&toy_fp16, line, 1, "have not been finite for 40 steps, at loss scale 1");
  assert_true(amprt_is_file(in_scratch("m/ckpt-11.safetensors"))); /* finite, so nothing is lost */
}

static void test_statistics(void **state) {
  (void)state;
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/a --max-train-steps=5 --standardize=0");
  assert_said("batch normalisation averages over about 100 steps (momentum 0.99), the first "
              "evaluation comes after 5, with 95 %");
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/b --max-train-steps=5 --standardize=0 "
                      "--recompute-bn-stats=5 --no-shuffle --no-augment");
  assert_null(strstr(caught, "averages over"));
  AmprtTensors a = load("a/ckpt-5.safetensors"), b = load("b/ckpt-5.safetensors");
  AmprtBytes raw = read_bytes(in_scratch("train-images-idx3-ubyte"));
  double want = 0; /* the plain mean of 5 batches of 8 images, padded to 8x8 */
  for (size_t i = 0; i < 40 * 36; i++)
    want += raw.data[16 + i] / (255.0 * 40 * 64);
  assert_true(fabs(first_float(&b, "bn.running_mean") - want) < 1e-6);
  assert_true(first_float(&a, "bn.running_mean") < .1 * want);
  free(raw.data);
  amprt_tensors_free(&a);
  amprt_tensors_free(&b);
}

static void test_threshold(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --train-epochs=50 --stop-threshold=.99");
  AmprtBytes log = read_bytes(in_scratch("m/log.jsonl"));
  free(log.data);
  int evaluations = count_log("m/log.jsonl", "\"event\":\"eval\"");
  assert_in_range(evaluations, 1, 10);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --train-epochs=50 --stop-threshold=.99 "
                      "--resume"); /* the saved run had passed it */
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"eval\""), evaluations + 1);
}

static void test_synthetic(void **state) {
  (void)state;
  run_good(&toy_fp32, "--use-synthetic-data --max-train-steps=3 --learning-rate=1e-6");
  assert_said("60000 synthetic images");
  assert_said("(24 images"); /* max-train-steps bounds the evaluation too */
  struct stat info;
  assert_int_equal(stat("toy_model", &info), -1); /* and nothing is written */
  run_good(&toy_fp32, "--use-synthetic-data --synthetic-examples=20 --train-epochs=1 "
                      "--learning-rate=1e-6 --profile");
  assert_said("(20 images");
  assert_said("@train: 3 runs");
  assert_said("k1_backward");
}

/* Random images only where they were asked for; the log says what was read. */
static void test_no_dataset(void **state) {
  (void)state;
  static const AmprtSetting none = {"dataset", ""};
  AmprtProgram silent = toy_fp32;
  silent.recipe = &none;
  silent.n_recipe = 1;
  char want[512];
  run_bad(&silent, "--data-dir=$ --max-train-steps=1", 2, "error: no data set:");
  assert_said("--dataset=fashion_mnist or cifar10 with --data-dir=DIR");
  run_bad(&silent, "--max-train-steps=1", 2, "--use-synthetic-data");
  run_bad(&silent, "--dataset= --eval-only", 2, "error: no data set:");
  run_good(&silent, "--dataset=synthetic --max-train-steps=1 --log-file=$/a --learning-rate=1e-6");
  assert_int_equal(count_log("a", "\"start\",\"model\":\"toy\""), 1);
  assert_int_equal(count_log("a", "\"dataset\":\"synthetic\",\"data_dir\":\"\","), 1);
  run_good(&silent, "--dataset=fashion_mnist --data-dir=$ --max-train-steps=1 --model-dir= "
                    "--log-file=$/b");
  snprintf(want, sizeof want, "\"dataset\":\"fashion_mnist\",\"data_dir\":\"%s\",", scratch);
  assert_int_equal(count_log("b", want), 1);
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

static void test_log(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=5 --log-every=1");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"train\""), 5);
  AmprtBytes log = read_bytes(in_scratch("m/log.jsonl"));
  write_bytes(in_scratch("m/log.jsonl"), log.data, log.size - 1); /* as a killed run leaves it */
  free(log.data);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=9 --log-every=1 --resume -v");
  assert_said("ampcc 0.1.0, a toy");
  assert_said("saved ");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"train\""), 9);
  assert_int_equal(count_log("m/log.jsonl", "\"step\":9"), 3); /* train, checkpoint, eval */
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --log-file=/dev/full");
  assert_said("warning: /dev/full: cannot write the log");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/q -q --max-train-steps=200 --train-epochs=1");
  assert_null(strstr(caught, "epoch"));
}

static void test_lock(void **state) {
  (void)state;
  int folder = open(scratch, O_RDONLY | O_DIRECTORY);
  assert_int_equal(flock(folder, LOCK_EX), 0);
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$ --clean", 3, "another run is using this folder");
  close(folder);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$ --max-train-steps=1");
}

static void test_target_fails(void **state) {
  (void)state;
  if (on_device)
    return; /* test_device.c has its failures */
  AmprtProgram program = toy_fp16;
  program.open = toy_open_fails;
  run_bad(&program, "--data-dir=$ --model-dir=$/m", 3, "error: this processor is too old");
  program = toy_fp16;
  program.abi++;
  run_bad(&program, "--data-dir=$", 3, "compile it again");
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)
int main(int argc, char **argv) {
  on_device = argc > 1 && !strcmp(argv[1], "device");
  const struct CMUnitTest tests[] = {
      RUN_TEST(test_train),        RUN_TEST(test_same_bytes), RUN_TEST(test_resume),
      RUN_TEST(test_signal),       RUN_TEST(test_folder),     RUN_TEST(test_damaged),
      RUN_TEST(test_precisions),   RUN_TEST(test_init_from),  RUN_TEST(test_dump),
      RUN_TEST(test_not_finite),   RUN_TEST(test_statistics), RUN_TEST(test_threshold),
      RUN_TEST(test_synthetic),    RUN_TEST(test_no_dataset), RUN_TEST(test_bad_data_first),
      RUN_TEST(test_disk_full),    RUN_TEST(test_log),        RUN_TEST(test_lock),
      RUN_TEST(test_target_fails), RUN_TEST(test_unreadable), RUN_TEST(test_old_log),
      RUN_TEST(test_clean_last),   RUN_TEST(test_diverged),   RUN_TEST(test_stuck_at_end),
      RUN_TEST(test_forged),       RUN_TEST(test_made),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
