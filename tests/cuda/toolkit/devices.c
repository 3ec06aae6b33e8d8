/* The table of GPUs: names, refusals, and the 23 keys that cuDNN wants. */
#include "codegen/cuda/toolkit/device.h"
#include "tests/cuda/toolkit/check.h"

static Arena *arena;

static void finds_by_name_and_capability(void **state) {
  (void)state;
  const char *why = NULL;
  int last = 0;
  for (int i = 0; device_at(i); i++) {
    const Device *device = device_at(i);
    assert_ptr_equal(device_find(arena, device->name, &why), device);
    assert_true(device->capability >= last); /* rows of one capability stand together */
    if (device->capability != last) {
      const char *sm = arena_printf(arena, "sm_%d", device->capability);
      assert_ptr_equal(device_find(arena, sm, &why), device);
    }
    last = device->capability;
  }
  assert_null(device_at(-1));
}

static void refuses_with_the_reason(void **state) {
  (void)state;
  static const char *const asked[][2] = {
      {"v100", "no kernels for it"}, {"sm_70", "no kernels for it"},  {"sm_60", "makes no code"},
      {"p100", "makes no code"},     {"h300", "there are: sm_75 t4"}, {"", "there are: sm_75 t4"},
      {"sm_", "there are:"},         {"sm_9", "no GPU `sm_9`"},       {"H200", "no GPU `H200`"},
  };
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    const char *why = NULL;
    assert_null(device_find(arena, asked[i][0], &why));
    assert_non_null(strstr(why, asked[i][1]));
  }
}

static void some_are_the_default(void **state) {
  (void)state;
  int n = 0;
  for (int i = 0; device_at(i); i++)
    n += device_at(i)->is_default;
  assert_in_range(n, 1, 4);
}

static void describes_with_every_key(void **state) {
  (void)state;
  static const char *const key[] = {"deviceName",
                                    "cudaDeviceId",
                                    "deviceVer",
                                    "driverVer",
                                    "isTccDriver",
                                    "l2CacheSize",
                                    "maxCtasPerSM",
                                    "maxRegistersPerSM",
                                    "maxSharedMemoryPerBlock",
                                    "maxSharedMemoryPerBlockOptin",
                                    "maxThreadsPerBlock",
                                    "maxThreadsPerSM",
                                    "memClockRateKHz",
                                    "multiProcessorCount",
                                    "pciDeviceId",
                                    "regsPerBlock",
                                    "reservedSharedMemoryPerBlock",
                                    "smClockRateKHz",
                                    "supportCoopLaunch",
                                    "totalGlobalMem",
                                    "warpSize",
                                    "maxBlockSize",
                                    "maxGridSize"};
  for (int i = 0; device_at(i); i++)
    for (size_t k = 0; k < sizeof key / sizeof *key; k++)
      assert_non_null(
          strstr(device_json(arena, device_at(i)), arena_printf(arena, "\"%s\":", key[k])));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_by_name_and_capability), cmocka_unit_test(refuses_with_the_reason),
      cmocka_unit_test(some_are_the_default), cmocka_unit_test(describes_with_every_key)};
  arena = arena_new();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  arena_free(arena);
  return failed;
}
