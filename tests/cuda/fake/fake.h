/* NVIDIA's libraries as the host plays them, for whole programs: cudart, cudnn_graph and cublasLt,
 * each of them only as far as libamprt_cuda calls it. What does not happen by itself on the host is
 * made to happen by environment variables:
 *
 *   FAKE_CUDA_DRIVER       version of the driver; 0: none              13000
 *   FAKE_CUDA_DEVICES      how many GPUs                               1
 *   FAKE_CUDA_CAPABILITY   of the GPU; of several GPUs: 90,80          90
 *   FAKE_CUDA_MEMORY       bytes it has                                2147483648
 *   FAKE_CUDA_USED         of those, by other programs                 0
 *   FAKE_CUDA_KERNELS      FILE.so, kernels made by tests/cuda/shim
 *   FAKE_CUDA_CHECK        every access of kernels that were compiled so is checked
 *   FAKE_CUDA_EAGER        streams run at once, and branches of a graph as early as may be, not as
 *                          late
 *   FAKE_CUDA_COPIES       says how many bytes each copy from pinned memory has
 *   FAKE_CUDA_SPOIL        BYTES:N: the N-th copy of so many bytes from pinned memory has a NaN
 *   FAKE_CUDA_FAIL         NAME:N or NAME:N=STATUS: the N-th call of NAME fails
 *   FAKE_CUDNN_VERSION     91900
 *   FAKE_CUDNN_WORKSPACE   bytes that every plan says it wants         0
 *   FAKE_CUDNN_ENGINES     how many each heuristic offers              1
 *   FAKE_CUDNN_PLANS       says of each plan that one is built, not read
 *   FAKE_CUDNN_FAST        TEXT: as events tell it, plans without it in their text take a second
 *   FAKE_CUBLAS_VERSION    130100
 *   FAKE_NCCL_VERSION      22809
 *   FAKE_NCCL_ORDER        tree: sums are added in the order of amprt_tree_sum
 *   FAKE_NCCL_BREAK        RANK:N: the N-th sum or exchange of that rank fails in mid-air
 *   FAKE_NCCL_CALLS        says at the end how many calls were made and how many were captured
 *
 * GPUs of two processes are the same if their numbers are equal and CUDA_VISIBLE_DEVICES is equal
 * and not empty. */
#ifndef AMPCC_TESTS_FAKE_H
#define AMPCC_TESTS_FAKE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What a cudaStream_t points to. Libraries have no other way to the fake cudart, which is inside
 * the program. */
typedef struct FakeStream FakeStream;
typedef void FakeWork(void *data);
/* Work that may have to wait for another process: called again and again until it returns 1. A
 * captured graph calls it in every run with the same data. */
typedef int FakeTry(void *data);
struct FakeStream {
  /* Does `work` with a copy of `bytes` at `data`, when the stream gets to it. */
  void (*add)(FakeStream *stream, FakeWork *work, const void *data, size_t bytes);
  void (*add_try)(FakeStream *stream, FakeTry *work, const void *data, size_t bytes);
  int (*is_capturing)(const FakeStream *stream);
  double ahead; /* seconds that its events are ahead of the host's clock */
};

static inline long long fake_number(const char *name, long long otherwise) {
  const char *text = getenv(name);
  return text && *text ? atoll(text) : otherwise;
}

/* Every function calls this first, with a counter of its own. Returns the status to fail with if
 * FAKE_CUDA_FAIL names this call, else 0. */
static inline int fake_failure(const char *function, int *calls, int status) {
  const char *text = getenv("FAKE_CUDA_FAIL");
  size_t n = strlen(function);
  ++*calls;
  if (!text || strncmp(text, function, n) != 0 || text[n] != ':')
    return 0;
  const char *other = strchr(text, '=');
  return atoi(text + n + 1) != *calls ? 0 : other ? atoi(other + 1) : status;
}
#define FAKE_FAILS(type, status)                                                                   \
  do {                                                                                             \
    static int calls_;                                                                             \
    int failure_ = fake_failure(__func__, &calls_, status);                                        \
    if (failure_)                                                                                  \
      return (type)failure_;                                                                       \
  } while (0)

#endif
