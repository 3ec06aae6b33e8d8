/* Steps of several shards in one process: what they compute, the stream, checkpoints, signals, and
 * numbers that go wrong. */
#include "runtime/state/safetensors.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The gradient of batch `number` of the stream, with the initial weights. */
static float *gradient_of(int number, size_t *n) {
  char line[200];
  snprintf(
      line, sizeof line,
      "--data-dir=$ --model-dir=$/g --clean --learning-rate=0 --max-train-steps=%d --skip-eval",
      number);
  if (number)
    run_good(&toy_fp32, line);
  run_good(&toy_fp32, number ? "--data-dir=$ --model-dir=$/g --resume --dump-step=$/dump"
                             : "--data-dir=$ --dump-step=$/dump");
  AmprtTensors file = load_tensors("dump");
  const AmprtTensor *tensor = amprt_tensors_find(&file, "fc.weight.grad");
  float *copy = malloc(tensor->size);
  assert_non_null(copy);
  memcpy(copy, tensor->data, tensor->size);
  *n = (size_t)tensor->elements;
  amprt_tensors_free(&file);
  return copy;
}

/* Momentum after one step is the mean of the gradients of n batches, added by a balanced tree. */
static void check_mean(int n, const char *line) {
  float *g[8];
  size_t elements = 0;
  for (int i = 0; i < n; i++)
    g[i] = gradient_of(i, &elements);
  for (int width = 1; width < n; width *= 2)
    for (int i = 0; i < n; i += 2 * width)
      for (size_t k = 0; k < elements; k++)
        g[i][k] += g[i + width][k];
  run_good(&toy_fp32, line);
  AmprtTensors file = load_tensors("m/ckpt-1.safetensors");
  const AmprtTensor *tensor = amprt_tensors_find(&file, "fc.weight.momentum");
  assert_int_equal(tensor->elements, elements);
  for (size_t k = 0; k < elements; k++) {
    float x;
    memcpy(&x, tensor->data + k * sizeof x, sizeof x);
    if (x != g[0][k] * (1 / (float)n))
      fail_msg("element %zu of %d shards: %a, not %a", k, n, x, g[0][k] / (float)n);
  }
  amprt_tensors_free(&file);
  for (int i = 0; i < n; i++)
    free(g[i]);
}

static void test_mean(void **state) {
  (void)state;
  check_mean(2, "--data-dir=$ --model-dir=$/m --clean --shards=2 --max-train-steps=1 --skip-eval");
  check_mean(4, "--data-dir=$ --model-dir=$/m --clean --shards=4 --max-train-steps=1 --skip-eval");
  check_mean(8, "--data-dir=$ --model-dir=$/m --clean --shards=8 --max-train-steps=1 --skip-eval");
}

/* 203 images are 6.3 steps of 4 x 8: schedule, cycles and positions count all shards. */
static void test_counts(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --shards=4 --log-every=2");
  assert_said("batch 32,");
  assert_said("  epoch 1.10  (50 images");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"eval\",\"step\":13"), 1);
  assert_int_equal(count_log("m/log.jsonl", "\"batch_size\":8,\"shards\":4,\"global_batch\":32"),
                   1);
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"train\",\"step\":2,\"epoch\":0.31527094"
                                            ",\"loss\":1.3"),
                   1); /* ln 4 to begin with, as a mean */
  assert_true(amprt_is_file(in_scratch("m/ckpt-26.safetensors")));
  AmprtTensors last = load_tensors("m/ckpt-26.safetensors");
  assert_string_equal(amprt_tensors_meta(&last, "shards"), "4");
  assert_string_equal(amprt_tensors_meta(&last, "examples"), "832");
  amprt_tensors_free(&last);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/one --max-train-steps=1 --skip-eval");
  last = load_tensors("one/ckpt-1.safetensors");
  assert_null(amprt_tensors_meta(&last, "shards"));
  amprt_tensors_free(&last);
}

/* A run that is resumed takes as many shards as before, unless it is told otherwise. */
static void test_resume(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/a --shards=4");
  for (int stop = 1; stop < 26; stop += 8) {
    char line[200];
    snprintf(line, sizeof line,
             "--data-dir=$ --model-dir=$/b --clean --shards=4 --max-train-steps=%d", stop);
    run_good(&toy_fp16, line);
    run_good(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume=auto --data-threads=3");
    assert_null(strstr(caught, "was made with"));
    assert_same_file(in_scratch("a/ckpt-26.safetensors"), in_scratch("b/ckpt-26.safetensors"));
  }
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/c --shards=4 --max-train-steps=5");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/c --resume --shards=2 --max-train-steps=7");
  assert_said("was made with steps of 4 x 8 images, this run takes 2 x 8");
  AmprtTensors last = load_tensors("c/ckpt-7.safetensors");
  assert_string_equal(amprt_tensors_meta(&last, "examples"), "192");
  amprt_tensors_free(&last);
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/c --eval-only");
}

static void test_signal(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/a --shards=2");
  toy_signal = SIGTERM;
  toy_signal_at = 17;
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/b --shards=2", 143, "by SIGTERM at step 17");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/b --resume");
  assert_same_file(in_scratch("a/ckpt-51.safetensors"), in_scratch("b/ckpt-51.safetensors"));
}

/* Batch 6 is the third shard of step 1. */
static void test_nonfinite(void **state) {
  (void)state;
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/m --shards=4 --max-train-steps=3 --log-every=1 "
                      "--inject=nan@6:image[5]");
  assert_said("skipped step 1, batch 6, loss scale 1024: first not finite: image (input)");
  assert_int_equal(count_log("m/log.jsonl", "\"event\":\"nonfinite\",\"step\":1,\"batch\":6,"), 1);
  run_good(&toy_fp16, "--data-dir=$ --model-dir= --shards=4 --max-train-steps=3 --log-every=1 "
                      "--inject=inf@7:fc.weight.grad[3]");
  assert_said("skipped step 1, batch 7, loss scale 1024: first not finite: fc.weight.grad (matmul");
  /* a parameter is spoilt for one shard, and whole again for the update */
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/p --shards=4 --max-train-steps=3 "
                      "--inject=inf@5:fc.weight[3]");
  assert_said("skipped step 1, batch 5, loss scale 1024: first not finite: fc.weight (variable");
  run_good(&toy_fp16, "--data-dir=$ --model-dir=$/q --shards=4 --max-train-steps=3 "
                      "--inject=inf@5:image");
  assert_same_file(in_scratch("p/ckpt-3.safetensors"), in_scratch("q/ckpt-3.safetensors"));
}

/* Without a finite test the loss is judged before the update, which then goes on as if nothing had
 * been looked at. */
static void test_without_test(void **state) {
  (void)state;
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/n --shards=2 --max-train-steps=5");
  run_good(&toy_fp32, "--data-dir=$ --model-dir=$/m --shards=2 --max-train-steps=5 "
                      "--inject=inf@5:loss_each[2]");
  assert_said("loss is not finite in step 2, batch 5: first not finite: loss_each (softmax_xent");
  assert_same_file(in_scratch("m/ckpt-5.safetensors"), in_scratch("n/ckpt-5.safetensors"));
  run_bad(&toy_nan, "--data-dir=$ --model-dir= --shards=2 --max-skipped-steps=3", 1,
          "have not been finite for 3 steps; first of the last step: loss_each");
}

static void test_trap(void **state) {
  (void)state;
  run_bad(&toy_fp16,
          "--data-dir=$ --model-dir=$/m --shards=4 --trap=first-nonfinite --inject=nan@6:image[5]",
          1,
          "stopped by --trap=first-nonfinite in step 1, loss scale 1024: first not finite: image");
  run_bad(&toy_fp16, "--reproduce=$/m/nonfinite-1.safetensors", 1, "first not finite: image");
  run_bad(&toy_fp32,
          "--data-dir=$ --model-dir=$/f --shards=4 --trap=first-nonfinite "
          "--inject=nan@4:fc.bias.grad",
          1, "in step 1: first not finite: fc.bias.grad (bias_grad");
}

static void test_refused(void **state) {
  (void)state;
  run_bad(&toy_fp16, "--data-dir=$ --model-dir=$/m --shards=6", 2,
          "--shards=6: with 1 process a step can have 1, 2, 4, 8 ... shards");
  run_bad(&toy_fp16, "--data-dir=$ --shards=-1", 2, "--shards must not be negative");
  run_bad(&toy_fp16, "--data-dir=$ --shards=2 --dump-step=$/x", 2,
          "--dump-step looks at one batch: start one process, without --shards");
  AmprtProgram other = toy_fp16;
  other.n_graphs = 3;
  run_bad(&other, "--data-dir=$ --model-dir=$/m --shards=2", 2,
          "it was made without graph @train_dp");
  other = toy_fp16;
  other.parts = 4;
  run_bad(&other, "--data-dir=$ --model-dir=$/m --shards=2", 2,
          "was made with --accumulate=4: its steps cannot have shards; make it without "
          "--accumulate, as --shards=8 does the same");
  AmprtGraph graphs[4];
  memcpy(graphs, toy_fp16.graph, sizeof graphs);
  AmprtBucket buckets[] = {graphs[3].bucket[0], graphs[3].bucket[1]};
  graphs[3].bucket = buckets;
  other = toy_fp16;
  other.graph = graphs;
  graphs[3].n_values = 0; /* as the compiler makes it */
  run_bad(&other, "--data-dir=$ --model-dir=$/m --shards=2 --inject=nan@1:fc.weight.grad", 2,
          "is neither image nor a parameter; a step of several shards takes no results");
  buckets[0].reader = 2;
  run_bad(&other, "--data-dir=$ --model-dir=$/m --shards=2", 2,
          "joins shards in the middle of a step (synchronised batch normalisation)");
  buckets[0].reader = 4;
  buckets[1].at += 64;
  run_bad(&other, "--data-dir=$ --model-dir=$/m --shards=2", 3, "damaged: bucket 0 of @train_dp");
  assert_false(amprt_is_file(in_scratch("m/log.jsonl")));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_mean, toy_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_counts, toy_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_resume, toy_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_signal, toy_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_nonfinite, toy_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_without_test, toy_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_trap, toy_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_refused, toy_setup, scratch_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
