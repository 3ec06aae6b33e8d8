/* Chooses the values that are made again: while the graph does not fit, the next is one that is
 * alive where the most bytes are alive, and of these the one that moves the fewest bytes per byte
 * saved. */
#include "passes/memory/pack.h"
#include "passes/memory/recompute.h"

#include <stdlib.h>

/* The slot in which a kernel runs. Inputs, whose maker is -1, are there from slot 0. */
static int slot_of(int kernel) {
  return kernel < 0 ? 0 : 2 * kernel + 1;
}

/* The slot in which second copies in front of a kernel are made. */
static int slot_before(int kernel) {
  return 2 * kernel;
}

/* ---- live ranges ---- */

/* Notes that storage i is read by or for a kernel in this slot: the copy that is read lives at
 * least until then, and a second copy is made in front of its first reader. */
static void read_at(Recompute *r, int i, int kernel, int slot) {
  bool again = r->split[i] >= 0 && kernel > r->split[i];
  int *last = again ? &r->again_last[i] : &r->last[i];
  if (slot > *last)
    *last = slot;
  if (again && kernel < r->place[i])
    r->place[i] = kernel;
}

/* As plan-memory does, lets a loop write over an operand that dies in it. */
static void take_over(Recompute *r, int k, int made) {
  const Storage *storage = r->storages->storage;
  for (int i = 0; i < r->storages->reads[k].n; i++) {
    int old = r->storages->reads[k].v[i];
    bool again = r->split[old] >= 0 && k > r->split[old];
    int *last = again ? &r->again_last[old] : &r->last[old];
    if (*last == slot_of(k) && storage_may_replace(r->target, &r->storages->kernels.kernel[k],
                                                   &storage[made], &storage[old])) {
      r->over[made] = (Copy){.storage = old, .again = again};
      --*last;
      return;
    }
  }
}

/* Computes all that follows from the splits. */
static void find_spans(Recompute *r) {
  const Storages *s = r->storages;
  int n = s->kernels.n;
  for (int i = 0; i < s->n; i++) {
    const Storage *storage = &s->storage[i];
    r->last[i] = storage->output ? slot_of(n - 1) : slot_of(storage->maker);
    r->place[i] = n;
    r->again_last[i] = -1;
    r->over[i] = (Copy){.storage = -1};
    for (int k = 0; k < r->reader[i].n; k++)
      read_at(r, i, r->reader[i].v[k], slot_of(r->reader[i].v[k]));
  }
  /* What a second copy is made from must live until then. Readers come before makers in this loop,
   * since a second copy may be made from another. */
  for (int i = s->n - 1; i >= 0; i--)
    for (int k = 0; r->split[i] >= 0 && k < r->remake[i]->leaf.n; k++)
      read_at(r, r->remake[i]->leaf.v[k], r->place[i], slot_before(r->place[i]));
  for (int k = 0; k < n; k++)
    for (int m = 0; m < s->makes[k].n; m++)
      take_over(r, k, s->makes[k].v[m]);
}

static void add_span(Recompute *r, int64_t bytes, int first, int last) {
  r->live[first] += bytes;
  r->live[last + 1] -= bytes;
}

/* Fills `live`; returns the first slot in which the most bytes are alive. */
static int find_peak(Recompute *r) {
  const Storages *s = r->storages;
  int n = 2 * s->kernels.n + 1, peak = 0;
  for (int t = 0; t <= n; t++)
    r->live[t] = 0;
  for (int i = 0; i < s->n; i++) {
    int64_t bytes = round_up(s->storage[i].bytes, r->target->align);
    add_span(r, bytes, slot_of(s->storage[i].maker), r->last[i]);
    if (r->split[i] >= 0)
      add_span(r, bytes, slot_before(r->place[i]), r->again_last[i]);
  }
  for (int k = 0; k < s->kernels.n; k++)
    add_span(r, r->workspace[k], slot_of(k), slot_of(k));
  for (int t = 1; t < n; t++) {
    r->live[t] += r->live[t - 1];
    peak = r->live[t] > r->live[peak] ? t : peak;
  }
  return peak;
}

/* ---- the choice of one value ---- */

typedef struct Candidate {
  int index;
  double cost; /* bytes moved per byte saved */
  int64_t bytes;
} Candidate;

static int by_cost(const void *pa, const void *pb) {
  const Candidate *a = pa, *b = pb;
  if (a->cost != b->cost)
    return a->cost < b->cost ? -1 : 1;
  if (a->bytes != b->bytes)
    return a->bytes > b->bytes ? -1 : 1;
  return a->index - b->index;
}

/* A value of less than 1/SMALLEST of the bytes that are alive is not worth a kernel. */
enum { SMALLEST = 4096 };

/* The values that are alive in a slot, were made before it and are read after it. */
static int candidates(const Recompute *r, int slot, Candidate *out) {
  int n = 0;
  for (int i = 0; i < r->storages->n; i++) {
    const Storage *storage = &r->storages->storage[i];
    if (r->remake[i] && r->split[i] < 0 && slot_of(storage->maker) < slot && r->last[i] > slot &&
        storage->bytes >= r->live[slot] / SMALLEST)
      out[n++] =
          (Candidate){i, (double)r->remake[i]->moved / (double)storage->bytes, storage->bytes};
  }
  if (n)
    qsort(out, (size_t)n, sizeof *out, by_cost);
  return n;
}

/* Does every second copy come before the update of each variable that it reads? */
static bool keeps_order(const Recompute *r) {
  for (int i = 0; i < r->storages->n; i++)
    if (r->split[i] >= 0 && r->place[i] > r->remake[i]->until)
      return false;
  return true;
}

/* Makes storage i again behind a slot, provided that fewer bytes are then alive in that slot and in
 * no slot more than there were in it. */
static bool try_split(Recompute *r, int i, int slot) {
  int64_t before = r->live[slot];
  r->split[i] = (slot + 1) / 2 - 1;
  find_spans(r);
  int peak = find_peak(r);
  if (r->place[i] < r->storages->kernels.n && keeps_order(r) && r->live[slot] < before &&
      r->live[peak] <= before)
    return true;
  r->split[i] = -1;
  find_spans(r);
  find_peak(r);
  return false;
}

static bool choose_one(Recompute *r, int peak) {
  Arena *scratch = arena_new();
  Candidate *list = arena_alloc(scratch, ((size_t)r->storages->n + 1) * sizeof *list);
  int n = candidates(r, peak, list);
  bool done = false;
  for (int i = 0; i < n && !done; i++)
    done = try_split(r, list[i].index, peak);
  arena_free(scratch);
  return done;
}

/* ---- the size of the arena ---- */

/* The number that each kernel will have once the kernels of second copies are inserted. */
static int *new_numbers(const Recompute *r, Arena *arena) {
  int n = r->storages->kernels.n, more = 0;
  int *number = arena_alloc(arena, ((size_t)n + 1) * sizeof *number);
  for (int i = 0; i < r->storages->n; i++)
    if (r->split[i] >= 0)
      number[r->place[i]]++;
  for (int k = 0; k < n; k++) {
    more += number[k];
    number[k] = k + more;
  }
  return number;
}

/* The live range of one copy of storage i, in the new numbers of kernels. A copy that dies in the
 * slot in front of a kernel is last read by the kernel that makes second copies there. */
static Block span_of(const Recompute *r, const int *number, int i, bool again) {
  const Storage *storage = &r->storages->storage[i];
  int last = again ? r->again_last[i] : r->last[i], kernel = last / 2;
  int first = again ? number[r->place[i]] - 1 : storage->maker < 0 ? 0 : number[storage->maker];
  return (Block){.bytes = round_up(storage->bytes, r->target->align),
                 .first = first,
                 .last = last == slot_of(kernel) || !last ? number[kernel] : number[kernel] - 1};
}

/* The size of the arena that plan-memory will arrive at. */
static int64_t packed_bytes(const Recompute *r) {
  const Storages *s = r->storages;
  Arena *arena = arena_new();
  int *number = new_numbers(r, arena), n = 0;
  size_t copies = 2 * (size_t)s->n;
  Block *block = arena_alloc(arena, (copies + (size_t)s->kernels.n + 1) * sizeof *block);
  int *block_of[2] = {arena_alloc(arena, (copies + 1) * sizeof(int)),
                      arena_alloc(arena, (copies + 1) * sizeof(int))};
  for (int i = 0; i < s->n; i++)
    for (int again = 0; again <= (r->split[i] >= 0); again++) {
      Block span = span_of(r, number, i, again);
      Copy over = again ? (Copy){.storage = -1} : r->over[i];
      if (over.storage < 0) {
        block_of[again][i] = n;
        block[n++] = span;
      } else { /* the same place, for longer */
        block_of[again][i] = block_of[over.again][over.storage];
        block[block_of[again][i]].last = span.last;
      }
    }
  for (int k = 0; k < s->kernels.n; k++)
    if (r->workspace[k])
      block[n++] = (Block){.bytes = r->workspace[k], .first = number[k], .last = number[k]};
  int64_t bytes = pack(arena, block, n);
  arena_free(arena);
  return bytes;
}

void recompute_choose(Recompute *r, int64_t limit) {
  int64_t goal = limit;
  find_spans(r);
  for (;;) {
    int peak = find_peak(r);
    if (r->live[peak] <= goal) {
      int64_t bytes = packed_bytes(r);
      if (bytes <= limit)
        return;
      goal -= bytes - limit;
    } else if (!choose_one(r, peak)) {
      return;
    }
  }
}
