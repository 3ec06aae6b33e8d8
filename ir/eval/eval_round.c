/* Rounding to the element types: to nearest, ties to even, independent of the hardware. */
#include "ir/eval/eval.h"

#include <math.h>
#include <string.h>

/* The sum with 1.5 * 2^52 units in the last place is rounded to whole units, as a double has no
 * more digits; the difference is exact then. */
static double round_float(double x, const DTypeInfo *type) {
  if (x == 0 || !isfinite(x))
    return x;
  if (fabs(x) > 2 * type->most)
    return copysign(INFINITY, x);
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int exponent = (int)(bits >> 52 & 0x7ff) - 1022; /* |x| is in [2^(exponent-1), 2^exponent) */
  int unit = exponent - type->digits < type->least ? type->least : exponent - type->digits;
  uint64_t units = (uint64_t)(unit + 52 + 1023) << 52 | UINT64_C(1) << 51;
  double shift;
  memcpy(&shift, &units, sizeof shift);
  double y = copysign(fabs(x) + shift - shift, x);
  return fabs(y) > type->most ? copysign(INFINITY, x) : y;
}

/* Truncates and saturates; NaN gives 0. */
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
    return round_float(x, &dtype_info[dtype]);
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
