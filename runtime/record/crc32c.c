/* Debian's libraries for this do not fit a C program that should need few libraries: libcrc32c
 * needs the run time of C++, and ISA-L has no static archive. */
#include "runtime/record/crc32c.h"

#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

enum { SLICES = 8 };
static uint32_t table[SLICES][256]; /* [s][b]: the checksum of byte b with s zero bytes behind it */

static void make_table(void) {
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0); /* the polynomial, lowest power first */
    table[0][b] = crc;
  }
  for (int s = 1; s < SLICES; s++)
    for (int b = 0; b < 256; b++)
      table[s][b] = table[s - 1][b] >> 8 ^ table[0][table[s - 1][b] & 255];
}

uint32_t amprt_crc32c_portable(const void *data, size_t size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_table);
  const unsigned char *at = data;
  uint32_t crc = ~0u;
  for (; size >= SLICES; size -= SLICES, at += SLICES) {
    uint32_t low =
        crc ^ (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
    crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
          table[4][low >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
          table[0][at[7]];
  }
  for (; size; size--)
    crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
  return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(const void *data, size_t size) {
  const unsigned char *at = data;
  uint64_t crc = ~0u;
  for (; size >= 8; size -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  for (; size; size--)
    crc = _mm_crc32_u8((uint32_t)crc, *at++);
  return ~(uint32_t)crc;
}

uint32_t amprt_crc32c(const void *data, size_t size) {
  return __builtin_cpu_supports("sse4.2") ? by_instruction(data, size)
                                          : amprt_crc32c_portable(data, size);
}
#else
uint32_t amprt_crc32c(const void *data, size_t size) {
  return amprt_crc32c_portable(data, size);
}
#endif

uint32_t amprt_crc32c_masked(const void *data, size_t size) {
  uint32_t crc = amprt_crc32c(data, size);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}
