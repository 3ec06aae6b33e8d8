/* Tests flags, and how they divide a training into epochs. */
#include "ir/recipe/lr_schedule.def"
#include "runtime/core/schedule.h"
#include "runtime/flags/options.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static AmprtOptions options;
static AmprtError error;

static AmprtStatus parse(int argc, const char **argv) {
  amprt_options_free(&options);
  return amprt_options_parse(&options, &toy_fp32, argc, (char **)(uintptr_t)argv, &error);
}
#define PARSE(...)                                                                                 \
  parse(sizeof((const char *[]){"toy", __VA_ARGS__}) / sizeof(char *),                             \
        (const char *[]){"toy", __VA_ARGS__})

static void test_forms(void **state) {
  (void)state;
  assert_int_equal(PARSE("--train_epochs=2.5", "--max-train-steps", "7", "--use-synthetic-data",
                         "--resume=false", "-q", "--lr_boundaries=1,2.5,3", "--data-dir=/x"),
                   AMPRT_OK);
  assert_true(options.train_epochs == 2.5 && options.max_train_steps == 7);
  assert_true(options.use_synthetic_data && !options.resume && options.quiet);
  assert_true(options.boundaries.n == 3 && options.boundaries.v[1] == 2.5);
  assert_string_equal(options.data_dir, "/x");
  assert_true(options.given.train_epochs && !options.given.learning_rate);
}

static void test_recipe_then_argv(void **state) {
  (void)state;
  assert_int_equal(PARSE("--clean"), AMPRT_OK);
  assert_true(options.learning_rate == .05 && options.train_epochs == 4 && options.pad == 1);
  assert_string_equal(options.dataset, "fashion_mnist");
  assert_true(options.epochs_between_evals == 1 && isnan(options.stop_threshold));
  assert_int_equal(PARSE("--learning-rate=1"), AMPRT_OK);
  assert_true(options.learning_rate == 1);
}

static void test_wrong(void **state) {
  (void)state;
  static const struct {
    const char *arg, *says;
  } wrong[] = {
      {"--train-epoch=1", "did you mean --train-epochs"},
      {"--lr-boundary=1", "--lr-boundaries"},
      {"--zzz", "unknown flag `--zzz`"},
      {"-x", "unknown flag"},
      {"file", "unexpected argument"},
      {"--", "unexpected argument"},
      {"--train-epochs=x", "`x` is not a number"},
      {"--init-from=", "--init-from needs the name of a file"}, /* --init-from=$UNSET */
      {"--train-epochs=", "is not a number"},
      {"--max-train-steps=1.5", "is not a whole number"},
      {"--max-train-steps=99999999999999999999", "is not a whole number"},
      {"--max-train-steps", "needs a value"},
      {"--resume=maybe", "is not true or false"},
      {"--lr-boundaries=1,,2", "numbers with commas"},
      {"--lr-boundaries=1,", "numbers with commas"},
      {"--epochs-between-evals=0", "must be larger than 0"},
      {"--train-epochs=nan", "takes a number from 0 to 1000000, not `nan`"},
      {"--recompute-bn-stats=100001", "must be from 0 to 100000"},
      {"--augment-flip=2", "takes a whole number from 0 to 1, not `2`"},
      {"--augment-pad=4097", "takes a whole number from 0 to 4096, not `4097`"},
      {"--lr-schedule=linear",
       "takes constant, piecewise, cosine, polynomial or exponential, not `linear`"},
      {"--lr-boundaries=2,2", "takes rising numbers with commas between from 0 to 1000000, not"},
      {"--lr-boundaries=0,2", "--lr-boundaries takes rising"},
      {"--learning-rate=-1", "--learning-rate takes"},
      {"--end-learning-rate=1e7", "--end-learning-rate takes"},
      {"--dataset=cifar", "--dataset takes fashion_mnist, cifar10"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(PARSE(wrong[i].arg), AMPRT_USAGE);
    if (!strstr(error.text, wrong[i].says))
      fail_msg("%s: %s", wrong[i].arg, error.text);
  }
  assert_int_equal(PARSE("--resume", "--clean"), AMPRT_USAGE);
}

/* clang-format off: one string */
static const char dataset_words[] =
#define DATASET(name, ...) #name " "
#include "ir/recipe/datasets.def"
    "synthetic";
static const char preprocessing_words[] =
#define PREPROCESSING(id, name, ...) " " name
#include "ir/recipe/preprocessing.def"
    ;
/* clang-format on */

/* Each RUN field of ir/recipe/recipe.def is a flag that takes what the table says and nothing else.
 */
static const struct {
  const char *flag;
  bool run;
  struct {
    double low, high;
    const char *words;
    bool many, rising;
  } takes;
} recipe[] = {
#define RECIPE(field, flag, kind, otherwise, takes, when, help) FIELD_##when(flag, takes)
#define FIELD_COMPILE(flag, ...)                                {flag, false, {0}},
#define FIELD_RUN(flag, ...)                                    {flag, true, {__VA_ARGS__}},
#include "ir/recipe/recipe.def"
};

static void test_recipe_takes(void **state) {
  (void)state;
  int n_run = 0;
  for (size_t i = 0; i < sizeof recipe / sizeof *recipe; i++) {
    const struct {
      bool good;
      double number;
    } bound[] = {{true, recipe[i].takes.high},
                 {false, recipe[i].takes.high * 2 + 1},
                 {false, recipe[i].takes.low - 1}};
    char arg[128];
    n_run += recipe[i].run;
    for (int b = 0; b < 3 && recipe[i].run && !recipe[i].takes.words; b++) {
      snprintf(arg, sizeof arg, "--%s=%.16g", recipe[i].flag, bound[b].number);
      assert_int_equal(PARSE(arg), bound[b].good ? AMPRT_OK : AMPRT_USAGE);
    }
    for (const char *word = recipe[i].takes.words; recipe[i].run && word && *word;) {
      int len = (int)strcspn(word, " ");
      snprintf(arg, sizeof arg, "--%s=%.*s", recipe[i].flag, len, word);
      assert_int_equal(PARSE(arg), AMPRT_OK);
      snprintf(arg, sizeof arg, "--%s=%.*sx", recipe[i].flag, len, word);
      assert_int_equal(PARSE(arg), AMPRT_USAGE);
      word += len + (word[len] == ' ');
    }
  }
  assert_in_range(n_run, 10, 30);
}

/* Flags of the compiler: the answer is the command that makes such a program. */
static void test_fixed(void **state) {
  (void)state;
  static const struct {
    const char *arg, *next, *says;
  } fixed[] = {
      {"--dtype=fp16", "-q",
       "--dtype is fixed when the program is made (here: fp32): ampcc MODEL --dtype=fp16 -o "
       "PROGRAM"},
      {"--batch_size", "256", "ampcc MODEL --batch-size=256 -o"},
      {"--loss_scale=dynamic:init=8", "-q", "ampcc MODEL --loss-scale=dynamic:init=8 -o"},
      {"--weight-decay=1e-4", "-q", "ampcc MODEL --weight-decay=1e-4 -o"},
      {"--optimizer", "lars", "ampcc MODEL --optimizer=lars -o"},
      {"--amp-compat=tf", "-q", "--amp-compat is fixed"},
      {"--tf32", "-q", "ampcc MODEL --tf32 -o"},
      {"--no_fuse=1", "-q", "ampcc MODEL --no-fuse -o"},
      {"--max-memory=6GiB", "-q", "ampcc MODEL --max-memory=6GiB -o"},
      {"--target=cuda", "-q", "ampcc MODEL --target=cuda -o"},
      {"--batch-norm-momentum=.9", "-q", "ampcc MODEL --batch-norm-momentum=.9 -o"},
  };
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    assert_int_equal(PARSE(fixed[i].arg, fixed[i].next), AMPRT_USAGE);
    if (!strstr(error.text, fixed[i].says))
      fail_msg("%s: %s", fixed[i].arg, error.text);
  }
  for (size_t i = 0; i < sizeof recipe / sizeof *recipe; i++) { /* every field was tested */
    char arg[64];
    snprintf(arg, sizeof arg, "--%s=-1e9", recipe[i].flag);
    if (recipe[i].run)
      continue;
    assert_int_equal(PARSE(arg), AMPRT_USAGE);
    if (!strstr(error.text, " takes ") && !strstr(error.text, "a whole number"))
      assert_non_null(strstr(error.text, "is fixed when the program is made"));
  }
  assert_int_equal(PARSE("--emit=c"), AMPRT_USAGE); /* decides nothing about the program */
  assert_non_null(strstr(error.text, "unknown flag `--emit=c`"));
}

static void test_help(void **state) {
  (void)state;
  assert_int_equal(run_program(&toy_fp32, "--help"), 0);
  for (int i = 0; i < amprt_n_options; i++)
    if (amprt_option[i].flag) {
      assert_said(amprt_option[i].flag);
      assert_said(amprt_option[i].help);
    }
  assert_said("base learning rate [0.05]");
  assert_int_equal(run_program(&toy_fp32, "--version"), 0);
  assert_string_equal(caught, "ampcc 0.1.0\n");
  assert_int_equal(run_program(&toy_fp32, "--about"), 0);
  assert_said("parameters   260");
  assert_int_equal(run_program(&toy_fp32, "--print-memory-plan"), 0);
  assert_string_equal(caught, "the    plan\n");
  assert_int_equal(run_program(&toy_fp32, "--print-precision"), 0);
  assert_string_equal(caught, "the precision\n");
  assert_int_equal(run_program(&toy_fp32, "--nonsense"), 2);
}

static void assert_floats(const float *got, int n, const double *want) {
  for (int i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= 1e-6 * fabs(want[i])))
      fail_msg("entry %d is %g, not %g", i, got[i], want[i]);
}

static void test_schedule_cosine(void **state) {
  (void)state;
  float s[64];
  assert_int_equal(PARSE("--lr-schedule=cosine", "--train-epochs=5", "--end-learning-rate=.01",
                         "--warmup-epochs=1", "--max-train-steps=10"),
                   AMPRT_OK);
  assert_int_equal(amprt_schedule_fill(&options, 50000, 128, s, 64, &error), 0);
  assert_floats(s, AMP_LR_TOTAL + 1, (const double[]){AMP_LR_COSINE, .05, .01, 390, 1954});
  assert_floats(s + AMP_LR_BOUNDARIES, 2, (const double[]){0, 1});
  assert_int_equal(PARSE("--lr-schedule=constant"), AMPRT_OK);
  assert_int_equal(amprt_schedule_fill(&options, 50000, 128, s, 64, &error), 0);
  assert_floats(s, AMP_LR_TOTAL + 1, (const double[]){AMP_LR_CONSTANT, .05, 0, 0, 1563});
  assert_floats(s + AMP_LR_BOUNDARIES, 2, (const double[]){0, 1});
}

static void test_schedule_wrong(void **state) {
  (void)state;
  float s[64];
  assert_int_equal(PARSE("--lr-schedule=piecewise", "--lr-boundaries=1,2", "--lr-multipliers=1,2"),
                   AMPRT_OK);
  assert_int_equal(amprt_schedule_fill(&options, 100, 10, s, 64, &error), AMPRT_USAGE);
  assert_int_equal(
      PARSE("--lr-schedule=piecewise", "--lr-boundaries=1,2", "--lr-multipliers=1,2,3"), AMPRT_OK);
  assert_int_equal(amprt_schedule_fill(&options, 100, 10, s, 64, &error), AMPRT_OK);
  assert_int_equal(amprt_schedule_fill(&options, 100, 10, s, AMP_LR_LIST + 4, &error), AMPRT_USAGE);
}

/* 25 epochs by 10 are cycles of 10, 10 and 5 */
static void test_cycles(void **state) {
  (void)state;
  assert_int_equal(PARSE("--train-epochs=25", "--epochs-between-evals=10"), AMPRT_OK);
  assert_int_equal(amprt_schedule_cycles(&options), 3);
  static const double want[] = {10, 20, 25};
  for (int i = 0; i < 3; i++)
    assert_true(amprt_schedule_cycle(&options, i, 1000, 100).epochs == want[i]);
  assert_int_equal(amprt_schedule_cycle(&options, 2, 1000, 128).batches, 196); /* 195.3 */
  assert_int_equal(amprt_schedule_cycle(&options, 2, 1280, 128).batches, 250); /* exact */
  assert_int_equal(PARSE("--train-epochs=0"), AMPRT_OK);
  assert_int_equal(amprt_schedule_cycles(&options), 0);
  assert_int_equal(PARSE("--train-epochs=0.3", "--epochs-between-evals=0.1"), AMPRT_OK);
  assert_int_equal(amprt_schedule_cycles(&options), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forms),           cmocka_unit_test(test_recipe_then_argv),
      cmocka_unit_test(test_wrong),           cmocka_unit_test(test_recipe_takes),
      cmocka_unit_test(test_fixed),           cmocka_unit_test(test_help),
      cmocka_unit_test(test_schedule_cosine), cmocka_unit_test(test_schedule_wrong),
      cmocka_unit_test(test_cycles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
