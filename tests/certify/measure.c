/* The measures of frontend/certify/measure.h on numbers whose distance is known. */
#include "frontend/certify/measure.h"

#include <math.h>
#include <stdio.h>

static int failures;

static void expect(const char *what, double got, double want) {
  bool same = isinf(want) ? got == want : fabs(got - want) <= 1e-12 * fabs(want);
  if (!same && ++failures)
    printf("FAIL %s: %.17g, not %.17g\n", what, got, want);
}

/* The numbers that are rounded to 1 in f16 reach from half a step below 1, where steps are half as
 * long, to half a step above. */
static void check_excess(void) {
  expect("1, exact", excess_of(1, 1, DT_F16), 0);
  expect("1, tie above", excess_of(1, 1 + 0x1p-11, DT_F16), 0);
  expect("1, past it", excess_of(1, 1 + 0x1p-11 + 0x1p-20, DT_F16), 0x1p-20);
  expect("1, tie below", excess_of(1, 1 - 0x1p-12, DT_F16), 0);
  expect("1, past that", excess_of(-1, -1 + 0x1p-12 + 0x1p-20, DT_F16), 0x1p-20);
  expect("bf16", excess_of(1, 1 + 0x1p-7, DT_BF16), 0x1p-8);
  expect("f32", excess_of(2, 2 + 0x3p-23, DT_F32), 0x1p-22);
  expect("subnormal", excess_of(0x1p-24, 0x1p-25, DT_F16), 0);
  expect("to zero", excess_of(0, 0x1p-25 + 0x1p-40, DT_F16), 0x1p-40);
  expect("overflow", excess_of(INFINITY, 65520, DT_F16), 0);
  expect("too early", excess_of(INFINITY, 65519, DT_F16), 1);
  expect("wrong end", excess_of(-INFINITY, 65520, DT_F16), 131040);
  expect("too late", excess_of(65504, 65530, DT_F16), 10);
  expect("NaN twice", excess_of(NAN, NAN, DT_F16), 0);
  expect("NaN", excess_of(NAN, 1, DT_F16), INFINITY);
  expect("no NaN", excess_of(1, NAN, DT_F16), INFINITY);
}

static void check_error(void) {
  const double want[] = {3, 4, 0, NAN}, got[] = {3, 4.5, 0, NAN};
  Error e = error_of(got, want, 2, DT_F16, DT_F16);
  expect("norm", e.norm, 0.1);
  expect("worst", e.worst, 0.125);
  expect("ulp", e.ulp, 128);
  e = error_of(got, want, 2, DT_F32, DT_F16);
  expect("ulp of f16 in f32's range", e.ulp, 128);
  e = error_of(got, want, 4, DT_F16, DT_F16);
  expect("lost", (double)e.lost, 0);
  const double broken[] = {3, INFINITY, NAN, 0};
  e = error_of(broken, want, 4, DT_F16, DT_F16);
  expect("lost", (double)e.lost, 2);
  expect("norm of what is lost", e.norm, INFINITY);
  /* the error of a small number beside large ones is relative to the size of those */
  const double large[] = {1, 0x1p-20}, near[] = {1, 0};
  expect("at the size of all", error_of(near, large, 2, DT_F32, DT_F32).worst, 0x1p-20 * sqrt(2));
}

static void check_drift(void) {
  const double want[] = {1 + 0x1p-12, 1 + 0x1p-11 + 0x1p-23, 1}, right[] = {1, 1 + 0x1p-10, 1};
  const double wrong[] = {1, 1, 1}, terms[] = {8, 8, 8};
  Drift d = drift_of(right, want, NULL, 3, DT_F16);
  expect("right: differ", (double)d.other, 0);
  expect("right: ulp", d.ulp, 0);
  d = drift_of(wrong, want, NULL, 3, DT_F16);
  expect("wrong: differ", (double)d.other, 1);
  expect("wrong: ulp", d.ulp, 1);
  expect("wrong: steps", d.steps, 1);
  expect("in units of the terms", drift_of(wrong, want, terms, 3, DT_F16).ulp, 0.125);
  const double lost[] = {1, NAN, 1};
  expect("lost", drift_of(lost, want, NULL, 3, DT_F16).ulp, INFINITY);
}

int main(void) {
  check_excess();
  check_error();
  check_drift();
  printf("%d failures\n", failures);
  return failures != 0;
}
