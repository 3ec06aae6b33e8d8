/* Tests that results that are not finite are found, named, survived and saved by --trap; and
 * --grad-histogram-every. */
#include "runtime/base/convert.h"
#include "runtime/state/safetensors.h"
#include "runtime/watch/finite.h"
#include "runtime/watch/histogram.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static AmprtError error;

static void test_tally(void **state) {
  (void)state;
  enum { N = 1029 }; /* number of elements: more than one piece, and no multiple of a piece */
  static const AmprtDType dtypes[] = {AMPRT_F32, AMPRT_F16, AMPRT_BF16};
  float x[N];
  unsigned char low[N * sizeof *x];
  for (int i = 0; i < N; i++)
    x[i] = (float)(i % 7) - 3;
  x[0] = x[600] = INFINITY;
  x[511] = x[512] = x[N - 1] = -INFINITY;
  x[1023] = x[1024] = NAN;
  x[700] = -1024;
  for (int i = 0; i < 3; i++) {
    amprt_from_f32(dtypes[i], x, low, N);
    AmprtTally tally = amprt_tally(dtypes[i], low, N);
    assert_int_equal(tally.elements, N);
    assert_int_equal(tally.inf, 5);
    assert_int_equal(tally.nan, 2);
    assert_true(tally.largest == 1024);
  }
  assert_true(amprt_tally(AMPRT_F32, x, 1).largest == 0);
}

/* Every f16 value, and f32 values between them and beyond the largest, compared with what the
 * conversion makes of them. */
static void test_shares(void **state) {
  (void)state;
  static const struct {
    AmprtDType dtype;
    uint16_t (*of)(float x);
    float (*to)(uint16_t h);
    float least;
  } low[] = {{AMPRT_F16, amprt_f16_of, amprt_f16_to, 0x1p-14f},
             {AMPRT_BF16, amprt_bf16_of, amprt_bf16_to, 0x1p-126f}};
  for (int t = 0; t < 2; t++) {
    AmprtHistogram got = {0}, want = {0};
    for (uint32_t u = 0; u < 1u << 20; u++) {
      uint32_t bits = u << 12 | (u & 1 ? 0x800 : 0); /* some are ties between two f16 */
      float x;
      memcpy(&x, &bits, sizeof x);
      float rounded = low[t].to(low[t].of(x));
      want.elements++;
      want.zero += x == 0;
      want.underflow += x != 0 && rounded == 0;
      want.subnormal += rounded != 0 && fabsf(x) < low[t].least;
      want.overflow += !isfinite(rounded);
      amprt_histogram_add(&got, low[t].dtype, &x, 1);
    }
    int64_t counted = 0;
    for (int i = 0; i < AMPRT_N_EXPONENTS; i++)
      counted += got.count[i];
    assert_int_equal(got.elements, want.elements);
    assert_int_equal(got.zero, want.zero);
    assert_int_equal(got.underflow, want.underflow);
    assert_int_equal(got.subnormal, want.subnormal);
    assert_int_equal(got.overflow, want.overflow);
    assert_int_equal(counted, want.elements - want.zero - (1 << 12)); /* exponent 255: Inf, NaN */
  }
}

static void test_exponents(void **state) {
  (void)state;
  static const float x[] = {1, -1.99f, 2, 0x1p-149f, 0x1.8p-130f, -0x1.fffffep127f};
  static const int exponent[] = {0, 0, 1, -149, -130, 127};
  AmprtHistogram histogram = {0};
  int64_t want[AMPRT_N_EXPONENTS] = {0};
  for (int i = 0; i < 6; i++)
    want[exponent[i] - AMPRT_LEAST_EXPONENT]++;
  amprt_histogram_add(&histogram, AMPRT_F16, x, 6);
  assert_memory_equal(histogram.count, want, sizeof want);
}

/* The tensors of two checkpoints, but for the loss scale's. */
static void assert_same_state(const char *a, const char *b) {
  AmprtTensors x, y;
  if (amprt_tensors_read(in_scratch(a), &x, &error) ||
      amprt_tensors_read(in_scratch(b), &y, &error))
    fail_msg("%s", error.text);
  assert_int_equal(x.n_tensors, y.n_tensors);
  for (int i = 0; i < x.n_tensors; i++) {
    const AmprtTensor *p = &x.tensor[i], *q = amprt_tensors_find(&y, p->name);
    assert_true(q && p->size == q->size);
    bool scale = !strcmp(p->name, "loss_scale") || !strcmp(p->name, "good_steps");
    if ((memcmp(p->data, q->data, p->size) != 0) != scale)
      fail_msg("%s", p->name);
  }
  amprt_tensors_free(&x);
  amprt_tensors_free(&y);
}

/* A NaN in batch 7: the step is skipped, its origin is named, and the next step is good. */
static void test_skipped(void **state) {
  (void)state;
  static const struct {
    const char *inject, *says, *log;
  } cases[] = {
      {"nan@7:image[3]", "image (input), F32: 0 Inf, 1 NaN of 512 elements", "\"op\":\"input\""},
      {"-inf@7:fc.weight[255]", "fc.weight (variable), F32: 1 Inf, 0 NaN of 256 elements",
       "\"op\":\"variable\",\"value\":\"fc.weight\""},
      {"inf@7:logits", "logits (matmul of layer fc), F32: 1 Inf, 0 NaN of 32 elements",
       "\"op\":\"matmul\",\"value\":\"logits\",\"layer\":\"fc\""},
      {"inf@7:fc.bias.grad[3]", "fc.bias.grad (bias_grad of layer fc), F32: 1 Inf", "\"inf\":1"},
      {"inf@7:fc.bias.grad[3],nan@7:image,nan@7:logits[1]", "image (input), F32: 0 Inf, 1 NaN",
       "\"nan\":1"},
  };
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/a --max-train-steps=7", 0);
  assert_null(strstr(caught, "not finite"));
  assert_int_equal(count_log("a/log.jsonl", "nonfinite"), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[200];
    snprintf(line, sizeof line,
             "--data-dir=$ --model-dir=$/b --clean --max-train-steps=9 --checkpoint-every=1 "
             "--keep-checkpoints=0 --inject=%s",
             cases[i].inject);
    run_status(&toy_fp16, line, 0);
    assert_said("skipped step 7, batch 7, loss scale 2048: first not finite: ");
    assert_said(cases[i].says);
    assert_int_equal(count_log("b/log.jsonl", "\"event\":\"nonfinite\""), 1);
    assert_int_equal(count_log("b/log.jsonl", cases[i].log), 1);
    assert_int_equal(count_log("b/log.jsonl", "\"skipped_steps\":1"), 1);
    assert_same_state("a/ckpt-7.safetensors", "b/ckpt-7.safetensors"); /* saved after the skip */
    assert_true(amprt_is_file(in_scratch("b/ckpt-9.safetensors")));
  }
  run_status(&toy_fp16,
             "--data-dir=$ --model-dir=$/b --clean -q --inject=inf@3:logits "
             "--max-train-steps=4",
             0);
  assert_null(strstr(caught, "not finite"));
  assert_int_equal(count_log("b/log.jsonl", "nonfinite"), 1);
}

/* A loss scale that is too large by less than a factor of two. With half of it nothing
 * overflows. */
static void test_scale_too_large(void **state) {
  (void)state;
  AmprtVariable variables[16];
  AmprtProgram program = toy_fp16;
  memcpy(variables, toy_fp16.variable, (size_t)toy_fp16.n_variables * sizeof *variables);
  program.variable = variables;
  for (int i = 0; i < program.n_variables; i++)
    if (variables[i].kind == AMPRT_SCALE && variables[i].dtype == AMPRT_F32)
      variables[i].init_arg[0] = 0x1p20;
  run_status(&program, "--data-dir=$ --model-dir=$/m --max-train-steps=3 --log-every=1", 0);
  assert_said("skipped step 0, batch 0, loss scale 1.04858e+06: ");
  assert_said(on_device ? "the device had gone on" /* by then the state before the step is lost */
                        : "first not finite: fc.weight.grad (matmul of layer fc)");
  int skipped = count_log("m/log.jsonl", "\"event\":\"nonfinite\"");
  assert_in_range(skipped, 1, 8);
  assert_int_equal(count_log("m/log.jsonl", "\"value\":\"fc.weight.grad\""),
                   on_device ? 0 : skipped);
  assert_null(strstr(caught, "every result was finite"));
  AmprtTensors file;
  if (amprt_tensors_read(in_scratch("m/ckpt-3.safetensors"), &file, &error))
    fail_msg("%s", error.text);
  float scale;
  memcpy(&scale, amprt_tensors_find(&file, "loss_scale")->data, sizeof scale);
  assert_true(scale == ldexpf(1, 20 - skipped));
  amprt_tensors_free(&file);
}

/* Without a finite test the loss is judged before anything changes; what only spoils a gradient
 * shows one step later, in a parameter. */
static float mean_of(const char *name) {
  AmprtTensors file;
  float mean;
  if (amprt_tensors_read(in_scratch(name), &file, &error))
    fail_msg("%s", error.text);
  memcpy(&mean, amprt_tensors_find(&file, "bn.running_mean")->data, sizeof mean);
  amprt_tensors_free(&file);
  return mean;
}

static void test_without_test(void **state) {
  (void)state;
  run_status(&toy_fp32, "--data-dir=$ --model-dir=$/n --max-train-steps=9", 0);
  run_status(&toy_fp32,
             "--data-dir=$ --model-dir=$/m --max-train-steps=9 --inject=inf@3:loss_each[2]", 0);
  assert_said("loss is not finite in step 3, batch 3: first not finite: loss_each (softmax_xent of "
              "layer loss)");
  assert_null(strstr(caught, "batch 4"));
  assert_true(mean_of("m/ckpt-9.safetensors") == mean_of("n/ckpt-9.safetensors"));
  run_status(&toy_fp32, "--data-dir=$ --max-train-steps=9 --model-dir= --inject=nan@3:fc.bias.grad",
             1);
  assert_said(
      "in step 4, batch 4: first not finite: fc.bias (variable of layer fc), F32: 0 Inf, 1 NaN");
  AmprtProgram late = toy_fp32; /* the loss comes after the first update */
  AmprtGraph graphs[4];
  memcpy(graphs, toy_fp32.graph, sizeof graphs);
  graphs[0].first_update = 1;
  late.graph = graphs;
  run_status(&late, "--data-dir=$ --max-train-steps=5 --model-dir= --inject=inf@3:loss_each", 0);
  assert_said("the step has changed the parameters, so it cannot be run again");
}

/* Control characters in names of layers do not reach a terminal. */
static void test_odd_names(void **state) {
  (void)state;
  static AmprtVariable variables[16];
  AmprtProgram program = toy_fp32;
  memcpy(variables, toy_fp32.variable, (size_t)toy_fp32.n_variables * sizeof *variables);
  variables[1].layer = "\x1b[31mred";
  program.variable = variables;
  run_status(&program, "--data-dir=$ --max-train-steps=9 --model-dir= --inject=nan@8:fc.bias.grad",
             1);
  assert_said("fc.bias (variable of layer ?[31mred), F32: 0 Inf, 1 NaN");
  assert_null(strchr(caught, 0x1b));
}

/* Equal bad steps print one line for people, and each has its line in the log. */
static void test_repeated(void **state) {
  (void)state;
  run_status(&toy_nan, "--data-dir=$ --model-dir=$/m", 1);
  const char *says = on_device ? "the device had gone on"
                               : "first not finite: loss_each (softmax_xent of layer loss), F32: "
                                 "0 Inf, 8 NaN of 8 elements, largest finite 0; made in one "
                                 "kernel by exp of loss or log of loss";
  const char *first = strstr(caught, says);
  assert_non_null(first);
  assert_null(strstr(first + 1, on_device ? says : "first not finite"));
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"nonfinite\""), 100);
  assert_int_equal(count_log("m/log.jsonl", "\"makers\":\"exp of loss or log of loss\""),
                   on_device ? 0 : 100);
}

/* Files that claim to be reproducers but hold a batch that no program can have. */
static void test_bad_reproducer(void **state) {
  (void)state;
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/m --trap=first-nonfinite --inject=nan@1:image",
             1);
  static const int32_t labels[][TOY_BATCH] = {{TOY_CLASSES}, {0, 1, 2, 3, -1}};
  AmprtTensorOut out[16];
  AmprtTensors file;
  if (amprt_tensors_read(in_scratch("m/nonfinite-1.safetensors"), &file, &error))
    fail_msg("%s", error.text);
  AmprtMeta meta[64];
  int n_meta = 0;
  for (int i = 0; i < file.n_meta; i++)
    if (strcmp(file.meta[i].key, "crc32")) /* the writer adds crc32 itself */
      meta[n_meta++] = file.meta[i];
  for (int c = 0; c < 3; c++) {
    for (int i = 0; i < file.n_tensors; i++) {
      const AmprtTensor *t = &file.tensor[i];
      bool label = c < 2 && !strcmp(t->name, "label");
      out[i] = (AmprtTensorOut){
          t->name, t->dtype, t->rank, t->dim, label ? (const void *)labels[c] : t->data, 0};
    }
    if (amprt_tensors_write(in_scratch("bad.safetensors"), out, file.n_tensors, meta, n_meta,
                            &error))
      fail_msg("%s", error.text);
    run_status(&toy_fp16, "--reproduce=$/bad.safetensors", 1);
    assert_said(c < 2 ? "has no `label` of this program's" : "step 1, first not finite: image");
  }
  amprt_tensors_free(&file);
}

static void test_trap(void **state) {
  (void)state;
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/m --trap=first-nonfinite --max-train-steps=5",
             0);
  run_status(&toy_fp16,
             "--data-dir=$ --model-dir=$/m --clean --trap=first-nonfinite "
             "--inject=nan@3:image[9]",
             1);
  assert_said(
      "stopped by --trap=first-nonfinite in step 3, loss scale 1024: first not finite: image");
  assert_said("m/nonfinite-3.safetensors runs the step again");
  static const char again[] = "--reproduce=$/m/nonfinite-3.safetensors";
  run_status(&toy_fp16, again, 1);
  assert_said("error: step 3, first not finite: image (input), F32: 0 Inf, 1 NaN of 512 elements");
  run_status(&toy_fp32, again, 1);
  assert_said("note: the checkpoint's `loss_scale` is not used");
  run_status(&toy_other, again, 1);
  assert_said("is a checkpoint of `toy`");
  char line[200];
  snprintf(line, sizeof line, "%s --dump-step=$/d.safetensors", again);
  run_status(&toy_fp16, line, 0);
  assert_said("tensors of step 3");
  /* a file that --trap saved equals the checkpoint of that step */
  run_status(&toy_fp16, "--data-dir=$ --model-dir=$/n --max-train-steps=3", 0);
  run_status(&toy_fp16, "--reproduce=$/n/ckpt-3.safetensors", 1);
  assert_said("has no `image` of this program's size");
  run_status(&toy_fp16,
             "--data-dir=$ --model-dir=$/o --init-from=$/m/nonfinite-3.safetensors "
             "--max-train-steps=1",
             0);
  /* a result that --inject spoiled is finite when the step is run again */
  run_status(&toy_fp16,
             "--data-dir=$ --model-dir=$/m --clean --trap=first-nonfinite "
             "--inject=inf@2:logits",
             1);
  assert_said("logits (matmul");
  run_status(&toy_fp16, "--reproduce=$/m/nonfinite-2.safetensors", 0);
  assert_said("step 2: every result is finite");
}

static void test_trap_state(void **state) {
  (void)state;
  run_status(&toy_fp32,
             "--data-dir=$ --model-dir=$/m --trap=first-nonfinite "
             "--inject=nan@3:fc.bias.grad",
             1);
  assert_said("in step 3: first not finite: fc.bias.grad (bias_grad of layer fc)");
  run_status(&toy_fp32, "--data-dir=$ --model-dir=$/n --max-train-steps=3", 0);
  AmprtTensors x, y;
  if (amprt_tensors_read(in_scratch("m/nonfinite-3.safetensors"), &x, &error) ||
      amprt_tensors_read(in_scratch("n/ckpt-3.safetensors"), &y, &error))
    fail_msg("%s", error.text);
  assert_int_equal(x.n_tensors, y.n_tensors + 2);
  for (int i = 0; i < y.n_tensors; i++) {
    const AmprtTensor *p = amprt_tensors_find(&x, y.tensor[i].name);
    assert_memory_equal(p->data, y.tensor[i].data, p->size);
  }
  amprt_tensors_free(&x);
  amprt_tensors_free(&y);
}

static void test_histograms(void **state) {
  (void)state;
  run_status(&toy_fp16,
             "--data-dir=$ --model-dir=$/m --max-train-steps=6 --grad-histogram-every=2 "
             "--inject=inf@4:fc.bias.grad",
             0);
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"grad_histogram\""), 2 * 4); /* 0 2 4 6 */
  assert_int_equal(count_log("m/log.jsonl",
                             "\"gradient\":\"fc.weight.grad\",\"layer\":\"fc\",\"stored\":\"F32\","
                             "\"low\":\"fp16\",\"loss_scale\":1024,"),
                   3); /* batches 0, 2 and 4, which is skipped */
  assert_int_equal(count_log("m/log.jsonl", "\"overflow\":0.25,"), 1);
  run_status(&toy_fp16, "--data-dir=$ --model-dir= --max-train-steps=6 --grad-histogram-every=2",
             2);
  assert_said("--log-file or --model-dir says where");
}

static void test_flags(void **state) {
  (void)state;
  static const struct {
    const char *flag, *says;
  } cases[] = {
      {"--inject=inf", "`inf` is not inf@BATCH:NAME"},
      {"--inject=inf@3", "`inf@3` is not"},
      {"--inject=big@3:image", "`big@3:image` is not"},
      {"--inject=inf@-3:image", "`inf@-3:image` is not"},
      {"--inject=inf@x:image", "`inf@x:image` is not"},
      {"--inject=inf@3:", "`inf@3:` is not"},
      {"--inject=inf@3:image[x]", "`inf@3:image[x]` is not"},
      {"--inject=inf@3:image[512]", "`image` has 512 elements"},
      {"--inject=inf@3:image,nan@4:none", "`none` is neither image nor a parameter nor a stored"},
      {"--inject=inf@3:global_step", "`global_step` is neither"},
      {"--trap=last", "--trap must be first-nonfinite"},
      {"--grad-histogram-every=-1", "must not be negative"},
      {"--reproduce=x --resume", "--reproduce does not go with --resume"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[200];
    snprintf(line, sizeof line, "--data-dir=$ --model-dir= %s", cases[i].flag);
    run_status(&toy_fp16, line, 2);
    assert_said(cases[i].says);
  }
  run_status(&toy_fp16, "--reproduce=$/none", 1);
  assert_said("none: cannot open");
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, toy_setup, scratch_teardown)
int main(int argc, char **argv) {
  on_device = argc > 1 && !strcmp(argv[1], "device");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tally),
      cmocka_unit_test(test_shares),
      cmocka_unit_test(test_exponents),
      RUN_TEST(test_skipped),
      RUN_TEST(test_scale_too_large),
      RUN_TEST(test_without_test),
      RUN_TEST(test_repeated),
      RUN_TEST(test_odd_names),
      RUN_TEST(test_bad_reproducer),
      RUN_TEST(test_trap),
      RUN_TEST(test_trap_state),
      RUN_TEST(test_histograms),
      RUN_TEST(test_flags),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
