/* Convolutions and matrix products of the fakes: plain loops over f32, whatever the operands' type;
 * each result is rounded once. */
#ifndef AMPCC_TESTS_FAKE_CONV_H
#define AMPCC_TESTS_FAKE_CONV_H

#include "runtime/convert.h"

#include <stddef.h>
#include <stdint.h>

typedef enum FakeForm { FAKE_FPROP, FAKE_DGRAD, FAKE_WGRAD } FakeForm;

/* x is [n,h,w,c], the filter [k,r,s,c], y [n,ho,wo,k]. */
typedef struct FakeConv {
  FakeForm form;
  AmprtDType type;                                        /* f32, f16 or bf16 */
  int64_t n, h, w, c, k, r, s, ho, wo, stride[2], pad[2]; /* pad: top, left */
} FakeConv;

/* The form says which of the three is made of the other two. */
void fake_conv(const FakeConv *conv, void *x, void *filter, void *y);

/* Sums of `rows` numbers, and of their squares, of each of the channels of y[rows][channels]. */
void fake_stats(const void *y, int64_t rows, int64_t channels, AmprtDType type, float *sum,
                float *squares);

#endif
