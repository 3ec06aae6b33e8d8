/* Every flag of the official programs (specs/resnet.md 1.1, 1.3, 1.7), and their tests of flags
 * (5.2) that have a meaning here. */
#include "runtime/flags/official.h"
#include "tests/runtime/harness.h"
#include "tests/runtime/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static AmprtOptions options;
static AmprtError error;

/* The program that ampcc would make of ampcc-zoo's cifar_resnet20. */
static const AmprtSetting made[] = {{"batch-size", "128"},
                                    {"optimizer", "momentum"},
                                    {"momentum", "0.9"},
                                    {"weight-decay", "0.0002"},
                                    {"label-smoothing", "0.0"}};
static const AmprtSetting given[] = {{"dtype", "fp16"}, {"batch-size", "128"}, {"no-fuse", "true"}};
static AmprtProgram program;

static void make(const AmprtProgram *like, const char *model) {
  program = *like;
  program.model = model;
  program.made = made;
  program.n_made = 5;
  program.given = given;
  program.n_given = 3;
}

static AmprtStatus parse(const char *a, const char *b, const char *c) {
  const char *argv[] = {"toy", a, b, c, NULL};
  int argc = 1;
  while (argv[argc])
    argc++;
  amprt_options_free(&options);
  error = (AmprtError){0};
  return amprt_options_parse(&options, &program, argc, (char **)(uintptr_t)argv, &error);
}

static void good(const char *a, const char *b) {
  if (parse(a, b, NULL))
    fail_msg("%s %s: %s", a, b ? b : "", error.text);
}

static void bad(const char *a, const char *b, const char *says) {
  AmprtStatus status = parse(a, b, NULL);
  if (status != AMPRT_USAGE || !strstr(error.text, says))
    fail_msg("%s %s: status %d, `%s`, not `%s`", a, b ? b : "", status, error.text, says);
}

/* A switch that is off by default and has no short name. */
#define SWITCH(name)                                                                               \
  { name, "", "false", "true", "x", "is not true or false" }

/* name, short name, official default, another value that fits, one that does not, what is said */
static const struct {
  const char *name, *letters, *otherwise, *fits, *wrong, *says;
} flag[] = {
    {"data_dir", "dd", "/tmp", "/data", NULL, NULL},
    {"model_dir", "md", "/tmp", "/model", NULL, NULL},
    {"clean", "", "false", "true", "2", "is not true or false"},
    {"train_epochs", "te", "1", "182", "x", "--train-epochs: `x` is not a number"},
    {"epochs_between_evals", "ebe", "1", "10", "0", "must be larger than 0"},
    {"stop_threshold", "st", "0.5", ".76", "high", "`high` is not a number"},
    {"batch_size", "bs", "128", "128", "0", "takes a whole number from 1 to 1048576, not `0`"},
    {"num_gpus", "ng", "1", "-1", "-2", "--num_gpus takes a whole number from -1"},
    {"multi_gpu", "", "false", "no", "true", "--local-gpus=N and --processes=N start several"},
    {"hooks", "hk", "LoggingTensorHook", "profilerhook,ExamplesPerSecondHook", "LoggingHook",
     "--hooks takes LoggingTensorHook, ProfilerHook, ExamplesPerSecondHook or LoggingMetricHook"},
    {"num_parallel_calls", "npc", "5", "8", "65", "--data-threads must be from 0 to 64"},
    {"export_dir", "ed", "", "", "/export", "writes no SavedModel: its checkpoints"},
    {"distribution_strategy", "ds", "default", "one_device", "foo",
     "takes off, default, one_device, mirrored, parameter_server or multi_worker_mirrored, not"},
    {"inter_op_parallelism_threads", "inter", "0", "4", "-1", "takes a whole number from 0"},
    {"intra_op_parallelism_threads", "intra", "0", "4", "-1", "--threads must be from 0 to 4096"},
    {"use_synthetic_data", "synth", "false", "true", "maybe", "`maybe` is not true or false"},
    {"max_train_steps", "mts", "0", "110", "1.5", "is not a whole number"},
    {"train_steps", "", "0", "110", "-1", "--max-train-steps must not be negative"},
    {"dtype", "dt", "fp16", "fp16", "int8", "--dtype takes fp16, bf16 or fp32, not `int8`"},
    {"loss_scale", "ls", "dynamic", "dynamic", "abc",
     "loss_scale should be a positive int/float or the string 'dynamic'."},
    {"fp16_implementation", "", "graph_rewrite", "graph_rewrite", "rewrite",
     "takes casting, graph_rewrite, keras or policy, not `rewrite`"},
    {"all_reduce_alg", "ara", "nccl", "ring", "gloo", "takes nccl, hierarchical_copy or ring, not"},
    {"num_packs", "", "1", "2", "x", "is not a whole number"},
    {"tf_gpu_thread_mode", "gt_mode", "", "gpu_private", NULL, NULL},
    {"per_gpu_thread_count", "pgtc", "0", "2", "-1", "takes a whole number from 0"},
    {"datasets_num_private_threads", "", "0", "4", "100", "--data-threads must be from 0 to 64"},
    {"datasets_num_parallel_batches", "", "1", "4", "x", "is not a whole number"},
    {"data_format", "df", "channels_last", "channels_first", "nchw",
     "takes channels_first or channels_last, not `nchw`"},
    {"benchmark_logger_type", "", "BaseBenchmarkLogger", "BenchmarkFileLogger", "FileLogger",
     "takes BaseBenchmarkLogger, BenchmarkFileLogger or BenchmarkBigQueryLogger, not"},
    {"benchmark_test_id", "bti", "", "test-7", NULL, NULL},
    {"log_steps", "", "100", "10", "-1", "--log-steps must not be negative"},
    {"benchmark_log_dir", "bld", "", "/tmp/12345", NULL, NULL},
    {"gcp_project", "gp", "", "project_abc", NULL, NULL},
    {"bigquery_data_set", "bds", "test_benchmark", "set", NULL, NULL},
    {"bigquery_run_table", "brt", "benchmark_run", "run", NULL, NULL},
    {"bigquery_run_status_table", "brst", "benchmark_run_status", "status", NULL, NULL},
    {"bigquery_metric_table", "bmt", "benchmark_metric", "metric", NULL, NULL},
    {"version", "", "1", "1", "3", "--version takes 1 or 2, not `3`"},
    {"resnet_version", "rv", "1", "1", "3", "--resnet_version takes 1 or 2, not `3`"},
    {"resnet_size", "rs", "20", "20", "21", "resnet_size must be 6n + 2: 21"},
    {"fine_tune", "ft", "false", "0", "true", "--train is fixed when the program is made"},
    {"pretrained_model_checkpoint_path", "pmcp", "a", "b", "", "needs the name of a file"},
    SWITCH("eval_only"),
    {"image_bytes_as_serving_input", "", "false", "f", "t", "writes no SavedModel"},
    SWITCH("use_train_and_evaluate"),
    {"worker_hosts", "", "", "here:1", "a:1,b:1", "the launcher says where processes run"},
    {"task_index", "", "-1", "0", "-2", "takes a whole number from -1"},
    {"enable_lars", "", "false", "no", "true", "--optimizer is fixed when the program is made"},
    {"label_smoothing", "", "0.0", "0", "1.5", "takes a number from 0 to 1, not `1.5`"},
    {"weight_decay", "", "2e-4", ".0002", "-1", "takes a number from 0 to 1000, not `-1`"},
    SWITCH("run_eagerly"),
    SWITCH("training_dataset_cache"),
    SWITCH("tf_data_experimental_slack"),
    SWITCH("enable_xla"),
    SWITCH("force_v2_in_keras_compile"),
    SWITCH("enable_eager"),
    SWITCH("skip_eval"),
    {"set_learning_phase_to_train", "", "true", "false", "x", "is not true or false"},
    SWITCH("explicit_gpu_placement"),
    {"use_trivial_model", "", "false", "F", "T", "ampcc-zoo mlp"},
    {"report_accuracy_metrics", "", "true", "false", "x", "is not true or false"},
    SWITCH("use_tensor_lr"),
    SWITCH("enable_tensorboard"),
    {"profile_steps", "", "", "10,20", NULL, NULL},
    SWITCH("data_delay_prefetch"),
    {"batchnorm_spatial_persistent", "", "true", "false", "x", "is not true or false"},
    SWITCH("enable_get_next_as_optional"),
    SWITCH("enable_checkpoint_and_export"),
    {"tpu", "", "", "local", NULL, NULL},
    {"steps_per_loop", "", "1", "100", "0", "takes a whole number from 1"},
    {"use_tf_function", "", "true", "false", "x", "is not true or false"},
    SWITCH("single_l2_loss_op"),
};
enum { N_FLAGS = sizeof flag / sizeof *flag };

/* The forms in which a value can be given; 0: the value, 1: with dashes, 2: the short name. */
static void try_forms(int i, const char *value, bool fits) {
  char name[3][64], arg[256];
  snprintf(name[0], 64, "%s", flag[i].name);
  snprintf(name[2], 64, "%s", flag[i].letters);
  for (int c = 0; c < 64; c++)
    name[1][c] = name[0][c] == '_' ? '-' : name[0][c];
  for (int k = 0; k < 3; k++) {
    if (!*name[k])
      continue;
    for (int dashes = 1; dashes <= 2; dashes++) {
      snprintf(arg, sizeof arg, "%.*s%s=%s", dashes, "--", name[k], value);
      if (fits)
        good(arg, NULL);
      else
        bad(arg, NULL, flag[i].says);
      snprintf(arg, sizeof arg, "%.*s%s", dashes, "--", name[k]);
      const AmprtOfficial *row = amprt_official_find(name[k], strlen(name[k]));
      assert_non_null(row);
      bool own = !strcmp(name[0], "version") && strcmp(value, "1"); /* prints the version */
      if (row->kind == AMPRT_OPT_BOOL || own)
        continue;
      if (fits)
        good(arg, value);
      else
        bad(arg, value, flag[i].says);
    }
  }
}

static void test_every_flag(void **state) {
  (void)state;
  static const AmprtSetting rewritten = {"fp16-implementation", "graph_rewrite"};
  make(&toy_fp16, "cifar_resnet20");
  program.given = &rewritten;
  program.n_given = 1;
  for (int i = 0; i < N_FLAGS; i++) {
    const AmprtOfficial *row = amprt_official_find(flag[i].name, strlen(flag[i].name));
    if (!row)
      fail_msg("no flag %s", flag[i].name);
    assert_string_equal(row->letters, flag[i].letters);
    try_forms(i, flag[i].otherwise, true);
    try_forms(i, flag[i].fits, true);
    if (flag[i].wrong)
      try_forms(i, flag[i].wrong, false);
  }
  int n = 0;
  for (int i = 0; i < amprt_n_official; i++)
    n += amprt_official[i].name != NULL;
  assert_int_equal(n, N_FLAGS);
}

/* Those that set a flag of ours name one that there is, of the same kind or a wider one. */
static void test_ours(void **state) {
  (void)state;
  make(&toy_fp16, "cifar_resnet20");
  for (int i = 0; i < amprt_n_official; i++) {
    const AmprtOfficial *row = &amprt_official[i];
    const AmprtOption *found = NULL;
    for (int k = 0; row->name && row->does == AMPRT_DOES_OURS && k < amprt_n_options; k++)
      if (amprt_option[k].flag && !strcmp(amprt_option[k].flag, row->text))
        found = &amprt_option[k];
    if (row->name && row->does == AMPRT_DOES_OURS &&
        (!found || (found->kind != row->kind && found->kind != AMPRT_OPT_FLOAT)))
      fail_msg("--%s sets --%s", row->name, row->text);
  }
  good("-te=3", "-mts=5");
  assert_true(options.train_epochs == 3 && options.max_train_steps == 5 &&
              options.given.train_epochs);
  good("--train_steps=7", "-ebe=2");
  assert_true(options.max_train_steps == 7 && options.epochs_between_evals == 2);
  good("-intra=3", "--datasets_num_private_threads=4");
  assert_true(options.threads == 3 && options.data_threads == 4);
  good("-npc", "6");
  assert_int_equal(options.data_threads, 6);
  good("-dd=/d", "-md=/m");
  assert_string_equal(options.data_dir, "/d");
  assert_string_equal(options.model_dir, "/m");
  good("-pmcp=/p", "-st=.7");
  assert_string_equal(options.init_from, "/p");
  assert_true(options.stop_threshold == .7);
  good("--enable_tensorboard", "--log_steps=9");
  assert_true(options.tensorboard && options.log_steps == 9);
  good("--num_gpus=0", NULL);
  assert_string_equal(options.device, "cpu");
  good("--num_gpus", "1");
  assert_string_equal(options.device, "");
}

/* "booleans": bare, every word, and negated. */
static void test_booleans(void **state) {
  (void)state;
  static const struct {
    const char *arg;
    bool on;
  } form[] = {{"--use_synthetic_data", true},
              {"-synth", true},
              {"--use-synthetic-data=True", true},
              {"--use_synthetic_data=t", true},
              {"--use_synthetic_data=1", true},
              {"--synth=yes", true},
              {"--use_synthetic_data=FALSE", false},
              {"--use_synthetic_data=f", false},
              {"--use_synthetic_data=0", false},
              {"-synth=no", false},
              {"--nouse_synthetic_data", false},
              {"--no-use-synthetic-data", false},
              {"-nosynth", false}};
  make(&toy_fp16, "cifar_resnet20");
  for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
    if (parse("--use_synthetic_data", form[i].arg, NULL))
      fail_msg("%s: %s", form[i].arg, error.text);
    assert_int_equal(options.use_synthetic_data, form[i].on);
  }
  good("--noresume", "--noenable_xla");
  good("--no-shuffle", "--nomulti_gpu");
  assert_true(options.no_shuffle);
  bad("--noresume=true", NULL, "takes no value");
  bad("--notrain_epochs", NULL, "unknown flag `--notrain_epochs`");
  bad("--clean", "true", "unexpected argument `true` (the value of a boolean");
  bad("--no", NULL, "unknown flag `--no`");
}

/* "defaults": a program overrides any default, and the value read back is that one. */
static void test_defaults(void **state) {
  (void)state;
  make(&toy_fp32, "toy");
  good("-q", NULL);
  assert_true(options.train_epochs == 4 && options.learning_rate == .05 && options.pad == 1);
  assert_true(options.epochs_between_evals == 1 && options.max_train_steps == 0);
  assert_true(!options.use_synthetic_data && isnan(options.stop_threshold) && !options.clean);
}

/* "dtype info": what this program was made with is accepted, int8 and abc are not. */
static void test_fixed_values(void **state) {
  (void)state;
  static const struct {
    const char *a, *b, *says; /* NULL: accepted */
  } cases[] = {
      {"--dtype=fp16", "--loss_scale=dynamic", NULL},
      {"--dtype=fp32", "-q",
       "--dtype is fixed when the program is made (here: fp16): ampcc MODEL "
       "--batch-size=128 --no-fuse --dtype=fp32 -o PROGRAM"},
      {"--dtype=fp32", "--batch_size=256",
       "--dtype, --batch-size are fixed when the program is made "
       "(here: fp16, 128): ampcc MODEL --no-fuse --dtype=fp32 "
       "--batch-size=256 -o PROGRAM"},
      {"-bs", "128", NULL},
      {"--loss_scale=5", "-q", "--loss-scale is fixed when the program is made (here: dynamic)"},
      {"--loss_scale=0", "-q", "loss_scale should be a positive"},
      {"--loss_scale=-3", "-q", "loss_scale should be a positive"},
      {"--loss_scale=inf", "-q", "loss_scale should be a positive"},
      {"--loss_scale=nan", "-q", "loss_scale should be a positive"},
      {"--loss_scale=dynamics", "-q", "loss_scale should be a positive"},
      {"--fp16_implementation=graph_rewrite", "-q", "--fp16-implementation is fixed"},
      {"--dtype=fp32", "--fp16_implementation=graph_rewrite",
       "--fp16_implementation should not be specified unless --dtype=fp16"},
      {"--loss_scale=dynamic", "--fp16_implementation=casting",
       "--loss_scale=dynamic is only supported when --fp16_implementation=graph_rewrite"},
      {"--weight_decay=2e-4", "--label_smoothing=0", NULL},
      {"--weight_decay=1e-4", "-q", "--weight-decay is fixed when the program is made"},
      {"--enable_lars", "-q", "--optimizer is fixed when the program is made (here: momentum): "},
      {"--enable_lars", "-q", "--optimizer=lars -o PROGRAM"},
      {"--noenable_lars", "-q", NULL},
      {"--fine_tune", "-q",
       "--train is fixed when the program is made (here: none): ampcc MODEL --dtype=fp16 "
       "--batch-size=128 --no-fuse --train='fc.*' -o PROGRAM"},
      {"--fine_tune=0", "-q", NULL},
      {"--no-fuse", "-q", NULL},
      {"--no_fuse=false", "-q", "--dtype=fp16 --batch-size=128 -o PROGRAM"},
      {"--tf32", "-q", "ampcc MODEL --dtype=fp16 --batch-size=128 --no-fuse --tf32 -o PROGRAM"},
      {"--max-memory=1 GiB", "-q", "--max-memory='1 GiB' -o PROGRAM"},
      {"--max-memory=a'b", "-q", "--max-memory='a'\\''b' -o PROGRAM"},
      {"--optimizer=momentum", "--momentum=.9", NULL},
      {"--momentum=.8", "-q", "--momentum is fixed when the program is made (here: 0.9)"},
      {"--name=cifar_resnet20", "--metrics=top1", NULL},
      {"--resnet_size=56", "--resnet_version=2",
       "ampcc-zoo cifar_resnet56_v2 -o cifar_resnet56_v2.pb && ampcc cifar_resnet56_v2.pb "
       "--dtype=fp16 --batch-size=128 --no-fuse -o PROGRAM"},
      {"--version=2", "-q", "ampcc-zoo cifar_resnet20_v2 -o"},
      {"--version", "1", NULL},
      {"--resnet_size=1000000", "-q", "resnet_size must be 6n + 2"},
  };
  make(&toy_fp16, "cifar_resnet20");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (cases[i].says)
      bad(cases[i].a, cases[i].b, cases[i].says);
    else
      good(cases[i].a, cases[i].b);
}

/* A program that trains its head alone. */
static void test_fine_tune(void **state) {
  (void)state;
  static const AmprtSetting tunes = {"train", "fc.*"};
  make(&toy_fp32, "toy");
  program.made = &tunes;
  program.n_made = 1;
  good("--fine_tune", "-ft=t");
  bad("--nofine_tune", NULL,
      "(here: fc.*): ampcc MODEL --dtype=fp16 --batch-size=128 --no-fuse "
      "--train= -o PROGRAM");
}

/* The size or version names another model. */
static void test_zoo(void **state) {
  (void)state;
  static const struct {
    const char *model, *arg, *says;
  } cases[] = {
      {"resnet50_v2", "--resnet_size=50", NULL},
      {"resnet50_v2", "--resnet_version=1", "ampcc-zoo resnet50 -o resnet50.pb && ampcc"},
      {"resnet50", "--resnet_size=101", "ampcc-zoo resnet101 -o resnet101.pb && ampcc"},
      {"resnet50_tv", "--resnet_version=1", NULL},
      {"resnet50_tv", "--resnet_size=18", "ampcc-zoo resnet18_tv -o"},
      {"resnet50", "--resnet_size=33",
       "Could not find layers for selected Resnet size. Size received: 33; sizes allowed: 18, 34, "
       "50, 101, 152, 200."},
      {"lenet5", "--resnet_size=50",
       "--resnet-size is fixed when the program is made (here: lenet5)"},
      {"a;b resnet8", "--resnet_size=14",
       "ampcc-zoo 'a;b resnet14' -o 'a;b resnet14.pb' && ampcc '"},
      {"lenet5", "--resnet_version=2", "ampcc-zoo resnet50_v2 -o"},
      {"wide_resnet50_2_tv", "--resnet_size=101", "ampcc-zoo resnet101 -o"},
      {"resnext50_32x4d_tv", "--resnet_version=2", "ampcc-zoo resnet50_v2 -o"},
      {"resnet99999999999999999999", "--resnet_size=18", "ampcc-zoo resnet18 -o"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    make(&toy_fp32, cases[i].model);
    if (cases[i].says)
      bad(cases[i].arg, "-q", cases[i].says);
    else
      good(cases[i].arg, "-q");
  }
}

/* Programs with a fixed loss scale and without one. */
static void test_scales(void **state) {
  (void)state;
  static AmprtVariable scale;
  make(&toy_fp32, "cifar_resnet20");
  scale = (AmprtVariable){"loss_scale", AMPRT_F32, .kind = AMPRT_SCALE, .init_arg = {128}};
  good("--loss_scale=none", "--loss_scale=1");
  bad("--loss_scale=128", NULL, "--loss-scale is fixed when the program is made (here: none)");
  good("--fp16_implementation=casting", NULL); /* decides nothing of fp32 */
  program.variable = &scale;
  program.n_variables = 1;
  program.dtype = "fp16";
  good("--loss_scale=128", "-ls=128.0");
  bad("--loss_scale=64", NULL, "(here: 128)");
  bad("--fp16_implementation=casting", NULL, "(here: none)");
}

/* "hooks helper", of which only the names of hooks matter here. */
static void test_hooks(void **state) {
  (void)state;
  make(&toy_fp32, "toy");
  assert_int_equal(parse("--hooks", "LoggingTensorHook", "ProfilerHook"), AMPRT_OK);
  bad("--hooks", "LoggingTensorHook,", "--hooks takes");
  good("--hooks=", NULL);
  assert_int_equal(parse("-hk", "examplespersecondhook", "-q"), AMPRT_OK);
  assert_true(options.quiet);
}

static void test_notes(void **state) {
  (void)state;
  run_good(&toy_fp32, "--use_synthetic_data -mts=1 --skip_eval --enable_xla --tpu=x --run_eagerly "
                      "--num_packs 2 --task_index=0");
  assert_said("note: --run_eagerly, --enable_xla do nothing here: no TensorFlow runs in a compiled "
              "program\n");
  assert_said("note: --tpu does nothing here: this program knows processors");
  assert_said("note: --task_index does nothing here: the launcher says where processes run and "
              "numbers them: mpirun --host A,B, or srun\n");
  assert_said("note: --num_packs does nothing here: processes sum over MPI, on GPUs over NCCL, "
              "in the order that --deterministic says\n");
  run_good(&toy_fp32, "--use_synthetic_data -mts=1 --skip_eval --enable_xla -q");
  assert_null(strstr(caught, "nothing here"));
  run_good(&toy_fp32, "--use_synthetic_data -mts=1 --skip_eval --num_gpus=-1");
  assert_said("note: --num_gpus does nothing here: a process trains on one processor or GPU; "
              "--local-gpus=N");
  run_bad(&toy_fp32, "--num_gpus=2", 2,
          "error: --num_gpus=2: a process trains on one GPU; start it with --local-gpus=2 instead, "
          "made with --batch-size=GLOBAL/2: ");
  run_good(&toy_fp32, "--use_synthetic_data -mts=1 --skip_eval --distribution_strategy=mirrored "
                      "--all_reduce_alg=nccl");
  assert_said("note: --distribution_strategy does nothing here: a process trains on one");
  assert_said("note: --all_reduce_alg does nothing here: processes sum over MPI");
  run_bad(&toy_fp32, "--export_dir=/x", 2, "error: --export_dir is not supported: this program");
}

static void test_help(void **state) {
  (void)state;
  run_good(&toy_fp32, "--help");
  assert_null(strstr(caught, "--per_gpu_thread_count"));
  assert_said("\nevaluation:\n");
  run_good(&toy_fp32, "--helpfull");
  for (int i = 0; i < N_FLAGS; i++) {
    char shown[80];
    snprintf(shown, sizeof shown, "--%s ", flag[i].name);
    assert_said(shown);
  }
  run_good(&toy_fp32, "-helpshort");
  assert_said("--train-epochs --learning-rate");
  run_good(&toy_fp32, "--version");
  assert_string_equal(caught, "ampcc 0.1.0\n");
}

static void write_text(const char *name, const char *text) {
  write_bytes(in_scratch(name), text, strlen(text));
}

static void test_flagfile(void **state) {
  (void)state;
  char arg[300], line[600];
  make(&toy_fp32, "toy");
  write_text("a", "# a comment\n// another\n\n  --train_epochs=7  \r\n-mts 5\n--synth\n--hooks "
                  "ProfilerHook\n");
  snprintf(arg, sizeof arg, "--flagfile=%s", in_scratch("a"));
  good(arg, "--train-epochs=8");
  assert_true(options.train_epochs == 8 && options.max_train_steps == 5 &&
              options.use_synthetic_data);
  assert_int_equal(parse("--train-epochs=8", arg, NULL), AMPRT_OK);
  assert_true(options.train_epochs == 7); /* its lines count as if they stood here */
  snprintf(line, sizeof line, "--mts=6\n--flagfile %s\n--train_epochs=9", in_scratch("a"));
  write_text("b", line);
  snprintf(arg, sizeof arg, "%s", in_scratch("b"));
  good("-flagfile", arg);
  assert_true(options.train_epochs == 9 && options.max_train_steps == 5);
  snprintf(line, sizeof line, "--flagfile=%s\n", in_scratch("d"));
  write_text("c", line);
  snprintf(line, sizeof line, "-q\n--flagfile=%s\n", in_scratch("c"));
  write_text("d", line);
  static const struct {
    const char *text, *says;
  } wrong[] = {
      {"--train_epochs=1\n--nonsense\n", ":2: unknown flag `--nonsense`"},
      {"\n\ntrain_epochs=1\n", ":3: `train_epochs=1` is no flag"},
      {"--train_epochs\n", ":1: --train-epochs needs a value"},
      {"--clean true\n", ":1: unexpected argument `true`"},
      {"--train_epochs=1 2\n", ":1: --train-epochs: `1 2` is not a number"},
      {"-\n", ":1: unexpected argument `-`"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    write_text("wrong", wrong[i].text);
    snprintf(arg, sizeof arg, "--flagfile=%s", in_scratch("wrong"));
    bad(arg, NULL, wrong[i].says);
  }
  snprintf(arg, sizeof arg, "--flagfile=%s", in_scratch("c"));
  bad(arg, NULL, "is part of itself");
  for (int i = 0; i < 20; i++) {
    char name[20];
    snprintf(name, sizeof name, "deep%d", i);
    snprintf(line, sizeof line, "--flagfile=%s/deep%d\n", scratch, i + 1);
    write_text(name, line);
  }
  snprintf(arg, sizeof arg, "--flagfile=%s", in_scratch("deep0"));
  bad(arg, NULL, "within another");
  write_bytes(in_scratch("zero"), "-q\0\n", 4);
  snprintf(arg, sizeof arg, "--flagfile=%s", in_scratch("zero"));
  bad(arg, NULL, "is no text");
  snprintf(arg, sizeof arg, "--flagfile=%s", scratch);
  assert_int_not_equal(parse(arg, NULL, NULL), AMPRT_OK);
  assert_int_not_equal(parse("--flagfile=/nowhere", NULL, NULL), AMPRT_OK);
  assert_int_not_equal(parse("--flagfile=", NULL, NULL), AMPRT_OK);
  write_text("empty", "");
  snprintf(arg, sizeof arg, "--flagfile=%s", in_scratch("empty"));
  good(arg, NULL);
}

/* Any command line is accepted, or refused with status 2 and one clear line. */
static void test_any_argv(void **state) {
  (void)state;
  static const char *const piece[] = {
      "--",      "-",     "=",           "no",         "hooks",
      "version", "_",     "dtype",       "1",          "fp16",
      "%s%n",    "\x1b[", "\xff",        "'",          "bs",
      ",",       "train", "steps",       "nan",        "-1",
      " ",       "true",  "resnet_size", "loss_scale", "99999999999999999999"};
  enum { N_PIECES = sizeof piece / sizeof *piece };
  unsigned seed = 1;
  int refused = 0;
  make(&toy_fp32, "cifar_resnet20");
  for (int round = 0; round < 4000; round++) {
    char arg[3][160] = {"", "", ""};
    for (int a = 0; a < 3; a++)
      for (unsigned k = 0; k < 5; k++) {
        seed = seed * 1103515245 + 12345;
        unsigned pick = seed >> 16;
        if (k && pick % 3 == 0)
          break;
        strcat(arg[a], k || pick % 4 == 0 ? piece[pick / 4 % N_PIECES] : "--");
        if (k == 0 && pick % 2) {
          const AmprtOfficial *row = &amprt_official[pick / 2 % (unsigned)amprt_n_official];
          strcat(arg[a], row->name ? row->name : "");
        }
      }
    AmprtStatus status = parse(arg[0], arg[1], arg[2]);
    refused += status != AMPRT_OK;
    if (status && (status != AMPRT_USAGE || !*error.text || strchr(error.text, '\n') ||
                   strchr(error.text, '\x1b')))
      fail_msg("`%s` `%s` `%s`: status %d, `%s`", arg[0], arg[1], arg[2], status, error.text);
  }
  assert_in_range(refused, 1000, 4000);
  char *longest = malloc(1 << 20);
  assert_non_null(longest);
  memset(longest, 'a', 1 << 20);
  memcpy(longest, "--", 2);
  longest[(1 << 20) - 1] = '\0';
  bad(longest, NULL, "unknown flag");
  memcpy(longest, "--max-memory=", 13);
  bad(longest, NULL, "--max-memory is fixed");
  memcpy(longest, "--resnet_size=", 14);
  bad(longest, NULL, "is not a whole number");
  memcpy(longest, "--hooks=aaaaa=", 13);
  bad(longest, NULL, "--hooks takes");
  free(longest);
}

static int free_options(void **state) {
  (void)state;
  amprt_options_free(&options);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_flag),
      cmocka_unit_test(test_ours),
      cmocka_unit_test(test_booleans),
      cmocka_unit_test(test_defaults),
      cmocka_unit_test(test_fixed_values),
      cmocka_unit_test(test_fine_tune),
      cmocka_unit_test(test_zoo),
      cmocka_unit_test(test_scales),
      cmocka_unit_test(test_hooks),
      cmocka_unit_test_setup_teardown(test_notes, toy_setup, scratch_teardown),
      cmocka_unit_test(test_help),
      cmocka_unit_test_setup_teardown(test_flagfile, scratch_setup, scratch_teardown),
      cmocka_unit_test(test_any_argv),
  };
  return cmocka_run_group_tests(tests, NULL, free_options);
}
