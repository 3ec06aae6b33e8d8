/* Devices and memory of the fake cudart. A block of device memory ends at a page that nobody may
 * touch, is filled with NaN at first, and can be touched only while work of a stream runs. */
#include "stream.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PAGE = 4096, ALIGNMENT = 256, MOST_BLOCKS = 64 };

typedef struct Block {
  unsigned char *map, *at;
  size_t map_bytes, bytes;
  bool is_pinned;
} Block;

cudaError_t fake_sticky = cudaSuccess;
static Block block[MOST_BLOCKS];
static int n_blocks, n_open;

#define BEGIN                                                                                      \
  FAKE_FAILS(cudaError_t, cudaErrorUnknown);                                                       \
  if (fake_sticky != cudaSuccess)                                                                  \
  return fake_sticky

void fake_fault(const char *why, cudaError_t status) {
  if (fake_sticky == cudaSuccess)
    fprintf(stderr, "fake GPU: %s\n", why);
  fake_sticky = status;
}

/* ---- devices ---- */

cudaError_t cudaDriverGetVersion(int *version) {
  BEGIN;
  *version = (int)fake_number("FAKE_CUDA_DRIVER", 13000);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n) {
  BEGIN;
  *n = (int)fake_number("FAKE_CUDA_DEVICES", 1);
  return *n ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
  BEGIN;
  if (device < 0 || device >= fake_number("FAKE_CUDA_DEVICES", 1))
    return cudaErrorInvalidDevice;
  const char *list = getenv("FAKE_CUDA_CAPABILITY");
  int capability = list && *list ? atoi(list) : 90;
  for (int i = 0; list && i < device && (list = strchr(list, ',')) != NULL; i++)
    capability = atoi(++list);
  *out =
      (struct cudaDeviceProp){.major = capability / 10,
                              .minor = capability % 10,
                              .totalGlobalMem = (size_t)fake_number("FAKE_CUDA_MEMORY", 1ll << 31)};
  strcpy(out->name, "Fake GPU");
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  BEGIN;
  char text[20];
  if (device < 0 || device >= fake_number("FAKE_CUDA_DEVICES", 1))
    return cudaErrorInvalidDevice;
  snprintf(text, sizeof text, "%d", device);
  setenv("FAKE_CUDA_DEVICE", text, 1); /* for the fake NCCL */
  return cudaSuccess;
}

/* ---- blocks ---- */

static size_t used_bytes(void) {
  size_t used = (size_t)fake_number("FAKE_CUDA_USED", 0);
  for (int i = 0; i < n_blocks; i++)
    used += block[i].is_pinned ? 0 : block[i].bytes;
  return used;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  BEGIN;
  *total = (size_t)fake_number("FAKE_CUDA_MEMORY", 1ll << 31);
  *available = *total - used_bytes();
  return cudaSuccess;
}

static cudaError_t allocate(void **made, size_t bytes, bool is_pinned) {
  size_t total = (size_t)fake_number("FAKE_CUDA_MEMORY", 1ll << 31);
  if (n_blocks == MOST_BLOCKS || bytes > total - (is_pinned ? 0 : used_bytes()))
    return cudaErrorMemoryAllocation;
  size_t pages = (bytes + ALIGNMENT + PAGE - 1) / PAGE * PAGE, map_bytes = pages + 2 * PAGE;
  unsigned char *map =
      mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    return cudaErrorMemoryAllocation;
  unsigned char *end = map + PAGE + pages,
                *at = end - (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  memset(map + PAGE, 0xff, pages);
  mprotect(map, PAGE, PROT_NONE);
  mprotect(end, PAGE, PROT_NONE);
  if (!is_pinned)
    mprotect(map, map_bytes, PROT_NONE);
  block[n_blocks++] = (Block){map, at, map_bytes, bytes, is_pinned};
  *made = at;
  return cudaSuccess;
}

static cudaError_t release(void *at, bool is_pinned) {
  stream_drain_all();
  for (int i = 0; i < n_blocks; i++)
    if (block[i].at == at && block[i].is_pinned == is_pinned) {
      munmap(block[i].map, block[i].map_bytes);
      block[i] = block[--n_blocks];
      return fake_sticky;
    }
  return cudaErrorInvalidValue;
}

cudaError_t cudaMalloc(void **made, size_t bytes) {
  BEGIN;
  return stream_is_capturing() ? cudaErrorStreamCaptureUnsupported : allocate(made, bytes, false);
}

cudaError_t cudaFree(void *at) {
  BEGIN;
  return release(at, false);
}

cudaError_t cudaMallocHost(void **made, size_t bytes) {
  BEGIN;
  return allocate(made, bytes, true);
}

cudaError_t cudaFreeHost(void *at) {
  BEGIN;
  return release(at, true);
}

static void protect(int how) {
  for (int i = 0; i < n_blocks; i++)
    if (!block[i].is_pinned)
      mprotect(block[i].map + PAGE, block[i].map_bytes - 2 * PAGE, how);
}

void memory_open(void) {
  if (n_open++ == 0)
    protect(PROT_READ | PROT_WRITE);
}

void memory_close(void) {
  if (--n_open == 0)
    protect(PROT_NONE);
}

void memory_each(void (*call)(void *at, size_t bytes)) {
  for (int i = 0; i < n_blocks; i++)
    if (!block[i].is_pinned)
      call(block[i].at, block[i].bytes);
}

static const Block *block_of(const void *at) {
  for (int i = 0; i < n_blocks; i++)
    if ((uintptr_t)at - (uintptr_t)block[i].at < block[i].bytes)
      return &block[i];
  return NULL;
}

/* ---- copies ---- */

typedef struct Copy {
  void *to;
  const void *from; /* NULL: the bytes that follow this struct */
  size_t bytes;
} Copy;

static void work_copy(void *data) {
  const Copy *copy = data;
  memcpy(copy->to, copy->from ? copy->from : (const void *)(copy + 1), copy->bytes);
}

static void work_set(void *data) {
  const Copy *set = data;
  memset(set->to, (int)(uintptr_t)set->from, set->bytes);
}

/* Makes the beginning of the copy that FAKE_CUDA_SPOIL names a NaN of every float type. */
static void spoil(unsigned char *from, size_t bytes) {
  static int n;
  const char *wish = getenv("FAKE_CUDA_SPOIL"), *number = wish ? strchr(wish, ':') : NULL;
  if (number && (size_t)atoll(wish) == bytes && ++n == atoi(number + 1))
    memset(from, 0xff, sizeof(double));
}

static bool is_inside(const void *at, size_t bytes, bool on_device) {
  const Block *b = block_of(at);
  if (!b || b->is_pinned)
    return !on_device;
  return on_device && bytes <= b->bytes - (size_t)((const unsigned char *)at - b->at);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  BEGIN;
  if (!is_inside(to, bytes, true))
    return cudaErrorInvalidValue;
  stream_add(stream, work_set, &(Copy){to, (void *)(uintptr_t)value, bytes}, sizeof(Copy));
  return cudaSuccess;
}

/* Pinned memory is read when the copy is done. Other memory is read at once, or the copy is waited
 * for. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  BEGIN;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (!is_inside(to, bytes, to_device) || !is_inside(from, bytes, from_device))
    return cudaErrorInvalidValue;
  Copy *copy = malloc(sizeof *copy + bytes);
  if (!copy)
    abort();
  *copy = (Copy){to, from, bytes};
  bool is_now = !from_device && !block_of(from);
  if (!from_device && !is_now && fake_number("FAKE_CUDA_COPIES", 0))
    fprintf(stderr, "fake GPU: copies %zu bytes\n", bytes);
  if (!from_device && !is_now)
    spoil((unsigned char *)(uintptr_t)from, bytes);
  if (is_now) {
    copy->from = NULL;
    memcpy(copy + 1, from, bytes);
  }
  stream_add(stream, work_copy, copy, sizeof *copy + (is_now ? bytes : 0));
  free(copy);
  if (!to_device && !block_of(to))
    return cudaStreamSynchronize(stream);
  return cudaSuccess;
}

/* ---- errors ---- */

static const struct {
  cudaError_t status;
  const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const char *cudaGetErrorName(cudaError_t status) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].status == status)
      return errors[i].name;
  return "an error that the fake does not know";
}

const char *cudaGetErrorString(cudaError_t status) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].status == status)
      return errors[i].text;
  return "an error that the fake does not know";
}
