#include "ir/names.h"

#include <string.h>

typedef struct Slot {
  const char *name; /* NULL: never used; `gone`: removed */
  Value *value;
} Slot;

struct NameMap {
  Arena *arena;
  Slot *slot;
  size_t n_used, cap; /* used counts removed slots too; cap is a power of two */
};

static const char gone[] = "";

static uint64_t hash_text(const char *text) { /* FNV-1a */
  uint64_t h = UINT64_C(14695981039346656037);
  for (; *text; text++)
    h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return h;
}

NameMap *names_new(Arena *arena) {
  NameMap *names = arena_new_of(arena, NameMap);
  names->arena = arena;
  names->cap = 64;
  names->slot = arena_alloc(arena, names->cap * sizeof *names->slot);
  return names;
}

/* The slot that holds `name`, or the empty one where it would go. */
static Slot *probe(const NameMap *names, const char *name) {
  size_t i = (size_t)hash_text(name) & (names->cap - 1);
  while (names->slot[i].name &&
         (names->slot[i].name == gone || strcmp(names->slot[i].name, name) != 0))
    i = (i + 1) & (names->cap - 1);
  return &names->slot[i];
}

static void grow(NameMap *names) {
  Slot *old = names->slot;
  size_t n = names->cap;
  names->cap *= 2;
  names->n_used = 0;
  names->slot = arena_alloc(names->arena, names->cap * sizeof *names->slot);
  for (size_t i = 0; i < n; i++)
    if (old[i].name && old[i].name != gone) {
      *probe(names, old[i].name) = old[i];
      names->n_used++;
    }
}

Value *names_get(const NameMap *names, const char *name) {
  return probe(names, name)->value;
}

void names_put(NameMap *names, const char *name, Value *value) {
  if (2 * names->n_used >= names->cap)
    grow(names);
  Slot *slot = probe(names, name);
  names->n_used += !slot->name;
  *slot = (Slot){name, value};
}

void names_remove(NameMap *names, const char *name) {
  Slot *slot = probe(names, name);
  if (slot->name)
    *slot = (Slot){gone, NULL};
}
