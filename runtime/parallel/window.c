#define _GNU_SOURCE /* memfd_create */
#include "runtime/parallel/window.h"

#include "runtime/parallel/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file of a rank: this, then its pages from HEAD_BYTES on. */
typedef struct Head {
  uint64_t word;
  _Alignas(64) _Atomic uint32_t reached[AMPRT_N_REACHED][AMPRT_MAX_BUCKETS];
} Head;
enum { HEAD_BYTES = 1 << 16 }; /* a multiple of every page size */
_Static_assert(sizeof(Head) <= HEAD_BYTES, "the pages begin behind the head");

typedef struct Peer {
  unsigned char *map; /* the whole file */
  size_t bytes;
} Peer;

struct AmprtWindow {
  Head *head; /* the own one */
  unsigned char *arena;
  uint64_t page_at, page_bytes; /* of the arena: what lies in the file */
  int fd, first, ranks, own;
  Peer *peer;         /* the own one included */
  float **to;         /* room for one pointer per rank */
  const float **from; /* likewise */
};

AmprtStatus amprt_window_open(AmprtWindow **window, unsigned char *arena, uint64_t at,
                              uint64_t bytes, AmprtWindowCard *card, AmprtError *error) {
  *card = (AmprtWindowCard){0};
  AmprtWindow *w = *window = calloc(1, sizeof *w);
  if (!w)
    return amprt_fail_memory(error, sizeof *w, "shared memory");
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  w->arena = arena, w->page_at = at / page * page;
  w->page_bytes = (at + bytes + page - 1) / page * page - w->page_at;
  w->fd = memfd_create("ampcc buckets", MFD_CLOEXEC);
  if (w->fd < 0)
    return amprt_fail_errno(error, "memfd_create", "buckets");
  /* All pages are taken now: later a lack of memory would be a bus error. */
  int failed = posix_fallocate(w->fd, 0, (off_t)(HEAD_BYTES + w->page_bytes));
  if (failed) {
    errno = failed;
    return amprt_fail_errno(error, "posix_fallocate", "buckets");
  }
  w->head = mmap(NULL, HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
  if (w->head == MAP_FAILED) {
    w->head = NULL;
    return amprt_fail_errno(error, "mmap", "buckets");
  }
  if (getrandom(&w->head->word, sizeof w->head->word, 0) != sizeof w->head->word)
    return amprt_fail_errno(error, "getrandom", "buckets");
  w->head->word |= 1;
  if (w->page_bytes && mmap(arena + w->page_at, w->page_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED, w->fd, HEAD_BYTES) == MAP_FAILED)
    return amprt_fail_errno(error, "mmap", "buckets");
  *card = (AmprtWindowCard){w->head->word, w->page_bytes, (int32_t)getpid(), w->fd};
  return AMPRT_OK;
}

static AmprtStatus map_peer(Peer *peer, const AmprtWindowCard *card, int rank, AmprtError *error) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", card->pid, card->fd);
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return amprt_fail_errno(error, "open", path);
  struct stat st;
  size_t bytes = HEAD_BYTES + card->bytes;
  if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != bytes) {
    close(fd);
    return amprt_fail(error, AMPRT_ENV, "%s is not the memory of rank %d", path, rank);
  }
  void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED)
    return amprt_fail_errno(error, "mmap", path);
  peer->map = map, peer->bytes = bytes;
  /* The process of that number may be another machine's or another container's. */
  if (((const Head *)map)->word != card->word)
    return amprt_fail(error, AMPRT_ENV, "%s is not the memory of rank %d", path, rank);
  return AMPRT_OK;
}

AmprtStatus amprt_window_join(AmprtWindow *w, const AmprtWindowCard *card, int first, int ranks,
                              int own, AmprtError *error) {
  w->first = first, w->ranks = ranks, w->own = own;
  w->peer = calloc((size_t)ranks, sizeof *w->peer);
  w->to = calloc((size_t)ranks, sizeof *w->to);
  w->from = calloc((size_t)ranks, sizeof *w->from);
  if (!w->peer || !w->to || !w->from)
    return amprt_fail_memory(error, (size_t)ranks * sizeof *w->peer, "shared memory");
  for (int i = 0; i < ranks; i++) {
    if (!card[i].word || card[i].bytes != card[own].bytes)
      return amprt_fail(error, AMPRT_ENV, "rank %d has no memory to share", first + i);
    AmprtStatus status = map_peer(&w->peer[i], &card[i], first + i, error);
    if (status)
      return status;
  }
  return AMPRT_OK;
}

void amprt_window_close(AmprtWindow *w) {
  if (!w)
    return;
  for (int i = 0; w->peer && i < w->ranks; i++)
    if (w->peer[i].map)
      munmap(w->peer[i].map, w->peer[i].bytes);
  if (w->head)
    munmap(w->head, HEAD_BYTES);
  if (w->fd > 0)
    close(w->fd);
  free(w->peer), free(w->to), free(w->from);
  free(w);
}

void amprt_window_tell(AmprtWindow *w, AmprtReached what, int bucket, uint32_t turn) {
  atomic_store_explicit(&w->head->reached[what][bucket], turn, memory_order_release);
}

/* Turns are compared as differences, as they may pass 2^32. A rank can be ahead by one turn. */
static bool has_reached(const AmprtWindow *w, int i, AmprtReached what, int bucket, uint32_t turn) {
  Head *head = (Head *)w->peer[i].map;
  uint32_t at = atomic_load_explicit(&head->reached[what][bucket], memory_order_acquire);
  return (int32_t)(at - turn) >= 0;
}

bool amprt_window_all(const AmprtWindow *w, AmprtReached what, int bucket, uint32_t turn) {
  for (int i = 0; i < w->ranks; i++)
    if (!has_reached(w, i, what, bucket, turn))
      return false;
  return true;
}

int amprt_window_missing(const AmprtWindow *w, AmprtReached what, int bucket, uint32_t turn,
                         int *rank) {
  int n = 0;
  for (int i = 0; i < w->ranks; i++)
    if (!has_reached(w, i, what, bucket, turn))
      rank[n++] = w->first + i;
  return n;
}

static float *peer_data(const AmprtWindow *w, int i, uint64_t at) {
  unsigned char *data =
      i == w->own ? w->arena + at : w->peer[i].map + HEAD_BYTES + (at - w->page_at);
  return (float *)(void *)data;
}

enum { TILE = 4096 }; /* floats: what was just read or made is still in the cache when copied */

void amprt_window_sum(AmprtWindow *w, uint64_t at, AmprtSlice slice, bool everywhere) {
  for (uint64_t from = 0; from < slice.count; from += TILE) {
    size_t n = slice.count - from < TILE ? (size_t)(slice.count - from) : TILE;
    for (int i = 0; i < w->ranks; i++)
      w->from[i] = w->to[i] = peer_data(w, i, at) + slice.at + from;
    float *own = w->to[w->own];
    amprt_tree_sum(own, w->from, w->ranks, n);
    for (int i = 0; everywhere && i < w->ranks; i++)
      if (i != w->own)
        memcpy(w->to[i], own, n * sizeof *own);
  }
}

void amprt_window_spread(AmprtWindow *w, uint64_t at, AmprtSlice slice) {
  const float *own = peer_data(w, w->own, at) + slice.at;
  for (int i = 0; i < w->ranks; i++)
    if (i != w->own)
      memcpy(peer_data(w, i, at) + slice.at, own, slice.count * sizeof *own);
}
