/* What a program needs of nccl.h, which toolkits of CUDA do not have. Names and numbers are NCCL's
 * (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html). */
#ifndef AMPCC_RUNTIME_CUDA_NCCL_API_H
#define AMPCC_RUNTIME_CUDA_NCCL_API_H

#include <cuda_runtime_api.h>

/* ncclConfig_t as it was in version 2.18. Its first field says how much of it there is, so that
 * later versions take it too. */
typedef struct NcclConfig {
  size_t size;
  unsigned magic, version;
  int blocking, cluster, min_blocks, max_blocks;
  const char *network;
  int split_share;
} NcclConfig;
enum { NCCL_CONFIG_VERSION = 21800, NCCL_CONFIG_NONE = -2147483647 - 1 /* left to the library */ };
static const unsigned nccl_config_magic = 0xcafebeef;

#ifndef NCCL_H_
typedef struct ncclComm *ncclComm_t;
typedef struct ncclUniqueId {
  char internal[128];
} ncclUniqueId;
typedef NcclConfig ncclConfig_t;
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t; /* enums there */
#define NCCL(result, name, arguments)
#define NCCL_VALUE(type, name, number) enum { name = number };
#include "runtime/cuda/nccl_api.def"
#endif

typedef struct NcclApi {
#define NCCL(result, name, arguments) result(*name) arguments;
#define NCCL_VALUE(type, name, number)
#include "runtime/cuda/nccl_api.def"
} NcclApi;

#endif
