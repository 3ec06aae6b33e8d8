/* Functions of a library that is opened while the program runs, as a struct of pointers to them.
 * The struct and the table that says where each pointer lies come from the same rows,
 * NAME_api.def. */
#ifndef AMPCC_CODEGEN_CUDNN_API_H
#define AMPCC_CODEGEN_CUDNN_API_H

#include <stddef.h>

typedef struct ApiEntry {
  const char *name;
  size_t at; /* offset of its pointer in the struct, in bytes */
} ApiEntry;

/* Fills `api` with the functions of `library`, which dlopen gave. NULL, or the name of the first
 * that it lacks. */
const char *cuda_api_bind(void *api, void *library, const ApiEntry *entry, size_t n);

#endif
