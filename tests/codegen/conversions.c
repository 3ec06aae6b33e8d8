/* The conversions of 16-bit floats that are not generated code, those around the library's kernels
 * (runtime/cpu/convert.c) and those of the runtime: every 16-bit value is widened and rounded back,
 * every f32 half way between two neighbours and the next on either side goes where the evaluator's
 * rounding sends it, and blocks of every length do the same as one number. */
#include "ir/eval/eval.h"
#include "runtime/base/convert.h"
#include "runtime/cpu/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 65536, MOST = 3 * N };

typedef struct Kind {
  const char *name;
  DType dtype;
  AmprtDType runtime;
  int fraction, top; /* number of fraction bits; largest exponent */
  void (*widen)(float *to, const uint16_t *from, int64_t count);
  void (*round)(uint16_t *to, const float *from, int64_t count);
} Kind;

static const Kind kinds[] = {{"f16", DT_F16, AMPRT_F16, 10, 31, dnn_widen_f16, dnn_round_f16},
                             {"bf16", DT_BF16, AMPRT_BF16, 7, 255, dnn_widen_bf16, dnn_round_bf16}};

static int failures;

static void expect(bool good, const char *what, double x, double got) {
  if (!good && failures++ < 20)
    printf("FAIL %s: %a becomes %a\n", what, x, got);
}

static double value_of(const Kind *kind, uint32_t bits) {
  int exponent = (int)(bits >> kind->fraction) & kind->top;
  double rest = bits & ((1u << kind->fraction) - 1), x;
  if (exponent == kind->top)
    x = rest > 0 ? NAN : INFINITY;
  else
    x = ldexp(rest + (exponent ? ldexp(1, kind->fraction) : 0),
              (exponent ? exponent : 1) - (kind->top >> 1) - kind->fraction);
  return bits >> 15 ? -x : x;
}

static bool same(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* Every 16-bit value is widened and rounded back. */
static void check_widen(const Kind *kind) {
  static uint16_t bits[N], back[N];
  static float library[N], runtime[N];
  for (uint32_t i = 0; i < N; i++)
    bits[i] = (uint16_t)i;
  kind->widen(library, bits, N);
  amprt_to_f32(kind->runtime, bits, runtime, N);
  kind->round(back, library, N);
  for (uint32_t i = 0; i < N; i++) {
    double x = value_of(kind, i);
    expect(same((double)library[i], x), "library, up", x, (double)library[i]);
    expect(same((double)runtime[i], x), "runtime, up", x, (double)runtime[i]);
    expect(same(value_of(kind, back[i]), x), "library, down again", x, value_of(kind, back[i]));
  }
}

/* The float half way from the i-th value to the next one away from zero, and its neighbours. */
static int fill_halves(const Kind *kind, float *x) {
  int n = 0;
  uint32_t inf = (uint32_t)kind->top << kind->fraction;
  for (uint32_t i = 0; i < N; i++) {
    if ((i & 0x7fff) >= inf)
      continue;
    double low = value_of(kind, i), high = value_of(kind, i + 1);
    if (!isfinite(high))
      high = 2 * low - value_of(kind, i - 1);
    float half = (float)((low + high) / 2);
    x[n++] = nextafterf(half, 0);
    x[n++] = half;
    x[n++] = nextafterf(half, copysignf(INFINITY, half));
  }
  return n;
}

static void check_round(const Kind *kind) {
  static float x[MOST];
  static uint16_t library[MOST], runtime[MOST];
  int n = fill_halves(kind, x);
  kind->round(library, x, n);
  amprt_from_f32(kind->runtime, x, runtime, (size_t)n);
  for (int i = 0; i < n; i++) {
    double want = eval_round((double)x[i], kind->dtype);
    expect(same(value_of(kind, library[i]), want), "library, down", (double)x[i],
           value_of(kind, library[i]));
    expect(same(value_of(kind, runtime[i]), want), "runtime, down", (double)x[i],
           value_of(kind, runtime[i]));
  }
}

/* Blocks of several lengths, so that whole vectors and remainders occur. Nothing may be written
 * behind the last element. */
static void check_lengths(const Kind *kind) {
  enum { LONGEST = 40 };
  float x[LONGEST], wide[LONGEST + 1];
  uint16_t low[LONGEST + 1];
  for (int i = 0; i < LONGEST; i++)
    x[i] = (float)(i * i) / 7.0f - 3.0f;
  for (int n = 0; n <= LONGEST; n++) {
    low[n] = 0x1234;
    wide[n] = 42;
    kind->round(low, x, n);
    kind->widen(wide, low, n);
    for (int i = 0; i < n; i++)
      expect(same((double)wide[i], eval_round((double)x[i], kind->dtype)), "a short block",
             (double)x[i], (double)wide[i]);
    expect(low[n] == 0x1234 && wide[n] == 42.0f, "behind the end", n, (double)wide[n]);
  }
}

int main(void) {
  if (!__builtin_cpu_supports("avx2"))
    return 77;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    check_widen(&kinds[k]);
    check_round(&kinds[k]);
    check_lengths(&kinds[k]);
    printf("%s: %d failures so far\n", kinds[k].name, failures);
  }
  return failures != 0;
}
