/* libamprt_cuda: runs the CUDA part of a program. Generated code holds a CudaPart of tables and
 * passes it to cuda_fits and, as AmprtProgram.device, cuda_device. cudart is linked statically;
 * libcudnn_graph, libcublasLt and the driver are opened when a part is tried, so the program starts
 * where they are missing and says so.
 *
 * A step is the launches of one graph in order, captured once as one CUDA graph. All addresses are
 * block + offset, fixed once the two blocks of amprt.h and the constants lie on the device. Equal
 * programs give equal bits: no atomics on floats, no algorithm is chosen by timing. */
#ifndef AMPCC_RUNTIME_CUDA_CUDA_RT_H
#define AMPCC_RUNTIME_CUDA_CUDA_RT_H

#include "amprt.h"

/* The block of memory that an operand lies in. Generated kernels call these AMP_ARENA, AMP_STATE,
 * AMP_CONST: the numbers are the same. */
typedef enum CudaBlock { CUDA_ARENA, CUDA_STATE, CUDA_CONSTANT, CUDA_NOWHERE } CudaBlock;

typedef struct CudaPlace {
  uint64_t at; /* bytes into the block; a multiple of 16 for operands of libraries */
  uint8_t block;
} CudaPlace;

/* The first argument of every generated kernel, passed by value; its args struct is the second. */
typedef struct CudaRun {
  unsigned char *arena, *state;
  const unsigned char *constant;
} CudaRun;

enum { CUDA_MAX_OPERANDS = 16 };

/* One execution plan of cuDNN, made when compiling (codegen/cuda/toolkit/plan.c). */
typedef struct CudaPlan {
  const char *json; /* as cuDNN wrote it; GPUProfile is replaced by the device's own when loading */
  uint32_t json_bytes;
  uint8_t n_operands;
  int64_t uid[CUDA_MAX_OPERANDS]; /* of the plan's tensors, in the order of CudaLaunch.operand */
  uint64_t workspace_bytes;
  const char *key; /* the op in words, e.g. "conv2d f16 n256 h56 w56 c64 k64 r3 s3 u1 p1": for
                      messages, and all that re-planning needs */
  const char *const *candidate; /* what else its "engine" may be: for --tune. Its own among them */
  int32_t n_candidates;
} CudaPlan;

/* out[rows, columns] = op(a) * op(b) [+ bias[columns]], row-major, through cublasLt; summed in f32.
 */
typedef struct CudaMatmul {
  uint8_t dtype, trans_a, trans_b; /* AMPRT_F32, AMPRT_F16, AMPRT_BF16 */
  uint8_t tf32;                    /* f32 operands may be multiplied as TF32 */
  uint8_t bias;                    /* a vector of type `dtype` is added to each row */
  int64_t rows, columns, inner;
} CudaMatmul;

typedef enum CudaLaunchKind { CUDA_KERNEL, CUDA_PLAN, CUDA_MATMUL } CudaLaunchKind;

typedef struct CudaLaunch {
  uint8_t kind;
  int32_t kernel;                       /* index in AmprtGraph.kernel; -1: it comes before them */
  const char *function;                 /* KERNEL: name in the image */
  const void *args;                     /* KERNEL: its args struct, copied into the launch */
  uint32_t args_bytes, shared;          /* KERNEL; no args_bytes: it takes CudaRun alone;
                                           shared: bytes of dynamic shared memory */
  uint32_t grid[3], block[3];           /* KERNEL */
  const CudaPlan *plan;                 /* PLAN */
  const CudaMatmul *matmul;             /* MATMUL: operands a, b, out, bias */
  CudaPlace operand[CUDA_MAX_OPERANDS]; /* PLAN (as uid), MATMUL */
  uint64_t workspace, workspace_bytes;  /* PLAN, MATMUL: in the arena */
} CudaLaunch;

typedef struct CudaGraph { /* what AmprtGraph of the same index is to the host */
  const CudaLaunch *launch;
  int32_t n_launches;
  const CudaLaunch
      *pixels; /* makes the port that has .pixels; args: AmpPixels of codegen/text/common/args.h,
                  whose pointers are set when it is launched. NULL: there is none */
} CudaGraph;

typedef struct CudaImage { /* the generated kernels, for one architecture */
  const void *data;
  uint64_t bytes;
  uint8_t
      is_ptx; /* the driver compiles it, for GPUs newer than any image; a NUL follows its bytes */
  uint32_t check; /* CRC-32 of the bytes, as a GPU runs whatever it is given */
} CudaImage;

typedef struct CudaPart {
  const char *name;       /* "cuda:sm_90" */
  int32_t capability;     /* 90. A device with the same major and a higher minor fits too: plans are
                             then made anew, as for other versions of cuDNN */
  int32_t newest;         /* later capabilities lack engines for some plan; 0: none does */
  const CudaImage *image; /* for `capability`, and maybe PTX for all that are newer */
  int32_t n_images;
  const unsigned char *constant; /* copied to the device as they are */
  uint64_t constant_bytes;
  const CudaGraph *graph;
  int32_t n_graphs;
  uint8_t tf32; /* some of its convolutions or products multiply as TF32 */
  int32_t cudnn_version, cublas_version,
      cuda_version; /* of the libraries that it was built with, as
                                                          91900, 130100, 13000; 0: it uses none */
} CudaPart;

/* Can this part run here? 0 if so; else -1, and one line in `why` names what is missing, too old,
 * of another version or too small. Opens libraries, but changes nothing on a device. */
int cuda_fits(const CudaPart *part, const AmprtProgram *program, char *why, size_t size);
/* AmprtProgram.device and describe of a CUDA part; they work on the part that cuda_fits was last
 * asked for. */
extern const AmprtDevice cuda_device;
const char *cuda_describe(void);

#endif
