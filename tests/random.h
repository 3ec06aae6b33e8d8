/* Numbers for random graphs: the same for the same state, on every machine. */
#ifndef AMPCC_TESTS_RANDOM_H
#define AMPCC_TESTS_RANDOM_H

#include <stdint.h>

typedef struct Random {
  uint64_t state;
} Random;

/* 0 <= result < n */
static inline uint32_t random_below(Random *random, uint32_t n) {
  random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(random->state >> 33) % n;
}

#endif
