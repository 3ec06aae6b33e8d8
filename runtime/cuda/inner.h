/* Inside libamprt_cuda: one process runs one part on one device, so there is one state. Each file
 * of cuda_rt_*.c owns one stretch of it. */
#ifndef AMPCC_RUNTIME_CUDA_INNER_H
#define AMPCC_RUNTIME_CUDA_INNER_H

#include "codegen/cudnn/conv_graph.h"
#include "runtime/cuda/cuda_rt.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <stdbool.h>

/* cuda_rt_error.c. The first failure stays, and nothing is called after it. */
int cuda_rt_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* -1 */
bool cuda_rt_failed(void);
const char *cuda_rt_error(void); /* NULL: nothing has failed */
void cuda_rt_forgive(void);      /* for the next program of this process */
int cuda_rt_status(cudaError_t status, const char *function);
/* CUDA(cudaMalloc, &at, bytes): 0 or -1 */
#define CUDA(function, ...)                                                                        \
  (cuda_rt_failed() ? -1 : cuda_rt_status(function(__VA_ARGS__), #function))

/* cuda_rt_libraries.c: opened once, kept. NULL with one line in `why` if a library is not there. */
typedef struct CublasLtApi {
#define CUBLASLT(result, name, arguments) result(*name) arguments;
#include "runtime/cuda/cublaslt_api.def"
} CublasLtApi;
const CudnnApi *cuda_rt_cudnn(char *why, size_t size);
const CublasLtApi *cuda_rt_cublaslt(char *why, size_t size);

/* cuda_rt_fits.c: what cuda_fits has found. */
typedef struct CudaFound {
  const CudaPart *part;
  const AmprtProgram *program;
  const CudaImage *image; /* of the part, for this device */
  char device[256];       /* its name */
  int capability;
  uint64_t memory; /* bytes that the device has */
} CudaFound;
extern CudaFound cuda_rt_found;

/* cuda_rt_memory.c: the one allocation. */
typedef struct CudaLayout { /* offsets; inputs on their way in, scalars on their way out */
  uint64_t state, arena, constant, staging, kept, bytes;
} CudaLayout;
enum { CUDA_KEPT_BYTES = 8 * AMPRT_MAX_WATCHED };
CudaLayout cuda_rt_layout(const CudaPart *part, const AmprtProgram *program);
uint64_t cuda_rt_port_bytes(const AmprtPort *port);
uint64_t cuda_rt_staging_bytes(const AmprtGraph *graph); /* ports one after the other */
uint64_t cuda_rt_staging_next(uint64_t at, const AmprtPort *port);
/* Of a port that arrives as pixels: those, then at the second place what they mean. */
uint64_t cuda_rt_scaling_at(const AmprtPort *port);
uint64_t cuda_rt_scaling_bytes(void);
int cuda_rt_memory_open(void);
void cuda_rt_memory_close(void);
unsigned char *cuda_rt_at(unsigned block, uint64_t at); /* CudaBlock */
unsigned char *cuda_rt_staging(void);
unsigned char *cuda_rt_kept(void);
const CudaRun *cuda_rt_run(void);

/* cuda_rt_plan.c */
int cuda_rt_plans_open(cudaStream_t stream, bool strict); /* all that the part's launches need */
void cuda_rt_plans_close(void);
/* Its operands' addresses as cuDNN wants them; `workspace` NULL: as planned. NULL: failed. */
CudnnObject cuda_rt_plan_pack(const CudaLaunch *launch, void *workspace);
int cuda_rt_plan_run(const CudaPlan *plan, CudnnObject pack);
/* For cuda_rt_tune.c: the plan with another of its candidates as engine (NULL: its own); NULL with
 * the reason in `why`. Its workspace in bytes, INT64_MAX if cuDNN does not say; a run of it, NULL
 * or why not. */
CudnnObject cuda_rt_plan_load(const CudaPlan *plan, const char *engine, char *why, size_t size);
int64_t cuda_rt_plan_workspace(CudnnObject plan);
const char *cuda_rt_plan_execute(CudnnObject plan, CudnnObject pack);
void cuda_rt_cudnn_free(CudnnObject object); /* a plan or its operands; NULL is fine */

/* cuda_rt_matmul.c */
typedef struct CudaProduct {
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, out;
  cublasLtMatmulAlgo_t algorithm;
} CudaProduct;
int cuda_rt_products_open(void); /* if any launch needs it */
void cuda_rt_products_close(void);
int cuda_rt_product_make(const CudaLaunch *launch, CudaProduct *out);
int cuda_rt_product_run(const CudaLaunch *launch, const CudaProduct *product, cudaStream_t stream);
void cuda_rt_product_free(CudaProduct *product);

/* cuda_rt_launch.c: launches first..past-1 of a graph, into the stream. */
int cuda_rt_launches_open(void);
void cuda_rt_launches_close(void);
int cuda_rt_launch(int graph, int first, int past, cudaStream_t stream);
/* The launch in front of them, which makes the image port of what lies on the device. */
int cuda_rt_launch_pixels(int graph, const unsigned char *pixel, const AmprtScaling *scaling,
                          cudaStream_t stream);

/* cuda_rt_tune.c: AmprtDevice.tune */
char *cuda_rt_tune(cudaStream_t stream, bool quiet);

/* cuda_rt_step.c: whole graphs. */
int cuda_rt_steps_open(cudaStream_t stream);
void cuda_rt_steps_close(void);
int cuda_rt_start(int graph, const AmprtInput *inputs);
int cuda_rt_watch(const AmprtBlock *block, const uint64_t *at, const uint32_t *bytes, int n);
int cuda_rt_collect(void *to);

#endif
