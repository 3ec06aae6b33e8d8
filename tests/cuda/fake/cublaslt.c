/* The fake libcublasLt.so.13: matrix products on the host, column-major as there. */
#include "fake.h"
#include "runtime/base/convert.h"

#include <cublasLt.h>

#include <stdbool.h>

/* These are stored in the opaque structs of cublasLt's header, which are large enough. */
typedef struct Product {
  bool tf32, trans_a, trans_b;
  cublasLtEpilogue_t epilogue; /* 0 if it is not set */
  const void *bias;            /* of the type of d, one number for each row of d */
} Product;

typedef struct Layout {
  AmprtDType type;
  uint64_t rows, columns;
  int64_t stride;
} Layout;

typedef struct Preference {
  uint64_t workspace;
} Preference;

#define BEGIN FAKE_FAILS(cublasStatus_t, CUBLAS_STATUS_INTERNAL_ERROR)

size_t cublasLtGetVersion(void) {
  return (size_t)fake_number("FAKE_CUBLAS_VERSION", 130100);
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_INTERNAL_ERROR";
}

static void *make(size_t bytes) {
  void *p = calloc(1, bytes);
  if (!p)
    abort();
  return p;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  BEGIN;
  *handle = make(8);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  BEGIN;
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute,
                                        cudaDataType scale) {
  BEGIN;
  bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if ((compute != CUBLAS_COMPUTE_32F && !tf32) || scale != CUDA_R_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = make(sizeof(Product));
  ((Product *)(void *)*made)->tf32 = tf32;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t name, const void *from,
                                              size_t bytes) {
  BEGIN;
  Product *p = (Product *)(void *)product;
  cublasOperation_t operation;
  const struct {
    cublasLtMatmulDescAttributes_t name;
    void *to;
    size_t bytes;
  } rows[] = {
      {CUBLASLT_MATMUL_DESC_TRANSA, &operation, sizeof operation},
      {CUBLASLT_MATMUL_DESC_TRANSB, &operation, sizeof operation},
      {CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue},
      {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias},
  };
  size_t i = 0, n = sizeof rows / sizeof *rows;
  while (i < n && (rows[i].name != name || rows[i].bytes != bytes))
    i++;
  if (i == n)
    return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(rows[i].to, from, bytes);
  if (rows[i].to == &operation)
    *(name == CUBLASLT_MATMUL_DESC_TRANSA ? &p->trans_a : &p->trans_b) = operation == CUBLAS_OP_T;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  BEGIN;
  free(product);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  BEGIN;
  Layout *l = make(sizeof *l);
  AmprtDType fake = type == CUDA_R_16F ? AMPRT_F16 : type == CUDA_R_16BF ? AMPRT_BF16 : AMPRT_F32;
  *l = (Layout){fake, rows, columns, stride};
  *made = (cublasLtMatrixLayout_t)(void *)l;
  return stride < (int64_t)rows ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  BEGIN;
  free(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
  BEGIN;
  *made = make(sizeof(Preference));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *from, size_t bytes) {
  BEGIN;
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof(uint64_t))
    memcpy(preference, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  BEGIN;
  free(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *found, int *n) {
  BEGIN;
  (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d, (void)preference;
  memset(found, 0, sizeof *found);
  found->state = CUBLAS_STATUS_SUCCESS;
  *n = most > 0;
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- running ---- */

typedef struct Call {
  Product product;
  Layout a, b, d;
  const void *at_a, *at_b;
  void *at_d;
} Call;

/* Element [i][j] of op(m), where the matrix m is stored by columns. */
static float element(const float *m, const Layout *layout, bool trans, int64_t i, int64_t j) {
  return trans ? m[j + i * layout->stride] : m[i + j * layout->stride];
}

static float *widened(const void *from, const Layout *l) {
  int64_t n = l->stride * (int64_t)l->columns;
  float *to = make((size_t)n * sizeof *to + 4);
  amprt_to_f32(l->type, from, to, (size_t)n);
  return to;
}

/* An operand in f32; for TF32 rounded to 10 bits of mantissa. */
static float *operand(const void *from, const Layout *l, bool tf32) {
  float *to = widened(from, l);
  for (int64_t i = 0; tf32 && i < l->stride * (int64_t)l->columns; i++) {
    uint32_t bits;
    memcpy(&bits, &to[i], sizeof bits);
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&to[i], &bits, sizeof bits);
  }
  return to;
}

static void work_product(void *data) {
  const Call *c = data;
  float *a = operand(c->at_a, &c->a, c->product.tf32), *d = widened(c->at_d, &c->d);
  float *b = operand(c->at_b, &c->b, c->product.tf32);
  const Layout column = {c->d.type, c->d.rows, 1, (int64_t)c->d.rows};
  float *bias = c->product.bias ? widened(c->product.bias, &column) : NULL;
  int64_t inner = (int64_t)(c->product.trans_a ? c->a.rows : c->a.columns);
  for (int64_t j = 0; j < (int64_t)c->d.columns; j++)
    for (int64_t i = 0; i < (int64_t)c->d.rows; i++) {
      double sum = 0;
      for (int64_t k = 0; k < inner; k++)
        sum += (double)element(a, &c->a, c->product.trans_a, i, k) *
               element(b, &c->b, c->product.trans_b, k, j);
      d[i + j * c->d.stride] = (float)sum + (bias ? bias[i] : 0);
    }
  amprt_from_f32(c->d.type, d, c->at_d, (size_t)(c->d.stride * (int64_t)c->d.columns));
  free(a), free(b), free(d), free(bias);
}

static bool fits(const Call *c) {
  bool biased = c->product.epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (biased != (c->product.bias != NULL) || (c->product.epilogue && !biased))
    return false;
  bool ta = c->product.trans_a, tb = c->product.trans_b;
  uint64_t rows = ta ? c->a.columns : c->a.rows, inner = ta ? c->a.rows : c->a.columns;
  uint64_t inner_b = tb ? c->b.columns : c->b.rows, columns = tb ? c->b.rows : c->b.columns;
  return rows == c->d.rows && columns == c->d.columns && inner == inner_b;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  BEGIN;
  (void)handle, (void)c, (void)c_layout, (void)algorithm, (void)workspace, (void)workspace_bytes;
  float one, zero;
  memcpy(&one, alpha, sizeof one);
  memcpy(&zero, beta, sizeof zero);
  Call call = {*(Product *)(void *)product,
               *(Layout *)(void *)a_layout,
               *(Layout *)(void *)b_layout,
               *(Layout *)(void *)d_layout,
               a,
               b,
               d};
  if (one != 1 || zero != 0 || !fits(&call))
    return CUBLAS_STATUS_INVALID_VALUE;
  FakeStream *to = (FakeStream *)(void *)stream;
  to->add(to, work_product, &call, sizeof call);
  return CUBLAS_STATUS_SUCCESS;
}
