#include "ir/base/sha256.h"

#include <stdio.h>
#include <string.h>

static const uint32_t factor[SHA256_BLOCK] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

static void add_block(uint32_t state[8], const unsigned char *block) {
  uint32_t w[SHA256_BLOCK];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < SHA256_BLOCK; i++)
    w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
           (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5],
           g = state[6], h = state[7];
  for (int i = 0; i < SHA256_BLOCK; i++) {
    uint32_t more =
        h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + factor[i] + w[i];
    uint32_t first =
        (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c)) + more;
    h = g, g = f, f = e, e = d + more;
    d = c, c = b, b = a, a = first;
  }
  const uint32_t t[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++)
    state[i] += t[i];
}

Sha256 sha256_begin(void) {
  return (Sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                            0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(Sha256 *sha, const void *data, size_t size) {
  const unsigned char *from = data;
  while (size) {
    size_t at = sha->bytes % SHA256_BLOCK, n = SHA256_BLOCK - at;
    n = n < size ? n : size;
    memcpy(sha->block + at, from, n);
    from += n, size -= n, sha->bytes += n;
    if (sha->bytes % SHA256_BLOCK == 0)
      add_block(sha->state, sha->block);
  }
}

void sha256_get(const Sha256 *sha, unsigned char hash[SHA256_BYTES]) {
  Sha256 end = *sha;
  static const unsigned char padding[SHA256_BLOCK] = {0x80};
  size_t at = end.bytes % SHA256_BLOCK;
  unsigned char bits[8];
  for (int i = 0; i < 8; i++)
    bits[i] = (unsigned char)(sha->bytes * 8 >> (56 - 8 * i));
  sha256_add(&end, padding, (at < 56 ? 56 : 120) - at);
  sha256_add(&end, bits, sizeof bits);
  for (int i = 0; i < SHA256_BYTES; i++)
    hash[i] = (unsigned char)(end.state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hex(const unsigned char hash[SHA256_BYTES], char text[SHA256_TEXT]) {
  for (int i = 0; i < SHA256_BYTES; i++)
    snprintf(text + 2 * i, 3, "%02x", hash[i]);
}

void sha256_text(const void *data, size_t size, char text[SHA256_TEXT]) {
  unsigned char hash[SHA256_BYTES];
  Sha256 sha = sha256_begin();
  sha256_add(&sha, data, size);
  sha256_get(&sha, hash);
  sha256_hex(hash, text);
}
