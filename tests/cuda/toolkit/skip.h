/* For tests that need a toolkit and may be where none is. */
#ifndef AMPCC_TESTS_CUDA_TOOLKIT_SKIP_H
#define AMPCC_TESTS_CUDA_TOOLKIT_SKIP_H

#include "codegen/cuda/toolkit/toolkit.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends the test as one that is left out, with a word why, if there is no toolkit. */
static inline Toolkit *toolkit_or_skip(Arena *arena) {
  char error[TOOLKIT_ERROR];
  Toolkit *toolkit = toolkit_find(arena, NULL, error);
  if (toolkit)
    return toolkit;
  puts(error);
  exit(77);
}

#endif
