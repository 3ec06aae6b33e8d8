/* The matrix registers of AMX, of which each holds up to 16 rows of 16 elements: floats, or pairs
 * of bf16 that lie side by side. Code that was compiled for a CPU that multiplies bf16 uses them
 * where the CPU has them, which amp_open finds out. With AMP_AMX_IN_C the same code uses C in place
 * of the instructions, for tests on CPUs without them. Registers 0 to 3 hold sums, 4 and 5 operands
 * a, 6 and 7 operands b. */
#ifndef AMP_AMX_H
#define AMP_AMX_H

#include "codegen/text/cpu/lanes.h"

/* Are operands of bf16 multiplied in pairs? Not where `else_faster` says that something else is
 * faster, unless this process may use AMX; and not on CPUs where f32 is faster than pairs. Code for
 * one of some levels, which runs only where pairs are faster, is compiled with AMPCC_PAIRS_PAY. */
#ifdef __AVX512BF16__
extern int amp_amx, amp_pairs;
AMP_INLINE int amp_takes_pairs(int else_faster) {
#ifdef AMPCC_PAIRS_PAY
  return amp_amx || !else_faster;
#else
  return amp_amx || (amp_pairs && !else_faster);
#endif
}
#else
AMP_INLINE int amp_takes_pairs(int else_faster) {
  (void)else_faster;
  return 0;
}
#endif

#ifdef __AVX512BF16__

enum { AMP_AMX_ROWS = 16, AMP_AMX_SUMS = 4 }; /* rows of a register; registers for sums */

/* What LDTILECFG reads: how large the registers are. */
typedef struct AmpAmxShape {
  uint8_t palette, start_row, none[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} AmpAmxShape;

/* Registers for products of matrices: a has m rows of k pairs of bf16, b has k rows of 16 pairs,
 * and the sums have m rows of 16 floats. */
#define AMP_AMX_MATRICES(m, k)                                                                     \
  {                                                                                                \
    .palette = 1, .row_bytes = {64, 64, 64, 64, 4 * (k), 4 * (k), 64, 64}, .rows = {               \
      m,                                                                                           \
      m,                                                                                           \
      m,                                                                                           \
      m,                                                                                           \
      m,                                                                                           \
      m,                                                                                           \
      k,                                                                                           \
      k                                                                                            \
    }                                                                                              \
  }

#define AMP_AMX_FN AMP_FN __attribute__((target("amx-tile,amx-bf16")))

#ifndef AMP_AMX_IN_C
#define AMP_AMX_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::: "memory")
#define AMP_AMX_AT(what, at, bytes)                                                                \
  __asm__ volatile(what ::"r"(at), "r"((int64_t)(bytes)) : "memory")
#define AMP_AMX_LOAD(t, at, bytes)  AMP_AMX_AT("tileloadd (%0,%1,1), %%tmm" #t, at, bytes)
#define AMP_AMX_STORE(t, at, bytes) AMP_AMX_AT("tilestored %%tmm" #t ", (%0,%1,1)", at, bytes)
/* sums s += a * b, over the pairs of a row of a and the rows of b */
#define AMP_AMX_DOT(s, a, b)                                                                       \
  __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #s ::: "memory")
#define AMP_AMX_SHAPE(shape) __asm__ volatile("ldtilecfg %0" ::"m"(*(shape)) : "memory")
#define AMP_AMX_END()        __asm__ volatile("tilerelease" ::: "memory")
#else

typedef struct AmpAmxInC {
  AmpAmxShape shape;
  uint32_t register_[8][AMP_AMX_ROWS][AMP_AMX_ROWS];
} AmpAmxInC;
static _Thread_local AmpAmxInC amp_amx_in_c;

AMP_FN void amp_amx_move(int t, unsigned char *at, int64_t bytes, int load) {
  AmpAmxInC *amx = &amp_amx_in_c;
  for (int i = 0; i < amx->shape.rows[t]; i++, at += bytes) {
    unsigned char *row = (unsigned char *)amx->register_[t][i];
    __builtin_memcpy(load ? row : at, load ? at : row, amx->shape.row_bytes[t]);
  }
}

AMP_INLINE float amp_amx_flushed(float x) {
  return amp_float((amp_bits(x) & 0x7f800000) ? amp_bits(x) : amp_bits(x) & 0x80000000);
}

/* What TDPBF16PS computes: for each sum, the products of the first elements of pairs are added up
 * by fused multiply-adds, and those of the second elements likewise but apart; then both sums are
 * added and the result is added to the register. What lies below 2^-126, operands and results
 * alike, is 0. */
AMP_FN void amp_amx_dot(int s, int a, int b) {
  AmpAmxInC *amx = &amp_amx_in_c;
  const int columns = amx->shape.row_bytes[s] / 4, pairs = amx->shape.row_bytes[a] / 4;
  for (int i = 0; i < amx->shape.rows[s]; i++) {
    float sum[2][AMP_AMX_ROWS] = {{0}};
    for (int k = 0; k < pairs; k++)
      for (int half = 0; half < 2; half++) {
        const uint32_t u = amx->register_[a][i][k], *v = amx->register_[b][k];
        const float x = amp_amx_flushed(amp_float(half ? u & 0xffff0000 : u << 16));
        for (int j = 0; j < columns; j++) {
          const float y = amp_amx_flushed(amp_float(half ? v[j] & 0xffff0000 : v[j] << 16));
          sum[half][j] = amp_amx_flushed(__builtin_fmaf(x, y, sum[half][j]));
        }
      }
    for (int j = 0; j < columns; j++) {
      uint32_t *to = &amx->register_[s][i][j];
      *to = amp_bits(amp_amx_flushed(amp_amx_flushed(amp_float(*to)) +
                                     amp_amx_flushed(sum[0][j] + sum[1][j])));
    }
  }
}

#define AMP_AMX_ZERO(t)                                                                            \
  __builtin_memset(amp_amx_in_c.register_[t], 0, sizeof amp_amx_in_c.register_[t])
#define AMP_AMX_LOAD(t, at, bytes)  amp_amx_move(t, (unsigned char *)(uintptr_t)(at), bytes, 1)
#define AMP_AMX_STORE(t, at, bytes) amp_amx_move(t, (unsigned char *)(at), bytes, 0)
#define AMP_AMX_DOT(s, a, b)        amp_amx_dot(s, a, b)
#define AMP_AMX_SHAPE(shape_)       (amp_amx_in_c.shape = *(shape_))
#define AMP_AMX_END()               __builtin_memset(&amp_amx_in_c.shape, 0, sizeof(AmpAmxShape))
#endif

/* Sets all sums to 0. */
#define AMP_AMX_CLEAR()                                                                            \
  do {                                                                                             \
    AMP_AMX_ZERO(0);                                                                               \
    AMP_AMX_ZERO(1);                                                                               \
    AMP_AMX_ZERO(2);                                                                               \
    AMP_AMX_ZERO(3);                                                                               \
  } while (0)

/* The shape that this thread has set. It is remembered because to set a shape takes as long as many
 * products. */
static _Thread_local const AmpAmxShape *amp_amx_shape;

AMP_INLINE void amp_amx_use(const AmpAmxShape *shape) {
  if (amp_amx_shape != shape)
    AMP_AMX_SHAPE(shape);
  amp_amx_shape = shape;
}

/* Releases the registers, at the end of a chunk. While they are in use, the system has to save what
 * they hold whenever it switches threads. */
AMP_AMX_FN void amp_amx_leave(void) {
  if (amp_amx_shape)
    AMP_AMX_END();
  amp_amx_shape = NULL;
}

#else
AMP_INLINE void amp_amx_leave(void) {}
#endif

#endif
