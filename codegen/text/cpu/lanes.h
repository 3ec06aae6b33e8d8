/* The widest vector of floats that the CPU of this text has, and what the kernels of convolutions
 * do with it. A product and the sum it is added to are rounded once where the CPU can do that,
 * which all with AVX2 can: their sums have the same bits at every width. */
#ifndef AMP_LANES_H
#define AMP_LANES_H

#include "codegen/text/cpu/prelude.h"

#if defined __AVX512F__
enum { AMP_WIDE = 16 }; /* floats of a vector */
typedef float AmpV __attribute__((vector_size(64)));
typedef float AmpVLoose __attribute__((vector_size(64), aligned(4), may_alias));
#elif defined __AVX__
enum { AMP_WIDE = 8 };
typedef float AmpV __attribute__((vector_size(32)));
typedef float AmpVLoose __attribute__((vector_size(32), aligned(4), may_alias));
#elif defined __ARM_FEATURE_SVE_BITS && __ARM_FEATURE_SVE_BITS >= 256
enum { AMP_WIDE = 8 };
typedef float AmpV __attribute__((vector_size(32)));
typedef float AmpVLoose __attribute__((vector_size(32), aligned(4), may_alias));
#else
enum { AMP_WIDE = 4 };
typedef float AmpV __attribute__((vector_size(16)));
typedef float AmpVLoose __attribute__((vector_size(16), aligned(4), may_alias));
#endif

typedef int32_t AmpVBits __attribute__((vector_size(4 * AMP_WIDE)));
typedef uint32_t AmpVWords __attribute__((vector_size(4 * AMP_WIDE)));
typedef uint16_t AmpVHalves __attribute__((vector_size(2 * AMP_WIDE)));
typedef int16_t AmpVShorts
    __attribute__((vector_size(2 * AMP_WIDE))); /* f16, as compilers declare it */

/* AMP_UNROLL: for loops over the vectors of a register tile. All n iterations are written out, so
 * that each element of an array of vectors becomes a register. AMP_UNROLL_BY: n at a time. */
#ifdef __clang__
#define AMP_UNROLL(n)    _Pragma("clang loop unroll(full)")
#define AMP_UNROLL_BY(n) _Pragma(AMP_STR(clang loop unroll_count(n)))
#else
#define AMP_UNROLL(n)    _Pragma(AMP_STR(GCC unroll n))
#define AMP_UNROLL_BY(n) _Pragma(AMP_STR(GCC unroll n))
#endif
/* How far to unroll the loop around those, whose counter and pointers would otherwise be one
 * instruction in eight. Vectors of 512 bits come with more registers, so with larger tiles. */
#ifdef __AVX512F__
#define AMP_UNROLL_FACTOR 2
#else
#define AMP_UNROLL_FACTOR 4
#endif

/* Makes the compiler forget how two pointers came about. Clang would give each of the places at
 * fixed distances from them a pointer of its own, more than there are registers. */
#define AMP_FORGET(p, q) __asm__("" : "+r"(p), "+r"(q))

/* Keeps a vector in a register. GCC would otherwise read one that was loaded again for each product
 * that takes it, as an instruction can multiply with memory. */
#if defined __x86_64__
#define AMP_PIN(v) __asm__("" : "+v"(v))
#elif defined __aarch64__
#define AMP_PIN(v) __asm__("" : "+w"(v))
#else
#define AMP_PIN(v) ((void)(v))
#endif

/* An element of a vector, whatever it is in memory. */
typedef float AmpElement __attribute__((may_alias));

AMP_INLINE AmpV amp_v_load(const float *from) {
  return *(const AmpVLoose *)from;
}
AMP_INLINE void amp_v_store(float *to, AmpV v) {
  *(AmpVLoose *)to = v;
}

/* amp_v_from_halves: words of 16 bits, each as one of 32 bits. amp_v_to_halves: the reverse, of
 * words below 2^16. */
#if defined __AVX512F__ && !defined __clang__
AMP_INLINE AmpVWords amp_v_from_halves(AmpVHalves h) {
  return (AmpVWords)__builtin_ia32_pmovzxwd512_mask((AmpVShorts)h, (AmpVBits){0},
                                                    (unsigned short)-1);
}
AMP_INLINE AmpVHalves amp_v_to_halves(AmpVWords w) {
  return (AmpVHalves)__builtin_ia32_pmovdw512_mask((AmpVBits)w, (AmpVShorts){0},
                                                   (unsigned short)-1);
}
#elif defined __AVX2__ && !defined __AVX512F__
AMP_INLINE AmpVWords amp_v_from_halves(AmpVHalves h) {
  AmpVWords w;
  amp_widen8(&w, h);
  return w;
}
AMP_INLINE AmpVHalves amp_v_to_halves(AmpVWords w) {
  return amp_narrow8(&w);
}
#else
AMP_INLINE AmpVWords amp_v_from_halves(AmpVHalves h) {
  return __builtin_convertvector(h, AmpVWords);
}
AMP_INLINE AmpVHalves amp_v_to_halves(AmpVWords w) {
  return __builtin_convertvector(w, AmpVHalves);
}
#endif

/* Calls f with a type of floats that the compiler knows, and with further arguments, so that its
 * loops do not ask for the type. */
#define AMP_WITH_TYPE(dtype, f, ...)                                                               \
  ((dtype) == AMPRT_F32   ? f(AMPRT_F32, __VA_ARGS__)                                              \
   : (dtype) == AMPRT_F16 ? f(AMPRT_F16, __VA_ARGS__)                                              \
                          : f(AMPRT_BF16, __VA_ARGS__))

/* The elements of a float tensor of any type from `at` on. */
AMP_INLINE AmpV amp_v_read(int dtype, const void *base, int64_t at) {
  const uint16_t *half = (const uint16_t *)base + at;
  if (dtype == AMPRT_F32)
    return amp_v_load((const float *)base + at);
  if (dtype == AMPRT_BF16) {
    AmpVHalves h;
    __builtin_memcpy(&h, half, sizeof h);
    return (AmpV)(amp_v_from_halves(h) << 16);
  }
#if defined __AVX512F__
  AmpVHalves h;
  __builtin_memcpy(&h, half, sizeof h);
  return __builtin_ia32_vcvtph2ps512_mask((AmpVShorts)h, (AmpV){0}, (unsigned short)-1, 4);
#else
  float f[AMP_WIDE];
  AMP_UNROLL(4)
  for (int i = 0; i < AMP_WIDE; i += AMP_F16_STEP)
    amp_load_few_f16(f + i, half + i);
  return amp_v_load(f);
#endif
}

/* The same of n elements; the others of the vector are 0. */
AMP_INLINE AmpV amp_v_read_some(int dtype, const void *base, int64_t at, int64_t n) {
  if (n >= AMP_WIDE)
    return amp_v_read(dtype, base, at);
  float buf[AMP_WIDE] = {0};
  amp_copy_some(dtype, base, at, (int)n, buf);
  return amp_v_load(buf);
}

/* All bits of the elements that are Inf or NaN. */
AMP_INLINE AmpVBits amp_v_wild(AmpV v) {
  return ((AmpVBits)v & 0x7f800000) == 0x7f800000;
}

/* Of integers, with all bits of `take` set or none: `yes` where they are set, else `no`. */
#define AMP_SELECT(take, yes, no) (((take) & (yes)) | (~(take) & (no)))

/* Stores v as 16-bit floats, rounded as amp_round_f16 and amp_round_bf16 do. */
AMP_INLINE void amp_v_round_f16(uint16_t *to, AmpV v) {
#if defined __AVX512F__
  const AmpVShorts h = __builtin_ia32_vcvtps2ph512_mask(v, 0, (AmpVShorts){0}, (unsigned short)-1);
  __builtin_memcpy(to, &h, sizeof h);
#else
  float f[AMP_WIDE];
  amp_v_store(f, v);
  AMP_UNROLL(4)
  for (int i = 0; i < AMP_WIDE; i += AMP_F16_STEP)
    amp_store_few_f16(to + i, f + i);
#endif
}
AMP_INLINE void amp_v_round_bf16(uint16_t *to, AmpV v) {
  const AmpVWords u = (AmpVWords)v, is_nan = (AmpVWords)(v != v);
  const AmpVWords rounded = u + 0x7fffu + (u >> 16 & 1u);
  const AmpVWords bits = AMP_SELECT(is_nan, u | 0x400000u, rounded);
  const AmpVHalves h = amp_v_to_halves(bits >> 16);
  __builtin_memcpy(to, &h, sizeof h);
}
AMP_INLINE void amp_v_round(int dtype, uint16_t *to, AmpV v) {
  if (dtype == AMPRT_F16)
    amp_v_round_f16(to, v);
  else
    amp_v_round_bf16(to, v);
}

/* x in every element */
AMP_INLINE AmpV amp_v_all(float x) {
#if defined __AVX512F__
  return (AmpV){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#elif defined __AVX__
  return (AmpV){x, x, x, x, x, x, x, x};
#else
  AmpV v;
  for (int i = 0; i < AMP_WIDE; i++)
    v[i] = x;
  return v;
#endif
}

/* Is any bit set? */
AMP_INLINE int amp_v_any(AmpVBits v) {
  int32_t any = 0;
  for (int i = 0; i < AMP_WIDE; i++)
    any |= v[i];
  return any != 0;
}

/* a * b + c */
AMP_INLINE AmpV amp_v_fma(AmpV a, AmpV b, AmpV c) {
#if defined __AVX512F__
  return __builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)-1, 4);
#elif defined __FMA__ && defined __AVX__
  return __builtin_ia32_vfmaddps256(a, b, c);
#elif defined __FP_FAST_FMAF || defined __aarch64__
  for (int i = 0; i < AMP_WIDE; i++)
    c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#else
  return a * b + c;
#endif
}

/* Where the CPU multiplies bf16, two of them that lie side by side are one element of a vector, and
 * a float in C. The sums are f32. Each instruction adds one product after the other, rounds twice,
 * and takes and gives 0 in place of what lies below 2^-126. */
#ifdef __AVX512BF16__
enum { AMP_PAIRS = 1 };
#ifdef __clang__
#define AMP_V_DOT    __builtin_ia32_dpbf16ps_512
#define AMP_V_NARROW __builtin_ia32_cvtne2ps2bf16_512
#elif __GNUC__ < 13
#define AMP_V_DOT    __builtin_ia32_dpbf16ps_v16sf
#define AMP_V_NARROW __builtin_ia32_cvtne2ps2bf16_v32hi
#else
#define AMP_V_DOT    __builtin_ia32_dpbf16ps_v16sf
#define AMP_V_NARROW __builtin_ia32_cvtne2ps2bf16_v32bf
#endif
#if defined __clang__ && __clang_major__ < 16
typedef int AmpVPairs __attribute__((vector_size(64)));
#elif !defined __clang__ && __GNUC__ < 13
typedef short AmpVPairs __attribute__((vector_size(64)));
#else
typedef __bf16 AmpVPairs __attribute__((vector_size(64)));
#endif

/* The products of pairs a and b, and c */
AMP_INLINE AmpV amp_v_dot(AmpV a, AmpV b, AmpV c) {
  return AMP_V_DOT(c, (AmpVPairs)a, (AmpVPairs)b);
}

/* Stores vectors of such sums, one or two, as bf16. */
AMP_INLINE void amp_v_store_bf16(uint16_t *to, const AmpV *sum, int vectors) {
  const AmpV v = (AmpV)AMP_V_NARROW(sum[vectors - 1], sum[0]);
  if (vectors == 2)
    __builtin_memcpy(to, &v, sizeof v);
  else
    __builtin_memcpy(to, &v, sizeof v / 2);
}
#else
enum { AMP_PAIRS = 0 };
#endif

#endif
