/* Convolutions of the fakes: plain loops over f32, whatever the type in memory. */
#ifndef AMPCC_TESTS_FAKE_CONV_H
#define AMPCC_TESTS_FAKE_CONV_H

#include <stdint.h>

typedef enum FakeForm { FAKE_FPROP, FAKE_DGRAD, FAKE_WGRAD } FakeForm;

/* x is [n,h,w,c], the filter [k,r,s,c/groups], y [n,ho,wo,k]. */
typedef struct FakeConv {
  FakeForm form;
  int64_t n, h, w, c, k, r, s, groups, ho, wo, stride[2], pad[2]; /* pad: top, left */
} FakeConv;

/* The form says which of the three is computed from the other two. */
void fake_conv(const FakeConv *conv, float *x, float *filter, float *y);

#endif
