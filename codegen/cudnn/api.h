/* Functions of a library that is opened at run time, as a struct of pointers. The struct and the
 * table of its entries come from the same rows, NAME_api.def. */
#ifndef AMPCC_CODEGEN_CUDNN_API_H
#define AMPCC_CODEGEN_CUDNN_API_H

#include <stddef.h>

typedef struct ApiEntry {
  const char *name;
  size_t at; /* of its pointer in the struct */
} ApiEntry;

/* Fills `api` from what dlopen gave. NULL, or the name of the first function that is not there. */
const char *cuda_api_bind(void *api, void *library, const ApiEntry *entry, size_t n);

#endif
