#include "runtime/parallel/tree.h"

#include "runtime/parallel/group.h"

#include <string.h>

enum { LINE = 16 }; /* floats of a cache line */

AmprtSlice amprt_slice(uint64_t elements, int i, int n) {
  uint64_t lines = (elements + LINE - 1) / LINE;
  uint64_t share = lines / (uint64_t)n, more = lines % (uint64_t)n, k = (uint64_t)i;
  /* The first `more` slices have one line more. */
  uint64_t from = (share * k + (k < more ? k : more)) * LINE;
  uint64_t past = from + (share + (k < more)) * LINE;
  if (from > elements)
    from = elements;
  return (AmprtSlice){from, (past < elements ? past : elements) - from};
}

int amprt_place_block(const int *machine, int size) {
  int block = 1;
  while (block < size && machine[block] == machine[0])
    block++;
  bool power = !(block & (block - 1));
  if (size % block || (block < size && !power))
    return 1;
  for (int r = 0; r < size; r++)
    if (machine[r] != r / block * block)
      return 1;
  return block;
}

AmprtSlice amprt_place_slice(AmprtPlace place, uint64_t elements) {
  return amprt_slice(elements, place.rank % place.block, place.block);
}

AmprtSlice amprt_place_part(AmprtPlace place, uint64_t elements, int i) {
  AmprtSlice whole = amprt_place_slice(place, elements);
  AmprtSlice part = amprt_slice(whole.count, i, amprt_place_machines(place));
  return (AmprtSlice){whole.at + part.at, part.count};
}

AmprtTurn amprt_place_turn(AmprtPlace place, int t) {
  int machines = amprt_place_machines(place), mine = place.rank / place.block;
  return (AmprtTurn){(mine + t) % machines, (mine - t + machines) % machines};
}

bool amprt_gather_round(int rank, int size, int k, AmprtRound *round) {
  if (k >= 31 || 1 << k >= size)
    return false;
  int have = 1 << k, missing = size - have;
  *round = (AmprtRound){.to = (rank - have + size) % size,
                        .from = (rank + have) % size,
                        .have = have,
                        .get = have < missing ? have : missing};
  return true;
}

/* Four floats that may lie anywhere. Compilers at -O2 do not make them of plain loops. */
typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

static void add(float *to, const float *a, const float *b, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t j = i; j < i + 16; j += 4)
      *(Four *)(to + j) = *(const Four *)(a + j) + *(const Four *)(b + j);
  for (; i < n; i++)
    to[i] = a[i] + b[i];
}

static void add_four(float *to, const float *const *from, size_t at, size_t n) {
  const float *a = from[0] + at, *b = from[1] + at, *c = from[2] + at, *d = from[3] + at;
  size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t j = i; j < i + 16; j += 4)
      *(Four *)(to + j) = (*(const Four *)(a + j) + *(const Four *)(b + j)) +
                          (*(const Four *)(c + j) + *(const Four *)(d + j));
  for (; i < n; i++)
    to[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

/* The tree is walked from left to right like a binary counter: branch[] holds the sums of whole
 * branches, each of at most half as many leaves as the one before it, and two equal ones are joined
 * at once. What is left at the end is joined from the right. So the memory is that of the depth,
 * not of the leaves. */
void amprt_tree_sum(float *to, const float *const *from, int n, size_t elements) {
  enum { TILE = 512, DEPTH = 32 };
  if (n == 1) {
    memmove(to, from[0], elements * sizeof *to);
  } else if (n == 2) {
    add(to, from[0], from[1], elements);
  } else if (n == 4) {
    add_four(to, from, 0, elements);
  } else {
    float branch[DEPTH][TILE];
    for (size_t at = 0; at < elements; at += TILE) {
      size_t m = elements - at < TILE ? elements - at : TILE;
      int depth = 0;
      for (int i = 0; i < n; i += 4, depth++) { /* leaves are taken by fours: two levels at once */
        if (i + 4 <= n) {
          add_four(branch[depth], from + i, at, m);
        } else if (i + 2 <= n) {
          add(branch[depth], from[i] + at, from[i + 1] + at, m);
          if (i + 3 == n)
            add(branch[depth], branch[depth], from[i + 2] + at, m);
        } else {
          memcpy(branch[depth], from[i] + at, m * sizeof *to);
        }
        for (int fours = i / 4; fours & 1; fours >>= 1, depth--)
          add(branch[depth - 1], branch[depth - 1], branch[depth], m);
      }
      for (; depth > 1; depth--)
        add(branch[depth - 2], branch[depth - 2], branch[depth - 1], m);
      memcpy(to + at, branch[0], m * sizeof *to);
    }
  }
}
