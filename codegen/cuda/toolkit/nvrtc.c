#include "codegen/cuda/toolkit/nvrtc.h"

#include "codegen/program/cache.h"

#include <stdio.h>
#include <string.h>

/* Options beside the architecture. NVRTC copies them into the machine code, so there must be no
 * paths among them, and the number of threads must not depend on the machine that compiles. */
static const char *const options[] = {"--std=c++17", "--fmad=false", "--split-compile=2"};
enum { N_OPTIONS = sizeof options / sizeof *options };

/* ---- the entry in the cache: the sizes, then machine code and PTX ---- */

typedef struct Sizes {
  uint64_t cubin, ptx;
} Sizes;

static CacheKey key_of(const Toolkit *toolkit, const char *text, int capability) {
  CacheKey key = cache_key_begin("nvrtc");
  cache_key_int(&key, toolkit->nvrtc_version);
  cache_key_int(&key, capability);
  for (int i = 0; i < N_OPTIONS; i++)
    cache_key_text(&key, options[i]);
  cache_key_text(&key, text);
  return key;
}

/* Finds machine code and PTX in an entry of the cache. */
static bool split(const char *data, size_t size, NvrtcCode *out) {
  Sizes sizes;
  if (size < sizeof sizes)
    return false;
  memcpy(&sizes, data, sizeof sizes);
  if (sizes.cubin > size - sizeof sizes || sizes.ptx != size - sizeof sizes - sizes.cubin)
    return false;
  *out = (NvrtcCode){.cubin = data + sizeof sizes,
                     .cubin_bytes = sizes.cubin,
                     .ptx = data + sizeof sizes + sizes.cubin,
                     .ptx_bytes = sizes.ptx};
  return true;
}

/* ---- the compiler ---- */

/* The first line of the log with an error in it. */
static void log_reason(const NvrtcApi *api, nvrtcProgram program, Arena *arena,
                       char error[TOOLKIT_ERROR]) {
  size_t size = 0;
  if (api->nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS)
    return;
  char *log = arena_alloc(arena, size + 1);
  if (api->nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS)
    return;
  char *found = strstr(log, "error");
  char *line = found ? found : log;
  while (line > log && line[-1] != '\n')
    line--;
  line[strcspn(line, "\n")] = '\0';
  snprintf(error, TOOLKIT_ERROR, "NVRTC: %.300s", line);
}

static bool read_code(const NvrtcApi *api, nvrtcProgram program, Arena *arena, char **data,
                      size_t *size) {
  Sizes sizes;
  size_t cubin, ptx; /* ptx counts its NUL */
  if (api->nvrtcGetCUBINSize(program, &cubin) != NVRTC_SUCCESS ||
      api->nvrtcGetPTXSize(program, &ptx) != NVRTC_SUCCESS || cubin == 0 || ptx == 0)
    return false;
  sizes = (Sizes){cubin, ptx - 1};
  *size = sizeof sizes + cubin + ptx - 1;
  *data = arena_alloc(arena, *size + 1);
  memcpy(*data, &sizes, sizeof sizes);
  return api->nvrtcGetCUBIN(program, *data + sizeof sizes) == NVRTC_SUCCESS &&
         api->nvrtcGetPTX(program, *data + sizeof sizes + cubin) == NVRTC_SUCCESS;
}

static bool compile(const NvrtcApi *api, const char *text, int capability, Arena *arena,
                    char **data, size_t *size, char error[TOOLKIT_ERROR]) {
  nvrtcProgram program;
  const char *all[1 + N_OPTIONS] = {arena_printf(arena, "--gpu-architecture=sm_%d", capability)};
  memcpy(all + 1, options, sizeof options);
  nvrtcResult result = api->nvrtcCreateProgram(&program, text, "kernels.cu", 0, NULL, NULL);
  if (result != NVRTC_SUCCESS) {
    snprintf(error, TOOLKIT_ERROR, "NVRTC: %s", api->nvrtcGetErrorString(result));
    return false;
  }
  result = api->nvrtcCompileProgram(program, 1 + N_OPTIONS, all);
  bool good = result == NVRTC_SUCCESS && read_code(api, program, arena, data, size);
  if (!good) {
    snprintf(error, TOOLKIT_ERROR, "NVRTC: %s", api->nvrtcGetErrorString(result));
    log_reason(api, program, arena, error);
  }
  api->nvrtcDestroyProgram(&program);
  return good;
}

bool nvrtc_compile(Toolkit *toolkit, const char *cache, Arena *arena, const char *text,
                   int capability, NvrtcCode *out, char error[TOOLKIT_ERROR]) {
  if (!toolkit_nvrtc(toolkit, error))
    return false;
  CacheKey key = key_of(toolkit, text, capability);
  char *data;
  size_t size;
  if (cache_get(cache, &key, arena, &data, &size) && split(data, size, out))
    return true;
  if (!compile(&toolkit->nvrtc, text, capability, arena, &data, &size, error))
    return false;
  cache_put(cache, &key, data, size);
  return split(data, size, out);
}
