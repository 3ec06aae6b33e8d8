/* Slices, the order of sums, and who sends what when. */
#include "runtime/parallel/group.h"
#include "runtime/parallel/tree.h"
#include "tests/parallel/unit.h"

#include <stdlib.h>
#include <string.h>

/* The sum by its definition: the left branch has the largest power of two of leaves that is less
 * than all. */
static float plain(const float *const *from, int n, size_t i) {
  if (n == 1)
    return from[0][i];
  int left = 1;
  while (2 * left < n)
    left *= 2;
  return plain(from, left, i) + plain(from + left, n - left, i);
}

static void test_sums(void **state) {
  (void)state;
  enum { MOST = 70, ELEMENTS = 1300 }; /* more than two tiles */
  float *data = malloc(sizeof *data * MOST * ELEMENTS);
  const float *from[MOST];
  srand(1);
  for (int i = 0; i < MOST * ELEMENTS; i++)
    data[i] = ((float)rand() / (float)RAND_MAX - 0.5f) / (float)(1 << rand() % 20);
  for (int n = 1; n <= MOST; n++)
    for (int into = 0; into < (n < 6 ? n : 2); into++) { /* the sum may take the place of a leaf */
      float *want = malloc(sizeof *want * ELEMENTS), *copy = malloc(sizeof *copy * ELEMENTS);
      for (int r = 0; r < n; r++)
        from[r] = data + (size_t)r * ELEMENTS;
      size_t count = ELEMENTS - (size_t)n % 17;
      for (size_t i = 0; i < count; i++)
        want[i] = plain(from, n, i);
      memcpy(copy, from[into], sizeof *copy * ELEMENTS);
      from[into] = copy;
      amprt_tree_sum(copy, from, n, count);
      assert_memory_equal(copy, want, count * sizeof *want);
      assert_memory_equal(copy + count, data + (size_t)into * ELEMENTS + count,
                          (ELEMENTS - count) * sizeof *want);
      free(want), free(copy);
    }
  free(data);
}

static void test_slices(void **state) {
  (void)state;
  const uint64_t sizes[] = {0, 1, 15, 16, 17, 160, 1000, 4096, 100000, 25600000};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int n = 1; n < 70; n += n < 9 ? 1 : 13) {
      uint64_t at = 0, most = 0, least = UINT64_MAX;
      for (int i = 0; i < n; i++) {
        AmprtSlice slice = amprt_slice(sizes[s], i, n);
        assert_true(slice.at == at && (slice.at % 16 == 0 || slice.count == 0));
        at += slice.count;
        most = slice.count > most ? slice.count : most;
        least = slice.count < least ? slice.count : least;
      }
      assert_true(at == sizes[s] && most - least < 32);
    }
}

static void test_blocks(void **state) {
  (void)state;
  const struct {
    int size, block;
    int machine[8]; /* any number; made the lowest rank below */
  } cases[] = {
      {4, 4, {0, 0, 0, 0}},       {3, 3, {0, 0, 0}},          {4, 2, {0, 0, 1, 1}},
      {4, 1, {0, 1, 0, 1}},       {4, 1, {0, 1, 1, 1}},       {6, 1, {0, 0, 0, 1, 1, 1}},
      {6, 2, {0, 0, 1, 1, 2, 2}}, {5, 1, {0, 0, 1, 1, 2}},    {8, 4, {0, 0, 0, 0, 1, 1, 1, 1}},
      {4, 1, {0, 1, 2, 3}},       {6, 1, {0, 0, 1, 1, 0, 0}}, {2, 2, {5, 5}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    int lowest[8];
    for (int r = 0; r < cases[c].size; r++)
      for (lowest[r] = 0; cases[c].machine[lowest[r]] != cases[c].machine[r];)
        lowest[r]++;
    assert_int_equal(amprt_place_block(lowest, cases[c].size), cases[c].block);
  }
}

/* In every turn each rank sends to one and hears from one, what one sends another expects, and at
 * the end each element was summed over all ranks by one of them, which tells all. */
static void test_turns(void **state) {
  (void)state;
  const int sizes[][2] = {{2, 1}, {3, 1}, {7, 1}, {4, 2}, {12, 4}, {5, 5}, {64, 8}, {33, 1}};
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    int size = sizes[c][0], block = sizes[c][1], machines = size / block;
    uint64_t elements = 1000;
    int *owners = calloc(elements, sizeof *owners);
    for (int r = 0; r < size; r++) {
      AmprtPlace place = {r, size, block};
      AmprtSlice own = amprt_place_part(place, elements, r / block);
      for (uint64_t i = 0; i < own.count; i++)
        owners[own.at + i]++;
      char *heard = calloc((size_t)machines, 1);
      for (int t = 1; t < machines; t++) {
        AmprtTurn turn = amprt_place_turn(place, t);
        AmprtPlace to = {amprt_place_peer(place, turn.to), size, block};
        assert_int_equal(to.rank % block, r % block);
        assert_int_equal(amprt_place_turn(to, t).from, r / block);
        AmprtSlice sent = amprt_place_part(place, elements, turn.to);
        AmprtSlice expected = amprt_place_part(to, elements, to.rank / block);
        assert_true(sent.at == expected.at && sent.count == expected.count);
        assert_false(heard[turn.from]++);
      }
      free(heard);
    }
    for (uint64_t i = 0; i < elements; i++)
      assert_int_equal(owners[i], 1);
    free(owners);
  }
}

/* Every rank ends with every piece, in as few rounds as doubling takes. */
static void test_gather_rounds(void **state) {
  (void)state;
  for (int size = 2; size < 40; size++) {
    int *have = malloc(sizeof *have * (size_t)size), rounds = 0;
    for (int r = 0; r < size; r++)
      have[r] = 1;
    for (int k = 0;; k++) {
      AmprtRound round, other;
      if (!amprt_gather_round(0, size, k, &round))
        break;
      rounds++;
      for (int r = 0; r < size; r++) {
        assert_true(amprt_gather_round(r, size, k, &round));
        assert_true(amprt_gather_round(round.from, size, k, &other));
        assert_int_equal(other.to, r);
        assert_int_equal(round.from, (r + have[r]) % size); /* the first piece that is missing */
        assert_int_equal(round.have, have[r]);
        assert_true(round.get <= have[r] && round.get == other.get);
      }
      for (int r = 0; r < size; r++)
        have[r] += round.get;
    }
    for (int r = 0; r < size; r++)
      assert_int_equal(have[r], size);
    assert_true(1 << rounds >= size && 1 << (rounds - 1) < size);
    free(have);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums),          cmocka_unit_test(test_slices),
      cmocka_unit_test(test_blocks),        cmocka_unit_test(test_turns),
      cmocka_unit_test(test_gather_rounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
