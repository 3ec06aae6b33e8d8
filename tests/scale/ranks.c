/* Hundreds and thousands of ranks in one process: runtime/parallel/messages.c, unchanged, on an MPI
 * that moves a message only when both sides have asked for it (so no queue can hide a deadlock) and
 * that lets ranks run in random order, at random speed.
 *
 * Held to account: every sum is the balanced tree's, to the bit, on every rank; nobody waits for
 * ever; bytes and messages of a rank are those of the formulas; its memory does not grow with the
 * number of ranks, but for the requests. */
#define _GNU_SOURCE /* mallinfo2 */
#include "runtime/parallel/group.h"
#include "runtime/parallel/messages.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                                       \
      printf(__VA_ARGS__);                                                                         \
      puts("");                                                                                    \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static uint64_t seed = 20261123;

static uint32_t draw(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33);
}

static void *room(size_t n, size_t size) {
  void *memory = calloc(n, size);
  CHECK(memory, "no memory for %zu x %zu bytes", n, size);
  return memory;
}

/* ---- an MPI without queues ---- */

typedef struct Op {
  struct Op *next; /* in the list of those that wait for the other side, or of the free ones */
  int from, to, tag;
  bool sends, done;
  void *data;
  size_t bytes;
} Op;

enum { BUCKETS = 1 << 18 };
static Op *waiting[BUCKETS], *unused, nothing;
static int me; /* the rank that calls */
static uint64_t *sent_bytes, *sent_messages;

static void op_reserve(int n) {
  Op *some = room((size_t)n, sizeof *some);
  for (int i = 0; i < n; i++)
    some[i].next = unused, unused = &some[i];
}

static Op *op_new(void) {
  if (!unused)
    op_reserve(1024);
  Op *op = unused;
  unused = op->next;
  return op;
}

static void post(Op ask, void *request) {
  uint32_t key = (uint32_t)ask.from * 2654435761u + (uint32_t)ask.to * 40503u * 65537u +
                 (uint32_t)ask.tag * 2246822519u;
  Op **at = &waiting[(key ^ key >> 15) % BUCKETS], *op = op_new();
  *op = ask;
  memcpy(request, &op, sizeof op);
  for (Op *other; (other = *at); at = &other->next) {
    if (other->from != ask.from || other->to != ask.to || other->tag != ask.tag ||
        other->sends == ask.sends)
      continue;
    CHECK(other->bytes == ask.bytes, "%zu bytes sent or wanted, %zu by the other side", ask.bytes,
          other->bytes);
    *at = other->next;
    memcpy(ask.sends ? other->data : ask.data, ask.sends ? ask.data : other->data, ask.bytes);
    op->done = other->done = true;
    return;
  }
  op->next = NULL;
  *at = op;
}

static int fake_isend(const void *data, int count, intptr_t type, int to, int tag, intptr_t comm,
                      void *request) {
  (void)comm;
  CHECK(to != me && count > 0 && tag >= 0 && tag < 32768, "rank %d sends to %d, tag %d", me, to,
        tag);
  size_t bytes = (size_t)count * (size_t)type;
  sent_bytes[me] += bytes, sent_messages[me]++;
  post((Op){.from = me,
            .to = to,
            .tag = tag,
            .sends = true,
            .data = (void *)(uintptr_t)data,
            .bytes = bytes},
       request);
  return 0;
}

static int fake_irecv(void *data, int count, intptr_t type, int from, int tag, intptr_t comm,
                      void *request) {
  (void)comm;
  post(
      (Op){.from = from, .to = me, .tag = tag, .data = data, .bytes = (size_t)count * (size_t)type},
      request);
  return 0;
}

static int fake_testsome(int n, void *requests, int *completed, int *which, intptr_t statuses) {
  (void)statuses;
  Op **slot = requests, *null = &nothing;
  *completed = 0;
  for (int i = 0; i < n; i++)
    if (slot[i] != null && slot[i]->done) {
      slot[i]->next = unused, unused = slot[i];
      slot[i] = null;
      which[(*completed)++] = i;
    }
  return 0;
}

static AmprtMpi fake_mpi(int size) {
  free(sent_bytes), free(sent_messages);
  sent_bytes = room((size_t)size, sizeof *sent_bytes);
  sent_messages = room((size_t)size, sizeof *sent_messages);
  return (AmprtMpi){.kind = AMPRT_MPI_OMPI,
                    .byte = 1,
                    .f32 = sizeof(float),
                    .request_null = (intptr_t)&nothing,
                    .request_bytes = sizeof(Op *),
                    .Isend = fake_isend,
                    .Irecv = fake_irecv,
                    .Testsome = fake_testsome};
}

/* ---- sums ---- */

/* What a rank adds: numbers of many magnitudes, so that every order of sums has other bits. */
static float value(int rank, int bucket, uint64_t i) {
  uint64_t x = ((uint64_t)rank << 40 ^ (uint64_t)bucket << 32 ^ i) * 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  int exponent = (int)(x % 23);
  return (float)((int64_t)(x >> 40) - (1 << 23)) * (1.0f / (float)(1 << exponent));
}

/* The definition: the ranks from `first` on, n of them, in two halves of which the left one is the
 * largest power of two that is less than n. */
static float tree(int first, int stride, int n, int bucket, uint64_t i) {
  int left = 1;
  if (n == 1)
    return value(first, bucket, i);
  while (2 * left < n)
    left *= 2;
  return tree(first, stride, left, bucket, i) +
         tree(first + left * stride, stride, n - left, bucket, i);
}

typedef struct Rank {
  AmprtMessages messages;
  AmprtTravel *travel[AMPRT_TRAVELLING];
  int n_travels, begun;
  float **bucket;
} Rank;

/* Lets one rank do what it can: goes on with its travels, begins the next bucket. */
static bool step(Rank *r, int n_buckets, uint64_t elements) {
  bool moved = false;
  AmprtError error = {0};
  me = r->messages.place.rank;
  for (int i = 0; i < r->n_travels; i++)
    if (amprt_messages_poll(&r->messages, r->travel[i], &moved)) {
      r->travel[i--] = r->travel[--r->n_travels];
      moved = true;
    }
  if (r->begun < n_buckets) {
    AmprtTravel *travel;
    AmprtStatus status = amprt_messages_begin(&r->messages, &travel, r->begun, r->bucket[r->begun],
                                              elements, &error);
    CHECK(!status, "%s", error.text);
    if (travel)
      r->travel[r->n_travels++] = travel, r->begun++, moved = true;
  }
  return moved;
}

/* Runs the ranks of one place in their machines, which exchange one slice of every bucket. */
static void sum(int machines, int block, int lane, int n_buckets, uint64_t elements) {
  int size = machines * block, rounds = 0, still = 0;
  AmprtMpi mpi = fake_mpi(size);
  AmprtError error = {0};
  Rank *ranks = room((size_t)machines, sizeof *ranks);
  AmprtSlice slice = {0};
  for (int m = 0; m < machines; m++) {
    Rank *r = &ranks[m];
    AmprtPlace place = {m * block + lane, size, block};
    CHECK(!amprt_messages_open(&r->messages, &mpi, place, &error), "%s", error.text);
    slice = amprt_place_slice(place, elements);
    r->bucket = room((size_t)n_buckets, sizeof *r->bucket);
    for (int b = 0; b < n_buckets; b++) {
      r->bucket[b] = room(elements, sizeof(float)); /* pages outside the slice stay untouched */
      for (uint64_t i = slice.at; i < slice.at + slice.count; i++)
        r->bucket[b][i] = value(place.rank, b, i);
    }
  }
  for (bool busy = true; busy; rounds++) {
    bool moved = false, all_ran = rounds % 2;
    busy = false;
    for (int i = 0; i < machines; i++) {
      Rank *r = &ranks[all_ran ? i : (int)(draw() % (uint32_t)machines)];
      moved |= step(r, n_buckets, elements);
    }
    for (int m = 0; m < machines; m++)
      busy |= ranks[m].begun < n_buckets || ranks[m].n_travels;
    still = moved ? 0 : still + 1;
    CHECK(still < 4, "%d ranks on %d machines wait for each other", size, machines);
  }
  uint64_t most = 0;
  for (int m = 0; m < machines; m++) {
    AmprtPlace place = ranks[m].messages.place;
    AmprtSlice own = amprt_place_part(place, elements, m);
    /* its slice without its own part to the others, then its own part to each of them */
    uint64_t want = slice.count - own.count + own.count * (uint64_t)(machines - 1);
    CHECK(sent_bytes[place.rank] == (uint64_t)n_buckets * want * sizeof(float),
          "rank %d sent %llu bytes", place.rank, (unsigned long long)sent_bytes[place.rank]);
    most = sent_bytes[place.rank] > most ? sent_bytes[place.rank] : most;
  }
  for (int b = 0; b < n_buckets; b++)
    for (uint64_t i = slice.at; i < slice.at + slice.count; i++) {
      float want = tree(lane, block, machines, b, i);
      for (int m = 0; m < machines; m++)
        CHECK(!memcmp(&ranks[m].bucket[b][i], &want, sizeof want),
              "bucket %d, element %llu on rank %d: %a, not %a", b, (unsigned long long)i,
              m * block + lane, (double)ranks[m].bucket[b][i], (double)want);
    }
  printf("%5d ranks, %4d machines, place %d: %d buckets of %llu, %llu bytes from a rank (%.3f of "
         "its slice), %d rounds\n",
         size, machines, lane, n_buckets, (unsigned long long)elements, (unsigned long long)most,
         (double)most / (double)((uint64_t)n_buckets * slice.count * sizeof(float)), rounds);
  for (int m = 0; m < machines; m++) {
    amprt_messages_close(&ranks[m].messages);
    for (int b = 0; b < n_buckets; b++)
      free(ranks[m].bucket[b]);
    free(ranks[m].bucket);
  }
  free(ranks);
}

/* ---- the plan itself, where the program that follows it would not fit into one memory ---- */

/* Each turn is a permutation of machines, so no rank is sent to by two at once; all turns together
 * meet every other machine once, and the parts of a slice tile it. */
static void plan(int size, int block, uint64_t elements) {
  AmprtPlace first = {0, size, block};
  int machines = amprt_place_machines(first);
  unsigned char *hit = room((size_t)machines, 1);
  uint64_t bytes = 0, covered = 0;
  for (int t = 1; t < machines; t++) {
    memset(hit, 0, (size_t)machines);
    for (int m = 0; m < machines; m++) {
      AmprtPlace place = {m * block, size, block};
      AmprtTurn turn = amprt_place_turn(place, t);
      AmprtPlace other = {amprt_place_peer(place, turn.to), size, block};
      CHECK(turn.to != m && !hit[turn.to]++, "turn %d of machine %d: to %d", t, m, turn.to);
      CHECK(amprt_place_turn(other, t).from == m, "turn %d of machine %d", t, m);
      CHECK(turn.to == (m + t) % machines, "turn %d of machine %d: to %d", t, m, turn.to);
    }
  }
  for (int local = 0; local < block; local++) {
    AmprtPlace place = {local, size, block};
    for (int m = 0; m < machines; m++) {
      AmprtSlice part = amprt_place_part(place, elements, m);
      CHECK(part.at == covered || !part.count, "part %d begins at %llu", m,
            (unsigned long long)part.at);
      covered += part.count;
    }
  }
  CHECK(covered == elements, "%llu covered", (unsigned long long)covered);
  AmprtSlice own = amprt_place_part(first, elements, 0);
  AmprtSlice slice = amprt_place_slice(first, elements);
  bytes = (slice.count + own.count * (uint64_t)(machines - 2)) * sizeof(float);
  double ring = 2.0 * (size - 1) / size * (double)elements * sizeof(float);
  printf(
      "%5d ranks, %4d machines: %d turns, %.1f MiB between machines for %.1f MiB (a ring: %.1f)\n",
      size, machines, machines - 1, (double)block * (double)bytes / (1 << 20),
      (double)elements * 4 / (1 << 20), ring / (1 << 20));
  free(hit);
}

/* ---- start-up ---- */

static void start(int size) {
  AmprtMpi mpi = fake_mpi(size);
  AmprtError error = {0};
  AmprtGather **gather = room((size_t)size, sizeof *gather);
  bool *over = room((size_t)size, sizeof *over);
  int left = size, still = 0, log2 = 0;
  while (1 << log2 < size)
    log2++;
  for (me = 0; me < size; me++) {
    uint32_t mine = (uint32_t)me * 2654435761u;
    AmprtStatus status =
        amprt_gather_begin(&gather[me], &mpi, me, size, &mine, sizeof mine, &error);
    CHECK(!status, "%s", error.text);
  }
  while (left) {
    int before = left;
    for (int i = 0; i < size; i++) {
      me = (int)(draw() % (uint32_t)size);
      if (!over[me] && (over[me] = amprt_gather_poll(gather[me])))
        left--;
    }
    still = left < before ? 0 : still + 1;
    CHECK(still < 50 + log2, "%d of %d ranks wait for each other", left, size);
  }
  uint32_t *all = room((size_t)size, sizeof *all);
  for (int r = 0; r < size; r++) {
    CHECK(sent_messages[r] == (uint64_t)log2, "rank %d of %d sent %llu messages", r, size,
          (unsigned long long)sent_messages[r]);
    amprt_gather_end(gather[r], (unsigned char *)all, sizeof *all);
    for (int q = 0; q < size; q++)
      CHECK(all[q] == (uint32_t)q * 2654435761u, "rank %d of %d: piece %d", r, size, q);
  }
  printf("%5d ranks tell each other something: %d messages from each\n", size, log2);
  free(all), free(over), free(gather);
}

/* ---- memory ---- */

static size_t allocated(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/* What one rank allocates for sums of buckets of 8 MiB: the arrivals of one bucket for each that
 * travels, and requests for the other machines. */
static void memory(int size, int block) {
  enum { ELEMENTS = 2 << 20, PER_MACHINE = 160 };
  AmprtMpi mpi = fake_mpi(size);
  AmprtMessages messages;
  AmprtError error = {0};
  AmprtPlace place = {0, size, block};
  int machines = amprt_place_machines(place);
  float *bucket = room(ELEMENTS, sizeof *bucket);
  op_reserve(AMPRT_TRAVELLING * 2 * machines); /* not to be counted */
  size_t before = allocated();
  CHECK(!amprt_messages_open(&messages, &mpi, place, &error), "%s", error.text);
  me = 0;
  for (int b = 0; b < AMPRT_TRAVELLING; b++) {
    AmprtTravel *travel;
    CHECK(!amprt_messages_begin(&messages, &travel, b, bucket, ELEMENTS, &error), "%s", error.text);
    CHECK(travel, "bucket %d must queue", b);
  }
  size_t bytes = allocated() - before;
  size_t arrivals = AMPRT_TRAVELLING * sizeof(float) * (ELEMENTS / (size_t)block);
  size_t bound = arrivals + (size_t)machines * PER_MACHINE + 4096 * AMPRT_TRAVELLING;
  if (before)
    CHECK(bytes <= bound, "%zu bytes, not %zu", bytes, bound);
  printf("%5d ranks, %4d machines: a rank takes %.2f MiB for %d buckets of 8 MiB on their way\n",
         size, machines, before ? (double)bytes / (1 << 20) : 0.0, AMPRT_TRAVELLING);
  /* what was asked for here never comes */
  memset(waiting, 0, sizeof waiting);
  amprt_messages_close(&messages);
  free(bucket);
}

int main(void) {
  enum { PIECE = 2 << 20 };
  sum(512, 1, 0, 3, 512 * 16 + 48);
  sum(37, 1, 0, 9, 1000 * 16);
  for (int place = 0; place < 8; place += 7)
    sum(512, 8, place, 1, 8 * 512 * 16 + 3 * 16);
  const int sizes[][2] = {{2, 1}, {64, 1}, {64, 8}, {512, 1}, {512, 8}, {4096, 1}, {4096, 8}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    plan(sizes[i][0], sizes[i][1], PIECE);
    memory(sizes[i][0], sizes[i][1]);
  }
  start(512);
  start(4096);
  return 0;
}
