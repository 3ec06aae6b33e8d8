/* Keys of plans: what is printed is read back, and nothing else is. */
#include "codegen/cudnn/conv_op.h"
#include "tests/cuda/toolkit/check.h"

static void reads_back(void **state) {
  (void)state;
  uint64_t x = 1; /* xorshift */
  for (int i = 0; i < 20000; i++) {
    int64_t v[14];
    for (int k = 0; k < 14; k++) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      v[k] = 1 + (int64_t)(x >> 33) % (k < 3 ? 100000 : 40);
    }
    const int64_t groups = i % 2 ? 1 : v[13];
    ConvOp op = {.form = (uint8_t)(i % CONV_FORM_COUNT),
                 .dtype = (uint8_t)(i % 3),
                 .tf32 = i % 3 == 0 && i % 2,
                 .n = v[0],
                 .h = v[1] + 40,
                 .w = v[2] + 40,
                 .c = v[3] * groups,
                 .k = v[4] * groups,
                 .r = v[5],
                 .s = v[6],
                 .groups = groups,
                 .stride = {v[7], v[8]},
                 .pad = {v[9] - 1, v[10], v[11], v[12]}};
    ConvOp again = {0};
    char key[CONV_KEY_BYTES], second[CONV_KEY_BYTES];
    cuda_conv_key_print(&op, key);
    assert_true(cuda_conv_key_parse(key, &again));
    cuda_conv_key_print(&again, second);
    assert_string_equal(key, second);
    assert_memory_equal(&op.n, &again.n, sizeof op - offsetof(ConvOp, n));
    assert_int_equal(op.form, again.form);
    assert_int_equal(op.tf32, again.tf32);
  }
}

/* Caches and files of --tune hold keys, so those of one group stay what they were. */
static void says_groups_if_there_are(void **state) {
  (void)state;
  char key[CONV_KEY_BYTES];
  ConvOp op = {CONV_FPROP, CONV_F32, true, 2, 9, 8, 64, 96, 3, 2, 1, {2, 1}, {0, 1, 2, 3}};
  cuda_conv_key_print(&op, key);
  assert_string_equal(key, "fprop f32 n2 h9 w8 c64 k96 r3 s2 u2,1 p0,1,2,3 tf32");
  op.groups = 32;
  cuda_conv_key_print(&op, key);
  assert_string_equal(key, "fprop f32 n2 h9 w8 c64 k96 r3 s2 u2,1 p0,1,2,3 g32 tf32");
  op.tf32 = false;
  cuda_conv_key_print(&op, key);
  assert_string_equal(key, "fprop f32 n2 h9 w8 c64 k96 r3 s2 u2,1 p0,1,2,3 g32");
}

static void refuses_the_rest(void **state) {
  (void)state;
  static const char *const bad[] = {
      "",
      "fprop",
      "fprop f16 n1 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0",    /* the key is cut short */
      "fprop f16 n1 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0 ", /* something follows the key */
      "fprop f16 n1 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0 fast",
      "fprop  f16 n1 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0",
      "fprop f16 n+1 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0",
      "fprop f16 n01 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0",
      "pool f16 n1 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0", /* no such form, type */
      "fprop f64 n1 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0",
      "fprop f16 n0 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0", /* no such convolution */
      "fprop f16 n1 h1 w1 c1 k1 r2 s1 u1,1 p0,0,0,0",
      "fprop f16 n1 h1 w1 c1 k1 r1 s1 u0,1 p0,0,0,0",
      "fprop f16 n1 h1 w1 c1 k1 r1 s1 u1,1 p-1,1,0,0",
      "fprop f16 n1 h1 w1 c1 k99999999999999999999 r1 s1 u1,1 p0,0,0,0",
      "fprop f16 n1 h1 w1 c4 k4 r1 s1 u1,1 p0,0,0,0 g1", /* one group has no word of its own */
      "fprop f16 n1 h1 w1 c4 k4 r1 s1 u1,1 p0,0,0,0 g0",
      "fprop f16 n1 h1 w1 c4 k4 r1 s1 u1,1 p0,0,0,0 g-2",
      "fprop f16 n1 h1 w1 c4 k4 r1 s1 u1,1 p0,0,0,0 g",
      "fprop f16 n1 h1 w1 c4 k4 r1 s1 u1,1 p0,0,0,0g2",
      "fprop f16 n1 h1 w1 c4 k4 r1 s1 u1,1 p0,0,0,0 g2 g2",
      "fprop f32 n1 h1 w1 c4 k4 r1 s1 u1,1 p0,0,0,0 tf32 g2",
      "fprop f16 n1 h1 w1 c4 k6 r1 s1 u1,1 p0,0,0,0 g4", /* groups of unequal size */
      "fprop f16 n1 h1 w1 c6 k4 r1 s1 u1,1 p0,0,0,0 g4",
  };
  ConvOp op;
  assert_true(cuda_conv_key_parse("fprop f16 n1 h1 w1 c1 k1 r1 s1 u1,1 p0,0,0,0", &op));
  assert_true(cuda_conv_key_parse("fprop f32 n1 h1 w1 c4 k4 r1 s1 u1,1 p0,0,0,0 g2 tf32", &op));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (cuda_conv_key_parse(bad[i], &op))
      fail_msg("taken: \"%s\"", bad[i]);
}

static void knows_the_output(void **state) {
  (void)state;
  ConvOp op;
  int64_t ho, wo;
  assert_true(cuda_conv_key_parse("fprop f16 n2 h224 w112 c3 k64 r7 s5 u2,1 p3,3,0,1", &op));
  assert_true(cuda_conv_output(&op, &ho, &wo));
  assert_int_equal(ho, 112);
  assert_int_equal(wo, 109);
  assert_int_equal(cuda_conv_operands(CONV_FPROP), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_back), cmocka_unit_test(says_groups_if_there_are),
      cmocka_unit_test(refuses_the_rest), cmocka_unit_test(knows_the_output)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
