/* The cache: entries that come back, entries of other keys, and every way to damage one. */
#include "codegen/program/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* clang-format off: cmocka.h needs the others before it */
#include <cmocka.h>
/* clang-format on */

static Arena *arena;
static char folder[64];

static CacheKey key_of(const char *a, const char *b) {
  CacheKey key = cache_key_begin("test");
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

static bool is_there(const char *name) {
  return access(arena_printf(arena, "%s/%s", folder, name), F_OK) == 0;
}

static void make_file(const char *name, time_t age) {
  const char *path = arena_printf(arena, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fclose(file);
  struct timespec then[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
  assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
}

/* Puts in an entry of 1,000 bytes that was used so many seconds ago. Returns its name. */
static const char *put_aged(const char *name, time_t seconds) {
  char data[1000] = "";
  CacheKey key = key_of("aged", name);
  empty_folder();
  cache_put(folder, &key, data, sizeof data);
  const char *path = only_file(), *file = strrchr(path, '/') + 1;
  assert_int_equal(rename(path, arena_printf(arena, "%s/../%s", folder, file)), 0);
  make_file(arena_printf(arena, "../%s.time", file), seconds);
  return file;
}

/* What is used becomes young; the oldest goes first, and not more than must; files of others and
 * what another ampcc is writing stay. */
static void the_oldest_is_deleted(void **state) {
  (void)state;
  static const char *const names[] = {"0", "1", "2", "3"};
  const char *file[4];
  for (int i = 0; i < 4; i++)
    file[i] = put_aged(names[i], 100000 - 10000 * i);
  empty_folder();
  for (int i = 0; i < 4; i++) {
    const char *at = arena_printf(arena, "%s/%s", folder, file[i]);
    const char *times = arena_printf(arena, "%s/../%s.time", folder, file[i]);
    assert_int_equal(rename(arena_printf(arena, "%s/../%s", folder, file[i]), at), 0);
    struct stat st;
    assert_int_equal(stat(times, &st), 0);
    assert_int_equal(utimensat(AT_FDCWD, at, (struct timespec[]){st.st_mtim, st.st_mtim}, 0), 0);
    unlink(times);
  }
  make_file("new.young", 10);
  make_file("new.killed", 100000);
  make_file("notes of mine", 200000);
  CacheKey oldest = key_of("aged", "0");
  assert_true(holds_anything(&oldest));
  cache_trim(folder, 1 << 20);
  assert_true(is_there(file[1]) && is_there("new.young") && is_there("notes of mine"));
  assert_false(is_there("new.killed"));
  cache_trim(folder, 3700); /* four entries are larger, three are smaller even by a tenth */
  assert_true(is_there(file[0]) && is_there(file[2]) && is_there(file[3]));
  assert_false(is_there(file[1]));
  cache_trim(folder, 1300);
  assert_true(is_there(file[0]) && is_there("notes of mine"));
  assert_false(is_there(file[2]) || is_there(file[3]));
}

/* Writers and readers of one entry, each in a process: who reads finds a whole entry or none. */
static void several_share_a_folder(void **state) {
  (void)state;
  enum { WRITERS = 4, TURNS = 200, BYTES = 50000 };
  CacheKey key = key_of("shared", "");
  empty_folder();
  for (int w = 0; w < WRITERS; w++)
    if (fork() == 0) {
      char *data = malloc(BYTES);
      memset(data, 'a' + w, BYTES);
      for (int i = 0; i < TURNS; i++) {
        cache_put(folder, &key, data, BYTES);
        cache_trim(folder, i % 8 ? 1 << 20 : 0);
      }
      _exit(0);
    }
  int found = 0, wrong = 0, ended = 0, status, bad = 0;
  while (ended < WRITERS) {
    char *data;
    size_t size;
    Arena *scratch = arena_new();
    if (cache_get(folder, &key, scratch, &data, &size)) {
      found++;
      wrong += size != BYTES || data[0] < 'a' || data[0] >= 'a' + WRITERS ||
               memcmp(data, data + 1, BYTES - 1) != 0;
    }
    arena_free(scratch);
    while (waitpid(-1, &status, WNOHANG) > 0) {
      ended++;
      bad += status != 0;
    }
  }
  assert_int_equal(wrong + bad, 0);
  assert_true(found > 0);
}

static bool goes_on(void) {
  return true;
}
static bool ends(void) {
  return false;
}

/* Of processes that miss an entry together, one makes it and the others find it; who ends while it
 * has the lock leaves it to the next. */
static void one_makes_what_several_miss(void **state) {
  (void)state;
  enum { PROCESSES = 4 };
  CacheKey key = key_of("missed", ""), other = key_of("missed", "other");
  int status, made = 0, good = 0;
  empty_folder();
  for (int p = 0; p < PROCESSES; p++)
    if (fork() == 0) {
      int lock = cache_lock(folder, &key, goes_on);
      char *data;
      size_t size;
      bool found = cache_get_again(folder, &key, arena, &data, &size);
      if (!found && p == 0)
        raise(SIGKILL);
      usleep(100000);
      if (!found)
        cache_put(folder, &key, "made", 4);
      cache_unlock(folder, &key, lock);
      _exit(lock < 0 ? 3 : !found);
    }
  for (int p = 0; p < PROCESSES; p++) {
    wait(&status);
    made += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    good += WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) <= 1);
  }
  assert_int_equal(good, PROCESSES);
  assert_int_equal(made, 1);
  assert_true(holds(&key, "made"));
  int lock = cache_lock(folder, &key, goes_on), second = cache_lock(folder, &other, goes_on);
  assert_true(lock >= 0 && second >= 0);
  assert_int_equal(cache_lock(folder, &key, ends), -1);
  cache_unlock(folder, &other, second);
  cache_unlock(folder, &key, lock);
  assert_string_equal(strrchr(only_file(), '/') + 1 + 64, "");
  assert_int_equal(cache_lock(NULL, &key, goes_on), -1);
  assert_true(cache_order(&key, &other) * cache_order(&other, &key) < 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_makes_what_several_miss),
                                     cmocka_unit_test(gives_back_what_it_got),
                                     cmocka_unit_test(a_damaged_entry_is_none),
                                     cmocka_unit_test(an_entry_of_another_key_is_none),
                                     cmocka_unit_test(the_oldest_is_deleted),
                                     cmocka_unit_test(several_share_a_folder),
                                     cmocka_unit_test(no_folder_is_no_cache)};
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
