/* Every kind, method, chunk and type of library kernel against plain loops in double precision, on
 * awkward shapes. Guard words around arena and workspace must survive. */
#include "runtime/cpu/dnn_rt.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENTS = 1 << 16, GUARD = 256 };

static unsigned long long seed = 1;

static double random_value(void) {
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (double)(seed >> 40) / (1 << 23) - 1;
}

/* Conversions of 16-bit floats, written to be obviously right. To round a double, it is first
 * rounded to f32. This gives the same result here, since the inputs of the tests are 16-bit
 * values. */
static float widen(uint16_t low, int dtype) {
  if (dtype == AMPRT_BF16) {
    uint32_t bits = (uint32_t)low << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
  }
  int sign = low >> 15, exponent = low >> 10 & 31, fraction = low & 1023;
  double f = exponent == 31 ? (fraction ? NAN : INFINITY)
             : exponent     ? ldexp(1024 + fraction, exponent - 25)
                            : ldexp(fraction, -24);
  return (float)(sign ? -f : f);
}

/* Searches through all values, which is slow but obviously right. */
static uint16_t nearest(double x, int dtype) {
  uint16_t best = 0;
  double error = INFINITY;
  uint16_t top = dtype == AMPRT_BF16 ? 0x7f80 : 0x7c00;
  int low = 0, high = top - 1;
  while (low < high) { /* becomes the largest finite value up to |x| */
    int mid = (low + high + 1) / 2;
    if (widen((uint16_t)mid, dtype) <= fabs(x))
      low = mid;
    else
      high = mid - 1;
  }
  for (int i = low; i <= low + 1 && i < top; i++) {
    double e = fabs(widen((uint16_t)i, dtype) - fabs(x));
    if (e < error || (e == error && i % 2 == 0))
      best = (uint16_t)i, error = e;
  }
  return x < 0 ? best | 0x8000 : best;
}

typedef struct Tensor {
  int64_t count;
  double *value;
} Tensor;

static Tensor tensor_random(int64_t count, int dtype) {
  Tensor t = {count, malloc((size_t)count * sizeof(double))};
  for (int64_t i = 0; i < count; i++) {
    double x = random_value();
    t.value[i] = dtype == AMPRT_F32 ? (float)x : widen(nearest(x, dtype), dtype);
  }
  return t;
}

static void tensor_store(Tensor t, int dtype, unsigned char *at) {
  for (int64_t i = 0; i < t.count; i++)
    if (dtype == AMPRT_F32)
      ((float *)at)[i] = (float)t.value[i];
    else
      ((uint16_t *)at)[i] = nearest(t.value[i], dtype);
}

static double element(const unsigned char *at, int dtype, int64_t i) {
  return dtype == AMPRT_F32 ? ((const float *)at)[i] : widen(((const uint16_t *)at)[i], dtype);
}

/* One loop nest computes all three convolutions; `op` says which of x, w and y is summed from the
 * other two. */
static void convolve(const DnnOp *op, double *x, double *w, double *y) {
  int64_t C = dnn_filter_c(op), K = op->k / (op->c / C); /* of one group */
  for (int64_t n = 0; n < op->n; n++)
    for (int64_t i = 0; i < op->ho * op->wo * op->k * op->r * op->s * C; i++) {
      int64_t c = i % C, s = i / C % op->s, r = i / C / op->s % op->r;
      int64_t j = i / C / op->s / op->r, k = j % op->k, v = j / op->k % op->wo,
              u = j / op->k / op->wo;
      int64_t h = u * op->stride[0] + r - op->pad[0], g = v * op->stride[1] + s - op->pad[2];
      if (h < 0 || h >= op->h || g < 0 || g >= op->w)
        continue;
      double *px = &x[((n * op->h + h) * op->w + g) * op->c + k / K * C + c];
      double *pw = &w[((k * op->r + r) * op->s + s) * C + c];
      double *py = &y[((n * op->ho + u) * op->wo + v) * op->k + k];
      if (op->kind == DNN_CONV)
        *py += *px * *pw;
      else if (op->kind == DNN_DGRAD)
        *px += *py * *pw;
      else
        *pw += *px * *py;
    }
}

static void multiply(const DnnOp *op, const double *a, const double *b, double *out) {
  for (int64_t i = 0; i < op->n; i++)
    for (int64_t j = 0; j < op->k; j++)
      for (int64_t l = 0; l < op->c; l++)
        out[i * op->k + j] += a[op->trans_a ? l * op->n + i : i * op->c + l] *
                              b[op->trans_b ? j * op->c + l : l * op->k + j];
}

/* The three operands in the order a, b, out. */
static void sizes(const DnnOp *op, int64_t size[3]) {
  int64_t x = op->n * op->h * op->w * op->c, w = op->k * op->r * op->s * dnn_filter_c(op),
          y = op->n * op->ho * op->wo * op->k;
  const int64_t all[][3] = {
      {x, w, y}, {y, w, x}, {x, y, w}, {op->n * op->c, op->c * op->k, op->n * op->k}};
  memcpy(size, all[op->kind], sizeof all[0]);
}

static void expect(const DnnOp *op, const Tensor t[3]) {
  memset(t[2].value, 0, (size_t)t[2].count * sizeof(double));
  if (op->kind == DNN_CONV)
    convolve(op, t[0].value, t[1].value, t[2].value);
  else if (op->kind == DNN_DGRAD)
    convolve(op, t[2].value, t[1].value, t[0].value);
  else if (op->kind == DNN_WGRAD)
    convolve(op, t[0].value, t[2].value, t[1].value);
  else
    multiply(op, t[0].value, t[1].value, t[2].value);
}

static int complain(const DnnOp *op, const char *what) {
  printf("kind %d method %d dtype %d chunk %d: x %lld,%lld,%lld,%lld w %lld,%lld,%lld groups %lld "
         "stride %lld pad %lld,%lld: %s\n",
         op->kind, op->method, op->dtype, op->chunk, (long long)op->n, (long long)op->h,
         (long long)op->w, (long long)op->c, (long long)op->k, (long long)op->r, (long long)op->s,
         (long long)op->groups, (long long)op->stride[0], (long long)op->pad[0],
         (long long)op->pad[1], what);
  return 1;
}

static int compare(const DnnOp *op, const unsigned char *at, Tensor want) {
  /* sums in f32 of products of values in [-1,1]; a 16-bit result is rounded once more */
  double terms = op->kind == DNN_WGRAD ? (double)(op->n * op->ho * op->wo)
                                       : (double)(op->c > op->k ? op->c : op->k) * 49;
  double sum = 1e-6 * sqrt(terms) * 4, ulp = op->dtype == AMPRT_F16 ? 1.0 / 2048 : 1.0 / 256;
  for (int64_t i = 0; i < want.count; i++) {
    double got = element(at, op->dtype, i);
    double tolerance = sum + (op->dtype == AMPRT_F32 ? 0 : fabs(want.value[i]) * ulp * 1.01 + 1e-7);
    if (!(fabs(got - want.value[i]) <= tolerance)) {
      char text[100];
      snprintf(text, sizeof text, "element %lld is %g, not %g", (long long)i, got, want.value[i]);
      return complain(op, text);
    }
  }
  return 0;
}

static int guards_hurt(const unsigned char *block, const int64_t *end, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < GUARD; j++)
      if (block[end[i] + j] != 0xa5)
        return 1;
  return 0;
}

static int check(DnnOp op) {
  char error[300];
  int64_t size[3], at = 0, end[5], bytes = op.dtype == AMPRT_F32 ? 4 : 2;
  DnnRef ref[3];
  sizes(&op, size);
  for (int i = 0; i < 3; i++) {
    ref[i] = (DnnRef){(uint64_t)at, 0};
    end[i] = at + size[i] * bytes;
    at = (end[i] + GUARD + 63) / 64 * 64;
  }
  op.a = ref[0], op.b = ref[1], op.out = ref[2];
  int64_t need = dnn_workspace(&op, error, sizeof error);
  if (need < 0)
    return complain(&op, error);
  op.workspace = (uint64_t)at, op.workspace_bytes = (uint64_t)need;
  end[3] = at + need;
  unsigned char *block = aligned_alloc(64, (size_t)(end[3] + GUARD + 63) / 64 * 64);
  memset(block, 0xa5, (size_t)(end[3] + GUARD));
  Tensor t[3];
  for (int i = 0; i < 3; i++) {
    t[i] = tensor_random(size[i], op.dtype);
    if (i < 2)
      tensor_store(t[i], op.dtype, block + ref[i].at);
  }
  expect(&op, t);
  const AmprtRun run = {block, block};
  const DnnOp *const list[] = {&op};
  int bad = dnn_open(list, 1, &run, error, sizeof error) != 0 && complain(&op, error);
  if (!bad) {
    dnn_run(&run, &op);
    /* a second run must give the same, so the first may leave nothing behind in the workspace */
    dnn_run(&run, &op);
    bad = compare(&op, block + ref[2].at, t[2]);
    if (guards_hurt(block, end, 4))
      bad = complain(&op, "wrote outside");
    dnn_close();
  }
  for (int i = 0; i < 3; i++)
    free(t[i].value);
  free(block);
  return bad;
}

typedef struct Shape {
  int64_t n, h, w, c, k, r, s, stride, pad[4], groups;
} Shape;

static const Shape shape[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, {0}},
    {2, 5, 7, 3, 5, 3, 3, 1, {1, 1, 1, 1}},
    {4, 8, 8, 16, 8, 3, 3, 1, {1, 1, 1, 1}},
    {2, 9, 9, 8, 16, 3, 3, 2, {0, 1, 0, 1}},
    {4, 6, 5, 8, 24, 1, 1, 1, {0}},
    {3, 7, 6, 17, 9, 1, 1, 2, {0}},
    {2, 8, 8, 32, 16, 1, 1, 2, {0}},
    {2, 15, 15, 3, 8, 7, 7, 2, {3, 2, 3, 2}},
    {2, 4, 6, 8, 8, 1, 3, 1, {0, 0, 1, 1}},
    {2, 5, 5, 8, 8, 5, 5, 1, {2, 2, 2, 2}},
    /* several groups; the last four rows are depthwise */
    {2, 6, 7, 4, 6, 3, 3, 1, {1, 1, 1, 1}, 2},
    {4, 8, 8, 16, 32, 3, 3, 1, {1, 1, 1, 1}, 2},
    {2, 9, 9, 32, 32, 3, 3, 2, {0, 1, 0, 1}, 4},
    {2, 8, 8, 64, 64, 3, 3, 1, {1, 1, 1, 1}, 4},
    {2, 6, 5, 12, 6, 1, 1, 1, {0}, 3},
    {3, 7, 6, 16, 32, 1, 1, 2, {0}, 2},
    {2, 9, 8, 20, 12, 1, 1, 2, {0}, 4},
    {2, 9, 9, 6, 8, 5, 5, 2, {2, 2, 2, 2}, 2},
    {2, 7, 6, 16, 16, 3, 3, 1, {1, 1, 1, 1}, 16},
    {4, 9, 9, 24, 24, 5, 5, 2, {2, 2, 2, 2}, 24},
    {2, 8, 7, 5, 5, 3, 3, 2, {0, 1, 0, 1}, 5},
    {2, 6, 6, 8, 16, 3, 3, 1, {1, 1, 1, 1}, 8},
};

static int check_conv(const Shape *s) {
  int bad = 0;
  for (int kind = DNN_CONV; kind <= DNN_WGRAD; kind++)
    for (int method = DNN_NHWC; method <= DNN_GEMM; method++)
      for (int dtype = AMPRT_F32; dtype <= AMPRT_BF16; dtype++)
        for (int chunk = 1; chunk <= s->n; chunk++) {
          if (s->n % chunk || (method == DNN_GEMM && (s->r * s->s > 1 || s->groups)))
            continue;
          DnnOp op = {.kind = (uint8_t)kind,
                      .method = (uint8_t)method,
                      .dtype = (uint8_t)dtype,
                      .chunk = chunk,
                      .n = s->n,
                      .h = s->h,
                      .w = s->w,
                      .c = s->c,
                      .k = s->k,
                      .r = s->r,
                      .s = s->s,
                      .groups = s->groups,
                      .stride = {s->stride, s->stride}};
          memcpy(op.pad, s->pad, sizeof op.pad);
          op.ho = (s->h + s->pad[0] + s->pad[1] - s->r) / s->stride + 1;
          op.wo = (s->w + s->pad[2] + s->pad[3] - s->s) / s->stride + 1;
          bad += check(op);
        }
  return bad;
}

static int check_matmul(int64_t rows, int64_t cols, int64_t inner) {
  int bad = 0;
  for (int dtype = AMPRT_F32; dtype <= AMPRT_BF16; dtype++)
    for (int trans = 0; trans < 4; trans++)
      bad += check((DnnOp){.kind = DNN_MATMUL,
                           .dtype = (uint8_t)dtype,
                           .trans_a = trans & 1,
                           .trans_b = (uint8_t)(trans >> 1),
                           .n = rows,
                           .k = cols,
                           .c = inner});
  return bad;
}

int main(void) {
  int bad = 0;
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
    bad += check_conv(&shape[i]);
  bad += check_matmul(1, 1, 1) + check_matmul(5, 3, 7) + check_matmul(32, 10, 64) +
         check_matmul(17, 33, 1);
  return bad != 0;
}
