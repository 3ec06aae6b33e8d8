/* What the emitters of the CUDA target share. Every kernel of the graph becomes one or more
 * launches (CudaLaunch in cuda_rt.h): generated kernels, plans of cuDNN, products of cublasLt.
 * Kernels of equal structure share a function; offsets, sizes and numbers go into args structs that
 * the host passes by value. The text of the kernels is CUDA C and plain C at once (see
 * codegen/text/cuda), so that the tests can run it on the host. */
#ifndef AMPCC_CODEGEN_CUDA_CUDA_H
#define AMPCC_CODEGEN_CUDA_CUDA_H

#include "codegen/loop/emitter.h"
#include "runtime/cuda/cuda_rt.h"

/* One row of a graph's table of launches, a CudaLaunch. The strings are parts of C text. */
typedef struct Launch {
  CudaLaunchKind kind;
  int kernel;           /* id of the graph's kernel; -1: a launch in front of the first */
  const char *name;     /* for profiles: "k12_affine_relu" */
  const char *function; /* KERNEL: its name in the image */
  const char *args;     /* KERNEL: name of its args table in emit->tables */
  int64_t grid[3];
  int block[3];
  int64_t shared;          /* dynamic shared memory, bytes */
  const char *description; /* PLAN, MATMUL: name of its CudaPlan or CudaMatmul table */
  int n_operands;
  CudaPlace operand[CUDA_MAX_OPERANDS]; /* PLAN, MATMUL */
  int64_t workspace, workspace_bytes;   /* PLAN, MATMUL: in the arena */
} Launch;

typedef struct LaunchList {
  Launch *launch;
  int n, cap;
} LaunchList;

/* launch*.c: adds the launches of kernels without a library call, that is of POINT, VECTOR,
 * CHANNEL, ROW, REDUCE, OPT, UPDATE and POOL nodes. The n kernels from `kernel` on share a launch
 * if n is more than 1. */
void cuda_emit_loops(Emitter *emit, const Kernel *kernel, int n, LaunchList *out);
/* How many of the n kernels, from the first on, share a launch; at least 1. */
int cuda_loops_joined(const Kernel *kernel, int n);
int64_t cuda_loop_workspace(const Kernel *kernel);
/* launch_pixels.c: the input port whose images arrive as bytes, or NULL; and the launch that
 * converts them. */
const Value *cuda_pixels_port(const Graph *graph);
Launch cuda_emit_pixels(Emitter *emit, const Value *port);
/* launch_ranks.c: does a run of this graph sum over ranks? And the launch that adds up a bucket. */
bool cuda_sums_ranks(const Graph *graph);
Launch cuda_emit_ranks(Emitter *emit);
/* library.c: kernels with CONV and MATMUL nodes. */
void cuda_emit_library(Emitter *emit, const Kernel *kernel, LaunchList *out);
int64_t cuda_library_workspace(const Target *target, const Kernel *kernel);
bool cuda_is_library(const Kernel *kernel); /* does it call a library? Else: cuda_emit_loops */

/* Writes the text in front of all kernels: codegen/text/common and codegen/text/cuda. */
void cuda_emit_prelude(FILE *out);

#endif
