/* cmocka with the headers that it wants before it. */
#ifndef PARALLEL_UNIT_H
#define PARALLEL_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka.h needs the others before it */
#include <cmocka.h>
/* clang-format on */

#endif
