/* Whole runs of the toy program: training, checkpoints, resuming, stopping, reports. */
#include "runtime/core/stop.h"
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

static void test_train(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --log-every=10");
  assert_said("test accuracy 1.0000");
  assert_said("  epoch 1.02  (50 images");
  assert_said("  epoch 4.02  (50 images");
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
  AmprtTensors last = load_tensors("m/ckpt-102.safetensors");
  assert_string_equal(amprt_tensors_meta(&last, "model"), "toy");
  assert_string_equal(amprt_tensors_meta(&last, "examples"), "816");
  assert_null(amprt_tensors_find(&last, "fc.weight.f16")); /* low-precision copies are not saved */
  const AmprtTensor *w = amprt_tensors_find(&last, "fc.weight");
  static const int64_t kcrs[] = {4, 1, 8, 8};
  assert_memory_equal(w->dim, kcrs, sizeof kcrs);
  amprt_tensors_free(&last);
}

/* 203 images: 25 batches of 8 an epoch, whose evaluations come after whole epochs. */
static void test_drop_remainder(void **state) {
  (void)state;
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/m --train-epochs=2 --drop-remainder=1");
  assert_said("  epoch 1.00  (50 images");
  assert_true(amprt_is_file(in_scratch("m/ckpt-25.safetensors")));
  assert_true(amprt_is_file(in_scratch("m/ckpt-50.safetensors")));
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/n --train-epochs=2 --drop-remainder=1 "
                      "--max-train-steps=30 --skip-eval");
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/n --train-epochs=2 --drop-remainder=1 --resume");
  assert_same_file(in_scratch("m/ckpt-50.safetensors"), in_scratch("n/ckpt-50.safetensors"));
  AmprtProgram large = toy_fp32;
  large.batch_size = 256;
  run_bad(&large, "--data-dir=$ --model-dir= --drop-remainder=1", 1,
          "--drop-remainder=1 leaves nothing of 203 training images in batches of 256");
}

static void test_same_bytes(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/a --max-train-steps=40 -q");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/b --max-train-steps=40 -q --data-threads=4");
  assert_same_file(in_scratch("a/ckpt-40.safetensors"), in_scratch("b/ckpt-40.safetensors"));
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/c --max-train-steps=40 -q --seed=2");
  AmprtTensors a = load_tensors("a/ckpt-40.safetensors"), c = load_tensors("c/ckpt-40.safetensors");
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
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume"); /* done: evaluates only */
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

static void test_precisions(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=20");
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/m --max-train-steps=30 --resume");
  assert_said("note: the checkpoint's `loss_scale` is not used");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=40 --resume");
  assert_said("note: the checkpoint has no `loss_scale`: it starts anew");
  AmprtTensors file = load_tensors("m/ckpt-40.safetensors");
  assert_true(first_float(&file, "loss_scale") == 4096); /* 1024, doubled twice in ten steps */
  amprt_tensors_free(&file);
}

static void test_init_from(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m");
  run_good(&toy_fp32, "--data-dir=$ --eval-only --init-from=$/m/ckpt-102.safetensors");
  assert_said("test accuracy 1.0000");
  assert_null(strstr(caught, "not used")); /* nothing is said about slots, step and loss scale */
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/n --init-from=$/m/ckpt-102.safetensors "
                      "--max-train-steps=2 --no-augment --no-shuffle");
  AmprtTensors file = load_tensors("n/ckpt-2.safetensors");
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
  AmprtTensors a = load_tensors("a.safetensors"), b = load_tensors("b.safetensors");
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

/* A run with Inf or NaN in its state ends with status 1, and the last finite checkpoint stays the
 * newest. */
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
  /* the last step spoils a parameter after its loss was computed */
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

/* A run whose last steps are all skipped because the dynamic loss scale cannot fall any further,
 * with too few steps to end it early. */
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
  AmprtTensors a = load_tensors("a/ckpt-5.safetensors"), b = load_tensors("b/ckpt-5.safetensors");
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
                      "--resume"); /* the saved run has passed that step already */
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"eval\""), evaluations + 1);
}

static void test_synthetic(void **state) {
  (void)state;
  run_good(&toy_fp32, "--use-synthetic-data --max-train-steps=3 --learning-rate=1e-6");
  assert_said("60000 synthetic images");
  assert_said("(24 images"); /* max-train-steps bounds the evaluation too */
  struct stat info;
  assert_int_equal(stat("toy_model", &info), -1); /* such a run writes no files */
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
  run_bad(&silent, "--data-dir=$ --max-train-steps=1", 2, "error: no data set is named");
  assert_said("--dataset=NAME (fashion_mnist, cifar10");
  run_bad(&silent, "--max-train-steps=1", 2, "--use-synthetic-data");
  run_bad(&silent, "--dataset= --eval-only", 2, "error: no data set is named");
  run_good(&silent, "--dataset=synthetic --max-train-steps=1 --log-file=$/a --learning-rate=1e-6");
  assert_int_equal(count_log("a", "\"start\",\"model\":\"toy\""), 1);
  assert_int_equal(count_log("a", "\"dataset\":\"synthetic\",\"data_dir\":\"\","), 1);
  run_good(&silent, "--dataset=fashion_mnist --data-dir=$ --max-train-steps=1 --model-dir= "
                    "--log-file=$/b");
  snprintf(want, sizeof want, "\"dataset\":\"fashion_mnist\",\"data_dir\":\"%s\",", scratch);
  assert_int_equal(count_log("b", want), 1);
}

static void test_log(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=5 --log-every=1");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"train\""), 5);
  AmprtBytes log = read_bytes(in_scratch("m/log.jsonl"));
  write_bytes(in_scratch("m/log.jsonl"), log.data,
              log.size - 1); /* a log that ends as a killed run leaves it */
  free(log.data);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=9 --log-every=1 --resume -v");
  assert_said("ampcc 0.1.0, a toy");
  assert_said("saved ");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"train\""), 9);
  assert_int_equal(count_log("m/log.jsonl", "\"step\":9"), 3); /* train, checkpoint, eval */
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --log-file=/dev/full");
  assert_said("warning: /dev/full: cannot write the log");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/q -q --max-train-steps=200 --train-epochs=1");
  assert_null(strstr(caught, "img/s"));
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

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, toy_setup, scratch_teardown)
/* A handler leaves the stack of the code that it interrupts alone: see stop.c. */
static void test_signal_stack(void **state) {
  (void)state;
  enum { FILL = 0xa5 };
  stack_t own;
  size_t written = 0;
  amprt_stop_listen();
  assert_int_equal(sigaltstack(NULL, &own), 0);
  assert_false(own.ss_flags & SS_DISABLE);
  memset(own.ss_sp, FILL, own.ss_size);
  raise(SIGHUP);
  for (size_t i = 0; i < own.ss_size; i++)
    written += ((unsigned char *)own.ss_sp)[i] != FILL;
  assert_true(written > 0);
  assert_int_equal(amprt_stop_signal(), SIGHUP);
  amprt_stop_forget();
}

int main(int argc, char **argv) {
  on_device = argc > 1 && !strcmp(argv[1], "device");
  const struct CMUnitTest tests[] = {
      RUN_TEST(test_train),     RUN_TEST(test_drop_remainder), RUN_TEST(test_same_bytes),
      RUN_TEST(test_resume),    RUN_TEST(test_signal),         RUN_TEST(test_precisions),
      RUN_TEST(test_init_from), RUN_TEST(test_dump),           RUN_TEST(test_not_finite),
      RUN_TEST(test_diverged),  RUN_TEST(test_stuck_at_end),   RUN_TEST(test_statistics),
      RUN_TEST(test_threshold), RUN_TEST(test_synthetic),      RUN_TEST(test_no_dataset),
      RUN_TEST(test_log),       RUN_TEST(test_target_fails),   RUN_TEST(test_signal_stack),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
