/* The run loop of the official programs (specs/resnet.md 1.4), their tests of it (5.1, 5.2), and
 * weights to start from. */
#include "runtime/core/schedule.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "past_stop_threshold": threshold, accuracy. Text in either place is no number (test_official). */
static void test_past_stop_threshold(void **state) {
  (void)state;
  static const double past[][2] = {{.54, 1}, {54, 100}, {-.54, 0}, {0, 0}, {.54, .54}, {0, 1.5}};
  static const double not_past[][2] = {{.54, .1}, {-.54, -1.5}};
  for (size_t i = 0; i < sizeof past / sizeof *past; i++)
    assert_true(amprt_past_stop_threshold(past[i][0], past[i][1]));
  for (size_t i = 0; i < sizeof not_past / sizeof *not_past; i++)
    assert_false(amprt_past_stop_threshold(not_past[i][0], not_past[i][1]));
  assert_false(amprt_past_stop_threshold((double)NAN, .54)); /* none given */
  assert_false(amprt_past_stop_threshold((double)NAN, 0));
  assert_false(amprt_past_stop_threshold(.54, (double)NAN)); /* a program that does not evaluate */
}

static int count(const char *text) {
  int n = 0;
  for (const char *at = caught; (at = strstr(at, text)); at++)
    n++;
  return n;
}

/* 25 epochs by 10 are cycles of 10, 10 and 5. */
static void test_cycles(void **state) {
  (void)state;
  run_good(&toy_fp32, "--data_dir=$ -md=$/m -te=5 -ebe=2");
  assert_said("Starting cycle: 0/3\n");
  assert_said("Starting cycle: 2/3\n");
  assert_int_equal(count("Starting cycle: "), 3);
  assert_int_equal(count("Starting to evaluate.\n"), 3);
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"eval\",\"step\":51,"), 1);
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"eval\",\"step\":102,"), 1);
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"eval\",\"step\":127,"), 1);
  run_good(&toy_fp32, "--data_dir=$ -md=$/q -te=1 -q");
  assert_int_equal(count("Starting"), 0);
}

/* 0 epochs and eval_only evaluate once, the newest checkpoint. */
static void test_evaluate_only(void **state) {
  (void)state;
  run_good(&toy_fp32, "--data_dir=$ --model_dir=$/m --train_epochs=2");
  static const char *const line[] = {"--data_dir=$ --model_dir=$/m --train_epochs=0",
                                     "--data_dir=$ --model_dir=$/m --eval_only",
                                     "--data_dir=$ --model_dir=$/m -eval_only -mts=1"};
  for (int i = 0; i < 3; i++) {
    run_good(&toy_fp32, line[i]);
    assert_int_equal(count("Starting to evaluate."), 1);
    assert_int_equal(count("Starting cycle"), 0);
    assert_said("(50 images"); /* the whole test set, whatever bounds training */
    assert_said("epoch 2.01");
  }
  run_bad(&toy_fp32, "--data_dir=$ --model_dir=$/none --eval_only", 1, "no such folder");
  run_bad(&toy_fp32, "--data_dir=$ --model_dir=$/m --eval_only --skip_eval", 2, "contradict");
}

static void test_ends(void **state) {
  (void)state;
  run_good(&toy_fp32, "--data_dir=$ -md=$/a --skip_eval");
  assert_int_equal(count("Starting to evaluate."), 0);
  assert_int_equal(count("Starting cycle: "), 4);
  run_good(&toy_fp32, "--data_dir=$ -md=$/b -st=.5"); /* more than half are right */
  assert_int_equal(count("Starting cycle: "), 1);
  run_good(&toy_fp32, "--data_dir=$ -md=$/c -st=1.5");
  assert_int_equal(count("Starting cycle: "), 4);
  run_good(&toy_fp32, "--data_dir=$ -md=$/d --train_steps=30 --log-every=10");
  assert_int_equal(count("Starting cycle: "), 2);
  assert_int_equal(count("  step 10  "), 1);
  assert_int_equal(count("  step 30  "), 1);
  assert_true(amprt_is_file(in_scratch("d/ckpt-30.safetensors")));
  run_bad(&toy_fp32, "--data_dir=$ -md=$/d", 1, "already holds checkpoints");
  run_good(&toy_fp32, "--data_dir=$ -md=$/d --clean -mts=2");
  assert_false(amprt_is_file(in_scratch("d/ckpt-30.safetensors")));
}

/* "end to end synthetic": one epoch, one step, training and evaluation. */
static void test_synthetic(void **state) {
  (void)state;
  run_good(&toy_fp16, "-synth -te=1 -mts=1 -md=$/m --data_format=channels_last --num_gpus=0 "
                      "--distribution_strategy=off");
  assert_int_equal(count("Starting cycle: 0/1"), 1);
  assert_said("(8 images");
}

/* ---- weights to start from ---- */

/* A file of these tensors, which hold `value` everywhere. */
typedef struct Given {
  const char *name, *shape;
  int elements;
} Given;

static void write_weights(const char *name, const Given *tensor, int n, float value) {
  char header[2048] = "{";
  int at = 0;
  for (int i = 0; i < n; i++) {
    snprintf(header + strlen(header), sizeof header - strlen(header),
             "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%d,%d]}", i ? "," : "",
             tensor[i].name, tensor[i].shape, at, at + 4 * tensor[i].elements);
    at += 4 * tensor[i].elements;
  }
  strcat(header, "}");
  while (strlen(header) % 8)
    strcat(header, " ");
  FILE *out = fopen(in_scratch(name), "wb");
  assert_non_null(out);
  for (int i = 0; i < 8; i++)
    fputc((int)(strlen(header) >> 8 * i & 255), out);
  fputs(header, out);
  for (int i = 0; i < at / 4; i++)
    fwrite(&value, sizeof value, 1, out);
  fclose(out);
}

/* The toy, with a name for the layer of its weights. */
static AmprtProgram with_head(void) {
  static AmprtVariable variables[9];
  AmprtProgram program = toy_fp16;
  memcpy(variables, program.variable, (size_t)program.n_variables * sizeof *variables);
  variables[0].layer = "fc";
  program.variable = variables;
  return program;
}

static float saved(const char *file, const char *name) {
  AmprtTensors in = load_tensors(file);
  float value = first_float(&in, name);
  amprt_tensors_free(&in);
  return value;
}

static const Given mean = {"bn.running_mean", "", 1};

static void test_other_classes(void **state) {
  (void)state;
  AmprtProgram program = with_head();
  const Given five[] = {{"fc.weight", "5,1,8,8", 320}, {"fc.bias", "5", 5}, mean};
  write_weights("five", five, 3, .25f);
  run_good(&program, "--data-dir=$ --model-dir=$/m --init-from=$/five --learning-rate=0 -mts=1");
  assert_said("five: 2 parameters are drawn afresh, as it has 5 classes and this program 4: "
              "fc.weight, fc.bias\n");
  run_good(&program, "--data-dir=$ --model-dir=$/n --learning-rate=0 -mts=1");
  assert_true(saved("m/ckpt-1.safetensors", "fc.weight") ==
              saved("n/ckpt-1.safetensors", "fc.weight"));
  assert_true(saved("m/ckpt-1.safetensors", "bn.running_mean") !=
              saved("n/ckpt-1.safetensors", "bn.running_mean"));
  run_bad(&program, "--data-dir=$ --model-dir=$/o --init-from=$/five --init-from-strict", 1,
          "`fc.weight` is [5,1,8,8] in the file and [4,1,8,8] in the program; `fc.bias` is [5]");
  run_bad(&program, "--data-dir=$ --init-from=$/five --eval-only", 1, "`fc.bias` is [5]");
  const Given wide[] = {{"fc.weight", "5,1,8,9", 360}, {"fc.bias", "5", 5}, mean};
  write_weights("wide", wide, 3, 0); /* the bias tells that the head is another's */
  run_good(&program, "--data-dir=$ --model-dir=$/w --init-from=$/wide -mts=1");
  assert_said("it has 5 classes");
  const Given same[] = {{"fc.weight", "4,1,8,9", 288}, {"fc.bias", "4", 4}, mean};
  write_weights("same", same, 3, 0);
  run_bad(&program, "--data-dir=$ --model-dir=$/x --init-from=$/same", 1, "[4,1,8,9] in the file");
  program.head = "other"; /* only the head may have another number of classes */
  run_bad(&program, "--data-dir=$ --model-dir=$/y --init-from=$/five", 1, "`fc.bias` is [5]");
}

static void test_missing_and_surplus(void **state) {
  (void)state;
  AmprtProgram program = with_head();
  const Given some[] = {{"fc.weight", "4,1,8,8", 256},
                        {"fc.weight.momentum", "4,1,8,8", 256},
                        {"loss_scale", "", 1},
                        {"other.a", "2", 2},
                        {"other.b", "2", 2}};
  write_weights("some", some, 5, .25f);
  run_good(&program, "--data-dir=$ --model-dir=$/m --init-from=$/some --learning-rate=0 -mts=1");
  assert_said("some: 2 of the program are not in it and begin afresh: fc.bias, bn.running_mean\n");
  assert_said("some: 2 of its tensors are not used: other.a, other.b\n");
  assert_true(saved("m/ckpt-1.safetensors", "fc.weight") == .25f);
  assert_true(saved("m/ckpt-1.safetensors", "loss_scale") == 1024);
  run_bad(
      &program, "--data-dir=$ --model-dir=$/n --init-from=$/some --init-from-strict", 1,
      "does not fit this program: `fc.bias` is not in the file; `bn.running_mean` is not in the "
      "file; `other.a` is not in the program; `other.b` is not in the program");
  run_bad(&program, "--data-dir=$ --init-from=$/some --eval-only", 1,
          "`fc.bias` is not in the file");
  write_weights("none", some + 3, 2, 0);
  run_bad(&program, "--data-dir=$ --model-dir=$/o --init-from=$/none", 1,
          "none: holds no parameter of this program");
  run_good(&program, "--data-dir=$ --model-dir=$/p -mts=3");
  run_good(&program, "--data-dir=$ --model-dir=$/q -mts=3 --init-from=$/p/ckpt-3.safetensors "
                     "--init-from-strict"); /* state of a training is no difference */
  run_bad(&program, "--data-dir=$ --init-from-strict", 2, "--init-from-strict needs --init-from");
}

/* A checkpoint in the model folder counts more than --init-from, so that one command line starts
 * and restarts a job. */
static void test_resume_or_init(void **state) {
  (void)state;
  AmprtProgram program = with_head();
  const Given all[] = {{"fc.weight", "4,1,8,8", 256}, {"fc.bias", "4", 4}, mean};
  write_weights("all", all, 3, .25f);
  run_good(&program, "--data-dir=$ -md=$/m -pmcp=$/all --resume --learning-rate=0 -mts=2");
  assert_true(saved("m/ckpt-2.safetensors", "fc.weight") == .25f);
  run_good(&program, "--data-dir=$ -md=$/m -pmcp=$/gone --resume --learning-rate=0 -mts=4");
  assert_said("resuming from");
  assert_true(saved("m/ckpt-4.safetensors", "fc.weight") == .25f);
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, toy_setup, scratch_teardown)
int main(int argc, char **argv) {
  on_device = argc > 1 && !strcmp(argv[1], "device");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_past_stop_threshold),
      RUN_TEST(test_cycles),
      RUN_TEST(test_evaluate_only),
      RUN_TEST(test_ends),
      RUN_TEST(test_synthetic),
      RUN_TEST(test_other_classes),
      RUN_TEST(test_missing_and_surplus),
      RUN_TEST(test_resume_or_init),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
