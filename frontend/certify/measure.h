/* How far stored numbers are from exact ones. Errors are relative to the exact number, or to the
 * root mean square of its tensor where that is larger: a number that is near zero because two large
 * ones cancelled has no correct digits of its own. */
#ifndef AMPCC_FRONTEND_CERTIFY_MEASURE_H
#define AMPCC_FRONTEND_CERTIFY_MEASURE_H

#include "ir/ir.h"

typedef struct Error {
  double norm;  /* length of the difference as a vector / length of the exact vector */
  double worst; /* the largest relative difference of one number                     */
  double ulp;   /* the same in units of the last place                               */
  int64_t lost; /* numbers that are Inf or NaN where the exact one is neither        */
} Error;

/* The distance of code from the evaluator with the same operands and the same roundings. */
typedef struct Drift {
  double ulp;    /* by how many units of f32's last place a number must have been wrong before it
                    was rounded; 0 where the stored number is the exact one correctly rounded   */
  double steps;  /* the largest distance from the correctly rounded number, in units of the last
                    place of the stored type                                                    */
  int64_t other; /* how many numbers differ from the evaluator's in any bit                     */
  int64_t n;     /* how many numbers were compared                                              */
} Drift;

/* What a target states of its code: how far each number may be off before it is rounded. */
typedef struct Bound {
  double ulp;  /* the largest bound, in the units of Drift.ulp                       */
  double used; /* the largest share of its bound that a number was off; at most 1 is
                  as stated                                                          */
} Bound;

/* Compares n numbers of `got`, which have type `dtype`, with those of `want`. Where both are NaN
 * there is no error. Units in the last place have the precision of `unit` and the range of `dtype`.
 */
Error error_of(const double *got, const double *want, int64_t n, DType dtype, DType unit);
/* `terms` may be NULL; else it holds the sum of the magnitudes of the terms of each number, since
 * the rounding errors of a sum in f32 are proportional to that. */
Drift drift_of(const double *got, const double *want, const double *terms, int64_t n, DType dtype);
/* The same for the bound of each number. */
Bound bound_of(const double *got, const double *want, const double *terms, const double *bound,
               int64_t n, DType dtype);
/* The distance of x from the interval that rounds to `got`, a number of `dtype`: 0 if `got` is x
 * correctly rounded, Inf if only one of them is NaN. */
double excess_of(double got, double x, DType dtype);
void error_add(Error *sum, const Error *one); /* the worst of both */
void drift_add(Drift *sum, const Drift *one);
void bound_add(Bound *sum, const Bound *one);

#endif
