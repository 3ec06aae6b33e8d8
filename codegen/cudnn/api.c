#include "codegen/cudnn/api.h"

#include <dlfcn.h>
#include <string.h>

/* A pointer to a function does not convert from void * in C, but POSIX lets its bytes be copied. */
const char *cuda_api_bind(void *api, void *library, const ApiEntry *entry, size_t n) {
  for (size_t i = 0; i < n; i++) {
    void *found = dlsym(library, entry[i].name);
    if (!found)
      return entry[i].name;
    memcpy((char *)api + entry[i].at, &found, sizeof found);
  }
  return NULL;
}
