/* The runtime's threads: each chunk of a loop runs once, whatever loops, threads and processes
 * there are, and threads that wait take no processor time. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "runtime/base/clock.h"
#include "tests/runtime/harness.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_CHUNKS = 1000, MOST_THREADS = 9 };

static void open_threads(int n) {
  char error[200] = "";
  assert_int_equal(amprt_threads.open(n, error, sizeof error), 0);
  assert_string_equal(error, "");
}

/* ---- each chunk once ---- */

typedef struct Loop {
  int64_t n;
  atomic_int runs[MOST_CHUNKS];
  atomic_int inside[MOST_THREADS]; /* by number of the thread */
  atomic_int wrong;
} Loop;

static void count_run(const AmprtRun *run, const void *args, int64_t chunk) {
  Loop *loop = (Loop *)(uintptr_t)args;
  int number = amprt_threads.number();
  (void)run;
  if (chunk < 0 || chunk >= loop->n || number < 0 || number >= amprt_threads.count()) {
    loop->wrong++;
    return;
  }
  loop->wrong += loop->inside[number]++ != 0;
  loop->runs[chunk]++;
  loop->inside[number]--;
}

static bool runs_each_once(Loop *loop, int64_t n) {
  memset(loop, 0, sizeof *loop);
  loop->n = n;
  amprt_threads.loop(n, count_run, NULL, loop);
  bool good = !loop->wrong;
  for (int64_t i = 0; i < MOST_CHUNKS; i++)
    good = good && loop->runs[i] == (i < n);
  return good;
}

static void test_each_once(void **state) {
  static const int64_t lengths[] = {0, 1, 2, 3, 5, 8, 9, 10, 63, MOST_CHUNKS};
  static Loop loop;
  (void)state;
  for (int threads = 1; threads <= MOST_THREADS; threads++) {
    open_threads(threads);
    assert_int_equal(amprt_threads.count(), threads);
    for (int round = 0; round < 20; round++)
      for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        assert_true(runs_each_once(&loop, lengths[i]));
    amprt_threads.close();
  }
  assert_int_equal(amprt_threads.count(), 1);
  assert_true(runs_each_once(&loop, 7)); /* closed: on this thread alone */
}

/* ---- many loops, with and without a rest between them ---- */

static void add_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  (void)run;
  atomic_fetch_add_explicit((_Atomic int64_t *)(uintptr_t)args, chunk + 1, memory_order_relaxed);
}

static void test_many_loops(void **state) {
  (void)state;
  for (int threads = 2; threads <= 4; threads++) {
    _Atomic int64_t sum = 0;
    int64_t want = 0;
    open_threads(threads);
    for (int i = 0; i < 20000; i++) {
      int64_t n = i % 6;
      amprt_threads.loop(n, add_chunk, NULL, &sum);
      want += n * (n + 1) / 2;
      if (i % 500 == 0) /* so that workers fall asleep, at different moments */
        usleep(i % 7000 / 10);
    }
    assert_int_equal(sum, want);
    amprt_threads.close();
  }
}

/* ---- a loop within a loop, and two at the same time ---- */

typedef struct Inner {
  int number;
  int64_t sum;
} Inner;

static void inner_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  Inner *inner = (Inner *)(uintptr_t)args;
  (void)run;
  if (amprt_threads.number() == inner->number)
    inner->sum += chunk + 1;
}

static void outer_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  Inner inner = {amprt_threads.number(), 0};
  (void)chunk;
  amprt_threads.loop(10, inner_chunk, run, &inner);
  add_chunk(run, args, inner.sum - 1);
}

static void test_nested(void **state) {
  _Atomic int64_t sum = 0;
  (void)state;
  open_threads(3);
  amprt_threads.loop(100, outer_chunk, NULL, &sum);
  assert_int_equal(sum, 100 * 55);
  amprt_threads.close();
}

static void *start_loops(void *user) {
  for (int i = 0; i < 2000; i++)
    amprt_threads.loop(10, add_chunk, NULL, user);
  return NULL;
}

static void test_two_at_once(void **state) {
  _Atomic int64_t sum = 0;
  pthread_t other;
  (void)state;
  open_threads(3);
  assert_int_equal(pthread_create(&other, NULL, start_loops, (void *)&sum), 0);
  start_loops((void *)&sum);
  pthread_join(other, NULL);
  assert_int_equal(sum, 2 * 2000 * 55);
  amprt_threads.close();
}

/* ---- waiting ---- */

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_sleeps(void **state) {
  _Atomic int64_t sum = 0;
  (void)state;
  open_threads(4);
  amprt_threads.loop(10, add_chunk, NULL, &sum);
  double before = processor_seconds();
  sleep(1);
  double used = processor_seconds() - before;
  print_message("%.6f s of processor time in a second of waiting\n", used);
  assert_true(used < 0.01);
  amprt_threads.close();
}

static void sleep_chunk(const AmprtRun *run, const void *args, int64_t chunk) {
  (void)run, (void)args;
  if (chunk == 0)
    usleep(200000);
}

/* The thread that started a loop sleeps, too, while another still computes. */
static void test_sleeps_at_the_end(void **state) {
  (void)state;
  open_threads(2);
  double before = processor_seconds(), start = amprt_seconds();
  for (int i = 0; i < 3; i++)
    amprt_threads.loop(2, sleep_chunk, NULL, NULL);
  assert_true(amprt_seconds() - start >= 0.6);
  assert_true(processor_seconds() - before < 0.02);
  amprt_threads.close();
}

/* ---- processes ---- */

static void test_fork(void **state) {
  static Loop loop;
  (void)state;
  open_threads(3);
  assert_true(runs_each_once(&loop, 100));
  pid_t child = fork();
  if (child == 0) {
    bool good = runs_each_once(&loop, 100);
    amprt_threads.close();
    char error[200];
    good = good && amprt_threads.open(3, error, sizeof error) == 0 && runs_each_once(&loop, 100);
    amprt_threads.close();
    _exit(good ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_true(runs_each_once(&loop, 100));
  amprt_threads.close();
}

/* ---- OMP_NUM_THREADS ---- */

static void test_environment(void **state) {
  char error[200] = "";
  (void)state;
  setenv("OMP_NUM_THREADS", "3", 1);
  open_threads(0);
  assert_int_equal(amprt_threads.count(), 3);
  open_threads(2); /* a number that is given comes first */
  assert_int_equal(amprt_threads.count(), 2);
  setenv("OMP_NUM_THREADS", "5,2", 1);
  open_threads(0);
  assert_int_equal(amprt_threads.count(), 5);
  amprt_threads.close();
  static const char *const wrong[] = {"0", "-1", "many", "4x", "99999999999999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv("OMP_NUM_THREADS", wrong[i], 1);
    assert_int_equal(amprt_threads.open(0, error, sizeof error), -1);
    assert_non_null(strstr(error, "is no number of threads from 1 to 4096"));
  }
  setenv("OMP_NUM_THREADS", "", 1);
  open_threads(0);
  assert_true(amprt_threads.count() >= 1);
  amprt_threads.close();
  unsetenv("OMP_NUM_THREADS");
}

/* ---- pinning ---- */

static cpu_set_t seen[MOST_THREADS]; /* by number of the thread */
static atomic_int arrived;

/* Each thread takes one chunk, as none ends before all have begun. */
static void look(const AmprtRun *run, const void *args, int64_t chunk) {
  (void)run, (void)args, (void)chunk;
  sched_getaffinity(0, sizeof *seen, &seen[amprt_threads.number()]);
  arrived++;
  while (arrived < amprt_threads.count())
    sched_yield();
}

static void test_pin(void **state) {
  char error[200] = "";
  cpu_set_t all, one, together;
  (void)state;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  int n = CPU_COUNT(&all) < MOST_THREADS ? CPU_COUNT(&all) : MOST_THREADS;
  open_threads(n);
  assert_int_equal(amprt_threads.pin(error, sizeof error), 0);
  arrived = 0;
  amprt_threads.loop(n, look, NULL, NULL);
  assert_true(CPU_EQUAL(&seen[0], &all));
  CPU_ZERO(&together);
  for (int t = 1; t < n; t++) {
    CPU_AND(&one, &seen[t], &all);
    assert_int_equal(CPU_COUNT(&seen[t]), 1);
    assert_int_equal(CPU_COUNT(&one), 1);
    CPU_OR(&together, &together, &one);
  }
  assert_int_equal(CPU_COUNT(&together), n - 1);
  open_threads(CPU_COUNT(&all) + 1);
  assert_int_equal(amprt_threads.pin(error, sizeof error), -1);
  assert_non_null(strstr(error, "cannot each have one of the"));
  amprt_threads.close();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_once), cmocka_unit_test(test_many_loops),
      cmocka_unit_test(test_nested),    cmocka_unit_test(test_two_at_once),
      cmocka_unit_test(test_sleeps),    cmocka_unit_test(test_sleeps_at_the_end),
      cmocka_unit_test(test_fork),      cmocka_unit_test(test_environment),
      cmocka_unit_test(test_pin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
