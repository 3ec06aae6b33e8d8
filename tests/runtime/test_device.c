/* Tests that a device that runs steps ahead gives the results of the host, that nothing is lost
 * when a device fails, and which part of an executable runs. */
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state) {
  if (toy_setup(state))
    return -1;
  on_device = true;
  test_device_lag = 0;
  test_device_fails = NULL;
  return 0;
}

/* Equal but for the rate and the seconds, which are never the same twice. */
static void assert_same_log(const char *a, const char *b) {
  static const char *const timed[] = {
      "\"images_per_second\":", "\"waiting_for_data\":", "\"seconds\":", "\"file\":"};
  AmprtBytes log[2] = {read_bytes(in_scratch(a)), read_bytes(in_scratch(b))};
  for (int i = 0; i < 2; i++) {
    log[i].data[log[i].size] = '\0';
    for (int t = 0; t < (int)(sizeof timed / sizeof *timed); t++)
      for (char *c = (char *)log[i].data; (c = strstr(c, timed[t])); c += strlen(timed[t]))
        for (char *v = c + strlen(timed[t]); *v != '\n' && *v != ',' && *v != '}'; v++)
          memmove(v, v + 1, strlen(v)), v--;
  }
  assert_string_equal((char *)log[0].data, (char *)log[1].data);
  free(log[0].data);
  free(log[1].data);
}

/* fp16 with a scale that has to come down first: steps are skipped while others are on their way.
 */
static const AmprtProgram *too_large(void) {
  static AmprtVariable variables[16];
  static AmprtProgram program;
  program = toy_fp16;
  memcpy(variables, toy_fp16.variable, (size_t)toy_fp16.n_variables * sizeof *variables);
  program.variable = variables;
  for (int i = 0; i < program.n_variables; i++)
    if (variables[i].kind == AMPRT_SCALE && variables[i].dtype == AMPRT_F32)
      variables[i].init_arg[0] = 0x1p22;
  return &program;
}

static void test_ahead(void **state) {
  (void)state;
  static const struct {
    const char *flags, *last;
    const AmprtProgram *program;
    int batches; /* batches of bytes: those of the steps, and 7 of the test set */
  } cases[] = {
      {"", "ckpt-102", &toy_fp16, 102 + 4 * 7},
      {"--checkpoint-every=7 --keep-checkpoints=0 --log-every=9", "ckpt-102", &toy_fp16,
       102 + 4 * 7},
      {"--max-train-steps=23 --log-every=4", "ckpt-23", &toy_fp16, 23 + 7},
      {"--recompute-bn-stats=3 --epochs-between-evals=.5", "ckpt-102", &toy_fp16, 102 + 8 * 10},
      {"--data-threads=3 --standardize=0", "ckpt-102", &toy_fp32, 102 + 4 * 7},
      {"--use-synthetic-data --synthetic-examples=50 --synthetic-mean=0.5 --synthetic-stddev=0.2 "
       "--recompute-bn-stats=3",
       "ckpt-25", &toy_fp32, 0},
  };
  static const int lags[] = {0, 1, 5, AMPRT_AHEAD - 1};
  char line[300], a[64], b[64];
  for (size_t f = 0; f < sizeof cases / sizeof *cases; f++) {
    on_device = false;
    snprintf(line, sizeof line, "--data-dir=$ --model-dir=$/h --clean -q %s", cases[f].flags);
    run_status(cases[f].program, line, 0);
    on_device = true;
    for (size_t i = 0; i < sizeof lags / sizeof *lags; i++) {
      test_device_lag = lags[i];
      test_device_pixels = 0;
      snprintf(line, sizeof line, "--data-dir=$ --model-dir=$/d --clean -q %s", cases[f].flags);
      run_status(cases[f].program, line, 0);
      assert_int_equal(test_device_pixels, cases[f].batches);
      snprintf(a, sizeof a, "h/%s.safetensors", cases[f].last);
      snprintf(b, sizeof b, "d/%s.safetensors", cases[f].last);
      assert_same_file(in_scratch(a), in_scratch(b));
      assert_same_log("h/log.jsonl", "d/log.jsonl");
    }
  }
}

/* A bound on the global step counts no skipped step, however far ahead the device is. */
static void test_ahead_of_skips(void **state) {
  (void)state;
  on_device = false;
  run_status(too_large(), "--data-dir=$ --model-dir=$/h --max-train-steps=20 -q", 0);
  on_device = true;
  test_device_lag = 6;
  run_status(too_large(), "--data-dir=$ --model-dir=$/d --max-train-steps=20 --log-every=3", 0);
  assert_said("skipped step 0, batch 0, loss scale 4.1943e+06: the device had gone on");
  assert_same_file(in_scratch("h/ckpt-20.safetensors"), in_scratch("d/ckpt-20.safetensors"));
}

/* A signal ends the run after what was started; resumed, it ends as if nothing had been. */
static void test_stop(void **state) {
  (void)state;
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/a", 0);
  test_device_lag = 4;
  toy_signal = SIGTERM;
  toy_signal_at = 30;
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/b", 143);
  assert_said("stopped by SIGTERM at step 3");
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume", 0);
  assert_same_file(in_scratch("a/ckpt-102.safetensors"), in_scratch("b/ckpt-102.safetensors"));
}

/* Step by step, with everything in files. */
static void test_inside(void **state) {
  (void)state;
  static const char *const flags[] = {"--dump-step=$/%s.safetensors",
                                      "--dump-step=$/%s.safetensors --dump-values"};
  for (int f = 0; f < 2; f++)
    for (int device = 0; device < 2; device++) {
      char flag[100], line[200];
      snprintf(flag, sizeof flag, flags[f], device ? "d" : "h");
      snprintf(line, sizeof line, "--data-dir=$ --init-from=$/m/ckpt-5.safetensors %s", flag);
      on_device = device;
      if (!f && !device)
        run_status(&toy_fp16, "--data-dir=$ --model-dir=$/m --max-train-steps=5", 0);
      run_status(&toy_fp16, line, 0);
      if (device)
        assert_same_file(in_scratch("h.safetensors"), in_scratch("d.safetensors"));
    }
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/p --max-train-steps=10 --profile", 0);
  assert_said("@train: 10 runs, 0.040 s"); /* the test device reports 1 ms for each of 4 */
}

/* Each way to fail, early and late: one line, status 3, and what was saved is whole. */
static void test_failures(void **state) {
  (void)state;
  static const struct {
    const char *function;
    int at;
    const char *flags;
  } cases[] = {
      {"open", 1, ""},
      {"write", 1, ""},
      {"start", 1, ""},
      {"start", 31, ""},
      {"start", 27, ""} /* of the evaluation */,
      {"collect", 1, ""},
      {"collect", 30, ""},
      {"read", 12, ""},
      {"kernels", 3, "--trap=first-nonfinite"},
      {"kernels", 5, "--profile"},
      {"watch", 1, ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[200];
    test_device_lag = 2;
    test_device_fails = NULL;
    run_status(&toy_fp16, "--data-dir=$ --model-dir=$/m --clean --max-train-steps=5 -q", 0);
    test_device_fails = cases[i].function;
    test_device_fails_at = cases[i].at;
    snprintf(line, sizeof line, "--data-dir=$ --model-dir=$/m --resume %s", cases[i].flags);
    run_status(&toy_fp16, line, 3);
    assert_said("error: the test device fails, as it was told");
    test_device_fails = NULL;
    run_status(&toy_fp16, "--data-dir=$ --model-dir=$/m --resume --eval-only", 0);
  }
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/n --strict-plans", 3);
  assert_said("no plans to be strict about");
}

static int no_driver(char *why, size_t size) {
  return snprintf(why, size, "no driver"), -1;
}

static int wrong_device(char *why, size_t size) {
  return snprintf(why, size, "this is another GPU"), -1;
}

static void test_parts(void **state) {
  (void)state;
  const AmprtPart both[] = {{"cuda:sm_90", &toy_fp32, no_driver},
                            {"cuda:sm_80", &toy_fp32, no_driver},
                            {"cuda:sm_75", &toy_fp32, wrong_device},
                            {"cpu", &toy_fp32, NULL}};
  static const char run[] = "--data-dir=$ --model-dir= --max-train-steps=1";
  char line[200];
  assert_int_equal(run_parts(both, 4, run), 0);
  assert_said("toy: not cuda:sm_90, cuda:sm_80: no driver\n"
              "toy: not cuda:sm_75: this is another GPU\ntoy: device cpu\n");
  snprintf(line, sizeof line, "%s -q", run);
  assert_int_equal(run_parts(both, 4, line), 0);
  assert_null(strstr(caught, "toy: "));
  snprintf(line, sizeof line, "%s --device=cpu", run);
  assert_int_equal(run_parts(both, 4, line), 0);
  assert_null(strstr(caught, "no driver"));
  assert_said("toy: device cpu\n");
  snprintf(line, sizeof line, "%s --device=cuda", run);
  assert_int_equal(run_parts(both, 4, line), 3);
  assert_said("error: this program does not run here: cuda:sm_90, cuda:sm_80: no driver; "
              "cuda:sm_75: this is another GPU");
  snprintf(line, sizeof line, "%s --device=cuda:sm_75", run);
  assert_int_equal(run_parts(both, 4, line), 3);
  assert_said("error: this program does not run here: cuda:sm_75: this is another GPU\n");
  snprintf(line, sizeof line, "%s --device=cu", run);
  assert_int_equal(run_parts(both, 4, line), 2);
  assert_said("--device: `cu` is none of this program's parts: cuda:sm_90, cuda:sm_80, "
              "cuda:sm_75, cpu");
  assert_int_equal(run_parts(both, 4, "--about"), 0);
  assert_said("cuda:sm_90   no driver\n");
  assert_said("cpu          a toy\n");
  assert_int_equal(run_parts(both, 1, "--print-memory-plan"), 0); /* needs no such machine */
  assert_said("the    plan");
  assert_int_equal(run_parts(both + 3, 1, run), 0);
  assert_null(strstr(caught, "device"));
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      RUN_TEST(test_ahead),  RUN_TEST(test_ahead_of_skips), RUN_TEST(test_stop),
      RUN_TEST(test_inside), RUN_TEST(test_failures),       RUN_TEST(test_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
