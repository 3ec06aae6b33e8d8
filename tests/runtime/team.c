#include "tests/runtime/team.h"

#include "runtime/parallel/group.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 16 };

typedef struct Shared {
  _Atomic unsigned turn[MOST]; /* how often each process has come to a meeting */
} Shared;

static AmprtRanks self;
static char name[AMPRT_ID_BYTES];
static Shared *shared;
static uint64_t each, whole; /* bytes: of a process's part, of all */
static unsigned turn;

void team_make_id(unsigned char *id) {
  snprintf((char *)id, AMPRT_ID_BYTES, "/ampcc-test-device-%ld", (long)getpid());
}

int team_open(const AmprtRanks *ranks, uint64_t bytes) {
  self = *ranks;
  snprintf(name, sizeof name, "%s", (const char *)ranks->id);
  each = bytes;
  whole = sizeof *shared + (uint64_t)ranks->size * each;
  int fd = ranks->size <= MOST ? shm_open(name, O_RDWR | O_CREAT, 0600) : -1;
  if (fd < 0 || ftruncate(fd, (off_t)whole))
    return -1;
  void *map = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  shared = map == MAP_FAILED ? NULL : map;
  return shared ? 0 : -1;
}

void team_close(void) {
  if (!shared)
    return;
  if (!self.rank)
    shm_unlink(name);
  munmap(shared, whole);
  shared = NULL;
}

/* Returns once all have called it as often as this process. */
static void meet(void) {
  atomic_store(&shared->turn[self.rank], ++turn);
  for (int r = 0; r < self.size; r++)
    while ((int)(atomic_load(&shared->turn[r]) - turn) < 0)
      sched_yield();
}

void team_sum(float *data, uint64_t elements) {
  const float *part[MOST];
  unsigned char *parts = (unsigned char *)(shared + 1);
  for (int r = 0; r < self.size; r++)
    part[r] = (const float *)(const void *)(parts + (uint64_t)r * each);
  memcpy(parts + (uint64_t)self.rank * each, data, elements * sizeof *data);
  meet();
  amprt_tree_sum(data, part, self.size, elements);
  meet();
}
