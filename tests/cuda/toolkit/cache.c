/* The cache: entries that come back, entries of other keys, and every way to damage one. */
#include "codegen/cuda/toolkit/cache.h"

#include "tests/cuda/toolkit/check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static Arena *arena;
static char folder[64];

static CacheKey key_of(const char *a, const char *b) {
  CacheKey key = cache_key_begin(arena, "test");
  cache_key_text(&key, a);
  cache_key_text(&key, b);
  return key;
}

static bool holds(const CacheKey *key, const char *text) {
  char *data;
  size_t size;
  return cache_get(folder, key, arena, &data, &size) && size == strlen(text) &&
         strcmp(data, text) == 0;
}

static void gives_back_what_it_got(void **state) {
  (void)state;
  CacheKey key = key_of("ab", "c"), other = key_of("a", "bc");
  char *data;
  size_t size;
  assert_false(holds(&key, "one"));
  cache_put(folder, &key, "one", 3);
  assert_true(holds(&key, "one"));
  assert_false(cache_get(folder, &other, arena, &data,
                         &size)); /* the same letters, divided into other parts */
  cache_put(folder, &other, "", 0);
  assert_true(holds(&other, ""));
  cache_put(folder, &key, "three", 5);
  assert_true(holds(&key, "three"));
  assert_true(holds(&other, ""));
}

static bool holds_anything(const CacheKey *key) {
  char *data;
  size_t size;
  return cache_get(folder, key, arena, &data, &size);
}

/* The one file in the folder. */
static const char *only_file(void) {
  DIR *dir = opendir(folder);
  const char *path = NULL;
  assert_non_null(dir);
  for (struct dirent *entry; (entry = readdir(dir));)
    if (entry->d_name[0] != '.') {
      assert_null(path);
      path = arena_printf(arena, "%s/%s", folder, entry->d_name);
    }
  closedir(dir);
  return path;
}

static void empty_folder(void) {
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (entry->d_name[0] != '.')
      unlink(arena_printf(arena, "%s/%s", folder, entry->d_name));
  if (dir)
    closedir(dir);
}

static void change_byte(const char *path, long at) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, at, SEEK_SET);
  int byte = fgetc(file);
  fseek(file, at, SEEK_SET);
  fputc(byte ^ 1, file);
  fclose(file);
}

static void a_damaged_entry_is_none(void **state) {
  (void)state;
  CacheKey key = key_of("damage", "");
  empty_folder();
  cache_put(folder, &key, "some text", 9);
  const char *path = only_file();
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  for (long at = 0; at < st.st_size; at++) {
    change_byte(path, at);
    assert_false(holds_anything(&key));
    change_byte(path, at);
    assert_true(holds(&key, "some text"));
  }
  for (long size = 0; size < st.st_size; size++) {
    assert_int_equal(truncate(path, size), 0);
    assert_false(holds_anything(&key));
    cache_put(folder, &key, "some text", 9);
    assert_true(holds(&key, "some text"));
  }
  assert_int_equal(truncate(path, st.st_size + 1), 0);
  assert_false(holds_anything(&key));
  cache_put(folder, &key, "some text", 9);
  assert_true(holds(&key, "some text"));
  assert_string_equal(only_file(), path); /* no temporary files are left */
}

/* Two keys with the same path: the file of one is copied to the path of the other. */
static void an_entry_of_another_key_is_none(void **state) {
  (void)state;
  CacheKey key = key_of("name", "1"), other = key_of("name", "2");
  empty_folder();
  cache_put(folder, &key, "one", 3);
  const char *path = only_file(), *aside = arena_printf(arena, "%s.aside", folder);
  assert_int_equal(rename(path, aside), 0);
  cache_put(folder, &other, "two", 3);
  assert_int_equal(rename(aside, only_file()), 0);
  assert_false(holds_anything(&other));
}

static void no_folder_is_no_cache(void **state) {
  (void)state;
  CacheKey key = key_of("x", "y");
  char *data;
  size_t size;
  cache_put(NULL, &key, "a", 1);
  assert_false(cache_get(NULL, &key, arena, &data, &size));
  cache_put("/proc/none", &key, "a", 1); /* a folder that cannot be made is no error */
  assert_false(cache_get("/proc/none", &key, arena, &data, &size));
  assert_null(cache_folder(arena, ""));
  assert_string_equal(cache_folder(arena, "here"), "here");
  setenv("XDG_CACHE_HOME", "/x", 1);
  assert_string_equal(cache_folder(arena, NULL), "/x/ampcc");
  setenv("XDG_CACHE_HOME", "relative",
         1); /* the XDG specification says that a relative path must be ignored */
  setenv("HOME", "/h", 1);
  assert_string_equal(cache_folder(arena, NULL), "/h/.cache/ampcc");
  unsetenv("HOME");
  assert_null(cache_folder(arena, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_back_what_it_got), cmocka_unit_test(a_damaged_entry_is_none),
      cmocka_unit_test(an_entry_of_another_key_is_none), cmocka_unit_test(no_folder_is_no_cache)};
  char top[] = "cache.XXXXXX";
  if (!mkdtemp(top))
    return 3;
  snprintf(folder, sizeof folder, "%s/two/levels", top);
  arena = arena_new();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  empty_folder();
  rmdir(folder);
  rmdir(arena_printf(arena, "%s/two", top));
  rmdir(top);
  arena_free(arena);
  return failed;
}
