/* Kernels on the host: called by a test or by the fake cudart. A shared object of one kernel text
 * and this shim exports one ShimApi, `shim_api`, and a function `shim_kernel_NAME` per kernel.
 *
 * What is noticed depends on how the text was compiled. With -fsanitize=thread every access comes
 * here (check.c is the runtime of those hooks, not libtsan), and these end the launch:
 *   - an access outside what shim_api.mark allowed, or across the end of shared memory;
 *   - a read of shared memory that the block has not written, or of memory marked undefined;
 *   - an access that is not aligned to its size;
 *   - two threads of a block that touch a byte, one writing, with no barrier between them (or no
 *     __syncwarp, in a warp); two blocks of a launch that do so at all; atomics excepted.
 * and what -fsanitize=undefined knows (undefined.c). With -fsanitize=address the same memory is
 * poisoned, and the process dies. In every case: a
 * barrier or shuffle that not all of its threads reach, shared memory beyond 48 KiB; and undefined
 * memory is filled with 0xff, a NaN of every float type. */
#ifndef AMPCC_TESTS_SHIM_RUN_H
#define AMPCC_TESTS_SHIM_RUN_H

#include <stddef.h>
#include <stdint.h>

typedef void ShimKernel(void *const *parameter);

typedef struct ShimLaunch {
  const char *name; /* in messages */
  ShimKernel *kernel;
  unsigned grid[3], block[3];
  size_t shared;          /* dynamic shared memory */
  void *const *parameter; /* CudaRun, args */
  uint64_t seed;          /* orders blocks and threads; 0: rising */
} ShimLaunch;

/* What kernels may do with bytes. */
typedef enum ShimMark {
  SHIM_FORBIDDEN,
  SHIM_UNDEFINED, /* write, then read */
  SHIM_DEFINED,
  SHIM_CONSTANT /* read */
} ShimMark;

typedef struct ShimApi {
  /* NULL, or what was wrong, in one line, until the next launch. */
  const char *(*launch)(const ShimLaunch *launch);
  /* Makes a block of memory known; all of it is forbidden. Needs 16 times its size as it is used.
   */
  void (*add)(const char *name, void *at, size_t bytes);
  void (*drop)(void *at);
  void (*mark)(void *at, size_t bytes, ShimMark mark); /* inside one block */
  /* The first byte that was marked undefined and that no kernel has written since; NULL: none, or
   * accesses are not checked here. */
  const void *(*unwritten)(const void *at, size_t bytes);
  /* A fault to plant: barriers of blocks in this line of the text let everyone pass; 0: none.
   * Returns how often a thread has passed the line before. */
  int (*skip)(int line);
} ShimApi;

extern const ShimApi shim_api;

#endif
