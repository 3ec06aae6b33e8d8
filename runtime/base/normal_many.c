/* The numbers are defined by amprt_rng_normal, which calls the C library's log, sin and cos for one
 * number at a time. Here the same formulas are computed for LANES blocks at a time, with
 * polynomials whose error is known, and where that error could change the float that results, the
 * block is computed once more by the library. So the bits are those of the library.
 *
 * This text is compiled once for each width of vectors. Each operation has the one result that
 * IEEE 754 prescribes, so all widths give the same bits. */
#include "runtime/base/normal_many.h"

#include "runtime/base/normal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* ---- vectors ---- */

typedef double Reals __attribute__((vector_size(8 * LANES)));
typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef uint64_t Words __attribute__((vector_size(8 * LANES))); /* of 32 bits each */
typedef uint32_t Numbers __attribute__((vector_size(4 * LANES)));

static inline Words both(uint64_t x) {
  return x - (Words){0};
}
static inline Reals all(double x) {
  return x - (Reals){0};
}
static inline Reals choose(Words mask, Reals yes, Reals no) {
  return (Reals)((mask & (Words)yes) | (~mask & (Words)no));
}

/* The products of numbers below 2^32. */
static inline Words product(Words a, Words b) {
#if LANES == 8
  return (Words)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif LANES == 4
  return (Words)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined __SSE2__
  return (Words)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return a * b;
#endif
}

static inline Reals root_of(Reals x) {
#if LANES == 8
  return (Reals)_mm512_sqrt_pd((__m512d)x);
#elif LANES == 4
  return (Reals)_mm256_sqrt_pd((__m256d)x);
#else
  return (Reals){sqrt(x[0]), sqrt(x[1])};
#endif
}

/* A whole number below 2^52 as a double: in the lower bits of 2^52 + x. */
static inline Reals real_of(Words x) {
  return (Reals)(x | both(0x4330000000000000)) - all(0x1p52);
}

/* amprt_philox for a vector of counters. */
static inline void philox(Words c[4], AmprtKey key) {
  const Words low = both(0xffffffff);
  for (int round = 0; round < 10; round++) {
    Words p0 = product(both(0xD2511F53), c[0]), p1 = product(both(0xCD9E8D57), c[2]);
    Words c0 = (p1 >> 32) ^ c[1] ^ both(key.v[0]), c2 = (p0 >> 32) ^ c[3] ^ both(key.v[1]);
    c[0] = c0;
    c[1] = p1 & low;
    c[2] = c2;
    c[3] = p0 & low;
    key.v[0] += 0x9E3779B9u;
    key.v[1] += 0xBB67AE85u;
  }
}

/* In (0, 1), as amprt_rng_unit. */
static inline Reals unit_of(Words word) {
  return (real_of(word) + all(0.5)) * all(0x1p-32);
}

/* The natural logarithm of a number in (2^-34, 1), by the polynomial of fdlibm's e_log.c; its
 * relative error is below 2^-52. */
static inline Reals log_of(Reals u) {
  enum { BIAS = 64 };
  const uint64_t root_half = 0x3fe6a09e667f3bcd; /* so that m is in [sqrt(1/2), sqrt(2)) */
  Words bits = (Words)u, shifted = bits - both(root_half - ((uint64_t)BIAS << 52));
  Words exponent = shifted >> 52;
  Reals m = (Reals)(bits - (exponent << 52) + both((uint64_t)BIAS << 52));
  Reals k = real_of(exponent) - all(BIAS), f = m - all(1), s = f / (all(2) + f), z = s * s;
  Reals r = all(1.479819860511658591e-01);
  r = all(1.531383769920937332e-01) + z * r;
  r = all(1.818357216161805012e-01) + z * r;
  r = all(2.222219843214978396e-01) + z * r;
  r = all(2.857142874366239149e-01) + z * r;
  r = all(3.999999999940941908e-01) + z * r;
  r = all(6.666666666666735130e-01) + z * r;
  Reals half = all(0.5) * f * f;
  return k * all(6.93147180369123816490e-01) -
         ((half - (s * (half + z * r) + k * all(1.90821492927058770002e-10))) - f);
}

/* Sine and cosine of so many turns, in (0, 1), by the polynomials of fdlibm's k_sin.c and k_cos.c;
 * their error is below 2^-51. */
static inline void turn(Reals turns, Reals *sine, Reals *cosine) {
  Reals quarter = (all(4) * turns + all(0x1.8p52)) - all(0x1.8p52); /* the nearest, 0 to 4 */
  Reals x = (turns - all(0.25) * quarter) * all(6.283185307179586), z = x * x;
  Reals s = all(1.58969099521155010221e-10), c = all(-1.13596475577881948265e-11);
  s = all(-2.50507602534068634195e-08) + z * s;
  s = all(2.75573137070700676789e-06) + z * s;
  s = all(-1.98412698298579493134e-04) + z * s;
  s = all(8.33333333332248946124e-03) + z * s;
  s = all(-1.66666666666666324348e-01) + z * s;
  c = all(2.08757232129817482790e-09) + z * c;
  c = all(-2.75573143513906633035e-07) + z * c;
  c = all(2.48015872894767294178e-05) + z * c;
  c = all(-1.38888888888741095749e-03) + z * c;
  c = all(4.16666666666666019037e-02) + z * c;
  s = x + x * z * s;
  c = all(1) - all(0.5) * z + z * z * c;
  Words one = (Words)(quarter == all(1)), two = (Words)(quarter == all(2));
  Words three = (Words)(quarter == all(3)), sign = both(1ull << 63);
  Reals a = choose(one | three, c, s), b = choose(one | three, s, c);
  *sine = (Reals)((Words)a ^ ((two | three) & sign));
  *cosine = (Reals)((Words)b ^ ((one | two) & sign));
}

/* ---- many ---- */

enum { PIECE = 1024 }; /* blocks that are computed attempt by attempt */

typedef struct Piece {
  AmprtKey key;
  uint64_t first; /* its first block */
  double mean, stddev;
  float *out;
  size_t n; /* floats */
} Piece;

static void store_exactly(const Piece *p, uint32_t block) {
  double four[4] = {0};
  amprt_truncated_block(p->key, p->first + block, p->mean, p->stddev, four);
  for (size_t i = 0; i < 4 && 4 * block + i < p->n; i++)
    p->out[4 * block + i] = (float)four[i];
}

/* Numbers of up to GROUP blocks, LANES of which are a vector, and what is to be said of each. Every
 * step is a loop over all vectors, so that the processor has several of them in work. */
enum { VECTORS = 16, GROUP = LANES * VECTORS };
typedef struct Draw {
  Words word[4][VECTORS];
  Reals radius[2][VECTORS], z[4][VECTORS];
  float value[4][GROUP];
  Words far[VECTORS], unsure[VECTORS]; /* bits by number: beyond two deviations; its float may be
                                          wrong */
} Draw;

/* The blocks of which some numbers are still missing, and a bit for each of these. Whole groups are
 * read. */
typedef struct List {
  uint32_t block[PIECE]; /* of the piece */
  uint8_t missing[PIECE];
} List;

/* z is right but for a tenth of `error`, that of the library included, which sees an angle that was
 * rounded. */
static inline void judge(const Piece *p, Draw *draw, int i, int v) {
  const Words magnitude = both(~(1ull << 63)), bit = both(1ull << i);
  Reals z = draw->z[i][v], error = draw->radius[i / 2][v] * all(1e-14);
  Reals beyond = (Reals)((Words)z & magnitude) - all(2);
  Reals value = all(p->mean) + all(p->stddev) * z;
  Reals around = all(fabs(p->stddev)) * error + all(fabs(p->mean) * 1e-15);
  Floats below = __builtin_convertvector(value - around, Floats);
  Floats above = __builtin_convertvector(value + around, Floats);
  Reals stored = __builtin_convertvector(below, Reals);
  Words sure = (Words)(stored == __builtin_convertvector(above, Reals)) & (Words)(stored != all(0));
  Words near = (Words)((Reals)((Words)beyond & magnitude) <= error);
  memcpy(&draw->value[i][v * LANES], &below, sizeof below);
  draw->far[v] |= (Words)(beyond > all(0)) & bit;
  draw->unsure[v] |= (~sure | near) & bit;
}

static void draw_group(const Piece *p, const uint32_t *block, int vectors, uint64_t attempt,
                       Draw *draw) {
  for (int v = 0; v < vectors; v++) {
    Numbers number;
    memcpy(&number, block + v * LANES, sizeof number);
    Words at = both(p->first) + __builtin_convertvector(number, Words);
    Words c[4] = {at & both(0xffffffff), at >> 32, both(attempt & 0xffffffff), both(attempt >> 32)};
    philox(c, p->key);
    for (int i = 0; i < 4; i++)
      draw->word[i][v] = c[i];
    draw->far[v] = draw->unsure[v] = both(0);
  }
  for (int i = 0; i < 2; i++) {
    for (int v = 0; v < vectors; v++)
      draw->radius[i][v] = root_of(all(-2) * log_of(unit_of(draw->word[2 * i][v])));
    for (int v = 0; v < vectors; v++) {
      Reals sine, cosine, radius = draw->radius[i][v];
      turn(unit_of(draw->word[2 * i + 1][v]), &sine, &cosine);
      draw->z[2 * i][v] = radius * cosine;
      draw->z[2 * i + 1][v] = radius * sine;
    }
  }
  for (int i = 0; i < 4; i++)
    for (int v = 0; v < vectors; v++)
      judge(p, draw, i, v);
}

/* Stores those numbers of a block that were missing and are not too far. Returns those that are
 * still missing. */
static inline int store_block(const Piece *p, uint32_t block, int missing, const Draw *draw,
                              int k) {
  int far = (int)draw->far[k / LANES][k % LANES], unsure = (int)draw->unsure[k / LANES][k % LANES];
  float *out = p->out + 4 * (size_t)block;
  size_t n = p->n - 4 * (size_t)block;
  if (missing & unsure) {
    store_exactly(p, block);
    return 0;
  }
  if (missing == 0xf && n >= 4) /* those that are too far are replaced later */
    for (int i = 0; i < 4; i++)
      out[i] = draw->value[i][k];
  else
    for (unsigned left = (unsigned)missing; left; left &= left - 1) {
      size_t i = (size_t)__builtin_ctz(left);
      if (i < n)
        out[i] = draw->value[i][k];
    }
  return missing & far;
}

/* Draws for the n blocks of the list, and keeps in it those of which numbers are still missing. */
static int draw_list(const Piece *p, List *list, int n, uint64_t attempt) {
  int kept = 0;
  for (int i = 0; i < n; i += GROUP) {
    int some = n - i < GROUP ? n - i : GROUP;
    Draw draw;
    draw_group(p, list->block + i, (some + LANES - 1) / LANES, attempt, &draw);
    for (int k = 0; k < some; k++) {
      uint32_t block = list->block[i + k];
      int missing = store_block(p, block, list->missing[i + k], &draw, k);
      list->block[kept] = block;
      list->missing[kept] = (uint8_t)missing;
      kept += missing != 0;
    }
  }
  return kept;
}

#define NAME_OF(lanes) amprt_normals_##lanes
#define NAME(lanes)    NAME_OF(lanes)

void NAME(LANES)(AmprtKey key, uint64_t first, double mean, double stddev, float *out, size_t n) {
  List list;
  for (size_t at = 0; at < n; at += 4 * PIECE) {
    Piece p = {key,    (first + at) / 4, mean,
               stddev, out + at,         n - at < 4 * PIECE ? n - at : 4 * PIECE};
    int blocks = (int)((p.n + 3) / 4);
    for (int i = 0; i < PIECE; i++)
      list.block[i] = (uint32_t)i;
    memset(list.missing, 0xf, sizeof list.missing);
    for (uint64_t attempt = 0; blocks; attempt++)
      blocks = draw_list(&p, &list, blocks, attempt);
  }
}
