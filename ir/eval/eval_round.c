/* Rounding to the element types: nearest, ties to even, whatever the hardware has. */
#include "ir/eval/eval.h"

#include <math.h>

/* A binary float: `fraction` bits after the leading one, smallest normal 2^min_exponent. */
typedef struct Format {
  int fraction, min_exponent;
  double max;
} Format;

static const Format format[DT_COUNT] = {
    [DT_F32] = {23, -126, 0x1.fffffep127},
    [DT_F16] = {10, -14, 65504},
    [DT_BF16] = {7, -126, 0x1.fep127},
};

static double round_float(double x, const Format *f) {
  if (x == 0 || !isfinite(x))
    return x;
  int exponent;
  frexp(x, &exponent); /* |x| is in [2^(exponent-1), 2^exponent) */
  int lead = exponent - 1 < f->min_exponent ? f->min_exponent : exponent - 1;
  int quantum = lead - f->fraction; /* scaling by 2^quantum is exact, so only rint rounds */
  double y = ldexp(rint(ldexp(x, -quantum)), quantum);
  return fabs(y) > f->max ? copysign(INFINITY, x) : y;
}

/* Truncates; saturates; NaN gives 0. */
static double round_int(double x, double low, double high) {
  if (isnan(x))
    return 0;
  x = trunc(x);
  return x < low ? low : x > high ? high : x;
}

double eval_round(double x, DType dtype) {
  switch (dtype) {
  case DT_F32:
  case DT_F16:
  case DT_BF16:
    return round_float(x, &format[dtype]);
  case DT_I32:
    return round_int(x, INT32_MIN, INT32_MAX);
  case DT_I64:
    return round_int(x, -0x1p63, 0x1p63);
  case DT_U8:
    return round_int(x, 0, UINT8_MAX);
  case DT_BOOL:
    return x != 0;
  default: /* DT_F64 */
    return x;
  }
}
