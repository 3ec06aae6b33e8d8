/* Says why a part cannot run here, before anything is done to a device. */
#include "runtime/cuda/inner.h"

#include <stdio.h>
#include <stdlib.h>

CudaFound cuda_rt_found;

static int refuse_driver(char *why, size_t size) {
  const CudaPart *part = cuda_rt_found.part;
  int have = 0, need = part->cuda_version / 1000 * 1000; /* minor versions fit each other */
  if (cudaDriverGetVersion(&have) != cudaSuccess || !have)
    return snprintf(why, size, "no NVIDIA driver is installed"), -1;
  if (have < need)
    return snprintf(why, size, "the NVIDIA driver is for CUDA %d.%d, this needs one for %d.%d",
                    have / 1000, have % 1000 / 10, need / 1000, need % 1000 / 10),
           -1;
  return 0;
}

static int refuse_device(char *why, size_t size) {
  struct cudaDeviceProp properties;
  int n = 0;
  cudaError_t status = cudaGetDeviceCount(&n);
  if (status == cudaSuccess && n)
    status = cudaGetDeviceProperties(&properties, cuda_rt_found.index);
  else if (status == cudaSuccess)
    status = cudaErrorNoDevice;
  if (status != cudaSuccess)
    return snprintf(why, size, "no GPU: %s", cudaGetErrorString(status)), -1;
  snprintf(cuda_rt_found.device, sizeof cuda_rt_found.device, "%s", properties.name);
  cuda_rt_found.capability = 10 * properties.major + properties.minor;
  cuda_rt_found.memory = properties.totalGlobalMem;
  return 0;
}

/* The GPU of a Jetson Orin, which runs no machine code of other capabilities, and whose own runs
 * nowhere else (CUDA C++ Programming Guide, Binary Compatibility). */
enum { TEGRA = 87 };

/* Machine code runs on GPUs with its own major capability and the same or a higher minor one. PTX
 * runs on every later GPU. */
static int refuse_capability(char *why, size_t size) {
  const CudaPart *part = cuda_rt_found.part;
  int have = cuda_rt_found.capability;
  cuda_rt_found.image = NULL;
  for (int i = 0; i < part->n_images && !cuda_rt_found.image; i++) {
    bool ptx = part->image[i].is_ptx, tegra = have == TEGRA || part->capability == TEGRA;
    bool same = have == part->capability || (have / 10 == part->capability / 10 && !tegra);
    if (have >= part->capability && (ptx || same))
      cuda_rt_found.image = &part->image[i];
  }
  if (part->newest && have > part->newest)
    return snprintf(why, size,
                    "%s has compute capability %d.%d, the fused plans here exist up to %d.%d: "
                    "compile for it, or with --fuse-level=2",
                    cuda_rt_found.device, have / 10, have % 10, part->newest / 10,
                    part->newest % 10),
           -1;
  if (cuda_rt_found.image)
    return 0;
  return snprintf(why, size, "%s has compute capability %d.%d, this is for %d.%d",
                  cuda_rt_found.device, have / 10, have % 10, part->capability / 10,
                  part->capability % 10),
         -1;
}

static int refuse_cudnn(char *why, size_t size) {
  return cuda_rt_found.part->cudnn_version && !cuda_rt_cudnn(why, size) ? -1 : 0;
}

static int refuse_cublaslt(char *why, size_t size) {
  int need = cuda_rt_found.part->cublas_version;
  const CublasLtApi *api = need ? cuda_rt_cublaslt(why, size) : NULL;
  if (need && !api)
    return -1;
  size_t have = api ? api->cublasLtGetVersion() : 0;
  if (have / 10000 != (size_t)need / 10000)
    return snprintf(why, size, "libcublasLt is version %zu.%zu, this needs %d", have / 10000,
                    have % 10000 / 100, need / 10000),
           -1;
  return 0;
}

static int refuse_memory(char *why, size_t size) {
  uint64_t need = cuda_rt_layout(cuda_rt_found.part, cuda_rt_found.program, NULL).bytes;
  double gib = 1 << 30;
  if (need <= cuda_rt_found.memory)
    return 0;
  return snprintf(why, size,
                  "this needs %.2f GiB of GPU memory, %s has %.2f: compile with --max-memory or a "
                  "smaller --batch-size",
                  (double)need / gib, cuda_rt_found.device, (double)cuda_rt_found.memory / gib),
         -1;
}

int cuda_fits(const CudaPart *part, const AmprtProgram *program, char *why, size_t size) {
  static int (*const refuse[])(char *why, size_t size) = {refuse_driver,     refuse_device,
                                                          refuse_capability, refuse_memory,
                                                          refuse_cudnn,      refuse_cublaslt};
  cuda_rt_found = (CudaFound){.part = part, .program = program};
  for (size_t i = 0; i < sizeof refuse / sizeof *refuse; i++)
    if (refuse[i](why, size))
      return -1;
  return 0;
}

/* A launcher may show every rank a GPU of its own, in CUDA_VISIBLE_DEVICES, or all GPUs of the
 * machine. */
int cuda_rt_choose_device(const AmprtRanks *ranks) {
  static int (*const refuse[])(char *why, size_t size) = {refuse_device, refuse_capability,
                                                          refuse_memory};
  char why[512];
  int n = 0, index = ranks->local_rank;
  if (CUDA(cudaGetDeviceCount, &n))
    return -1;
  if (n == 1 && getenv("CUDA_VISIBLE_DEVICES"))
    index = 0;
  if (index >= n)
    return cuda_rt_fail("rank %d is process %d of its machine, which has %d GPU%s: start one "
                        "process for each GPU",
                        ranks->rank, ranks->local_rank + 1, n, n == 1 ? "" : "s");
  cuda_rt_found.index = index;
  for (size_t i = 0; index && i < sizeof refuse / sizeof *refuse; i++)
    if (refuse[i](why, sizeof why))
      return cuda_rt_fail("GPU %d, of rank %d: %s", index, ranks->rank, why);
  return 0;
}

/* Writes ", cuDNN 9.19.0" for the version 91900; `major` is what one major version counts,
 * 10000. */
static void add_version(char *to, size_t size, const char *name, size_t version, size_t major) {
  snprintf(to, size, ", %s %zu.%zu.%zu", name, version / major, version % major / 100,
           version % 100);
}

const char *cuda_describe(void) {
  static char text[512];
  char why[256], cudnn[40] = "", cublas[40] = "";
  const CudaFound *found = &cuda_rt_found;
  int driver = 0;
  if (!found->image)
    return "no GPU";
  const CudnnApi *dnn = found->part->cudnn_version ? cuda_rt_cudnn(why, sizeof why) : NULL;
  const CublasLtApi *blas = found->part->cublas_version ? cuda_rt_cublaslt(why, sizeof why) : NULL;
  cudaDriverGetVersion(&driver);
  if (dnn)
    add_version(cudnn, sizeof cudnn, "cuDNN", dnn->cudnnGetVersion(), 10000);
  if (blas)
    add_version(cublas, sizeof cublas, "cuBLASLt", blas->cublasLtGetVersion(), 10000);
  snprintf(text, sizeof text, "%.200s, %.2f of %.2f GiB, driver for CUDA %d.%d%s%s%s",
           found->device,
           (double)cuda_rt_layout(found->part, found->program, NULL).bytes / (1 << 30),
           (double)found->memory / (1 << 30), driver / 1000, driver % 1000 / 10, cudnn, cublas,
           found->part->tf32 ? ", TF32" : "");
  return text;
}
