/* Tests the tables of frontend/tf: they are sorted, as the search needs, every row is well formed,
 * and the ops of the lists are known. Also tests the readers of device names and of protobuf's wire
 * format. */
#include "frontend/import/wire.h"
#include "frontend/tf/graph.h"
#include "frontend/tf/rules/device.h"
#include "frontend/tf/rules/lists.h"

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h> /* wants those before it */
/* clang-format on */

static const char *const tf_op[] = {
#define TF_OP(name, ...) #name,
#include "frontend/tf/rules/ops.def"
};
static const char *const listed[] = {
#define TF_LIST(op, ...) #op,
#include "frontend/tf/rules/lists.def"
};
enum { N_OPS = sizeof tf_op / sizeof *tf_op, N_LISTED = sizeof listed / sizeof *listed };

static void ops_are_in_order(void **state) {
  (void)state;
  for (int i = 1; i < N_OPS; i++)
    assert_true(strcmp(tf_op[i - 1], tf_op[i]) < 0);
  for (int i = 1; i < N_LISTED; i++)
    assert_true(strcmp(listed[i - 1], listed[i]) < 0);
}

/* A row that does not parse is a BUG. A port's attribute or type exists by construction. */
static void every_op_parses(void **state) {
  (void)state;
  Arena *arena = arena_new();
  for (int i = 0; i < N_OPS; i++) {
    const TfOp *op = tf_op_find(arena, tf_op[i]);
    assert_non_null(op);
    assert_string_equal(op->name, tf_op[i]);
    for (int a = 0; a < op->n_attrs; a++)
      for (int b = 0; b < a; b++)
        assert_string_not_equal(op->attr[a].name, op->attr[b].name);
  }
  assert_null(tf_op_find(arena, "Zap"));
  arena_free(arena);
}

static void rows_mean_what_they_say(void **state) {
  (void)state;
  Arena *arena = arena_new();
  const TfOp *bn = tf_op_find(arena, "FusedBatchNormV3"), *assign = tf_op_find(arena, "Assign");
  const TfOp *concat = tf_op_find(arena, "ConcatV2"), *identities = tf_op_find(arena, "IdentityN");
  const TfOp *empty = tf_op_find(arena, "EmptyTensorList"),
             *gru = tf_op_find(arena, "GRUBlockCell");
  assert_int_equal(bn->n_in, 5);
  assert_int_equal(bn->n_out, 6);
  assert_true(bn->attr[0].half && bn->attr[0].half_cpu && bn->attr[0].bfloat_cpu);
  assert_true(!bn->attr[1].half && bn->attr[1].bfloat && !bn->attr[1].bfloat_cpu);
  assert_true(assign->has_refs && assign->in[0].ref && !assign->in[1].ref && assign->out[0].ref);
  assert_string_equal(concat->in[0].count, "N");
  assert_string_equal(concat->attr[concat->in[1].attr].name, "Tidx");
  assert_int_equal(concat->attr[concat->in[1].attr].standard, TENSORFLOW__DATA_TYPE__DT_INT32);
  assert_true(identities->attr[0].list && identities->n_in == 1);
  assert_string_equal(empty->attr[empty->n_attrs - 1].name, "element_dtype");
  assert_false(gru->attr[0].half);
  assert_true(tf_op_find(arena, "RandomUniform")->stateful);
  const TfTypeAttr *where = tf_op_find(arena, "Where")->attr;
  const TfTypeAttr *pool = tf_op_find(arena, "MaxPool3D")->attr;
  assert_true(where->half && where->half_cpu && !where->half_gpu && where->bfloat_cpu);
  assert_true(pool->half_gpu && !pool->half_cpu && pool->bfloat_cpu);
  arena_free(arena);
}

/* "Tidx/-=i32@g:i32", "Tindices/-@i32,i64", "T/gb=f32@low" */
static void types_stand_beside_low_ones(void **state) {
  enum { F32 = 1, I32 = 3, I16 = 5, I64 = 9, BF16 = 14, F16 = 19 };
  (void)state;
  Arena *arena = arena_new();
  const TfTypeAttr *max = &tf_op_find(arena, "ArgMax")->attr[1];
  const TfTypeAttr *put = tf_op_find(arena, "ScatterNd")->attr;
  const TfTypeAttr *pool = &tf_op_find(arena, "MaxPool3DGrad")->attr[1];
  assert_true(max->standard == I32 && pool->standard == F32);
  assert_true(tf_type_beside(max, I32, F16, true) && !tf_type_beside(max, I64, F16, true));
  assert_true(tf_type_beside(max, I64, F16, false) && tf_type_beside(max, -7, F16, false));
  for (int gpu = 0; gpu < 2; gpu++) {
    assert_true(tf_type_beside(put, I64, F16, gpu) && !tf_type_beside(put, I16, F16, gpu));
    assert_true(tf_type_beside(pool, F16, F16, gpu) && !tf_type_beside(pool, BF16, F16, gpu));
    assert_false(tf_type_beside(pool, F32, F16, gpu) || tf_type_beside(put, 64 + I64, F16, gpu));
  }
  arena_free(arena);
}

static void listed_ops_are_known(void **state) {
  static const char *const nowhere[] = {"FastUnsortedSegmentMax",
                                        "FusedSparseConvGpuV2",
                                        "Mha",
                                        "MhaV2",
                                        "Pmlp",
                                        "Tmlp",
                                        "TmlpV2",
                                        "TmlpV3",
                                        "VoxelMax"};
  (void)state;
  Arena *arena = arena_new();
  for (int i = 0; i < N_LISTED; i++) {
    bool known = tf_op_find(arena, listed[i]) != NULL;
    for (int k = 0; k < 9; k++)
      known ^= !strcmp(listed[i], nowhere[k]);
    if (!known)
      fail_msg("%s", listed[i]);
  }
  arena_free(arena);
}

/* How many ops each list has, by specs/amp-rewrite.md 1.2 and 1.3. */
static void lists_have_their_size(void **state) {
  static const struct {
    TfSettings settings;
    int n[AMP_NONE];
  } cases[] = {
      {{.version = 219, .mode = TF_CUDA, .cuda = 11050, .cudnn = 8302}, {39, 43, 110, 9}},
      {{.version = 218, .mode = TF_CUDA, .cuda = 11050, .cudnn = 8302}, {38, 43, 110, 9}},
      {{.version = 219, .mode = TF_CUDA, .cuda = 9009, .cudnn = 7999}, {34, 43, 110, 9}},
      {{.version = 219, .mode = TF_CUDA, .cuda = 9010, .cudnn = 7601}, {31, 43, 110, 9}},
      {{.version = 219, .mode = TF_CUDA, .rocm = true}, {31, 43, 110, 9}},
      {{.version = 219, .mode = TF_CPU}, {39, 43, 110, 9}},
      {{.version = 219, .mode = TF_FP16_CPU}, {15, 46, 110, 9}},
      {{.version = 219, .mode = TF_BF16}, {14, 48, 111, 7}},
      {{.version = 215, .mode = TF_BF16}, {14, 43, 108, 8}},
      {{.version = 219, .mode = TF_CPU, .level = TF_TENSOR_CORES_ONLY}, {39, 0, 0, 0}},
      {{.version = 219, .mode = TF_FP16_CPU, .level = TF_TENSOR_CORES_ONLY}, {15, 46, 110, 9}},
      {{.version = 219, .mode = TF_BF16, .level = TF_TREAT_INFER_AS_DENY}, {14, 0, 111, 55}},
  };
  (void)state;
  Arena *arena = arena_new();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *conflict;
    int n[AMP_NONE + 1] = {0};
    const TfLists *lists = tf_lists_make(arena, &cases[i].settings, &conflict);
    assert_non_null(lists);
    for (int k = 0; k < N_LISTED; k++)
      n[tf_class(lists, listed[k])]++;
    for (int class = 0; class < AMP_NONE; class ++)
      if (n[class] != cases[i].n[class])
        fail_msg("case %zu, list %d: %d ops, not %d", i, class, n[class], cases[i].n[class]);
  }
  arena_free(arena);
}

static void devices_are_told_apart(void **state) {
  static const struct {
    const char *device;
    bool gpu, cpu;
  } cases[] = {
      {"/device:GPU:0", true, false},
      {"/gpu:0", true, false},
      {"/GPU:1", true, false},
      {"/device:gpu:3", true, false},
      {"/cpu:0", false, true},
      {"/device:XLA_GPU:0", true, false},
      {"GPU:0", false, false},
      {"/device:GPU", false, false},
      {"/device:GPU:*", false, false},
      {"/job:gpu/task:0", false, false},
      {"/device:TPU:0", false, false},
      {"/job:localhost/replica:0/task:0/device:CPU:0", false, true},
      {"/job:localhost/replica:0/task:0/device:GPU:0", true, false},
      {"", true, false}, /* the newest versions that the machine may have */
  };
  TfSettings gpu = {.mode = TF_CUDA, .gpu = true, .fast_gpu = true},
             cpu = {.mode = TF_BF16, .gpu = true};
  TfSettings slow = {.mode = TF_CUDA, .gpu = true}, none = {.mode = TF_CUDA, .simulate_gpu = true};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(tf_device_fits(&gpu, cases[i].device), cases[i].gpu);
    assert_int_equal(tf_device_fits(&cpu, cases[i].device), cases[i].cpu);
    assert_int_equal(tf_device_fits(&none, cases[i].device), cases[i].gpu);
    assert_false(tf_device_fits(&slow, cases[i].device));
  }
  cpu.gpu = false;
  assert_true(tf_device_fits(&cpu, "") && tf_machine_fits(&cpu));
  assert_true(tf_machine_fits(&gpu) && tf_machine_fits(&none) && !tf_machine_fits(&slow));
}

static const char *string_wrong(const char *bytes, size_t size) {
  uint8_t message[64] = {0x0a, (uint8_t)(size + 2), 0x0a, (uint8_t)size}; /* GraphDef.node.name */
  size_t at;
  memcpy(message + 4, bytes, size);
  return wire_check(&tensorflow__graph_def__descriptor, message, size + 4, &at);
}

static void strings_are_utf8(void **state) {
  (void)state;
  static const char *const good[] = {"",
                                     "a",
                                     "\xc2\x80",
                                     "\xe0\xa0\x80",
                                     "\xed\x9f\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf4\x8f\xbf\xbf",
                                     "\xef\xbf\xbf"};
  static const char *const bad[] = {
      "\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
      "\xf5", "\xc2",     "\xe1\x80",     "\xe1\x80\x41", "\xf1\x80\x80\x41"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    assert_null(string_wrong(good[i], strlen(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_non_null(string_wrong(bad[i], strlen(bad[i])));
  assert_non_null(string_wrong("a\0b", 3));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ops_are_in_order),        cmocka_unit_test(every_op_parses),
      cmocka_unit_test(rows_mean_what_they_say), cmocka_unit_test(types_stand_beside_low_ones),
      cmocka_unit_test(listed_ops_are_known),    cmocka_unit_test(lists_have_their_size),
      cmocka_unit_test(devices_are_told_apart),  cmocka_unit_test(strings_are_utf8)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
