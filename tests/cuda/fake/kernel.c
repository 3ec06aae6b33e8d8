/* Kernels of the fake cudart: the image that the program carries is looked at, and what runs is the
 * same kernel in FAKE_CUDA_KERNELS. */
#include "stream.h"
#include "tests/cuda/shim/run.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>

enum { EM_CUDA_MACHINE = 190, MOST_NAME = 200 };

struct CUlib_st {
  const unsigned char *image; /* the ELF file; NULL if the image is PTX */
  const char *ptx;
};

struct CUkern_st {
  char name[MOST_NAME];
  ShimKernel *kernel;
  size_t args_bytes;
  struct CUkern_st *next;
};

static struct CUlib_st library;
static struct CUkern_st *kernels;
static const ShimApi *shim;
static void *handle;

#define BEGIN                                                                                      \
  FAKE_FAILS(cudaError_t, cudaErrorUnknown);                                                       \
  if (fake_sticky != cudaSuccess)                                                                  \
  return fake_sticky

/* ---- images ---- */

static bool is_elf(const unsigned char *image) {
  Elf64_Ehdr head;
  if (memcmp(image, ELFMAG, SELFMAG) != 0)
    return false;
  memcpy(&head, image, sizeof head);
  return head.e_machine == EM_CUDA_MACHINE && head.e_shentsize == sizeof(Elf64_Shdr);
}

static Elf64_Shdr section(const unsigned char *image, int i) {
  Elf64_Ehdr head;
  Elf64_Shdr s;
  memcpy(&head, image, sizeof head);
  memcpy(&s, image + head.e_shoff + (size_t)i * sizeof s, sizeof s);
  return s;
}

/* A kernel's code lies in a section of its own, ".text.NAME". */
static bool has_kernel(const unsigned char *image, const char *name) {
  Elf64_Ehdr head;
  memcpy(&head, image, sizeof head);
  Elf64_Shdr names = section(image, head.e_shstrndx);
  for (int i = 0; i < head.e_shnum; i++) {
    const char *have = (const char *)image + names.sh_offset + section(image, i).sh_name;
    if (strncmp(have, ".text.", 6) == 0 && strcmp(have + 6, name) == 0)
      return true;
  }
  return false;
}

static void add_memory(void *at, size_t bytes) {
  shim->add("device memory", at, bytes);
  memory_open();
  shim->mark(at, bytes, SHIM_DEFINED);
  memory_close();
}

static bool open_shim(void) {
  const char *file = getenv("FAKE_CUDA_KERNELS");
  handle = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
  shim = handle ? dlsym(handle, "shim_api") : NULL;
  if (!shim)
    fprintf(stderr, "fake GPU: FAKE_CUDA_KERNELS: %s\n", file ? dlerror() : "not set");
  else if (fake_number("FAKE_CUDA_CHECK", 0))
    memory_each(add_memory);
  return shim;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *made, const void *code,
                                enum cudaJitOption *jit_option, void **jit_value, unsigned n_jit,
                                enum cudaLibraryOption *option, void **value, unsigned n) {
  FAKE_FAILS(cudaError_t, cudaErrorInvalidKernelImage);
  (void)jit_option, (void)jit_value, (void)n_jit, (void)option, (void)value, (void)n;
  bool elf = is_elf(code), ptx = strncmp(code, "//", 2) == 0 || strncmp(code, ".version", 8) == 0;
  if (!elf && !ptx)
    return cudaErrorInvalidKernelImage;
  if (!open_shim())
    return cudaErrorLaunchFailure;
  library = (struct CUlib_st){elf ? code : NULL, elf ? NULL : code};
  *made = (cudaLibrary_t)(void *)&library;
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t lib) {
  BEGIN;
  (void)lib;
  stream_drain_all();
  for (struct CUkern_st *k = kernels, *next; k; k = next) {
    next = k->next;
    free(k);
  }
  kernels = NULL;
  if (handle)
    dlclose(handle);
  handle = NULL;
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *made, cudaLibrary_t lib, const char *name) {
  BEGIN;
  (void)lib;
  char symbol[MOST_NAME + 20];
  if (strlen(name) >= MOST_NAME || (library.image && !has_kernel(library.image, name)) ||
      (library.ptx && !strstr(library.ptx, name)))
    return cudaErrorSymbolNotFound;
  struct CUkern_st *k = calloc(1, sizeof *k);
  if (!k)
    abort();
  strcpy(k->name, name);
  snprintf(symbol, sizeof symbol, "shim_kernel_%s", name);
  void *address = dlsym(handle, symbol);
  snprintf(symbol, sizeof symbol, "shim_bytes_%s", name);
  const size_t *bytes = dlsym(handle, symbol);
  k->next = kernels;
  kernels = k;
  if (!address || !bytes) {
    fprintf(stderr, "fake GPU: FAKE_CUDA_KERNELS has no %s\n", name);
    return cudaErrorSymbolNotFound;
  }
  /* ISO C has no cast from an object pointer to a function pointer */
  memcpy(&k->kernel, &address, sizeof address);
  k->args_bytes = *bytes;
  *made = (cudaKernel_t)(void *)k;
  return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                            int value, int device) {
  BEGIN;
  (void)kernel, (void)attribute, (void)value, (void)device;
  return cudaSuccess;
}

/* ---- launches ---- */

typedef struct Run { /* CudaRun of cuda_rt.h */
  void *arena, *state, *constant;
} Run;

typedef struct Launch { /* the args of the kernel follow */
  const struct CUkern_st *kernel;
  unsigned grid[3], block[3];
  size_t shared;
  Run run;
} Launch;

static void work_launch(void *data) {
  Launch *l = data;
  static uint64_t seed;
  ShimLaunch launch = {.name = l->kernel->name,
                       .kernel = l->kernel->kernel,
                       .grid = {l->grid[0], l->grid[1], l->grid[2]},
                       .block = {l->block[0], l->block[1], l->block[2]},
                       .shared = l->shared,
                       .parameter = (void *[]){&l->run, l + 1},
                       .seed = seed++};
  const char *error = shim->launch(&launch);
  if (error)
    fake_fault(error, cudaErrorIllegalAddress);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
                             size_t shared, cudaStream_t stream) {
  BEGIN;
  const struct CUkern_st *k = function;
  Launch *l = malloc(sizeof *l + k->args_bytes);
  if (!l)
    abort();
  *l = (Launch){.kernel = k,
                .grid = {grid.x, grid.y, grid.z},
                .block = {block.x, block.y, block.z},
                .shared = shared};
  memcpy(&l->run, args[0], sizeof l->run);
  memcpy(l + 1, args[1], k->args_bytes);
  stream_add(stream, work_launch, l, sizeof *l + k->args_bytes);
  free(l);
  return cudaSuccess;
}
