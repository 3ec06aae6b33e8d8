#include "codegen/loop/emitter.h"

#include <string.h>

typedef struct CachedFunction {
  const char *types, *body, *name;
} CachedFunction;

typedef struct CachedBytes {
  size_t at, n;
} CachedBytes;

struct FunctionCache {
  CachedFunction *function;
  int n, cap;
  CachedBytes *constant;
  int n_constants, cap_constants;
  const char **table;
  int n_tables, cap_tables;
};

FunctionCache *function_cache_new(Arena *arena) {
  return arena_new_of(arena, FunctionCache);
}

/* Writes the text with `name` in the place of each `@`. */
static void write_with_name(FILE *out, const char *body, const char *name) {
  for (; *body; body++)
    if (*body == '@')
      fputs(name, out);
    else
      fputc(*body, out);
}

const char *function_intern(Emitter *emit, const char *stem, const char *types, const char *body) {
  FunctionCache *cache = emit->cache;
  for (int i = 0; i < cache->n; i++)
    if (strcmp(cache->function[i].body, body) == 0 && strcmp(cache->function[i].types, types) == 0)
      return cache->function[i].name;
  const char *name = arena_printf(emit->arena, "%s_%d", stem, cache->n);
  CachedFunction entry = {arena_strdup(emit->arena, types, strlen(types)),
                          arena_strdup(emit->arena, body, strlen(body)), name};
  arena_push(emit->arena, cache->function, cache->n, cache->cap, entry);
  write_with_name(emit->types ? emit->types : emit->functions, types, name);
  write_with_name(emit->functions, body, name);
  fputc('\n', emit->functions);
  return name;
}

int64_t constant_intern(Emitter *emit, const void *bytes, size_t n) {
  FunctionCache *cache = emit->cache;
  Bytes *to = emit->constants;
  for (int i = 0; i < cache->n_constants; i++)
    if (cache->constant[i].n == n && memcmp(to->byte + cache->constant[i].at, bytes, n) == 0)
      return (int64_t)cache->constant[i].at;
  size_t at = (to->n + 15) / 16 * 16, end = at + n;
  if (end > to->cap) {
    size_t cap = 2 * end + 4096;
    to->byte = arena_grow(emit->arena, to->byte, to->cap, cap);
    to->cap = cap;
  }
  memset(to->byte + to->n, 0, at - to->n);
  memcpy(to->byte + at, bytes, n);
  to->n = end;
  CachedBytes entry = {at, n};
  arena_push(emit->arena, cache->constant, cache->n_constants, cache->cap_constants, entry);
  return (int64_t)at;
}

int constant_number(Emitter *emit, const char *name) {
  arena_push(emit->arena, emit->constant, emit->n_constants, emit->cap_constants, name);
  return emit->n_constants - 1;
}

bool table_intern(Emitter *emit, const char *name) {
  FunctionCache *cache = emit->cache;
  for (int i = 0; i < cache->n_tables; i++)
    if (strcmp(cache->table[i], name) == 0)
      return false;
  arena_push(emit->arena, cache->table, cache->n_tables, cache->cap_tables, name);
  return true;
}

bool value_in_state(const Value *value) {
  return value_storage((Value *)value)->node->op == OP_VARIABLE;
}

int64_t value_at(const Value *value) {
  const Value *storage = value_storage((Value *)value);
  const int64_t *at = attr_ints(storage->node, ATTR_AT, storage->node->n_results);
  CHECK(at && at[storage->index] >= 0, "%%%s has no place", storage->name);
  return at[storage->index];
}

const char *ctype_of(DType dtype) {
  return dtype_info[dtype].ctype;
}

const char *cdtype_name(DType dtype) {
  static const char *const name[] = {
#define DTYPE(id, ...) [DT_##id] = "AMPRT_" #id,
#include "ir/dtypes.def"
  };
  return name[dtype];
}

/* Letters and digits stay, `_` becomes two, and any other byte becomes `_` and two hexadecimal
 * digits, so that different names give different identifiers. */
const char *ident_of(Arena *arena, const char *name) {
  char *text = arena_alloc(arena, 3 * strlen(name) + 1), *to = text;
  for (; *name; name++) {
    unsigned char c = (unsigned char)*name;
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
      *to++ = (char)c;
    else
      to += c == '_' ? sprintf(to, "__") : sprintf(to, "_%02x", c);
  }
  return text;
}
