/* Every byte that a kernel may touch has a cell that records which thread wrote it last and which
 * threads have read it since. An access is checked against the cells of all its bytes. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* A segment says when a byte was written. The first four are the values of ShimMark. Then follows
 * one for each stretch of a block between two barriers, in rising order. */
enum { FIRST_SEGMENT = SHIM_CONSTANT + 1 };
_Static_assert(SHIM_FORBIDDEN == 0, "mmap gives cells of 0, so new memory is forbidden");
/* Values of a cell that are not the number of one thread. */
enum { MANY = 0x8000, MANY_OF_WARP = 0x4000, ATOMIC = 0x2000 };

typedef struct Access {
  uint32_t segment;
  uint16_t thread, epoch; /* epoch: how many barriers the warp had passed in this segment */
} Access;

typedef struct Cell {
  Access write, read;
} Cell;

typedef struct Region {
  const char *name;
  unsigned char *at;
  size_t bytes;
  Cell *cell;
  bool is_shared;
} Region;

enum { MAX_REGIONS = 64 };
static Region region[MAX_REGIONS], *last = region;
static int n_regions;
static uint32_t segment = FIRST_SEGMENT, block_first, launch_first;
static uint16_t epoch[MAX_THREADS / WARP];

/* ---- what memory there is ---- */

static Region *region_of(const void *at) {
  uintptr_t p = (uintptr_t)at;
  if (p - (uintptr_t)last->at < last->bytes)
    return last;
  for (int i = 0; i < n_regions; i++)
    if (p - (uintptr_t)region[i].at < region[i].bytes)
      return last = &region[i];
  return NULL;
}

static void add(Region what) {
  if (n_regions == MAX_REGIONS) {
    fprintf(stderr, "shim: more than %d blocks of memory\n", MAX_REGIONS);
    abort();
  }
  what.cell = mmap(NULL, what.bytes * sizeof(Cell), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (what.cell == MAP_FAILED) {
    perror("shim: cells");
    abort();
  }
  region[n_regions++] = what;
}

static void tell_asan(void *at, size_t bytes, ShimMark mark) {
#ifdef __SANITIZE_ADDRESS__
  if (mark == SHIM_FORBIDDEN)
    __asan_poison_memory_region(at, bytes);
  else
    __asan_unpoison_memory_region(at, bytes);
#else
  (void)at, (void)bytes, (void)mark;
#endif
}

void check_add(const char *name, void *at, size_t bytes) {
  add((Region){.name = name, .at = at, .bytes = bytes});
  tell_asan(at, bytes, SHIM_FORBIDDEN);
}

void check_share(void *at, size_t bytes) {
  add((Region){.name = "shared memory", .at = at, .bytes = bytes, .is_shared = true});
}

void check_drop(void *at) {
  Region *r = region_of(at);
  if (!r)
    return;
  tell_asan(r->at, r->bytes, SHIM_DEFINED);
  munmap(r->cell, r->bytes * sizeof(Cell));
  *r = region[--n_regions];
  region[n_regions] = (Region){0};
}

/* A workspace has millions of cells, and sanitizers would check the write to each. */
__attribute__((no_sanitize("address"), no_sanitize("undefined"))) static void
fill(Cell *cell, size_t n, Cell to) {
  for (size_t i = 0; i < n; i++)
    cell[i] = to;
}

void check_mark(void *at, size_t bytes, ShimMark mark) {
  Region *r = region_of(at);
  if (!r || bytes == 0)
    return;
  const size_t first = (size_t)((unsigned char *)at - r->at), most = r->bytes - first;
  fill(r->cell + first, bytes < most ? bytes : most, (Cell){.write.segment = mark});
  tell_asan(at, bytes, mark);
  if (mark == SHIM_UNDEFINED)
    memset(at, 0xff, bytes);
}

const void *check_unwritten(const void *at, size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  (void)at, (void)bytes;
#else
  const Region *r = region_of(at);
  size_t first = r ? (size_t)((const unsigned char *)at - r->at) : 0;
  for (size_t i = first; r && i < first + bytes && i < r->bytes; i++)
    if (r->cell[i].write.segment == SHIM_UNDEFINED)
      return r->at + i;
#endif
  return NULL;
}

/* ---- order ---- */

static void next_segment(void) {
  if (++segment == 0) {
    fprintf(stderr, "shim: too many blocks for one process\n");
    abort();
  }
  memset(epoch, 0, sizeof epoch);
}

void check_launch(void) {
  next_segment();
  launch_first = segment;
}

void check_block(void) {
  next_segment();
  block_first = segment;
}

void check_barrier(void) {
  next_segment();
}

void check_warp(int warp) {
  epoch[warp]++;
}

/* ---- accesses ---- */

/* Is the access `a` not ordered, by any barrier, with what `thread` does now? */
static bool races(Access a, int thread) {
  if (a.segment < launch_first || a.thread == thread)
    return a.segment >= launch_first && a.segment < block_first;
  if (a.segment != segment)
    return a.segment < block_first;
  int warp = a.thread & MANY_OF_WARP ? a.thread & ~MANY_OF_WARP : a.thread / WARP;
  bool same_warp = !(a.thread & (MANY | ATOMIC)) && warp == thread / WARP;
  return !(same_warp && a.epoch < epoch[warp]);
}

static void remember_read(Access *read, int thread) {
  int warp = thread / WARP;
  Access now = {segment, (uint16_t)thread, epoch[warp]};
  if (read->segment == segment && read->thread != thread) {
    int other = read->thread & MANY_OF_WARP ? read->thread & ~MANY_OF_WARP : read->thread / WARP;
    bool same_warp = !(read->thread & MANY) && other == warp;
    now.thread = (uint16_t)(same_warp ? MANY_OF_WARP | warp : MANY);
  }
  *read = now;
}

typedef enum Way { READ, WRITE, CHANGE } Way; /* CHANGE stands for an atomic operation */
static const char *const way_name[] = {"reads", "writes", "changes"};

__attribute__((noreturn)) static void complain(const Region *r, const void *at, size_t bytes,
                                               Way way, const void *code, const char *why) {
  long long offset = (long long)((const unsigned char *)at - r->at);
  launch_fail(code, "%s %zu bytes at %lld of %s, %s", way_name[way], bytes, offset, r->name, why);
}

/* Shared memory starts anew with each block. */
static void renew(const Region *r, Cell *cell) {
  if (r->is_shared && cell->write.segment >= FIRST_SEGMENT && cell->write.segment < block_first)
    *cell = (Cell){.write.segment = SHIM_UNDEFINED};
}

/* Why the access to one byte is wrong; NULL if it is not. */
static const char *judge(const Cell *cell, Way way, int thread) {
  uint32_t written = cell->write.segment;
  if (written == SHIM_FORBIDDEN)
    return "which is outside every operand";
  if (written == SHIM_CONSTANT && way != READ)
    return "which is constant";
  if (written == SHIM_UNDEFINED && way != WRITE)
    return "which nothing has written";
  if (way == CHANGE && (cell->write.thread & ATOMIC))
    return NULL;
  if (written >= FIRST_SEGMENT && races(cell->write, thread))
    return written < block_first ? "which another block wrote in this launch"
                                 : "which another thread wrote, with no barrier between";
  if (way != READ && cell->read.segment >= FIRST_SEGMENT && races(cell->read, thread))
    return cell->read.segment < block_first ? "which another block read in this launch"
                                            : "which another thread read, with no barrier between";
  return NULL;
}

/* The shared object's own memory holds constants and the thread's indices. */
extern const unsigned char __ehdr_start[] __attribute__((visibility("hidden")));
extern const unsigned char _end[] __attribute__((visibility("hidden")));

static void check(void *at, size_t bytes, Way way, const void *code) {
  int thread = launch_thread();
  if (thread < 0 || launch_owns(at))
    return;
  Region *r = region_of(at);
  bool is_own = (uintptr_t)at - (uintptr_t)__ehdr_start < (size_t)(_end - __ehdr_start);
  if (!r && is_own && way == READ)
    return;
  if (!r)
    launch_fail(code, "%s %zu bytes at %p, where the launch has no memory%s", way_name[way], bytes,
                at, is_own ? " but static variables" : "");
  size_t first = (size_t)((unsigned char *)at - r->at);
  if (bytes > r->bytes - first)
    complain(r, at, bytes, way, code, "which is beyond its end");
  uint16_t now = epoch[thread / WARP];
  for (Cell *cell = r->cell + first; cell < r->cell + first + bytes; cell++) {
    renew(r, cell);
    const char *why = judge(cell, way, thread);
    if (why)
      complain(r, at, bytes, way, code, why);
    if (way == READ)
      remember_read(&cell->read, thread);
    else
      cell->write = (Access){segment, (uint16_t)(way == CHANGE ? ATOMIC : thread), now};
  }
}

void check_atomic(void *at, size_t bytes, const void *code) {
  check(at, bytes, CHANGE, code);
}

static void check_aligned(void *at, size_t bytes, Way way, const void *code) {
  if ((uintptr_t)at % bytes != 0 && launch_thread() >= 0)
    launch_fail(code, "%s %zu bytes at an address that is not a multiple of it", way_name[way],
                bytes);
  check(at, bytes, way, code);
}

/* ---- what -fsanitize=thread calls ---- */

#define HOOK(name, ...) __attribute__((visibility("default"))) void name(__VA_ARGS__)
#define HOOKS(bytes)                                                                               \
  HOOK(__tsan_read##bytes, void *at);                                                              \
  HOOK(__tsan_read##bytes, void *at) {                                                             \
    check_aligned(at, bytes, READ, __builtin_return_address(0));                                   \
  }                                                                                                \
  HOOK(__tsan_write##bytes, void *at);                                                             \
  HOOK(__tsan_write##bytes, void *at) {                                                            \
    check_aligned(at, bytes, WRITE, __builtin_return_address(0));                                  \
  }
/* Accesses that need not be aligned, such as those of memcpy. */
#define UNALIGNED_HOOKS(bytes)                                                                     \
  HOOK(__tsan_unaligned_read##bytes, void *at);                                                    \
  HOOK(__tsan_unaligned_read##bytes, void *at) {                                                   \
    check(at, bytes, READ, __builtin_return_address(0));                                           \
  }                                                                                                \
  HOOK(__tsan_unaligned_write##bytes, void *at);                                                   \
  HOOK(__tsan_unaligned_write##bytes, void *at) {                                                  \
    check(at, bytes, WRITE, __builtin_return_address(0));                                          \
  }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
UNALIGNED_HOOKS(2)
UNALIGNED_HOOKS(4)
UNALIGNED_HOOKS(8)
UNALIGNED_HOOKS(16)

HOOK(__tsan_read_range, void *at, size_t bytes);
HOOK(__tsan_read_range, void *at, size_t bytes) {
  check(at, bytes, READ, __builtin_return_address(0));
}
HOOK(__tsan_write_range, void *at, size_t bytes);
HOOK(__tsan_write_range, void *at, size_t bytes) {
  check(at, bytes, WRITE, __builtin_return_address(0));
}
HOOK(__tsan_init, void);
HOOK(__tsan_init, void) {}
HOOK(__tsan_func_entry, void *caller);
HOOK(__tsan_func_entry, void *caller) {
  (void)caller;
}
HOOK(__tsan_func_exit, void);
HOOK(__tsan_func_exit, void) {}
