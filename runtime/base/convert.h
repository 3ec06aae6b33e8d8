/* Element types: sizes, names and conversions. */
#ifndef AMPRT_CONVERT_H
#define AMPRT_CONVERT_H

#include "runtime/amprt.h"

#include <stdbool.h>
#include <stddef.h>

enum { AMPRT_N_DTYPES = AMPRT_BOOL + 1 };

size_t amprt_dtype_size(AmprtDType dtype);
const char *amprt_dtype_name(AmprtDType dtype); /* as in safetensors: "F32" */
bool amprt_dtype_find(const char *name, AmprtDType *out);
bool amprt_dtype_is_float(AmprtDType dtype);

uint16_t amprt_f16_of(float x);  /* rounds to nearest even; overflow gives Inf, NaN stays NaN */
uint16_t amprt_bf16_of(float x); /* likewise */
float amprt_f16_to(uint16_t h);
float amprt_bf16_to(uint16_t h);

/* One element as a double; of an I64 only 53 bits are exact. */
double amprt_scalar(AmprtDType dtype, const void *at);

/* A number for printing: NaN loses its sign, which has no meaning and depends on the processor. */
double amprt_shown(double x);

/* Convert n elements between any type and f32. Pointers need no alignment. f32 to integers
 * truncates. */
void amprt_to_f32(AmprtDType from, const void *src, float *dst, size_t n);
void amprt_from_f32(AmprtDType to, const float *src, void *dst, size_t n);

#endif
