#include "check.h"
#include "shim.h"

static int64_t as_signed(uint64_t x, size_t bytes) {
  return bytes == 4 ? (int32_t)x : (int64_t)x;
}

static uint64_t combine(ShimAtomic what, uint64_t a, uint64_t b, bool a_is_less) {
  switch (what) {
  case SHIM_ADD:
    return a + b;
  case SHIM_MIN:
    return a_is_less ? a : b;
  case SHIM_MAX:
    return a_is_less ? b : a;
  case SHIM_AND:
    return a & b;
  case SHIM_OR:
    return a | b;
  default:
    return b;
  }
}

uint64_t shim_atomic(ShimAtomic what, void *at, size_t bytes, int is_signed, uint64_t value,
                     uint64_t old) {
  if ((uintptr_t)at % bytes != 0)
    launch_fail(__builtin_return_address(0),
                "changes %zu bytes at an address that is not a "
                "multiple of it",
                bytes);
  check_atomic(at, bytes, __builtin_return_address(0));
  uint64_t was = 0, limit = bytes == 4 ? UINT32_MAX : UINT64_MAX;
  memcpy(&was, at, bytes);
  value &= limit;
  bool less = is_signed ? as_signed(was, bytes) < as_signed(value, bytes) : was < value;
  uint64_t now = combine(what, was, value, less);
  if (what != SHIM_COMPARE || was == (old & limit))
    memcpy(at, &now, bytes);
  return was;
}
