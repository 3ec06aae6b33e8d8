/* Whether this process may use the matrix registers of AMX for bf16: the CPU must have them, and
 * the kernel must be asked once, as a thread that uses them has 8 KB more to save. */
#define _GNU_SOURCE /* syscall */
#include "runtime/amprt.h"

#if defined __x86_64__ && defined __linux__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* asm/prctl.h, in which older systems lack these */
enum { ASK_FOR_STATE = 0x1023, CONFIG_STATE = 17, DATA_STATE = 18 };

int amprt_amx(void) {
  enum { OSXSAVE = 1 << 27, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
  unsigned a, b, c, d, states, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
    return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
      (d & (AMX_BF16 | AMX_TILE)) != (AMX_BF16 | AMX_TILE))
    return 0;
  __asm__("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
  const unsigned both = 1u << CONFIG_STATE | 1u << DATA_STATE;
  return (states & both) == both && syscall(SYS_arch_prctl, ASK_FOR_STATE, DATA_STATE) == 0;
}
#else
int amprt_amx(void) {
  return 0;
}
#endif
