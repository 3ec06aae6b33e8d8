/* CRC-32C, the checksum of records (Castagnoli's polynomial; RFC 3720, 12.1). */
#ifndef AMPRT_CRC32C_H
#define AMPRT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes, by the processor's instruction for it where there is one. */
uint32_t amprt_crc32c(const void *data, size_t size);
/* The same for any processor; here for the tests, which compare both. */
uint32_t amprt_crc32c_portable(const void *data, size_t size);
/* The form in which TensorFlow stores checksums beside data, rotated right by 15 bits plus a
 * constant, so that data which holds checksums has an ordinary checksum itself. */
uint32_t amprt_crc32c_masked(const void *data, size_t size);

#endif
