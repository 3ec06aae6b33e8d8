/* Helpers of generated kernels: where operands lie, how an iteration space is cut into chunks,
 * loads and stores of 16-bit floats. Pasted into every CPU program in front of its kernels, behind
 * args.h and half.h.
 *
 * Every result has the same bits on every machine, with every compiler and for every number of
 * threads: no product and sum become a fused multiply-add, and chunks depend on shapes alone. */
#ifndef AMP_PRELUDE_H
#define AMP_PRELUDE_H

#include "codegen/text/cpu/machine.h"
#include "codegen/text/common/args.h"
#include "codegen/text/common/half.h"

/* A block has up to AMP_WIDTH elements. Its buffers are a little longer, so that no two of them lie
 * exactly 4096 bytes apart: CPUs compare the lower bits of addresses first and would make a load
 * from one buffer wait for the store to the other. */
enum { AMP_WIDTH = 1024, AMP_BUFFER = AMP_WIDTH + 24, AMP_RUN = 32 };

/* ---- where operands lie ---- */

AMP_INLINE void *amp_at(const AmprtRun *run, const AmpRef *ref) {
  if (ref->where == AMP_CONST)
    return (void *)(uintptr_t)run->constant[ref->at];
  if (ref->where == AMP_NOWHERE)
    return NULL;
  return (ref->where == AMP_STATE ? run->state : run->arena) + ref->at;
}

/* Does the predicate `ref` allow the update? Without a predicate it always happens. */
AMP_INLINE int amp_go(const AmprtRun *run, const AmpRef *ref) {
  const uint8_t *go = (const uint8_t *)amp_at(run, ref);
  return !go || *go;
}

/* ---- iteration spaces ---- */

/* Some elements that a thread goes over, in blocks. */
typedef struct AmpChunk {
  int64_t group;         /* which sums per channel it leaves */
  int64_t start, end;    /* elements start..end-1, */
  int64_t blocks;        /* which are so many blocks */
  int32_t column, width; /* of its panel: the first channel, and how many elements */
  int32_t ends_short;    /* the last block has fewer elements than the others */
  const void *made;      /* behind a convolution: the results, as if all lay there */
} AmpChunk;

/* One panel of `count` elements from `start` on, where a block begins. */
AMP_INLINE AmpChunk amp_chunk_of(const AmpGrid *grid, int64_t start, int64_t count, int32_t panel) {
  AmpChunk at = {.start = start,
                 .end = start + count,
                 .blocks = (count + grid->stride - 1) / grid->stride,
                 .column = panel * grid->width,
                 .ends_short = count % grid->stride != 0};
  at.width = grid->stride - at.column < grid->width ? grid->stride - at.column : grid->width;
  return at;
}

AMP_INLINE AmpChunk amp_chunk(const AmpGrid *grid, int64_t chunk) {
  const int64_t group = chunk / grid->panels;
  const int64_t first = group * grid->blocks / grid->groups * grid->stride;
  const int64_t last = (group + 1) * grid->blocks / grid->groups * grid->stride;
  AmpChunk at = amp_chunk_of(grid, first, (last < grid->total ? last : grid->total) - first,
                             (int32_t)(chunk % grid->panels));
  at.group = group;
  return at;
}

/* How many elements the block at `start` has: the last block may be shorter. */
AMP_INLINE int amp_block(const AmpChunk *at, int64_t start) {
  int64_t left = at->end - start;
  return left < at->width ? (int)left : at->width;
}

/* Does a run end with block b? After a run its sums in float are added to the sums in double. A
 * last block that is shorter is a run of its own, as its places hold fewer elements. */
AMP_INLINE int amp_run_ends(const AmpChunk *at, int64_t b) {
  return b % AMP_RUN == AMP_RUN - 1 || b + 1 == at->blocks ||
         (b + 2 == at->blocks && at->ends_short);
}

/* A loop goes over chunks of its space in any order, and behind a convolution over its tiles. */
typedef void AmpLoopFn(const AmprtRun *run, const void *args, const AmpChunk *at);

typedef struct AmpLoop {
  const AmpGrid *grid;
  AmpLoopFn *on;
  const void *args;
} AmpLoop;

AMP_FN void amp_loop_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  const AmpLoop *loop = (const AmpLoop *)args;
  const AmpChunk at = amp_chunk(loop->grid, chunk);
  loop->on(run, loop->args, &at);
}

AMP_FN void amp_loop(const AmprtRun *run, const AmpGrid *grid, AmpLoopFn *on, const void *args) {
  const AmpLoop loop = {grid, on, args};
  amp_parallel(run, grid->groups * grid->panels, amp_loop_chunk, &loop);
}

/* ---- blocks of 16-bit floats ---- */

/* In all of these either dst or src is a local buffer, so the two never overlap. */
AMP_FN void amp_load_f32(float *restrict dst, const float *restrict src, int n) {
  __builtin_memcpy(dst, src, (size_t)n * sizeof *dst);
}
AMP_FN void amp_store_f32(float *restrict dst, const float *restrict src, int n) {
  __builtin_memcpy(dst, src, (size_t)n * sizeof *dst);
}

typedef float AmpF8 __attribute__((vector_size(32)));
typedef float AmpF4 __attribute__((vector_size(16)));
typedef int32_t AmpI8 __attribute__((vector_size(32)));
typedef uint32_t AmpU8 __attribute__((vector_size(32)));
typedef uint16_t AmpS8 __attribute__((vector_size(16)));

/* amp_widen8: eight words of 16 bits, each as one of 32 bits. amp_narrow8: the reverse, of words
 * below 2^16. Of __builtin_convertvector GCC 12 makes four and five instructions. Vectors of 32
 * bytes are passed by pointers, as a CPU without AVX cannot pass them in registers. */
AMP_INLINE void amp_widen8(AmpU8 *to, AmpS8 h) {
#if defined __AVX2__ && !defined __clang__
  typedef short AmpShorts __attribute__((vector_size(16)));
  *to = (AmpU8)__builtin_ia32_pmovzxwd256((AmpShorts)h);
#else
  *to = __builtin_convertvector(h, AmpU8);
#endif
}
AMP_INLINE AmpS8 amp_narrow8(const AmpU8 *u) {
#if defined __AVX2__ && !defined __clang__
  typedef int AmpInts __attribute__((vector_size(16)));
  const AmpInts low = (AmpInts)__builtin_shufflevector(*u, *u, 0, 1, 2, 3);
  const AmpInts high = (AmpInts)__builtin_shufflevector(*u, *u, 4, 5, 6, 7);
  return (AmpS8)__builtin_ia32_packusdw128(low, high);
#else
  return __builtin_convertvector(*u, AmpS8);
#endif
}

AMP_INLINE void amp_load8_bf16(float *dst, const uint16_t *src) {
  AmpS8 h;
  __builtin_memcpy(&h, src, sizeof h);
  AmpU8 u;
  amp_widen8(&u, h);
  u <<= 16;
  __builtin_memcpy(dst, &u, sizeof u);
}
AMP_FN void amp_load_bf16(float *restrict dst, const uint16_t *restrict src, int n) {
  int i = 0;
  for (; i + 8 <= n; i += 8)
    amp_load8_bf16(dst + i, src + i);
  for (; i < n; i++)
    dst[i] = amp_from_bf16(src[i]);
}
/* The bits of floats that bf16 can hold: their lower halves are zero. */
AMP_FN void amp_store_bf16(uint16_t *restrict dst, const float *restrict src, int n) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    AmpU8 u;
    __builtin_memcpy(&u, src + i, sizeof u);
    u >>= 16;
    AmpS8 h = amp_narrow8(&u);
    __builtin_memcpy(dst + i, &h, sizeof h);
  }
  for (; i < n; i++)
    dst[i] = (uint16_t)(amp_bits(src[i]) >> 16);
}
AMP_FN void amp_round_store_bf16(uint16_t *restrict dst, const float *restrict src, int n) {
  AMP_SIMD
  for (int i = 0; i < n; i++)
    dst[i] = amp_to_bf16(src[i]);
}

/* AMP_F16_STEP elements are converted at once, which a vector of floats is a multiple of. */
#ifdef __F16C__
typedef short AmpH8 __attribute__((vector_size(16)));
enum { AMP_F16_STEP = 8 };

AMP_INLINE void amp_load_few_f16(float *dst, const uint16_t *src) {
  AmpH8 h;
  __builtin_memcpy(&h, src, sizeof h);
  AmpF8 f = __builtin_ia32_vcvtph2ps256(h);
  __builtin_memcpy(dst, &f, sizeof f);
}
AMP_INLINE void amp_store_few_f16(uint16_t *dst, const float *src) {
  AmpF8 f;
  __builtin_memcpy(&f, src, sizeof f);
  AmpH8 h = (AmpH8)__builtin_ia32_vcvtps2ph256(f, 0);
  __builtin_memcpy(dst, &h, sizeof h);
}
#elif defined __aarch64__
typedef __fp16 AmpH4 __attribute__((vector_size(8)));
enum { AMP_F16_STEP = 4 };

AMP_INLINE void amp_load_few_f16(float *dst, const uint16_t *src) {
  AmpH4 h;
  __builtin_memcpy(&h, src, sizeof h);
  AmpF4 f = __builtin_convertvector(h, AmpF4);
  __builtin_memcpy(dst, &f, sizeof f);
}
/* Compilers would convert one element after the other. */
AMP_INLINE void amp_store_few_f16(uint16_t *dst, const float *src) {
  AmpF4 f;
  AmpH4 h;
  __builtin_memcpy(&f, src, sizeof f);
  __asm__("fcvtn %0.4h, %1.4s" : "=w"(h) : "w"(f));
  __builtin_memcpy(dst, &h, sizeof h);
}
#else
enum { AMP_F16_STEP = 1 };
AMP_INLINE void amp_load_few_f16(float *dst, const uint16_t *src) {
  *dst = amp_from_f16(*src);
}
AMP_INLINE void amp_store_few_f16(uint16_t *dst, const float *src) {
  *dst = amp_to_f16(*src);
}
#endif

AMP_FN void amp_load_f16(float *restrict dst, const uint16_t *restrict src, int n) {
  int i = 0;
  for (; i + AMP_F16_STEP <= n; i += AMP_F16_STEP)
    amp_load_few_f16(dst + i, src + i);
  for (; i < n; i++)
    dst[i] = amp_from_f16(src[i]);
}
AMP_FN void amp_store_f16(uint16_t *restrict dst, const float *restrict src, int n) {
  int i = 0;
  for (; i + AMP_F16_STEP <= n; i += AMP_F16_STEP)
    amp_store_few_f16(dst + i, src + i);
  for (; i < n; i++)
    dst[i] = amp_to_f16(src[i]);
}

/* Bytes of an element of a float tensor. */
AMP_INLINE int64_t amp_size(int dtype) {
  return dtype == AMPRT_F32 ? 4 : 2;
}

/* Elements first..first+n of a float tensor of any type, converted to `buf`; or in place, if they
 * are float already. */
AMP_FN const float *amp_read(int dtype, const void *base, int64_t first, int n, float *buf) {
  if (dtype == AMPRT_F32)
    return (const float *)base + first;
  if (dtype == AMPRT_F16)
    amp_load_f16(buf, (const uint16_t *)base + first, n);
  else
    amp_load_bf16(buf, (const uint16_t *)base + first, n);
  return buf;
}

AMP_FN void amp_write(int dtype, void *base, int64_t first, int n, const float *buf) {
  if (dtype == AMPRT_F32)
    amp_store_f32((float *)base + first, buf, n);
  else if (dtype == AMPRT_F16)
    amp_store_f16((uint16_t *)base + first, buf, n);
  else
    amp_round_store_bf16((uint16_t *)base + first, buf, n);
}

AMP_FN void amp_copy_some(int dtype, const void *base, int64_t at, int n, float *buf) {
  const float *v = amp_read(dtype, base, at, n, buf);
  if (v != buf)
    amp_load_f32(buf, v, n);
}

AMP_INLINE void amp_copy(void *dst, const void *src, int64_t bytes) {
  __builtin_memcpy(dst, src, (size_t)bytes);
}

/* The part of a vector over the channels that belongs to a panel, repeated for each row of a block.
 */
AMP_FN void amp_vector(float *buf, const AmpRef *ref, const void *base, const AmpGrid *grid,
                       const AmpChunk *at) {
  int have = grid->channels < at->width ? grid->channels : at->width;
  amp_copy_some(ref->dtype, base, at->column, have, buf);
  for (int n = have; n < at->width; n *= 2) /* as many again each time */
    __builtin_memcpy(buf + n, buf, (size_t)(at->width - n < n ? at->width - n : n) * sizeof *buf);
}

/* ---- broadcasts that are neither a scalar nor a vector over the last axis ---- */

AMP_FN int64_t amp_index(const AmpIndex *ix, int64_t element) {
  int64_t from = ix->first;
  for (int d = ix->rank - 1; d >= 0; d--) {
    from += element % ix->dim[d] * ix->stride[d];
    element /= ix->dim[d];
  }
  return from;
}

/* dst[0..n) becomes the operand's elements for elements first..first+n of the result, `size` bytes
 * each. */
AMP_FN void amp_gather(void *dst, const void *src, const AmpIndex *ix, int64_t first, int n,
                       int size) {
  unsigned char *to = (unsigned char *)dst;
  int64_t inner = ix->dim[ix->rank - 1], step = ix->stride[ix->rank - 1];
  for (int i = 0; i < n;) {
    const unsigned char *from = (const unsigned char *)src + amp_index(ix, first + i) * size;
    int64_t left = inner - (first + i) % inner;
    int run = left < n - i ? (int)left : n - i;
    if (step == 1)
      __builtin_memcpy(to + (int64_t)i * size, from, (size_t)run * (size_t)size);
    else
      for (int j = 0; j < run; j++)
        __builtin_memcpy(to + (int64_t)(i + j) * size, from + j * step * size, (size_t)size);
    i += run;
  }
}

/* ---- sums per channel ---- */

/* Sets the sums of a block's elements to 0. */
AMP_INLINE void amp_zero_sums(float *s, const AmpChunk *at) {
  __builtin_memset(s, 0, (size_t)at->width * sizeof *s);
}

/* The chunk's doubles of sum number `k`, zeroed in the columns of its panel, as are the sums s of a
 * block's elements. */
AMP_FN double *amp_sum_begin(double *part, int64_t k, const AmpGrid *grid, const AmpChunk *at,
                             float *s) {
  amp_zero_sums(s, at);
  double *sum = part + k * grid->channels;
  int n = grid->channels < at->width ? grid->channels : at->width;
  for (int c = 0; c < n; c++)
    sum[at->column + c] = 0;
  return sum;
}

/* Adds the sums s of a block's elements to the sums of their channels, and sets s to 0. Element i
 * belongs to channel (column + i) % C. */
AMP_FN void amp_sum_flush(double *restrict sum, float *restrict s, const AmpGrid *grid,
                          const AmpChunk *at, int n) {
  for (int i = 0; i < n;) {
    int c0 = (at->column + i) % grid->channels;
    int run = grid->channels - c0 < n - i ? grid->channels - c0 : n - i;
    AMP_SIMD
    for (int j = 0; j < run; j++) {
      sum[c0 + j] += (double)s[i + j];
      s[i + j] = 0;
    }
    i += run;
  }
}

/* Behind the first block of a chunk, of which s and q are x and x*x: takes its x, where finite, for
 * the k that is subtracted from then on, so that q does not lose digits where the mean is large. */
AMP_FN void amp_stats_begin(float *restrict k, float *restrict s, float *restrict q, int n) {
  AMP_SIMD
  for (int i = 0; i < n; i++) {
    const int finite = s[i] - s[i] == 0;
    k[i] = finite ? s[i] : 0;
    s[i] = finite ? 0 : s[i];
    q[i] = finite ? 0 : q[i];
  }
}

/* s and q are the sums of d = x - k and of d*d over the `count` blocks of a run; adds the sums of x
 * and of x*x that follow from them to those of the channels. */
AMP_FN void amp_stats_flush(double *restrict sum, double *restrict square, const float *restrict k,
                            float *restrict s, float *restrict q, const AmpGrid *grid,
                            const AmpChunk *at, int n, int64_t count) {
  for (int i = 0; i < n;) {
    int c0 = (at->column + i) % grid->channels;
    int run = grid->channels - c0 < n - i ? grid->channels - c0 : n - i;
    AMP_SIMD
    for (int j = 0; j < run; j++) {
      double shift = (double)k[i + j], d = (double)s[i + j], m = (double)count;
      sum[c0 + j] += d + m * shift;
      square[c0 + j] += (double)q[i + j] + 2 * shift * d + m * shift * shift;
      s[i + j] = q[i + j] = 0;
    }
    i += run;
  }
}

/* Adds the partial sums of all groups, n doubles each, to those of the first, in order. */
AMP_FN void amp_sum_groups(double *part, int64_t groups, int64_t n) {
  for (int64_t g = 1; g < groups; g++)
    for (int64_t i = 0; i < n; i++)
      part[i] += part[g * n + i];
}

#endif
