#include "tests/ops/compare.h"

#include <math.h>

/* The distance between neighbouring numbers at x in a 16-bit type; 0 for other types. */
static double spacing(double x, DType dtype) {
  int exponent;
  if (!dtype_info[dtype].low)
    return 0;
  frexp(x, &exponent);
  int fraction = dtype == DT_F16 ? 10 : 7, min_exponent = dtype == DT_F16 ? -14 : -126;
  int lead = x == 0 || exponent - 1 < min_exponent ? min_exponent : exponent - 1;
  return ldexp(1, lead - fraction);
}

bool close_enough(double got, double want, double tolerance, DType dtype) {
  if (isnan(want))
    return isnan(got);
  if (isinf(want) || isinf(got))
    return got == want;
  if (tolerance > 0)
    tolerance += spacing(want, dtype);
  return fabs(got - want) <= tolerance; /* this is false for NaN */
}

double largest_finite(const EvalTensor *t) {
  double max = 0;
  for (int64_t i = 0, n = type_count(t->type); i < n; i++)
    if (isfinite(t->v[i]))
      max = fmax(max, fabs(t->v[i]));
  return max;
}
