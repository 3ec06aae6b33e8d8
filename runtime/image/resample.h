/* Resampling of one view, row by row as a decoder makes them: vertical sums first, which the
 * compiler's vectors compute, then horizontal ones for the pixels of the result alone. All sums are
 * of floats and in a fixed order (built without contraction), rounded once, so every machine gets
 * the same bytes. */
#ifndef AMPRT_RESAMPLE_H
#define AMPRT_RESAMPLE_H

#include "runtime/image/axis.h"

typedef struct AmprtResample {
  AmprtAxis vertical, horizontal;
  int64_t lanes; /* bytes of a source pixel: 1, or 4, of which the last means nothing */
  bool reversed; /* the result is blue, green, red */
  unsigned char *out;
  int64_t at, width;   /* the first pixel and the number of pixels in a source row */
  int64_t done;        /* rows of the result */
  size_t stride;       /* of a row in `rows` */
  unsigned char *rows; /* the last `vertical.taps` rows; row y is in place y % taps */
  float *sum;          /* of one row's columns */
  float *fourfold;     /* the horizontal weights, each four times, for the lanes of a pixel */
  size_t room[3];      /* bytes of rows, sum and fourfold */
} AmprtResample;

/* After both axes, `lanes`, `reversed` and `out` are set: the source rows to come are
 * vertical.low .. vertical.high - 1, and of each the pixels at .. at + width - 1, which hold
 * horizontal.low .. horizontal.high - 1. */
AmprtStatus amprt_resample_begin(AmprtResample *resample, int64_t at, int64_t width,
                                 AmprtError *error);
/* Where row y belongs: width * lanes bytes. */
unsigned char *amprt_resample_place(AmprtResample *resample, int64_t y);
/* Row y is there; makes the rows of the result that it completes. */
void amprt_resample_row(AmprtResample *resample, int64_t y);
void amprt_resample_free(AmprtResample *resample);

#endif
