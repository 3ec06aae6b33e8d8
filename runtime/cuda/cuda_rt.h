/* libamprt_cuda: runs the CUDA part of a program. Generated code holds a CudaPart of tables and
 * passes it to cuda_fits and, as AmprtProgram.device, cuda_device. cudart is linked statically;
 * libcudnn_graph, libcublasLt and the driver are opened when a part is tried, so the program starts
 * where they are missing and says so.
 *
 * A step is all launches of one graph in their order; they are captured once as one CUDA graph. An
 * address is the beginning of a block of memory plus an offset, and is fixed as soon as the two
 * blocks of amprt.h and the constants lie on the device. Equal programs give equal bits: there are
 * no atomic additions of floats, and no algorithm is chosen by timing. */
#ifndef AMPCC_RUNTIME_CUDA_CUDA_RT_H
#define AMPCC_RUNTIME_CUDA_CUDA_RT_H

#include "amprt.h"

/* The block of memory that an operand lies in. Generated kernels use the same numbers as AMP_ARENA,
 * AMP_STATE, AMP_CONST and AMP_NOWHERE. */
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
  const char
      *key; /* "fprop f16 n256 h56 w56 c64 k64 r3 s3 u1,1 p1,1,1,1": names the plan in messages,
                      and is all that making it anew needs (codegen/cudnn/conv_op.h) */
  const char *const *candidate; /* for --tune: what its "engine" may be, its own included */
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
  uint32_t args_bytes;                  /* KERNEL; 0: CudaRun is its only argument */
  uint32_t shared;                      /* KERNEL: bytes of dynamic shared memory */
  uint32_t grid[3], block[3];           /* KERNEL */
  const CudaPlan *plan;                 /* PLAN */
  const CudaMatmul *matmul;             /* MATMUL: operands a, b, out, bias */
  CudaPlace operand[CUDA_MAX_OPERANDS]; /* PLAN (as uid), MATMUL */
  uint64_t workspace, workspace_bytes;  /* PLAN, MATMUL: in the arena */
} CudaLaunch;

typedef struct CudaGraph { /* what AmprtGraph of the same index is to the host */
  const CudaLaunch *launch;
  int32_t n_launches;
  /* Converts images that arrive as bytes, for the port with .pixels; NULL if there is none. Its
   * args are an AmpPixels (codegen/text/common/args.h), whose pointers are set for each run. */
  const CudaLaunch *pixels;
  /* Adds up a bucket that the ranks have sent each other; NULL in a graph without buckets. Its args
   * are an AmpTree, set for each bucket as is its grid. */
  const CudaLaunch *ranks;
} CudaGraph;

typedef struct CudaImage { /* the generated kernels, for one architecture */
  const void *data;
  uint64_t bytes;
  uint8_t is_ptx; /* PTX, which the driver compiles for newer GPUs; a NUL follows its bytes */
  uint32_t check; /* CRC-32 of the bytes: a GPU would run damaged code too */
} CudaImage;

typedef struct CudaPart {
  const char *name;       /* "cuda:sm_90" */
  int32_t capability;     /* 90. A device with the same major and a higher minor number fits too
                             (but for 87); plans are then made anew, as for another cuDNN */
  int32_t newest;         /* the last capability with engines for all plans; 0: there is no last */
  const CudaImage *image; /* machine code for `capability`, and perhaps PTX for newer ones */
  int32_t n_images;
  const unsigned char *constant; /* copied to the device as they are */
  uint64_t constant_bytes;
  const CudaGraph *graph;
  int32_t n_graphs;
  uint8_t tf32; /* some of its convolutions or products multiply as TF32 */
  /* Versions of the libraries that it was built with: 91900, 130100, 13000; 0 for one that it does
   * not use. */
  int32_t cudnn_version, cublas_version, cuda_version;
} CudaPart;

/* Can this part run here? 0 if so; else -1, and one line in `why` names what is missing, too old,
 * of another version or too small. Opens libraries, but changes nothing on a device. */
int cuda_fits(const CudaPart *part, const AmprtProgram *program, char *why, size_t size);
/* AmprtProgram.device and describe of a CUDA part; they work on the part that cuda_fits was last
 * asked for. */
extern const AmprtDevice cuda_device;
const char *cuda_describe(void);

#endif
