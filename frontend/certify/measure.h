/* How far stored numbers are from exact ones. Errors are measured at the size of the exact number,
 * or at the root mean square of its tensor where that is larger: a number that is near zero because
 * two large ones cancelled has no digits of its own. */
#ifndef AMPCC_FRONTEND_CERTIFY_MEASURE_H
#define AMPCC_FRONTEND_CERTIFY_MEASURE_H

#include "ir/ir.h"

typedef struct Error {
  double norm;  /* length of the difference as a vector / length of the exact one */
  double worst; /* largest difference of one number, relative                      */
  double ulp;   /* the same in units of the last place                             */
  int64_t lost; /* numbers that are Inf or NaN where the exact one is neither      */
} Error;

/* The distance of code from the evaluator with the same operands and the same roundings. */
typedef struct Drift {
  double ulp;    /* units of f32's last place by which the number that was rounded must have been
                    off: 0 where the stored one is the exact one correctly rounded              */
  double steps;  /* largest distance from that, in units of the last place of the type itself   */
  int64_t other; /* how many numbers are not the evaluator's, bit for bit                       */
  int64_t n;     /* of how many                                                                 */
} Drift;

/* `got` holds numbers of `dtype`; n of each. NaN where both have it is no error. Units are those of
 * `unit`'s precision in dtype's range. */
Error error_of(const double *got, const double *want, int64_t n, DType dtype, DType unit);
/* `terms`, unless NULL, are the sums of magnitudes of what was added up: f32's rounding errors are
 * of that size. */
Drift drift_of(const double *got, const double *want, const double *terms, int64_t n, DType dtype);
/* How far x is from all that rounds to `got`, a number of `dtype`: 0 where `got` is x correctly
 * rounded, Inf where only one is NaN. */
double excess_of(double got, double x, DType dtype);
void error_add(Error *sum, const Error *one); /* the worst of both */
void drift_add(Drift *sum, const Drift *one);

#endif
