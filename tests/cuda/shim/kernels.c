#include "kernels.h"

#include "tests/shell.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Kernels {
  char stem[400];
  pid_t compiler;
  void *handle;
  const ShimApi *api;
  char error[700];
};

/* Those parts of -fsanitize=undefined that find what the checks of accesses do not. All of it would
 * take three times as long to compile. */
#define UNDEFINED                                                                                  \
  "alignment,bounds,float-cast-overflow,integer-divide-by-zero,shift,signed-integer-overflow"
/* The functions that the other sanitizers call are in the shim, so these flags are not for the
 * linker. */
#ifdef __SANITIZE_ADDRESS__
static const char checks[] = "-fsanitize=address," UNDEFINED " -fno-sanitize-recover=all";
static const char links[] = "-fsanitize=address,undefined";
#else
static const char checks[] = "-fsanitize=thread," UNDEFINED " -fno-sanitize-recover=" UNDEFINED;
static const char links[] = "";
#endif

/* CUDA allows a load of 16 bytes from an array of 2-byte elements; C's aliasing rules do not. */
static pid_t compile(const char *stem, bool is_checked) {
  char command[4000];
  int n =
      snprintf(command, sizeof command,
               "cc -x c -std=gnu11 -w -g1 -O1 %s -fPIC -fno-strict-aliasing -ffp-contract=off "
               "-include '%s/shim.h' -c '%s.cu' -o '%s.o' && cc -shared %s '%s.o' "
               "-Wl,--whole-archive '%s' -Wl,--no-whole-archive -lm -o '%s.so'",
               is_checked ? checks : "", SHIM_FOLDER, stem, stem, links, stem, SHIM_LIBRARY, stem);
  return n < (int)sizeof command ? shell_begin(command) : -1;
}

Kernels *kernels_begin(const char *stem, bool is_checked) {
  Kernels *k = calloc(1, sizeof *k);
  if (!k || strlen(stem) + 4 > sizeof k->stem)
    abort();
  strcpy(k->stem, stem);
  k->compiler = compile(stem, is_checked);
  return k;
}

const ShimApi *kernels_finish(Kernels *k) {
  if (!shell_finish(k->compiler))
    return NULL;
  char path[sizeof k->stem + 4];
  snprintf(path, sizeof path, "%s.so", k->stem);
  k->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  k->api = k->handle ? dlsym(k->handle, "shim_api") : NULL;
  if (!k->api)
    fprintf(stderr, "%s: %s\n", path, dlerror());
  return k->api;
}

/* "(code 0x1234)" at the end of the message -> file and line of the text. */
static const char *with_place(Kernels *k, const char *error) {
  const char *code = strstr(error, "(code ");
  char command[sizeof k->stem + 100], place[300] = "";
  if (!code)
    return error;
  snprintf(command, sizeof command, "addr2line -e '%s.so' %#lx", k->stem,
           strtoul(code + 6, NULL, 16) -
               1); /* the return address is after the call, so look up the byte before it */
  FILE *pipe = popen(command, "r");
  if (pipe && fgets(place, sizeof place, pipe)) {
    const char *file = strrchr(place, '/');
    int before = (int)(code - error);
    snprintf(k->error, sizeof k->error, "%.*s(%.*s)", before, error,
             (int)strcspn(file ? file + 1 : place, " \n"), file ? file + 1 : place);
  }
  if (pipe)
    pclose(pipe);
  return *place ? k->error : error;
}

const char *kernels_launch(Kernels *k, const CudaLaunch *what, CudaRun run, uint64_t seed) {
  char symbol[300];
  snprintf(symbol, sizeof symbol, "shim_kernel_%s", what->function);
  ShimLaunch launch = {
      .name = what->function,
      .grid = {what->grid[0], what->grid[1], what->grid[2]},
      .block = {what->block[0], what->block[1], what->block[2]},
      .shared = what->shared,
      .parameter = (void *[]){&run, (void *)(uintptr_t)what->args},
      .seed = seed,
  };
  void *address = dlsym(k->handle, symbol);
  if (!address) {
    snprintf(k->error, sizeof k->error, "%s: no such kernel in %s", what->function, k->stem);
    return k->error;
  }
  /* ISO C has no cast from an object pointer to a function pointer */
  memcpy(&launch.kernel, &address, sizeof address);
  const char *error = k->api->launch(&launch);
  return error ? with_place(k, error) : NULL;
}

void kernels_free(Kernels *k) {
  if (k->handle)
    dlclose(k->handle);
  free(k);
}
