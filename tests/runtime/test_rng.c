/* Tests random numbers, initialisers and element types. */
#include "runtime/base/convert.h"
#include "runtime/base/normal.h"
#include "runtime/base/normal_many.h"
#include "runtime/state/init.h"
#include "tests/runtime/harness.h"

#include <math.h>
#include <string.h>

/* The vectors that the authors publish with their library (Random123, kat_vectors). */
static void test_philox(void **state) {
  (void)state;
  static const struct {
    AmprtWords counter;
    AmprtKey key;
    AmprtWords want;
  } known[] = {
      {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, {{~0u, ~0u}}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {{0xa4093822, 0x299f31d0}},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    AmprtWords got = amprt_philox(known[i].counter, known[i].key);
    assert_memory_equal(&got, &known[i].want, sizeof got);
  }
}

static void test_permute(void **state) {
  (void)state;
  enum { N = 1000 };
  uint32_t a[N], b[N], seen[N] = {0};
  int fixed = 0, same = 0;
  AmprtKey key = amprt_rng_key(1, "shuffle");
  amprt_rng_permute(key, 0, a, N);
  amprt_rng_permute(key, 1, b, N);
  for (int i = 0; i < N; i++) {
    assert_in_range(a[i], 0, N - 1);
    assert_int_equal(seen[a[i]]++, 0);
    fixed += a[i] == (uint32_t)i;
    same += a[i] == b[i];
  }
  assert_in_range(fixed, 0, 8); /* one is expected */
  assert_in_range(same, 0, 8);
  amprt_rng_permute(key, 0, b, N);
  assert_memory_equal(a, b, sizeof a);
}

/* Every order of three comes about equally often: 6000 draws, 1000 each, deviation 29. */
static void test_permute_is_fair(void **state) {
  (void)state;
  int count[27] = {0};
  AmprtKey key = amprt_rng_key(7, "shuffle");
  for (uint64_t epoch = 0; epoch < 6000; epoch++) {
    uint32_t o[3];
    amprt_rng_permute(key, epoch, o, 3);
    count[o[0] * 9 + o[1] * 3 + o[2]]++;
  }
  static const int orders[] = {5, 7, 11, 15, 19, 21};
  for (int i = 0; i < 6; i++)
    assert_in_range(count[orders[i]], 880, 1120);
}

static void test_normal(void **state) {
  (void)state;
  double sum = 0, squares = 0, z[4];
  AmprtKey key = amprt_rng_key(1, "normal");
  for (uint64_t i = 0; i < 25000; i++) {
    amprt_rng_normal(amprt_rng_at(key, i, 0), z);
    for (int j = 0; j < 4; j++)
      sum += z[j], squares += z[j] * z[j];
  }
  assert_true(fabs(sum / 1e5) < .01);
  assert_true(fabs(squares / 1e5 - 1) < .015);
}

static void moments(const float *x, int n, double *mean, double *deviation, double *most) {
  double sum = 0, squares = 0;
  *most = 0;
  for (int i = 0; i < n; i++) {
    sum += x[i];
    squares += (double)x[i] * x[i];
    *most = fmax(*most, fabs((double)x[i]));
  }
  *mean = sum / n;
  *deviation = sqrt(squares / n - *mean * *mean);
}

/* Many at once have the bits of one block after the other. */
static void check_truncated(AmprtNormals *normals) {
  static const struct {
    uint64_t first;
    double mean, stddev;
    size_t n;
  } want[] = {{0, 0, .0589, 400003},
              {400000, 127, 60, 200001},
              {1ull << 35, 0, 1, 100002},
              {4, 1e3, 1e-3, 100000},
              {0, 0, 0, 1001},
              {0, -3, -2, 10000},
              {0, 1e-40, 1e-41, 10000},
              {0, 0, 1e-45, 10000},
              {0, 0, 3e38, 10000},
              {16, 0, INFINITY, 103},
              {8, NAN, 1, 17},
              {0, 0, 1, 1},
              {0, 0, 1, 3},
              {0, 0, 1, 0}};
  static float x[400004];
  for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
    AmprtKey key = amprt_rng_key(k, "w");
    memset(x, 0xa5, sizeof x);
    normals(key, want[k].first, want[k].mean, want[k].stddev, x, want[k].n);
    for (size_t i = 0; i < want[k].n; i += 4) {
      double four[4];
      amprt_truncated_block(key, (want[k].first + i) / 4, want[k].mean, want[k].stddev, four);
      for (size_t j = i; j < i + 4 && j < want[k].n; j++) {
        float one = (float)four[j - i];
        assert_memory_equal(&x[j], &one, sizeof one);
      }
    }
    uint32_t behind;
    memcpy(&behind, &x[want[k].n], sizeof behind);
    assert_int_equal(behind, 0xa5a5a5a5);
  }
}

/* With every width of vectors that this processor has. */
static void test_truncated(void **state) {
  (void)state;
  check_truncated(amprt_truncated_normals);
  check_truncated(amprt_normals_2);
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2"))
    check_truncated(amprt_normals_4);
  if (__builtin_cpu_supports("avx512f"))
    check_truncated(amprt_normals_8);
#endif
}

static void test_init(void **state) {
  (void)state;
  enum { N = 3 * 3 * 64 * 32 };
  static const double data[] = {1.5, -2, 1e10};
  static const struct {
    AmprtInit init;
    double arg[3], mean, deviation, most;
  } want[] = {
      {AMPRT_ONES, {0}, 1, 0, 1},
      {AMPRT_CONSTANT, {.25}, .25, 0, .25},
      {AMPRT_UNIFORM, {-1, 3}, 1, 4 / 3.4641016151377544, 3},
      {AMPRT_NORMAL, {2, .5}, 2, .5, 6},
      {AMPRT_TRUNCATED_NORMAL, {0, 1}, 0, .8796, 2},
      /* He: sqrt(2 / fan_in), fan_in = 9 * 64 of [32,3,3,64] */
      {AMPRT_VARIANCE_SCALING, {2, 0, 1}, 0, .05893, 1},
      {AMPRT_VARIANCE_SCALING, {2, 0, 0}, 0, .05893, 2 * .05893 / .8796},
      {AMPRT_VARIANCE_SCALING, {2, 0, 3}, 0, .05893 * .8796, 2 * .05893},
      {AMPRT_VARIANCE_SCALING, {2, 1, 1}, 0, .08333, 1}, /* fan_out = 9 * 32 */
      /* Glorot: limit sqrt(6 / (fan_in + fan_out)) */
      {AMPRT_VARIANCE_SCALING, {1, 2, 2}, 0, .04811, .083333},
  };
  static float x[N], again[N];
  char error[200];
  assert_int_equal(amprt_threads.open(3, error, sizeof error), 0);
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    double mean, deviation, most;
    AmprtVariable variable = {"w", AMPRT_F32, 4, AMPRT_PARAM, want[i].init, {32, 3, 3, 64}};
    memcpy(variable.init_arg, want[i].arg, sizeof variable.init_arg);
    AmprtProgram program = {.variable = &variable, .n_variables = 1};
    amprt_init(&program, (unsigned char *)x, 1, NULL);
    amprt_init(&program, (unsigned char *)again, 1, &amprt_threads);
    assert_memory_equal(x, again, sizeof x);
    moments(x, N, &mean, &deviation, &most);
    assert_true(fabs(mean - want[i].mean) <= .03 * want[i].deviation);
    assert_true(fabs(deviation - want[i].deviation) <= .02 * want[i].deviation + 1e-12);
    assert_true(most <= want[i].most * 1.0001);
  }
  amprt_threads.close();
  AmprtVariable exact = {"d", AMPRT_I64, 1, AMPRT_COUNTER, AMPRT_DATA, {3}, .init_data = data};
  int64_t whole[3];
  amprt_init(&(AmprtProgram){.variable = &exact, .n_variables = 1}, (unsigned char *)whole, 1,
             NULL);
  assert_int_equal(whole[0], 1);
  assert_int_equal(whole[2], 10000000000);
}

static void test_low_types(void **state) {
  (void)state;
  for (uint32_t h = 0; h < 65536; h++) { /* every value is converted back to itself */
    bool nan16 = (h & 0x7fff) > 0x7c00, nanb = (h & 0x7fff) > 0x7f80;
    if (nan16)
      assert_true(isnan(amprt_f16_to((uint16_t)h)) && (amprt_f16_of(NAN) & 0x7fff) > 0x7c00);
    else
      assert_int_equal(amprt_f16_of(amprt_f16_to((uint16_t)h)), h);
    if (!nanb)
      assert_int_equal(amprt_bf16_of(amprt_bf16_to((uint16_t)h)), h);
  }
  static const struct {
    float x;
    uint16_t f16, bf16;
  } known[] = {
      {1, 0x3c00, 0x3f80},
      {1 + 0x1p-11f, 0x3c00, 0x3f80},
      {1 + 0x3p-11f, 0x3c02, 0x3f80},
      {65519, 0x7bff, 0x4780},
      {65520, 0x7c00, 0x4780},
      {-INFINITY, 0xfc00, 0xff80},
      {0x1p-24f, 0x0001, 0x3380},
      {0x1p-25f, 0x0000, 0x3300},
      {0x1.8p-24f, 0x0002, 0x33c0},
      {0x1.ff8p-15f, 0x03ff, 0x3880},
      {0x1.ffcp-15f, 0x0400, 0x3880},
      {1 + 0x1p-8f, 0x3c04, 0x3f80},
      {3.4e38f, 0x7c00, 0x7f80},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    assert_int_equal(amprt_f16_of(known[i].x), known[i].f16);
    assert_int_equal(amprt_bf16_of(known[i].x), known[i].bf16);
  }
  assert_true(isnan(amprt_bf16_to(amprt_bf16_of(NAN))));
}

/* Converting many values gives the same bits as one at a time: every exponent, every kind of tie,
 * NaN. */
static void test_many(void **state) {
  (void)state;
  enum { N = (1 << 20) + 5 };
  static float x[N];
  static unsigned char low[2 * N + 1];
  for (uint32_t i = 0; i < N; i++) {
    uint32_t bits = i << 12 | (i * 2654435761u >> 20 & (i & 1 ? 0xfff : 0x800));
    memcpy(&x[i], &bits, sizeof bits);
  }
  for (int type = 0; type < 2; type++) {
    amprt_from_f32(type ? AMPRT_BF16 : AMPRT_F16, x, low + 1, N);
    for (int i = 0; i < N; i++) {
      uint16_t got, want = type ? amprt_bf16_of(x[i]) : amprt_f16_of(x[i]);
      memcpy(&got, low + 1 + 2 * i, sizeof got);
      if (got != want)
        fail_msg("%a: %x, not %x", (double)x[i], got, want);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_philox),          cmocka_unit_test(test_permute),
      cmocka_unit_test(test_permute_is_fair), cmocka_unit_test(test_normal),
      cmocka_unit_test(test_truncated),       cmocka_unit_test(test_init),
      cmocka_unit_test(test_low_types),       cmocka_unit_test(test_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
