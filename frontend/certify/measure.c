#include "frontend/certify/measure.h"

#include "ir/eval/eval.h"

#include <math.h>

/* The unit in the last place of a number as large as x, with the exponents of `dtype` and the
 * fraction of `precision`. */
static double place(double x, DType dtype, DType precision) {
  int exponent, lead = dtype_info[dtype].least + dtype_info[dtype].digits - 1;
  if (x != 0 && isfinite(x)) {
    frexp(x, &exponent);
    lead = exponent - 1 < lead ? lead : exponent - 1;
  }
  return ldexp(1, lead - dtype_info[precision].digits + 1);
}

/* The root of the mean square, to which numbers that are not finite add nothing. */
static double root_mean_square(const double *x, int64_t n) {
  double sum = 0, largest = 0;
  for (int64_t i = 0; i < n; i++)
    if (isfinite(x[i]) && fabs(x[i]) > largest)
      largest = fabs(x[i]);
  for (int64_t i = 0; largest > 0 && i < n; i++)
    if (isfinite(x[i]))
      sum += x[i] / largest * (x[i] / largest);
  return n ? largest * sqrt(sum / (double)n) : 0;
}

static double ratio(double part, double whole) {
  return part == 0 ? 0 : part / whole;
}

/* Both NaN, or the same infinity. */
static bool same_special(double a, double b) {
  return isnan(a) ? isnan(b) : isinf(a) && a == b;
}

Error error_of(const double *got, const double *want, int64_t n, DType dtype, DType unit) {
  double size = root_mean_square(want, n), off = 0;
  Error e = {0};
  for (int64_t i = 0; i < n; i++) {
    if (same_special(got[i], want[i]))
      continue;
    e.lost += !isfinite(got[i]) && isfinite(want[i]);
    double at = fmax(fabs(want[i]), size), d = fabs(got[i] - want[i]);
    if (!(d < INFINITY))
      d = INFINITY;
    e.worst = fmax(e.worst, ratio(d, at));
    e.ulp = fmax(e.ulp, ratio(d, place(at, dtype, unit)));
    off += ratio(d, size) * ratio(d, size);
  }
  e.norm = n ? sqrt(off / (double)n) : 0;
  return e;
}

double excess_of(double got, double x, DType dtype) {
  if (same_special(got, x))
    return 0;
  if (isnan(got) || isnan(x) || isinf(x))
    return INFINITY;
  double max = dtype_info[dtype].most;
  if (isinf(got))
    return fmax(0, max + place(max, dtype, dtype) / 2 - (got > 0 ? x : -x));
  /* if `got` is a power of two, the next number towards zero is half as far */
  bool inwards = fabs(x) < fabs(got);
  double half = place(inwards ? nextafter(fabs(got), 0) : got, dtype, dtype) / 2;
  return fmax(0, fabs(x - got) - half);
}

/* What the error of a number is measured by: its own size, that of its tensor or of its terms. */
static double extent(double want, const double *terms, int64_t i, double size) {
  double at = fmax(fabs(want), size);
  return terms && isfinite(terms[i]) ? fmax(at, fabs(terms[i])) : at;
}

Drift drift_of(const double *got, const double *want, const double *terms, int64_t n, DType dtype) {
  double size = root_mean_square(want, n);
  Drift d = {.n = n};
  for (int64_t i = 0; i < n; i++) {
    double rounded = eval_round(want[i], dtype), at = extent(want[i], terms, i, size);
    if (got[i] == rounded || same_special(got[i], rounded))
      continue;
    d.other++;
    d.ulp = fmax(d.ulp, ratio(excess_of(got[i], want[i], dtype), place(at, DT_F32, DT_F32)));
    double steps = fabs(got[i] - rounded) / place(fmax(fabs(want[i]), size), dtype, dtype);
    d.steps = fmax(d.steps, steps < INFINITY ? steps : INFINITY);
  }
  return d;
}

Bound bound_of(const double *got, const double *want, const double *terms, const double *bound,
               int64_t n, DType dtype) {
  double size = root_mean_square(want, n);
  Bound b = {0};
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(bound[i]))
      continue;
    b.used = fmax(b.used, ratio(excess_of(got[i], want[i], dtype), bound[i]));
    b.ulp = fmax(b.ulp, bound[i] / place(extent(want[i], terms, i, size), DT_F32, DT_F32));
  }
  return b;
}

void error_add(Error *sum, const Error *one) {
  sum->norm = fmax(sum->norm, one->norm);
  sum->worst = fmax(sum->worst, one->worst);
  sum->ulp = fmax(sum->ulp, one->ulp);
  sum->lost += one->lost;
}

void drift_add(Drift *sum, const Drift *one) {
  sum->ulp = fmax(sum->ulp, one->ulp);
  sum->steps = fmax(sum->steps, one->steps);
  sum->other += one->other;
  sum->n += one->n;
}

void bound_add(Bound *sum, const Bound *one) {
  sum->ulp = fmax(sum->ulp, one->ulp);
  sum->used = fmax(sum->used, one->used);
}
