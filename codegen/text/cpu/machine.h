/* How the C compiler of CPU programs is told to inline and to vectorise, and how loops use threads.
 * No system header is included, as immintrin.h alone would take half a second to compile. */
#ifndef AMP_MACHINE_H
#define AMP_MACHINE_H

#include "amprt.h"

/* For functions that work on whole blocks or are called rarely: inlining them would cost the
 * compiler time and gain nothing. */
#ifdef __clang__
#define AMP_FN static __attribute__((noinline, unused))
#else
#define AMP_FN static __attribute__((noinline, noclone, unused))
#endif
/* For functions that hardly ever run, which are compiled to be small. */
#define AMP_RARELY AMP_FN __attribute__((cold))
#define AMP_INLINE static inline __attribute__((always_inline, unused))
#define AMP_STR(x) #x
/* Begins the definition of a kernel that is the same in all programs. In an object of such kernels
 * (conv_calls.h) its name has that of the object in front, as a program may have several. */
#ifdef AMPCC_KERNELS
#define AMP_JOIN(object, name)    object##_##name
#define AMP_NAME_IN(object, name) AMP_JOIN(object, name)
#define AMP_LIBRARY_FN(name)      void AMP_NAME_IN(AMPCC_KERNELS, name)
#else
#define AMP_LIBRARY_FN(name) AMP_FN void name
#endif
/* For loops whose iterations touch distinct elements. An output may have the place of an
 * operand. */
#define AMP_SIMD _Pragma("omp simd")

/* Calls chunk(run, args, i) for each i below n, on all threads. Chunks share no output, so the
 * results do not depend on the threads. */
AMP_INLINE void amp_parallel(const AmprtRun *run, int64_t n, AmprtChunk *chunk, const void *args) {
  run->threads->loop(n, chunk, run, args);
}

/* Defines the kernel `name`, whose args, of type Args, say of how many chunks it consists;
 * name_chunk computes one. */
#define AMP_OF_CHUNKS(Args, name)                                                                  \
  AMP_LIBRARY_FN(name)(const AmprtRun *run, const void *args) {                                    \
    amp_parallel(run, ((const Args *)args)->chunks, name##_chunk, args);                           \
  }

double exp(double);
double log(double);
double cos(double);
double sqrt(double);
double floor(double);
double pow(double, double);
float sqrtf(float);

AMP_INLINE double amp_cos_pi(double x) {
  return cos(3.14159265358979323846 * x);
}

AMP_INLINE uint32_t amp_bits(float x) {
  uint32_t u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
}

AMP_INLINE float amp_float(uint32_t u) {
  float x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
}

#endif
