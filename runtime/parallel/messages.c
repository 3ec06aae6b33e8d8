#include "runtime/parallel/messages.h"

#include "runtime/parallel/group.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Tags: every bucket has two, then come those of the rounds of a gather. All are below 32768, which
 * every library allows. Messages between two ranks with the same tag arrive in the order in which
 * they were sent, so the next step may use the tags again. */
enum { TAG_GATHER = 2 * AMPRT_MAX_BUCKETS };

/* Requests and what is left of them. */
typedef struct Requests {
  unsigned char *slot; /* as the library wants them */
  int *peer;           /* the rank that a message comes from; ~rank: that it goes to */
  int *which;          /* room for Testsome */
  int n, open, room;
} Requests;

static bool requests_reserve(const AmprtMpi *mpi, Requests *q, int room) {
  free(q->slot), free(q->peer), free(q->which);
  q->slot = calloc((size_t)room, (size_t)mpi->request_bytes);
  q->peer = calloc((size_t)room, sizeof *q->peer);
  q->which = calloc((size_t)room, sizeof *q->which);
  q->room = room;
  return q->slot && q->peer && q->which;
}

static void requests_free(Requests *q) {
  free(q->slot), free(q->peer), free(q->which);
}

static void send(const AmprtMpi *mpi, Requests *q, const void *data, uint64_t count, intptr_t type,
                 int to, int tag) {
  if (!count)
    return;
  unsigned char *slot = amprt_mpi_request(mpi, q->slot, q->n);
  mpi->Isend(data, (int)count, type, to, tag, mpi->comm_world, slot);
  q->peer[q->n++] = ~to;
  q->open++;
}

static void receive(const AmprtMpi *mpi, Requests *q, void *data, uint64_t count, intptr_t type,
                    int from, int tag) {
  if (!count)
    return;
  unsigned char *slot = amprt_mpi_request(mpi, q->slot, q->n);
  mpi->Irecv(data, (int)count, type, from, tag, mpi->comm_world, slot);
  q->peer[q->n++] = from;
  q->open++;
}

/* Have all come and gone? MPI ends the program itself if one of these calls fails. */
static bool requests_poll(const AmprtMpi *mpi, Requests *q, bool *moved) {
  if (q->open) {
    int completed = 0;
    mpi->Testsome(q->n, q->slot, &completed, q->which, mpi->statuses_ignore);
    if (completed > 0) {
      q->open -= completed;
      *moved = true;
    }
  }
  return !q->open;
}

static int by_number(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}

/* Those whose message has not come; if all have, those who do not take theirs. */
static int requests_missing(const AmprtMpi *mpi, const Requests *q, int *rank) {
  int n = 0;
  for (int out = 0; out < 2 && !n; out++)
    for (int i = 0; i < q->n; i++)
      if ((q->peer[i] < 0) == out && !amprt_mpi_done(mpi, amprt_mpi_request(mpi, q->slot, i)))
        rank[n++] = out ? ~q->peer[i] : q->peer[i];
  qsort(rank, (size_t)n, sizeof *rank, by_number);
  return n;
}

/* ---- sums ---- */

typedef enum Stage { IDLE, PARTS, SUMS } Stage;

struct AmprtTravel {
  Stage stage;
  int bucket;
  float *data;
  uint64_t elements;
  float *scratch; /* the parts that come, in the order of machines, without the own one */
  uint64_t scratch_room;
  const float **part; /* one per machine */
  Requests requests;
};

AmprtStatus amprt_messages_open(AmprtMessages *m, const AmprtMpi *mpi, AmprtPlace place,
                                AmprtError *error) {
  *m = (AmprtMessages){.mpi = mpi, .place = place};
  int machines = amprt_place_machines(place);
  for (int i = 0; i < AMPRT_TRAVELLING; i++) {
    AmprtTravel *t = m->travel[i] = calloc(1, sizeof *t);
    if (!t || !requests_reserve(mpi, &t->requests, 2 * machines) ||
        !(t->part = calloc((size_t)machines, sizeof *t->part)))
      return amprt_fail_memory(error, (size_t)machines * 64, "messages between machines");
  }
  return AMPRT_OK;
}

void amprt_messages_close(AmprtMessages *m) {
  for (int i = 0; i < AMPRT_TRAVELLING; i++) {
    AmprtTravel *t = m->travel[i];
    if (!t)
      continue;
    requests_free(&t->requests);
    free(t->part);
    free(t->scratch);
    free(t);
  }
}

AmprtStatus amprt_messages_begin(AmprtMessages *m, AmprtTravel **travel, int bucket, float *data,
                                 uint64_t elements, AmprtError *error) {
  const AmprtMpi *mpi = m->mpi;
  AmprtTravel *t = NULL;
  for (int i = 0; i < AMPRT_TRAVELLING && !t; i++)
    if (m->travel[i]->stage == IDLE)
      t = m->travel[i];
  *travel = t;
  if (!t)
    return AMPRT_OK;
  int machines = amprt_place_machines(m->place), mine = m->place.rank / m->place.block;
  AmprtSlice own = amprt_place_part(m->place, elements, mine);
  uint64_t room = own.count * (uint64_t)(machines - 1);
  if (own.count > INT_MAX - 16)
    return amprt_fail(error, AMPRT_ENV,
                      "a bucket of %llu values is too large for messages between %d machines",
                      (unsigned long long)elements, machines);
  if (room > t->scratch_room) {
    free(t->scratch);
    uint64_t bytes = (room * sizeof(float) + 63) / 64 * 64;
    t->scratch = aligned_alloc(64, bytes);
    t->scratch_room = t->scratch ? room : 0;
    if (!t->scratch)
      return amprt_fail_memory(error, bytes, "sums of other machines");
  }
  t->stage = PARTS, t->bucket = bucket, t->data = data, t->elements = elements;
  t->requests.n = t->requests.open = 0;
  float *arrival = t->scratch;
  t->part[mine] = data + own.at;
  for (int i = 0; i < machines; i++)
    if (i != mine)
      t->part[i] = arrival, arrival += own.count;
  for (int turn = 1; turn < machines; turn++) {
    int from = amprt_place_turn(m->place, turn).from;
    receive(mpi, &t->requests, t->scratch + (t->part[from] - t->scratch), own.count, mpi->f32,
            amprt_place_peer(m->place, from), 2 * bucket);
  }
  for (int turn = 1; turn < machines; turn++) {
    int to = amprt_place_turn(m->place, turn).to;
    AmprtSlice part = amprt_place_part(m->place, elements, to);
    send(mpi, &t->requests, data + part.at, part.count, mpi->f32, amprt_place_peer(m->place, to),
         2 * bucket);
  }
  return AMPRT_OK;
}

/* The parts are there: add them, and exchange the sums. */
static void begin_sums(AmprtMessages *m, AmprtTravel *t) {
  const AmprtMpi *mpi = m->mpi;
  int machines = amprt_place_machines(m->place), mine = m->place.rank / m->place.block;
  AmprtSlice own = amprt_place_part(m->place, t->elements, mine);
  amprt_tree_sum(t->data + own.at, t->part, machines, own.count);
  t->stage = SUMS, t->requests.n = t->requests.open = 0;
  for (int turn = 1; turn < machines; turn++) {
    int from = amprt_place_turn(m->place, turn).from;
    AmprtSlice part = amprt_place_part(m->place, t->elements, from);
    receive(mpi, &t->requests, t->data + part.at, part.count, mpi->f32,
            amprt_place_peer(m->place, from), 2 * t->bucket + 1);
  }
  for (int turn = 1; turn < machines; turn++) {
    int to = amprt_place_turn(m->place, turn).to;
    send(mpi, &t->requests, t->data + own.at, own.count, mpi->f32, amprt_place_peer(m->place, to),
         2 * t->bucket + 1);
  }
}

bool amprt_messages_poll(AmprtMessages *m, AmprtTravel *t, bool *moved) {
  if (t->stage == PARTS && requests_poll(m->mpi, &t->requests, moved))
    begin_sums(m, t);
  if (t->stage == SUMS && requests_poll(m->mpi, &t->requests, moved))
    t->stage = IDLE;
  return t->stage == IDLE;
}

int amprt_messages_missing(const AmprtMessages *m, const AmprtTravel *t, int *rank, bool *behind) {
  *behind = t->stage == SUMS || m->place.block > 1;
  return requests_missing(m->mpi, &t->requests, rank);
}

/* ---- gathers ---- */

/* Up to so many ranks each sends its piece to each other, so that it is known who is missing; more
 * ranks double what they hold from round to round, which takes few messages. */
enum { DIRECT = 32 };

struct AmprtGather {
  const AmprtMpi *mpi;
  int rank, size, round;
  size_t bytes;
  Requests requests;
  unsigned char *piece; /* of rank (rank + i) % size at i * bytes */
};

/* Begins the next round; false if there is none. */
static bool next_round(AmprtGather *g) {
  const AmprtMpi *mpi = g->mpi;
  AmprtRound round;
  g->requests.n = g->requests.open = 0;
  if (g->size <= DIRECT) {
    for (int i = 1; i < g->size && !g->round; i++) {
      receive(mpi, &g->requests, g->piece + (size_t)i * g->bytes, g->bytes, mpi->byte,
              (g->rank + i) % g->size, TAG_GATHER);
      send(mpi, &g->requests, g->piece, g->bytes, mpi->byte, (g->rank + g->size - i) % g->size,
           TAG_GATHER);
    }
    return !g->round++;
  }
  if (!amprt_gather_round(g->rank, g->size, g->round, &round))
    return false;
  size_t bytes = (size_t)round.get * g->bytes;
  receive(mpi, &g->requests, g->piece + (size_t)round.have * g->bytes, bytes, mpi->byte, round.from,
          TAG_GATHER + g->round);
  send(mpi, &g->requests, g->piece, bytes, mpi->byte, round.to, TAG_GATHER + g->round);
  g->round++;
  return true;
}

AmprtStatus amprt_gather_begin(AmprtGather **gather, const AmprtMpi *mpi, int rank, int size,
                               const void *mine, size_t bytes, AmprtError *error) {
  AmprtGather *g = *gather = calloc(1, sizeof *g);
  size_t all = (size_t)size * bytes;
  if (!g || !requests_reserve(mpi, &g->requests, size <= DIRECT ? 2 * size : 2) ||
      !(g->piece = malloc(all + 1))) {
    if (g)
      amprt_gather_end(g, NULL, 0);
    *gather = NULL;
    return amprt_fail_memory(error, all, "what other processes tell");
  }
  g->mpi = mpi, g->rank = rank, g->size = size, g->bytes = bytes;
  memcpy(g->piece, mine, bytes);
  next_round(g);
  return AMPRT_OK;
}

bool amprt_gather_poll(AmprtGather *g) {
  bool moved;
  while (requests_poll(g->mpi, &g->requests, &moved))
    if (!next_round(g))
      return true;
  return false;
}

int amprt_gather_missing(const AmprtGather *g, int *rank, bool *behind) {
  *behind = g->size > DIRECT;
  return requests_missing(g->mpi, &g->requests, rank);
}

void amprt_gather_end(AmprtGather *g, unsigned char *all, size_t stride) {
  for (int i = 0; all && i < g->size; i++)
    memcpy(all + (size_t)((g->rank + i) % g->size) * stride, g->piece + (size_t)i * g->bytes,
           g->bytes);
  requests_free(&g->requests);
  free(g->piece);
  free(g);
}
