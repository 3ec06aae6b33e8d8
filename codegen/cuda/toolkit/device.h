/* The GPUs that ampcc compiles for. They are a table, whatever GPU is in this machine. */
#ifndef AMPCC_CODEGEN_CUDA_TOOLKIT_DEVICE_H
#define AMPCC_CODEGEN_CUDA_TOOLKIT_DEVICE_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Device {
  const char *name; /* "h200", as in --target=cuda:h200 */
  int capability;   /* 90 */
  bool is_default;  /* one of those that --target=cuda stands for */
  bool is_arm;      /* only found beside AArch64 CPUs */
  const char *product;
  int multiprocessors, l2_mib;
  int threads, blocks;       /* that a multiprocessor holds at once */
  int shared, shared_system; /* bytes: the most that a block may ask for; what the driver keeps */
  int clock_mhz, memory_mhz;
  int64_t bytes; /* of memory */
} Device;

/* The device with this name, "h200", or the first of a capability, "sm_90". NULL with one line in
 * *why: that it is not supported and the reason, or that it is unknown and which names there
 * are. */
const Device *device_find(Arena *arena, const char *name, const char **why);
/* The i-th row, NULL past the last. */
const Device *device_at(int i);
/* The description that cuDNN takes (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). */
const char *device_json(Arena *arena, const Device *device);

#endif
