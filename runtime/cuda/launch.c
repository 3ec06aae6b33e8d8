/* Launches. Everything that can be looked up or prepared is done once, when the part is opened. */
#include "runtime/cuda/inner.h"

#include <stdlib.h>
#include <zlib.h>

typedef struct Ready { /* what a launch needs: one of these, depending on its kind */
  cudaKernel_t kernel;
  CudnnObject pack;
  CudaProduct product;
} Ready;

static cudaLibrary_t image;
static Ready **ready; /* [graph][launch]; behind the last launch those of .pixels and .ranks */

static int fail_kernel(int graph, const CudaLaunch *launch, const char *function,
                       cudaError_t status) {
  static const AmprtKernel other = {.name = "no kernel of the graph"};
  const AmprtKernel *kernels = cuda_rt_found.program->graph[graph].kernel;
  const AmprtKernel *kernel = launch->kernel < 0 ? &other : &kernels[launch->kernel];
  return cuda_rt_fail("the GPU failed: %s of %s (%s, layer %s): %s (%s)", function,
                      launch->function, kernel->name,
                      kernel->layer && *kernel->layer ? kernel->layer : "-",
                      cudaGetErrorString(status), cudaGetErrorName(status));
}

/* CUDA gives a kernel more than 48 KiB of dynamic shared memory only if that was asked for
 * before. */
static int open_kernel(int graph, const CudaLaunch *launch, Ready *to) {
  enum { PLAIN = 48 << 10 };
  cudaError_t status = cudaLibraryGetKernel(&to->kernel, image, launch->function);
  if (status != cudaSuccess)
    return fail_kernel(graph, launch, "cudaLibraryGetKernel", status);
  if (launch->shared > PLAIN)
    status =
        cudaKernelSetAttributeForDevice(to->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)launch->shared, cuda_rt_found.index);
  if (status != cudaSuccess)
    return fail_kernel(graph, launch, "cudaKernelSetAttributeForDevice", status);
  return 0;
}

static int open_one(int graph, const CudaLaunch *launch, Ready *to) {
  switch ((CudaLaunchKind)launch->kind) {
  case CUDA_KERNEL:
    return open_kernel(graph, launch, to);
  case CUDA_PLAN:
    to->pack = cuda_rt_plan_pack(launch, NULL);
    return to->pack ? 0 : -1;
  case CUDA_MATMUL:
    return cuda_rt_product_make(launch, &to->product);
  }
  return cuda_rt_fail("this program is damaged: launch of kind %d", launch->kind);
}

static int load_image(void) {
  const CudaImage *from = cuda_rt_found.image;
  if (crc32_z(crc32(0, NULL, 0), from->data, from->bytes) != from->check)
    return cuda_rt_fail("this program's kernels for %s are damaged: compile it again",
                        cuda_rt_found.part->name);
  cudaError_t status = cudaLibraryLoadData(&image, from->data, NULL, NULL, 0, NULL, NULL, 0);
  if (status == cudaSuccess)
    return 0;
  image = NULL;
  return cuda_rt_fail("the GPU refuses this program's kernels (%s, %llu bytes of %s): %s (%s)",
                      cuda_rt_found.part->name, (unsigned long long)from->bytes,
                      from->is_ptx ? "PTX" : "machine code", cudaGetErrorString(status),
                      cudaGetErrorName(status));
}

int cuda_rt_launches_open(void) {
  const CudaPart *part = cuda_rt_found.part;
  if (load_image())
    return -1;
  ready = calloc((size_t)part->n_graphs + 1, sizeof *ready);
  if (!ready)
    return cuda_rt_fail("no memory for the launches");
  for (int g = 0; g < part->n_graphs; g++) {
    const CudaGraph *graph = &part->graph[g];
    ready[g] = calloc((size_t)graph->n_launches + 2, sizeof **ready);
    if (!ready[g])
      return cuda_rt_fail("no memory for the launches");
    for (int i = 0; i < graph->n_launches; i++)
      if (open_one(g, &graph->launch[i], &ready[g][i]))
        return -1;
    if (graph->pixels && open_one(g, graph->pixels, &ready[g][graph->n_launches]))
      return -1;
    if (graph->ranks && open_one(g, graph->ranks, &ready[g][graph->n_launches + 1]))
      return -1;
  }
  return 0;
}

void cuda_rt_launches_close(void) {
  const CudaPart *part = cuda_rt_found.part;
  for (int g = 0; ready && g < part->n_graphs; g++) {
    for (int i = 0; ready[g] && i < part->graph[g].n_launches; i++) {
      cuda_rt_cudnn_free(ready[g][i].pack);
      cuda_rt_product_free(&ready[g][i].product);
    }
    free(ready[g]);
  }
  free(ready);
  if (image)
    cudaLibraryUnload(image);
  ready = NULL;
  image = NULL;
}

static int run_kernel(int graph, const CudaLaunch *launch, const void *args, unsigned blocks,
                      cudaKernel_t kernel, cudaStream_t stream) {
  void *params[] = {(void *)(uintptr_t)cuda_rt_run(), (void *)(uintptr_t)args};
  dim3 grid = {blocks, launch->grid[1], launch->grid[2]};
  dim3 block = {launch->block[0], launch->block[1], launch->block[2]};
  cudaError_t status =
      cudaLaunchKernel((const void *)kernel, grid, block, params, launch->shared, stream);
  return status == cudaSuccess ? 0 : fail_kernel(graph, launch, "cudaLaunchKernel", status);
}

int cuda_rt_launch(int graph, int first, int past, cudaStream_t stream) {
  for (int i = first; i < past && !cuda_rt_failed(); i++) {
    const CudaLaunch *launch = &cuda_rt_found.part->graph[graph].launch[i];
    const Ready *with = &ready[graph][i];
    if (launch->kind == CUDA_KERNEL)
      run_kernel(graph, launch, launch->args, launch->grid[0], with->kernel, stream);
    else if (launch->kind == CUDA_PLAN)
      cuda_rt_plan_run(launch->plan, with->pack);
    else
      cuda_rt_product_run(launch, &with->product, stream);
  }
  return cuda_rt_failed() ? -1 : 0;
}

int cuda_rt_launch_pixels(int graph, const unsigned char *pixel, const AmprtScaling *scaling,
                          cudaStream_t stream) {
  const CudaGraph *g = &cuda_rt_found.part->graph[graph];
  if (!g->pixels || g->pixels->args_bytes != sizeof(AmpPixels))
    return cuda_rt_fail("this program is damaged: it cannot make images of pixels");
  AmpPixels args = *(const AmpPixels *)g->pixels->args;
  args.pixel = pixel;
  args.scaling = (const double *)(const void *)scaling;
  if (cuda_rt_failed())
    return -1;
  return run_kernel(graph, g->pixels, &args, g->pixels->grid[0], ready[graph][g->n_launches].kernel,
                    stream);
}

int cuda_rt_launch_ranks(int graph, const AmpTree *args, cudaStream_t stream) {
  enum { EACH = 4, MOST_BLOCKS = 512 }; /* elements that a thread adds at once; it goes on beyond */
  const CudaGraph *g = &cuda_rt_found.part->graph[graph];
  if (!g->ranks || g->ranks->args_bytes != sizeof *args)
    return cuda_rt_fail("this program is damaged: it cannot add what ranks send");
  int64_t work = (int64_t)g->ranks->block[0] * EACH;
  int64_t blocks = (args->n_slice + args->n_rest + work - 1) / work;
  if (cuda_rt_failed())
    return -1;
  return run_kernel(graph, g->ranks, args, (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS),
                    ready[graph][g->n_launches + 1].kernel, stream);
}
