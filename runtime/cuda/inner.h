/* What the files of libamprt_cuda share. A process runs one part on one device at a time, so the
 * state of the library is static variables, each in the file that it belongs to.
 *
 * A function that returns int gives 0, or -1 after it has noted a failure (cuda_rt_fail). Once
 * something has failed, all of them return at once. A function that puts the reason of a failure
 * into `why` does not note it. */
#ifndef AMPCC_RUNTIME_CUDA_INNER_H
#define AMPCC_RUNTIME_CUDA_INNER_H

#include "codegen/cudnn/conv_graph.h"
#include "codegen/text/common/args.h"
#include "runtime/cuda/cuda_rt.h"
#include "runtime/cuda/nccl_api.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <stdbool.h>

/* error.c: the first failure is kept, and nothing is called on the GPU after it. */

/* Notes a failure as one line in the manner of printf. Returns -1. */
int cuda_rt_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool cuda_rt_failed(void);
const char *cuda_rt_error(void); /* that line, until cuda_rt_forgive; NULL: nothing has failed */
void cuda_rt_forgive(void);      /* forgets it: the next program of this process begins */
/* 0 for success; else notes that `function` of cudart failed. */
int cuda_rt_status(cudaError_t status, const char *function);
/* CUDA(cudaMalloc, &at, bytes) calls the function unless something has failed: 0 or -1. */
#define CUDA(function, ...)                                                                        \
  (cuda_rt_failed() ? -1 : cuda_rt_status(function(__VA_ARGS__), #function))

/* libraries.c: the functions of a library, which the first call opens and which stays open. NULL
 * with one line in `why` if it is not there or lacks a function. */
typedef struct CublasLtApi {
#define CUBLASLT(result, name, arguments) result(*name) arguments;
#include "runtime/cuda/cublaslt_api.def"
} CublasLtApi;
const CudnnApi *cuda_rt_cudnn(char *why, size_t size);
const CublasLtApi *cuda_rt_cublaslt(char *why, size_t size);
const NcclApi *cuda_rt_nccl(char *why, size_t size);

/* fits.c: the part that cuda_fits was asked for, and what it has found; all zero before. */

typedef struct CudaFound {
  const CudaPart *part;
  const AmprtProgram *program;
  const CudaImage *image; /* of the part, for this device */
  int index;              /* of that device among those of this process */
  char device[256];       /* its name */
  int capability;
  uint64_t memory; /* bytes that the device has */
} CudaFound;
extern CudaFound cuda_rt_found;
/* Chooses the device for a rank, and asks it what cuda_fits has asked the first one. */
int cuda_rt_choose_device(const AmprtRanks *ranks);

/* memory.c: the one allocation on the GPU, in bytes. */

typedef struct CudaLayout {
  uint64_t state, arena, constant; /* where each block begins */
  uint64_t staging, kept;          /* inputs on their way in, scalars on their way out */
  uint64_t arrived;                /* what other ranks send */
  uint64_t bytes;                  /* of the whole allocation */
} CudaLayout;
enum { CUDA_KEPT_BYTES = 8 * AMPRT_MAX_WATCHED };
/* Without ranks the graph that sums over them does not run, so it needs no room. */
CudaLayout cuda_rt_layout(const CudaPart *part, const AmprtProgram *program,
                          const AmprtRanks *ranks);
uint64_t cuda_rt_port_bytes(const AmprtPort *port); /* of its numbers */
/* The staging place holds the input ports of a graph one after the other: how many bytes that is,
 * and where the next port begins if this one begins at `at`. */
uint64_t cuda_rt_staging_bytes(const AmprtGraph *graph);
uint64_t cuda_rt_staging_next(uint64_t at, const AmprtPort *port);
/* A port that arrives as pixels begins with those, one byte each. At the first of these offsets its
 * scalings follow, one AmprtScaling for each image; the second is their size. */
uint64_t cuda_rt_scaling_at(const AmprtPort *port);
uint64_t cuda_rt_scaling_bytes(void);
/* Allocates, fills with zeros, copies the constants. */
int cuda_rt_memory_open(const AmprtRanks *ranks);
void cuda_rt_memory_close(void);
/* Addresses on the GPU: of an offset in a CudaBlock (NULL for CUDA_NOWHERE), of the staging place,
 * of the scalars that are kept for the host, 8 bytes for each, and of what other ranks send. */
unsigned char *cuda_rt_at(unsigned block, uint64_t at);
unsigned char *cuda_rt_staging(void);
unsigned char *cuda_rt_kept(void);
unsigned char *cuda_rt_arrived(void);
const CudaRun *cuda_rt_run(void); /* the first argument of every generated kernel */

/* plan.c */

/* Opens every plan that a launch of the part needs, to be run on this stream. With `strict` a plan
 * that would have to be made anew is a failure. */
int cuda_rt_plans_open(cudaStream_t stream, bool strict);
void cuda_rt_plans_close(void);
/* cuDNN's object for the addresses of a launch's operands and of its workspace; NULL as `workspace`
 * stands for the place that is planned for it. The caller frees it with cuda_rt_cudnn_free. NULL
 * after a failure. */
CudnnObject cuda_rt_plan_pack(const CudaLaunch *launch, void *workspace);
int cuda_rt_plan_run(const CudaPlan *plan, CudnnObject pack);
/* For tune.c: the plan with one of its candidates as its engine (NULL: with its own engine). The
 * caller frees it. NULL with the reason in `why`. */
CudnnObject cuda_rt_plan_load(const CudaPlan *plan, const char *engine, char *why, size_t size);
int64_t cuda_rt_plan_workspace(CudnnObject plan); /* bytes; INT64_MAX: cuDNN does not say */
/* Runs a plan. NULL, or cuDNN's name of the error. */
const char *cuda_rt_plan_execute(CudnnObject plan, CudnnObject pack);
void cuda_rt_cudnn_free(CudnnObject object); /* a plan or its operands; NULL is fine */

/* matmul.c: a product that is ready to run. */
typedef struct CudaProduct {
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, out;
  cublasLtMatmulAlgo_t algorithm;
} CudaProduct;
int cuda_rt_products_open(void); /* starts cublasLt if a launch of the part needs it */
void cuda_rt_products_close(void);
/* Describes the launch's product to cublasLt and asks for an algorithm. The caller frees *out, also
 * after a failure. */
int cuda_rt_product_make(const CudaLaunch *launch, CudaProduct *out);
int cuda_rt_product_run(const CudaLaunch *launch, const CudaProduct *product, cudaStream_t stream);
void cuda_rt_product_free(CudaProduct *product);

/* launch.c */
int cuda_rt_launches_open(void); /* loads the kernels; after plans and products are open */
void cuda_rt_launches_close(void);
/* Puts launches first..past-1 of a graph into the stream. */
int cuda_rt_launch(int graph, int first, int past, cudaStream_t stream);
/* The launch that comes before them: converts images to the numbers of the graph's image port, from
 * bytes and scalings that lie on the GPU. */
int cuda_rt_launch_pixels(int graph, const unsigned char *pixel, const AmprtScaling *scaling,
                          cudaStream_t stream);

/* Adds up what ranks have sent, where `args` says. */
int cuda_rt_launch_ranks(int graph, const AmpTree *args, cudaStream_t stream);

/* ranks.c: sums over the GPUs of several processes. */

int cuda_rt_make_id(unsigned char *id);               /* AmprtDevice.make_id */
uint64_t cuda_rt_arrived_bytes(const AmprtRanks *of); /* room for what other ranks send */
int cuda_rt_ranks_open(const AmprtRanks *ranks);      /* collective; after launches are open */
/* Waits until all that was started has ended, and ends it if something has failed or it takes too
 * long; then, once captured graphs are gone, closes the rest. */
void cuda_rt_ranks_end(cudaStream_t compute);
void cuda_rt_ranks_close(void);
/* Sums a bucket over all ranks once `compute` is as far as it is now, beside what comes after. */
int cuda_rt_sum_start(int graph, int bucket, cudaStream_t compute);
/* What comes after in `compute` waits for the sums of that bucket and of those started before. */
int cuda_rt_sum_wait(int bucket, cudaStream_t compute);
/* The host waits. If another rank is lost meanwhile, that is a failure. */
int cuda_rt_wait_event(cudaEvent_t event);
int cuda_rt_wait_stream(cudaStream_t stream);

/* tune.c: times all candidates and returns the text of a tuning file, which the caller frees; NULL
 * after a failure. Prints a line for each plan unless `quiet`. */
char *cuda_rt_tune(cudaStream_t stream, bool quiet);

/* step.c */

/* Kernels first..past-1 of a graph, with the sums over ranks in between. */
int cuda_rt_run_kernels(int graph, int first, int past, cudaStream_t stream);
/* Whole graphs; start, watch and collect are those of AmprtDevice. */
int cuda_rt_steps_open(cudaStream_t stream);
void cuda_rt_steps_close(void);
int cuda_rt_start(int graph, const AmprtInput *inputs);
int cuda_rt_watch(int graph, const AmprtBlock *block, const uint64_t *at, const uint32_t *bytes,
                  int n);
int cuda_rt_collect(void *to);

#endif
