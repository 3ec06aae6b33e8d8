#include "codegen/program/objects.h"

#include "codegen/program/bytes.h"
#include "codegen/program/used.h"
#include "ir/base/text.h"

#include <stdlib.h>
#include <string.h>

/* Removes from the text all places of `path`. */
static void leave_out(char *text, const char *path) {
  size_t n = strlen(path);
  char *to = text, *found;
  while (n > 1 && (found = strstr(text, path)) != NULL) {
    memmove(to, text, (size_t)(found - text));
    to += found - text;
    text = found + n;
  }
  memmove(to, text, strlen(text) + 1);
}

/* Removes the lines on the folders that headers and libraries are searched in: what headers were
 * found is in the text, and an object needs no library. */
static void leave_out_searches(char *said) {
  static const char *const first[] = {"LIBRARY_PATH=", "ignoring ", "  as it is a non-system ",
                                      "#include "};
  static const char end[] = "End of search list.";
  char *to = said;
  bool among_folders = false;
  for (char *line = said, *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    next += *next == '\n';
    bool searched = among_folders;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
      searched |= strncmp(line, first[i], strlen(first[i])) == 0;
    among_folders = (among_folders || *line == '#') && strncmp(line, end, sizeof end - 1) != 0;
    if (searched)
      continue;
    memmove(to, line, (size_t)(next - line));
    to += next - line;
  }
  *to = '\0';
}

/* Adds the text to the key, without the names of folders, of the source and of the object.
 * Compilers print the source's name both with its folder and without. */
static void key_words(const Object *object, CacheKey *key, char *text, const char *const *paths) {
  const char *slash = strrchr(object->text, '/');
  leave_out(text, object->text);
  leave_out(text, slash ? slash + 1 : object->text);
  leave_out(text, object->compile->makes);
  for (int i = 0; paths[i]; i++)
    leave_out(text, paths[i]);
  cache_key_text(key, text);
}

/* Size and time of a program that is looked for as the shell does. */
static void key_program(Arena *arena, CacheKey *key, const char *name) {
  const char *path = program_path(arena, name);
  FileStamp stamp = stamp_of(path ? path : name);
  cache_key_int(key, stamp.bytes);
  cache_key_int(key, stamp.modified[0]);
  cache_key_int(key, stamp.modified[1]);
}

static bool find_key(Arena *arena, Object *object, const char *const *paths) {
  char *text, *said;
  size_t size, length;
  if (!bytes_read(arena, object->probe.makes, &text, &size) ||
      !bytes_read(arena, object->probe.log, &said, &length))
    return false;
  object->key = cache_key_begin("object");
  object->key.shipped = object->shipped;
  cache_key_add(&object->key, text, size);
  leave_out_searches(said);
  key_words(object, &object->key, said, paths);
  for (const char *const *arg = object->compile->argv; *arg; arg++)
    key_words(object, &object->key, arena_strdup(arena, *arg, strlen(*arg)), paths);
  for (int i = 0; i < object->n_words; i++)
    key_program(arena, &object->key, object->compile->argv[i]);
  key_program(arena, &object->key, object->assembler);
  return true;
}

/* What a cache has of an object becomes its file, and its command empty. */
static void take(Object *object, const char *bytes, size_t size, bool verbose) {
  if (!bytes_write(object->compile->makes, bytes, size))
    return;
  object->compile->argv = NULL;
  if (verbose)
    text_say("ampcc: from the cache: %s\n", object->compile->makes);
}

static void unlock(const char *cache, Object *object) {
  cache_unlock(cache, &object->key, object->lock);
  object->lock = -1;
}

static int by_key(const void *a, const void *b) {
  const Object *const *x = a, *const *y = b;
  return cache_order(&(*x)->key, &(*y)->key);
}

/* Of several ampcc that miss the same objects at once, one compiles each, and the others wait. */
static void lock_missing(Arena *arena, const char *cache, Object *object, int n, bool verbose) {
  Object **missing = arena_alloc(arena, (size_t)n * sizeof *missing);
  int n_missing = 0;
  for (int i = 0; i < n; i++)
    if (object[i].is_known && object[i].compile->argv)
      missing[n_missing++] = &object[i];
  if (n_missing)
    qsort(missing, (size_t)n_missing, sizeof *missing, by_key);
  for (int i = 0; i < n_missing; i++) {
    Object *o = missing[i];
    char *bytes;
    size_t size;
    if (i > 0 && cache_order(&missing[i - 1]->key, &o->key) == 0)
      continue; /* locked by this process */
    o->lock = cache_lock(cache, &o->key, spawn_goes_on);
    if (cache_get_again(cache, &o->key, arena, &bytes, &size))
      take(o, bytes, size, verbose);
    if (!o->compile->argv)
      unlock(cache, o);
  }
}

void objects_find(Arena *arena, const char *cache, Object *object, int n, const char *const *paths,
                  bool verbose) {
  Command *probe = arena_alloc(arena, (size_t)n * sizeof *probe);
  for (int i = 0; i < n; i++) {
    probe[i] = object[i].probe;
    object[i].lock = -1;
  }
  /* A compiler that cannot do this will say why when it compiles. */
  if (!commands_run(probe, n, NULL, false))
    return;
  for (int i = 0; i < n; i++) {
    char *bytes;
    size_t size;
    object[i].compile->seconds = probe[i].seconds;
    object[i].is_known = find_key(arena, &object[i], paths);
    if (object[i].is_known && cache_get(cache, &object[i].key, arena, &bytes, &size))
      take(&object[i], bytes, size, verbose);
  }
  if (cache)
    lock_missing(arena, cache, object, n, verbose);
}

void objects_keep(Arena *arena, const char *cache, const Object *object, int n, int64_t most) {
  bool kept = false;
  for (int i = 0; i < n; i++) {
    char *bytes;
    size_t size;
    if (!object[i].is_known || !object[i].compile->argv ||
        !bytes_read(arena, object[i].compile->makes, &bytes, &size))
      continue;
    cache_put(cache, &object[i].key, bytes, size);
    kept = true;
  }
  if (kept)
    cache_trim(cache, most);
}

void objects_unlock(const char *cache, Object *object, int n) {
  for (int i = 0; i < n; i++)
    unlock(cache, &object[i]);
}
