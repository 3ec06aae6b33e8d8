/* SHA-256 (FIPS 180-4), for names of what is kept by its content. */
#ifndef AMPCC_IR_BASE_SHA256_H
#define AMPCC_IR_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK = 64, SHA256_TEXT = 2 * SHA256_BYTES + 1 };

typedef struct Sha256 {
  uint32_t state[8];
  uint64_t bytes; /* added so far */
  unsigned char block[SHA256_BLOCK];
} Sha256;

Sha256 sha256_begin(void);
void sha256_add(Sha256 *sha, const void *data, size_t size);
/* The hash of all that was added. More may be added afterwards. */
void sha256_get(const Sha256 *sha, unsigned char hash[SHA256_BYTES]);
/* A hash in hexadecimal. */
void sha256_hex(const unsigned char hash[SHA256_BYTES], char text[SHA256_TEXT]);
/* The hash of these bytes alone, in hexadecimal. */
void sha256_text(const void *data, size_t size, char text[SHA256_TEXT]);

#endif
