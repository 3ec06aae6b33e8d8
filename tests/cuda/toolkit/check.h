/* What tests of this folder begin with. */
#ifndef AMPCC_TESTS_CUDA_TOOLKIT_CHECK_H
#define AMPCC_TESTS_CUDA_TOOLKIT_CHECK_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h> /* wants those before it */
/* clang-format on */

#endif
