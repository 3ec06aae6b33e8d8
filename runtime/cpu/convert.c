/* f16 and bf16 to and from f32, eight at a time. Needs AVX2 and F16C, as every CPU program does. */
#include "runtime/cpu/plan.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,f16c")))
enum { PIECE = 4096 }; /* how many elements a thread gets at a time; a multiple of 8 */

static AVX2 __m128i bf16_of_f32(__m256 x) {
  __m256i bits = _mm256_castps_si256(x);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  /* rounding could make a NaN infinite, so its quiet bit is set instead */
  __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  up = _mm256_srli_epi32(_mm256_blendv_epi8(up, nan, is_nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(up), _mm256_extracti128_si256(up, 1));
}

static AVX2 __m128i f16_of_f32(__m256 x) {
  return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static AVX2 __m256 f32_of_bf16(__m128i x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

static AVX2 __m256 f32_of_f16(__m128i x) {
  return _mm256_cvtph_ps(x);
}

/* The two directions for one type. Whole vectors are converted in place, and the last elements,
 * fewer than eight, through a small buffer. */
#define CONVERT(type)                                                                              \
  static AVX2 void widen_piece_##type(float *to, const uint16_t *from, int64_t count) {            \
    int64_t i = 0;                                                                                 \
    for (; i + 8 <= count; i += 8)                                                                 \
      _mm256_storeu_ps(to + i, f32_of_##type(_mm_loadu_si128((const __m128i *)(from + i))));       \
    uint16_t rest[8] = {0};                                                                        \
    float wide[8];                                                                                 \
    for (int64_t j = i; j < count; j++)                                                            \
      rest[j - i] = from[j];                                                                       \
    _mm256_storeu_ps(wide, f32_of_##type(_mm_loadu_si128((const __m128i *)rest)));                 \
    for (int64_t j = i; j < count; j++)                                                            \
      to[j] = wide[j - i];                                                                         \
  }                                                                                                \
                                                                                                   \
  static AVX2 void round_piece_##type(uint16_t *to, const float *from, int64_t count) {            \
    int64_t i = 0;                                                                                 \
    for (; i + 8 <= count; i += 8)                                                                 \
      _mm_storeu_si128((__m128i *)(to + i), type##_of_f32(_mm256_loadu_ps(from + i)));             \
    float rest[8] = {0};                                                                           \
    uint16_t low[8];                                                                               \
    for (int64_t j = i; j < count; j++)                                                            \
      rest[j - i] = from[j];                                                                       \
    _mm_storeu_si128((__m128i *)low, type##_of_f32(_mm256_loadu_ps(rest)));                        \
    for (int64_t j = i; j < count; j++)                                                            \
      to[j] = low[j - i];                                                                          \
  }                                                                                                \
                                                                                                   \
  void dnn_widen_##type(float *to, const uint16_t *from, int64_t count) {                          \
    _Pragma("omp parallel for schedule(static)") for (int64_t i = 0; i < count; i += PIECE)        \
        widen_piece_##type(to + i, from + i, count - i < PIECE ? count - i : PIECE);               \
  }                                                                                                \
                                                                                                   \
  void dnn_round_##type(uint16_t *to, const float *from, int64_t count) {                          \
    _Pragma("omp parallel for schedule(static)") for (int64_t i = 0; i < count; i += PIECE)        \
        round_piece_##type(to + i, from + i, count - i < PIECE ? count - i : PIECE);               \
  }

CONVERT(f16)
CONVERT(bf16)
