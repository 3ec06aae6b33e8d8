/* Tests plans for every GPU of the table, made here without a GPU: they exist, compute what was
 * asked for, are the same when made twice, and cuDNN reads them back. */
#include "codegen/cuda/toolkit/plan.h"
#include "codegen/program/cache.h"
#include "tests/cuda/toolkit/check.h"
#include "tests/cuda/toolkit/is_planned.h"
#include "tests/cuda/toolkit/plan_load.h"
#include "tests/cuda/toolkit/skip.h"
#include "tests/random.h"

#include <dirent.h>
#include <unistd.h>

static Arena *arena;
static Toolkit *toolkit;

/* %s: the type */
static const char *const shapes[] = {
    "fprop %s n256 h224 w224 c4 k64 r7 s7 u2,2 p3,3,3,3",
    "fprop %s n256 h56 w56 c64 k256 r1 s1 u1,1 p0,0,0,0",
    "fprop %s n128 h32 w32 c16 k32 r3 s3 u2,2 p0,1,0,1",
    "dgrad %s n256 h56 w56 c128 k128 r3 s3 u2,2 p1,1,1,1",
    "dgrad %s n32 h14 w14 c1024 k2048 r1 s1 u2,2 p0,0,0,0",
    "wgrad %s n256 h224 w224 c4 k64 r7 s7 u2,2 p3,3,3,3",
    "wgrad %s n8 h56 w56 c64 k64 r3 s3 u1,1 p1,1,1,1",
    "wgrad %s n7 h13 w11 c5 k3 r3 s2 u2,1 p1,0,0,1",
    "fprop %s n256 h56 w56 c128 k128 r3 s3 u1,1 p1,1,1,1 g32",
    "fprop %s n64 h112 w112 c96 k96 r3 s3 u2,2 p0,1,0,1 g96",
    "dgrad %s n256 h28 w28 c256 k256 r3 s3 u2,2 p1,1,1,1 g32",
    "dgrad %s n64 h14 w14 c672 k672 r5 s5 u2,2 p1,2,1,2 g672",
    "wgrad %s n256 h7 w7 c1024 k1024 r3 s3 u1,1 p1,1,1,1 g32",
    "wgrad %s n64 h14 w14 c480 k480 r5 s5 u1,1 p2,2,2,2 g480",
    "wgrad %s n5 h9 w8 c6 k12 r3 s2 u2,1 p1,0,0,1 g3",
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
static const char *const types[] = {"f32", "f16", "bf16"};

static ConvOp op_of(const char *shape, const char *type) {
  ConvOp op;
  char key[CONV_KEY_BYTES];
  snprintf(key, sizeof key, shape, type);
  assert_true(cuda_conv_key_parse(key, &op));
  return op;
}

static bool has_note(const PlanText *plan, cudnnBackendNumericalNote_t note) {
  return plan->notes >> note & 1;
}

/* The same plan on a GPU of the same capability with other clocks, driver and size. */
static bool loads_elsewhere(const PlanText *plan, const Device *device) {
  Device other = *device;
  char error[TOOLKIT_ERROR] = "";
  size_t from, past;
  other.multiprocessors = other.multiprocessors / 2 + 1;
  other.clock_mhz = 1000, other.l2_mib = 3, other.bytes = 8000000000;
  other.product = "another";
  char *profile = arena_printf(arena, "%s", device_json(arena, &other));
  char *driver = strstr(profile, "\"driverVer\":13000");
  memcpy(driver, "\"driverVer\":14321", strlen("\"driverVer\":14321"));
  if (!cuda_conv_json_object(plan->json, plan->json_bytes, "GPUProfile", &from, &past))
    fail_msg("no GPUProfile in %s", plan->key);
  const char *json = arena_printf(arena, "%.*s%s%.*s", (int)from, plan->json, profile,
                                  (int)(plan->json_bytes - past), plan->json + past);
  ConvPlan loaded = {0};
  CudnnObject there = cuda_conv_device(&toolkit->cudnn, profile, 0, error, sizeof error);
  bool good = there && conv_plan_load(&toolkit->cudnn, json, strlen(json), there, &loaded, error,
                                      sizeof error);
  /* the plan for sums behind a data gradient wants more workspace where the clock is slow, for
   * which programs have spare memory */
  int64_t more = strncmp(plan->key, "dgrad_bn", 8) == 0 ? 2 << 20 : 0;
  if (!good || loaded.workspace < plan->workspace || loaded.workspace > plan->workspace + more)
    fail_msg("%s, %s: %s, workspace %lld, was %lld", device->name, plan->key, error,
             (long long)loaded.workspace, (long long)plan->workspace);
  cuda_conv_plan_free(&toolkit->cudnn, &loaded);
  toolkit->cudnn.cudnnBackendDestroyDescriptor(there);
  return good;
}

static void check_plan(const Device *device, const ConvOp *op) {
  char error[TOOLKIT_ERROR];
  PlanText plan, again;
  if (!plan_list(toolkit, NULL, arena, op, device, &plan, 1, error))
    fail_msg("%s: %s", device->name, error);
  assert_true(plan_list(toolkit, NULL, arena, op, device, &again, 1, error));
  assert_int_equal(plan.json_bytes, again.json_bytes);
  assert_memory_equal(plan.json, again.json, plan.json_bytes);
  assert_false(has_note(&plan, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
  assert_in_range(plan.workspace, 0, 2000000000);
  if (op->dtype == CONV_F32)
    assert_false(has_note(&plan, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  else if (op->groups == 1 && op->c >= 64 && op->k >= 64 && device->capability != 103 &&
           !has_note(&plan, CUDNN_NUMERICAL_NOTE_TENSOR_CORE))
    fail_msg("%s, %s: engine %lld has no tensor cores", device->name, plan.key,
             (long long)plan.engine);
  loads_elsewhere(&plan, device);
}

/* The next device with another capability; plans are alike within one. Begin with NULL. */
static const Device *next_kind(const Device *last) {
  for (int d = 0; device_at(d); d++)
    if (!last || device_at(d)->capability > last->capability)
      return device_at(d);
  return NULL;
}

static void plans_for_every_device(void **state) {
  (void)state;
  for (const Device *device = NULL; (device = next_kind(device));)
    for (int t = 0; t < 3; t++)
      for (int s = 0; s < N_SHAPES; s++) {
        ConvOp op = op_of(shapes[s], types[t]);
        if (is_planned(&op, device))
          check_plan(device, &op);
      }
  /* one plan for each other device, to see that cuDNN accepts the description */
  for (int d = 0; device_at(d); d++) {
    ConvOp op = op_of(shapes[1], "f16");
    check_plan(device_at(d), &op);
  }
}

static void says_why_not(void **state) {
  (void)state;
  const char *why;
  char error[TOOLKIT_ERROR];
  PlanText plan;
  ConvOp op = op_of(shapes[1], "bf16");
  assert_false(
      plan_list(toolkit, NULL, arena, &op, device_find(arena, "t4", &why), &plan, 1, error));
  assert_non_null(strstr(error, "t4 (sm_75) does not multiply bf16"));
  op = op_of("fprop %s n1000000 h50000 w50000 c1000 k64 r1 s1 u1,1 p0,0,0,0", "f16");
  assert_false(
      plan_list(toolkit, NULL, arena, &op, device_find(arena, "h200", &why), &plan, 1, error));
  assert_true(strlen(error) > 10);
}

/* The graph in the text is the one that was asked for. No other test would notice if padding at the
 * top were taken for padding at the left. */
static void says_what_it_computes(void **state) {
  (void)state;
  static const char *const part[] = {
      "\"dim\":[5,16,21,19],\"stride\":[6384,1,304,16]", /* x, in memory N,H,W,C */
      "\"dim\":[24,16,3,2],\"stride\":[96,1,32,16]",     /* w */
      "\"dim\":[5,24,11,11],\"stride\":[2904,1,264,24]", /* y */
      "\"pad_upper\":[2,3]",
      "\"pad_lower\":[1,0]",
      "\"stride\":[2,2]",
      "\"X\":\"1\",\"W\":\"2\",\"Y\":\"3\"",
  };
  const char *why;
  char error[TOOLKIT_ERROR];
  PlanText plan;
  ConvOp op = op_of("fprop %s n5 h21 w19 c16 k24 r3 s2 u2,2 p1,2,0,3", "f16");
  assert_true(
      plan_list(toolkit, NULL, arena, &op, device_find(arena, "a100", &why), &plan, 1, error));
  const char *json = arena_printf(arena, "%.*s", (int)plan.json_bytes, plan.json);
  for (size_t i = 0; i < sizeof part / sizeof *part; i++)
    if (!strstr(json, part[i]))
      fail_msg("no %s in %s", part[i], json);
}

/* TF32 is used where it is allowed, and nowhere else. */
static void tf32_is_asked_for(void **state) {
  (void)state;
  const char *why;
  char error[TOOLKIT_ERROR];
  PlanText plan;
  ConvOp op = op_of(shapes[1], "f32");
  op.tf32 = true;
  assert_true(
      plan_list(toolkit, NULL, arena, &op, device_find(arena, "a100", &why), &plan, 1, error));
  assert_true(has_note(&plan, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  assert_non_null(strstr(plan.key, " tf32"));
}

static void lists_the_candidates(void **state) {
  (void)state;
  const char *why;
  char error[TOOLKIT_ERROR];
  PlanText best, list[8];
  const Device *device = device_find(arena, "h200", &why);
  ConvOp op = op_of(shapes[1], "f16");
  assert_true(plan_list(toolkit, NULL, arena, &op, device, &best, 1, error));
  assert_int_equal(plan_list(toolkit, NULL, arena, &op, device, list, 8, error), 8);
  assert_memory_equal(best.json, list[0].json, best.json_bytes);
  for (int i = 1; i < 8; i++)
    assert_true(list[i].json_bytes != list[0].json_bytes ||
                memcmp(list[i].json, list[0].json, list[0].json_bytes) != 0);
}

/* The table of fused forms against cuDNN: where it says yes there is a plan, and where it says no
 * for a shape of ResNet-50 there is none. */
static void the_table_of_forms_is_right(void **state) {
  (void)state;
  static const char *const form[] = {"fprop_stats",     "relu_fprop_stats", "relu_wgrad",
                                     "dgrad_bn",        "dgrad_bn_add",     "dgrad_bn_short",
                                     "add_fprop_stats", "dual_fprop_stats"};
  static const struct {
    const char *shape;
    bool is_usual;
  } cases[] = {{"n256 h56 w56 c64 k64 r3 s3 u1,1 p1,1,1,1", true},
               {"n256 h28 w28 c256 k256 r3 s3 u2,2 p1,1,1,1", true},
               {"n256 h56 w56 c256 k64 r1 s1 u1,1 p0,0,0,0", true},
               {"n128 h32 w32 c8 k12 r3 s3 u1,1 p1,1,1,1", true},
               {"n128 h32 w32 c64 k64 r3 s3 u2,2 p0,1,0,1", true},
               {"n128 h32 w32 c12 k8 r5 s5 u1,1 p2,2,2,2", false},
               {"n256 h224 w224 c8 k64 r7 s7 u2,2 p3,3,3,3", false},
               {"n1024 h56 w56 c64 k672 r1 s1 u1,1 p0,0,0,0", false}, /* 2^31 elements */
               {"n1024 h56 w56 c672 k64 r1 s1 u1,1 p0,0,0,0", false},
               {"n256 h56 w56 c128 k128 r3 s3 u1,1 p1,1,1,1 g32", true},
               {"n64 h28 w28 c192 k192 r3 s3 u1,1 p1,1,1,1 g192", true}};
  for (const Device *device = NULL; (device = next_kind(device));)
    for (size_t f = 0; f < sizeof form / sizeof *form; f++)
      for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const char *shape = arena_printf(arena, "%s %%s %s", form[f], cases[c].shape);
        char error[TOOLKIT_ERROR];
        PlanText plan;
        bool bf16 = c == 2 && f < 5 && f % 2; /* the type of some cases */
        ConvOp op = op_of(shape, types[1 + bf16]);
        bool expected = is_planned(&op, device);
        bool found = plan_list(toolkit, NULL, arena, &op, device, &plan, 1, error);
        if (found != expected && (expected || cases[c].is_usual))
          fail_msg("%s: %s: table %d, cuDNN %d", device->name, shape, expected, found);
        if (!found)
          continue;
        loads_elsewhere(&plan, device);
        /* an engine that keeps its gradient in f32 in memory saves nothing */
        int64_t dx = op.n * op.h * op.w * op.c;
        bool one_pass = plan.workspace < 2 * dx;
        const PlanForm *row = plan_form(&op, device);
        if (expected && (row && row->saves) != one_pass)
          fail_msg("%s: %s: workspace %lld", device->name, shape, (long long)plan.workspace);
      }
}

static int64_t pick(Random *random, const int64_t *from, uint32_t n) {
  return from[random_below(random, n)];
}

/* Shapes that no net of the zoo has: wherever the table says yes, there is a plan. */
static void the_table_holds_elsewhere(void **state) {
  static const int64_t batch[] = {1, 2, 7, 32, 100, 256}, extent[] = {1, 2, 4, 7, 13, 28, 57},
                       channels[] = {8, 16, 24, 40, 64, 136, 512, 2048}, filter[] = {1, 1, 2, 3, 5},
                       step[] = {1, 1, 2, 3};
  Random random = {1};
  (void)state;
  for (int i = 0; i < 150; i++) {
    ConvOp op = {.dtype = CONV_F16, .n = pick(&random, batch, 6), .groups = 1};
    op.h = pick(&random, extent, 7);
    op.form = (uint8_t)(CONV_FPROP_STATS + i % (CONV_FORM_COUNT - CONV_FPROP_STATS));
    op.w = pick(&random, extent, 7);
    op.c = pick(&random, channels, 8), op.k = pick(&random, channels, 8);
    op.r = pick(&random, filter, 5), op.s = i % 4 ? op.r : pick(&random, filter, 5);
    op.stride[0] = pick(&random, step, 4), op.stride[1] = op.stride[0];
    op.pad[0] = op.pad[1] = op.r / 2, op.pad[2] = op.pad[3] = op.s / 2;
    for (const Device *device = NULL; (device = next_kind(device));) {
      char error[TOOLKIT_ERROR], key[CONV_KEY_BYTES];
      PlanText plan;
      cuda_conv_key_print(&op, key);
      if (is_planned(&op, device) && !plan_list(toolkit, NULL, arena, &op, device, &plan, 1, error))
        fail_msg("%s: %s: %s", device->name, key, error);
    }
  }
}

/* Damaged texts in the place of a plan are refused with a reason and never crash. */
static void refuses_other_texts(void **state) {
  (void)state;
  static const char *const change[][2] = {
      {"\"cudnnVersion\":", "\"cudnnVersion\":1"},
      {"\"engineId\":", "\"engineId\":9"},
      {"\"dim\":[256", "\"dim\":[-56"},
      {"\"schemaVersion\":4", "\"schemaVersion\":3"},
      {"{\"cudnn", "<<cudnn"},
  };
  const char *why;
  char error[TOOLKIT_ERROR];
  PlanText plan;
  const Device *device = device_find(arena, "h200", &why);
  ConvOp op = op_of(shapes[1], "f16");
  assert_true(plan_list(toolkit, NULL, arena, &op, device, &plan, 1, error));
  CudnnObject there = toolkit_device(toolkit, device, error);
  for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
    const char *json = arena_printf(arena, "%.*s", (int)plan.json_bytes, plan.json);
    const char *at = strstr(json, change[i][0]);
    assert_non_null(at);
    const char *bad = arena_printf(arena, "%.*s%s%s", (int)(at - json), json, change[i][1],
                                   at + strlen(change[i][0]));
    ConvPlan loaded;
    error[0] = '\0';
    if (conv_plan_load(&toolkit->cudnn, bad, strlen(bad), there, &loaded, error, sizeof error))
      fail_msg("taken: %s for %s", change[i][1], change[i][0]);
    assert_true(strlen(error) > 10);
  }
}

/* The second time nothing is planned: the toolkit's description of a device is not even made. */
static void comes_from_the_cache(void **state) {
  (void)state;
  char folder[] = "plans.XXXXXX", error[TOOLKIT_ERROR];
  const char *why;
  PlanText plan, again;
  assert_non_null(mkdtemp(folder));
  ConvOp op = op_of(shapes[2], "f16");
  const Device *device = device_find(arena, "l4", &why);
  assert_true(plan_list(toolkit, folder, arena, &op, device, &plan, 1, error));
  Toolkit *second = toolkit_find(arena, NULL, error);
  assert_non_null(second);
  assert_true(plan_list(second, folder, arena, &op, device, &again, 1, error));
  assert_null(second->description);
  assert_int_equal(plan.workspace, again.workspace);
  assert_int_equal(plan.engine, again.engine);
  assert_int_equal(plan.notes, again.notes);
  assert_int_equal(plan.json_bytes, again.json_bytes);
  assert_memory_equal(plan.json, again.json, plan.json_bytes);
  op.n++;
  assert_true(plan_list(second, folder, arena, &op, device, &again, 1, error));
  assert_non_null(second->description);
  DIR *dir = opendir(folder);
  for (struct dirent *entry; (entry = readdir(dir));)
    if (entry->d_name[0] != '.')
      unlink(arena_printf(arena, "%s/%s", folder, entry->d_name));
  closedir(dir);
  assert_int_equal(rmdir(folder), 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_for_every_device), cmocka_unit_test(says_why_not),
      cmocka_unit_test(says_what_it_computes),  cmocka_unit_test(tf32_is_asked_for),
      cmocka_unit_test(lists_the_candidates),   cmocka_unit_test(refuses_other_texts),
      cmocka_unit_test(comes_from_the_cache)};
  const struct CMUnitTest long_tests[] = {cmocka_unit_test(the_table_of_forms_is_right),
                                          cmocka_unit_test(the_table_holds_elsewhere)};
  arena = arena_new();
  toolkit = toolkit_or_skip(arena);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (argc < 2 || strcmp(argv[1], "short") != 0)
    failed += cmocka_run_group_tests(long_tests, NULL, NULL);
  arena_free(arena);
  return failed;
}
