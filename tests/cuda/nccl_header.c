/* The functions and numbers of nccl_api.def beside those of nccl.h, and whether libnccl.so.2 has
 * all of them. Says what is not at hand; skipped if neither is.
 *
 *   nccl_header [FOLDER...]   where to look for the library, besides the system's places */
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include "runtime/cuda/nccl_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { SKIPPED = 77 };

#ifdef NCCL_H_
#define NCCL(result, name, arguments)                                                              \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) arguments), #name);
#define NCCL_VALUE(type, name, number) _Static_assert((int)name == number, #name);
#include "runtime/cuda/nccl_api.def"
#define SAME(mine, theirs)                                                                         \
  _Static_assert(offsetof(NcclConfig, mine) == offsetof(ncclConfig_t, theirs), #theirs);
SAME(size, size)
SAME(magic, magic)
SAME(version, version)
SAME(blocking, blocking)
SAME(cluster, cgaClusterSize)
SAME(min_blocks, minCTAs)
SAME(max_blocks, maxCTAs)
SAME(network, netName)
SAME(split_share, splitShare)
_Static_assert(NCCL_CONFIG_NONE == NCCL_CONFIG_UNDEF_INT, "NCCL_CONFIG_UNDEF_INT");
_Static_assert(sizeof(ncclUniqueId) == 128, "AMPRT_ID_BYTES");
static const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
#endif

static void *open_library(int argc, char **argv) {
  char path[400];
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  for (int i = 1; i < argc && !library; i++) {
    snprintf(path, sizeof path, "%s/libnccl.so.2", argv[i]);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}

static int check_library(void *library) {
  static const char *const name[] = {
#define NCCL(result, name, arguments) #name,
#define NCCL_VALUE(type, name, number)
#include "runtime/cuda/nccl_api.def"
  };
  int missing = 0, version = 0;
  ncclResult_t (*get_version)(int *) = NULL;
  for (size_t i = 0; i < sizeof name / sizeof *name; i++)
    if (!dlsym(library, name[i]))
      printf("FAIL libnccl.so.2 has no %s\n", name[i]), missing++;
  void *found = dlsym(library, "ncclGetVersion");
  memcpy(&get_version, &found, sizeof found);
  if (get_version && get_version(&version) == 0)
    printf("libnccl.so.2 is version %d and has %zu functions of %zu\n", version,
           sizeof name / sizeof *name - (size_t)missing, sizeof name / sizeof *name);
  return missing || !version;
}

int main(int argc, char **argv) {
  int failed = 0, found = 0;
#ifdef NCCL_H_
  printf("nccl.h is version %d.%d.%d\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
  if (theirs.magic != nccl_config_magic)
    printf("FAIL the configuration has another magic number\n"), failed++;
  found = 1;
#else
  printf("no nccl.h: the table of functions was not compared\n");
#endif
  void *library = open_library(argc, argv);
  if (library)
    failed += check_library(library), found = 1;
  else
    printf("no libnccl.so.2: its symbols were not looked up\n");
  return failed ? 1 : found ? 0 : SKIPPED;
}
