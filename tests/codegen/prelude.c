/* Tests the helpers of generated kernels against the C library and the evaluator's rounding:
 * accuracy of the elementary functions, every conversion of 16-bit floats, accuracy of sums. Built
 * twice, for the oldest machine and for AVX2 with F16C, which must give the same bits. */
#include "codegen/text/cpu/prelude.h"

#include "codegen/text/common/math.h"
#include "ir/eval/eval.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;
static uint64_t hash = 14695981039346656037u;

static void note(uint32_t bits) {
  hash = (hash ^ bits) * 1099511628211u;
}

static void fail(const char *what, double x, double got, double want) {
  if (failures++ < 20)
    printf("%s(%a): got %a, want %a\n", what, x, got, want);
}

/* ---- elementary functions ---- */

static float call_exp(float x) {
  return amp_exp(x);
}
static float call_log(float x) {
  return amp_log(x);
}
static float call_tanh(float x) {
  return amp_tanh(x);
}
static float call_sigmoid(float x) {
  return amp_sigmoid(x);
}
static double real_sigmoid(double x) {
  return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static float call_log1p_exp(float x) {
  return amp_log1p_exp(x);
}
static double real_log1p_exp(double x) {
  return log1p(exp(-fabs(x)));
}

static float call_gelu_erf(float x) {
  return amp_gelu_erf(x);
}
static double real_gelu_erf(double x) {
  return x * 0.5 * erfc(-x * sqrt(0.5));
}
static float call_gelu_tanh(float x) {
  return amp_gelu_tanh(x);
}
static double real_gelu_tanh(double x) {
  return x * real_sigmoid(2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x));
}

static const struct {
  const char *name;
  float (*ours)(float);
  double (*real)(double);
  double ulp;
} functions[] = {
    {"exp", call_exp, exp, 1},
    {"log", call_log, log, 1},
    {"tanh", call_tanh, tanh, 2.5},
    {"sigmoid", call_sigmoid, real_sigmoid, 2.5},
    {"log1p_exp", call_log1p_exp, real_log1p_exp, 2.5},
    {"gelu_erf", call_gelu_erf, real_gelu_erf, 6},
    {"gelu_tanh", call_gelu_tanh, real_gelu_tanh,
     10}, /* this bound holds where the result is subnormal; elsewhere it is 5 */
};
enum { N_FUNCTIONS = (int)(sizeof functions / sizeof *functions) };

static double ulp_of(double x) {
  int e;
  frexp(x, &e);
  return ldexp(1, x == 0 || e < -125 ? -149 : e - 24);
}

static void check_function(int k, float x) {
  float got = functions[k].ours(x);
  double want = functions[k].real((double)x);
  note(isnan(got) ? 0x7fc00000u : amp_bits(got));
  if (isnan(want) ? isnan(got) : (double)got == want || (float)want == got)
    return;
  if (!(fabs((double)got - want) <= functions[k].ulp * ulp_of(want)))
    fail(functions[k].name, (double)x, (double)got, want);
}

/* ---- 16-bit floats ---- */

static bool same(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void check_round(float x) {
  double f16 = eval_round((double)x, DT_F16), bf16 = eval_round((double)x, DT_BF16);
  float r16 = amp_round_f16(x), rb16 = amp_round_bf16(x);
  if (!same((double)r16, f16))
    fail("round_f16", (double)x, (double)r16, f16);
  if (!same((double)rb16, bf16))
    fail("round_bf16", (double)x, (double)rb16, bf16);
  if (!same((double)amp_from_f16(amp_to_f16(x)), f16))
    fail("to_f16", (double)x, (double)amp_from_f16(amp_to_f16(x)), f16);
  if (!same((double)amp_from_bf16(amp_to_bf16(x)), bf16))
    fail("to_bf16", (double)x, (double)amp_from_bf16(amp_to_bf16(x)), bf16);
}

/* A float half way between two 16-bit ones, and its neighbours. */
static void check_half(float low, float high) {
  float half = (float)(((double)low + (double)high) / 2);
  for (int sign = -1; sign <= 1; sign += 2) {
    check_round((float)sign * nextafterf(half, 0));
    check_round((float)sign * half);
    check_round((float)sign * nextafterf(half, INFINITY));
  }
}

static void check_halves(void) {
  for (uint16_t u = 0; u < 0x7c00; u++)
    check_half(amp_from_f16(u), u == 0x7bff ? 0x1p16f : amp_from_f16((uint16_t)(u + 1)));
  for (uint16_t u = 0; u < 0x7f7f; u++)
    check_half(amp_from_bf16(u), amp_from_bf16((uint16_t)(u + 1)));
  /* below, at and above the middle between the largest bf16 and the place of Inf */
  check_round(0x1.fefffep127f);
  check_round(0x1.ffp127f);
  check_round(0x1.ff0002p127f);
}

/* Blocks of every length, so that the vector part and the rest both occur. */
static void check_blocks(void) {
  enum { MOST = 21 };
  uint16_t bits[MOST], back[MOST];
  float wide[MOST];
  for (uint32_t first = 0; first < 65536; first += MOST)
    for (int n = 1; n <= MOST; n += 5) {
      for (int i = 0; i < n; i++)
        bits[i] = (uint16_t)(first + (uint32_t)i);
      amp_load_f16(wide, bits, n);
      amp_store_f16(back, wide, n);
      for (int i = 0; i < n; i++) {
        float want = amp_from_f16(bits[i]);
        if (amp_bits(wide[i]) != amp_bits(want) || back[i] != amp_to_f16(want))
          fail("block_f16", bits[i], (double)wide[i], (double)want);
      }
      amp_load_bf16(wide, bits, n);
      amp_store_bf16(back, wide, n);
      for (int i = 0; i < n; i++)
        if (amp_bits(wide[i]) >> 16 != bits[i] || back[i] != bits[i])
          fail("block_bf16", bits[i], (double)wide[i], 0);
    }
}

/* ---- sums ---- */

/* One channel of large mean and small spread: the variance keeps 5 digits. */
static void check_stats(void) {
  enum { ROWS = 1000 };
  const AmpGrid grid = {ROWS, ROWS, 1, 1, 1, 1, 1};
  const AmpChunk at = amp_chunk(&grid, 0);
  double sum = 0, square = 0, mean = 0, var = 0;
  float k = 0, s = 0, q = 0, x[ROWS];
  int64_t count = 0;
  for (int i = 0; i < ROWS; i++) {
    x[i] = 1003.71f + (float)((i + 3) * 7919 % 1000) / 512.0f;
    mean += (double)x[i] / ROWS;
  }
  for (int i = 0; i < ROWS; i++)
    var += ((double)x[i] - mean) * ((double)x[i] - mean) / ROWS;
  for (int64_t b = 0; b < ROWS; b++) {
    float d = x[b] - k;
    s += d;
    q += d * d;
    if (b == 0)
      amp_stats_begin(&k, &s, &q, 1);
    count++;
    if (amp_run_ends(&at, b)) {
      amp_stats_flush(&sum, &square, &k, &s, &q, &grid, &at, 1, count);
      count = 0;
    }
  }
  double got = square / ROWS - sum / ROWS * (sum / ROWS);
  if (!(fabs(got - var) <= 1e-5 * var))
    fail("stats", mean, got, var);
}

int main(void) {
#ifdef __F16C__
  if (!__builtin_cpu_supports("avx2")) /* a CPU with AVX2 has F16C too */
    return 77;
#endif
  const float edge[] = {0.0f,       -0.0f,         0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1p-25f,
                        0x1.8p-25f, 0x1p-14f,      65504.0f,  65519.0f,   65520.0f,  1e30f,
                        -1e30f,     3.4028235e38f, INFINITY,  -INFINITY,  NAN,       88.7f,
                        88.8f,      -103.9f,       1.0f};
  uint32_t step = 4099; /* a prime number, so that all bits vary */
  for (size_t i = 0; i < sizeof edge / sizeof *edge; i++) {
    check_round(edge[i]);
    for (int k = 0; k < N_FUNCTIONS; k++)
      check_function(k, edge[i]);
  }
  for (uint64_t u = 0; u <= UINT32_MAX; u += step) {
    float x = amp_float((uint32_t)u);
    check_round(x);
    for (int k = 0; k < N_FUNCTIONS; k++)
      check_function(k, x);
  }
  check_halves();
  check_blocks();
  check_stats();
  if (hash != 0x8035457f82fbf41du) {
    printf("hash %016llx: other bits than before\n", (unsigned long long)hash);
    failures++;
  }
  return failures != 0;
}
