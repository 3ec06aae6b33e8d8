#include "codegen/cuda/toolkit/device.h"

#include <stdio.h>
#include <string.h>

static const Device devices[] = {
#define DEVICE(name, capability, is_default, is_arm, product, sms, l2, threads, blocks, shared,    \
               system, mhz, memory, bytes)                                                         \
  {name,    capability, is_default, is_arm, product, sms,    l2,                                   \
   threads, blocks,     shared,     system, mhz,     memory, bytes},
#include "codegen/cuda/toolkit/devices.def"
};
enum { N_DEVICES = sizeof devices / sizeof *devices };

/* GPUs that are not supported although a user may ask for them, with the reason. */
static const struct {
  const char *name;
  int capability;
  const char *reason;
} refused[] = {
    {"v100", 70, "CUDA 13 makes no code for capability 7.0, and cuDNN 9.19 has no kernels for it"},
    {"p100", 60, "CUDA 13 makes no code for capability 6.0"},
};

static bool is_named(const char *wanted, const char *name, int capability) {
  char sm[16];
  snprintf(sm, sizeof sm, "sm_%d", capability);
  return strcmp(wanted, name) == 0 || strcmp(wanted, sm) == 0;
}

const Device *device_find(Arena *arena, const char *name, const char **why) {
  for (int i = 0; i < N_DEVICES; i++)
    if (is_named(name, devices[i].name, devices[i].capability))
      return &devices[i];
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    if (is_named(name, refused[i].name, refused[i].capability)) {
      *why = arena_printf(arena, "%s is not supported: %s", name, refused[i].reason);
      return NULL;
    }
  const char *known = "";
  for (int i = 0, last = 0; i < N_DEVICES; i++) {
    if (devices[i].capability != last)
      known = arena_printf(arena, "%s sm_%d", known, devices[i].capability);
    known = arena_printf(arena, "%s %s", known, devices[i].name);
    last = devices[i].capability;
  }
  *why = arena_printf(arena, "no GPU `%s`; there are:%s", name, known);
  return NULL;
}

const Device *device_at(int i) {
  return i >= 0 && i < N_DEVICES ? &devices[i] : NULL;
}

const char *device_json(Arena *arena, const Device *d) {
  /* Fields that are not columns of the table are the same for all GPUs since Turing, or cuDNN does
   * not look at them. driverVer is the version of the driver that comes with CUDA 13.0; a program
   * replaces it by that of the machine on which it runs. */
  return arena_printf(
      arena,
      "{\"deviceName\":\"%s\",\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,"
      "\"isTccDriver\":0,\"l2CacheSize\":%lld,\"maxCtasPerSM\":%d,\"maxRegistersPerSM\":65536,"
      "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
      "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"memClockRateKHz\":%d,"
      "\"multiProcessorCount\":%d,\"pciDeviceId\":0,\"regsPerBlock\":65536,"
      "\"reservedSharedMemoryPerBlock\":%d,\"smClockRateKHz\":%d,\"supportCoopLaunch\":1,"
      "\"totalGlobalMem\":%lld,\"warpSize\":32,\"maxBlockSize\":[1024,1024,64],"
      "\"maxGridSize\":[2147483647,65535,65535]}",
      d->product, d->capability * 10, (long long)d->l2_mib << 20, d->blocks, d->shared, d->threads,
      d->memory_mhz * 1000, d->multiprocessors, d->shared_system, d->clock_mhz * 1000,
      (long long)d->bytes);
}
