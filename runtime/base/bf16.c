/* How this CPU multiplies bf16: by the matrix registers of AMX, which the kernel must be asked for
 * once, as a thread that uses them has 8 KB more to save; by vectors of pairs; or as f32. */
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

int amprt_bf16_pairs_pay(void) {
  enum { AVX512_FP16 = 1 << 23, INTEL_EBX = 0x756e6547 /* "Genu" of GenuineIntel */ };
  unsigned a, b, c, d, vendor;
  if (!__get_cpuid(0, &a, &vendor, &c, &d) || vendor != INTEL_EBX ||
      !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & AVX512_FP16))
    return 1;
  return amprt_amx();
}
#else
int amprt_bf16_pairs_pay(void) {
  return 1;
}

int amprt_amx(void) {
  return 0;
}
#endif
