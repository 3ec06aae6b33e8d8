/* SHA-256 (FIPS 180-4): names of what is cached, and proof that it is whole. */
#ifndef AMPCC_CODEGEN_CUDA_SHA256_H
#define AMPCC_CODEGEN_CUDA_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct Sha256 {
  uint32_t state[8];
  uint64_t bytes;
  unsigned char block[64];
} Sha256;

void sha256_begin(Sha256 *sha);
void sha256_add(Sha256 *sha, const void *data, size_t size);
void sha256_end(Sha256 *sha, unsigned char digest[32]);
/* The digest's first 8 bytes as a number. */
uint64_t sha256_short(const void *data, size_t size);

#endif
