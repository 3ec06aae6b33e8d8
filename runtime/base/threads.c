/* A pool of threads. A loop's chunks are split into one range for each thread, which is the same
 * in every loop of equal length, so that caches stay warm; a thread that is done with its own range
 * helps with the others. The thread that starts a loop takes part, and waits only for chunks that
 * others have begun: a worker that the operating system does not let run delays nothing.
 *
 * Workers that wait for a loop, and a thread that waits for the end of one, spin for a short time,
 * as the next loop mostly follows at once, and then sleep. */
#define _GNU_SOURCE /* sched_getaffinity, syscall */
#include "runtime/amprt.h"
#include "runtime/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Seconds of spinning: some times what it takes to wake a thread, which is 7 us, and 37 us in a
 * virtual machine whose idle processors halt. */
static const double SPIN = 100e-6;

enum { LINE = 64, MOST_THREADS = 4096 };

typedef struct Range { /* the chunks that a thread begins with */
  _Alignas(LINE) _Atomic int64_t next;
  int64_t end;
} Range;

/* The bits of `state`: a loop goes on that workers may join; the thread that started it sleeps; and
 * how many workers are in it. */
enum { OPEN = 1 << 30, WAITED = 1 << 29, INSIDE = WAITED - 1 };

static struct {
  int count; /* threads, with the one that starts loops; 0: not opened */
  pthread_t *thread;
  Range *range;
  bool spins; /* each thread has a processor of its own */
  atomic_bool stops;

  atomic_flag busy;

  /* The loop. Written before its state is OPEN, and read by threads inside. */
  int ranges;
  AmprtChunk *chunk;
  const AmprtRun *run;
  const void *args;

  _Alignas(LINE) _Atomic uint32_t state;
  _Alignas(LINE) _Atomic uint32_t bell; /* another number for each loop */
  _Atomic int32_t sleepers;             /* workers that wait for it asleep, or are about to */
} pool = {.busy = ATOMIC_FLAG_INIT};

/* Programs are no shared libraries: they need no call to find it. */
static _Thread_local __attribute__((tls_model("initial-exec"))) int own_number;

/* ---- waiting ---- */

static void futex_wait(_Atomic uint32_t *word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int most) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

static void pause_briefly(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}

/* Spins as long as the word has all of the bits of `value`, for a short time. */
static bool spin_while(_Atomic uint32_t *word, uint32_t mask, uint32_t value) {
  if (!pool.spins)
    return (atomic_load(word) & mask) != value;
  double end = 0;
  do {
    for (int i = 0; i < 64; i++) {
      if ((atomic_load_explicit(word, memory_order_acquire) & mask) != value)
        return true;
      pause_briefly();
    }
    if (end == 0)
      end = amprt_seconds() + SPIN;
  } while (amprt_seconds() < end);
  return false;
}

/* ---- a loop ---- */

static void take_chunks(int number) {
  for (int i = 0; i < pool.ranges; i++) {
    Range *range = &pool.range[(number + i) % pool.ranges];
    int64_t next = atomic_load_explicit(&range->next, memory_order_relaxed);
    while (next < range->end) {
      next = atomic_fetch_add_explicit(&range->next, 1, memory_order_relaxed);
      if (next < range->end)
        pool.chunk(pool.run, pool.args, next);
    }
  }
}

static bool join(void) {
  uint32_t state = atomic_load_explicit(&pool.state, memory_order_relaxed);
  while (state & OPEN)
    if (atomic_compare_exchange_weak_explicit(&pool.state, &state, state + 1, memory_order_acquire,
                                              memory_order_relaxed))
      return true;
  return false;
}

static void leave(void) {
  if (atomic_fetch_sub_explicit(&pool.state, 1, memory_order_release) == (WAITED | 1))
    futex_wake(&pool.state, 1);
}

static void wait_for_bell(uint32_t heard) {
  if (spin_while(&pool.bell, UINT32_MAX, heard))
    return;
  /* Either this thread sees the next loop's number, or that loop sees this sleeper. */
  atomic_fetch_add(&pool.sleepers, 1);
  while (atomic_load(&pool.bell) == heard)
    futex_wait(&pool.bell, heard);
  atomic_fetch_sub(&pool.sleepers, 1);
}

static void *work(void *user) {
  own_number = (int)(intptr_t)user;
  for (uint32_t heard = 0;;) {
    wait_for_bell(heard);
    heard = atomic_load(&pool.bell);
    if (atomic_load(&pool.stops))
      return NULL;
    if (join()) {
      take_chunks(own_number);
      leave();
    }
  }
}

static void ring(int most) {
  atomic_fetch_add(&pool.bell, 1);
  int sleepers = atomic_load(&pool.sleepers);
  if (sleepers > 0)
    futex_wake(&pool.bell, sleepers < most ? sleepers : most);
}

static void wait_for_workers(void) {
  uint32_t state = atomic_fetch_and(&pool.state, ~(uint32_t)OPEN) & INSIDE;
  while (state) {
    if (!spin_while(&pool.state, INSIDE, state)) {
      state = atomic_fetch_or(&pool.state, WAITED) & INSIDE;
      if (state)
        futex_wait(&pool.state, state | WAITED);
    }
    state = atomic_load_explicit(&pool.state, memory_order_acquire) & INSIDE;
  }
}

static void loop(int64_t n, AmprtChunk *chunk, const AmprtRun *run, const void *args) {
  if (n <= 1 || pool.count <= 1 || atomic_flag_test_and_set(&pool.busy)) {
    for (int64_t i = 0; i < n; i++)
      chunk(run, args, i);
    return;
  }
  pool.ranges = n < pool.count ? (int)n : pool.count;
  pool.chunk = chunk;
  pool.run = run;
  pool.args = args;
  for (int i = 0; i < pool.ranges; i++) {
    Range *range = &pool.range[i];
    atomic_store_explicit(&range->next, i * n / pool.ranges, memory_order_relaxed);
    range->end = (i + 1) * n / pool.ranges;
  }
  atomic_store_explicit(&pool.state, OPEN, memory_order_release);
  ring(pool.ranges - 1);
  take_chunks(0);
  wait_for_workers();
  atomic_flag_clear(&pool.busy);
}

/* ---- start and end ---- */

enum { MOST_PROCESSORS = 16384, SET_BYTES = MOST_PROCESSORS / 8 };

/* The processors that this process may use; NULL: unknown, or out of memory. */
static cpu_set_t *allowed(void) {
  cpu_set_t *set = CPU_ALLOC(MOST_PROCESSORS);
  if (set && !sched_getaffinity(0, SET_BYTES, set))
    return set;
  if (set)
    CPU_FREE(set);
  return NULL;
}

static int processors(void) {
  cpu_set_t *set = allowed();
  int n = set ? CPU_COUNT_S(SET_BYTES, set) : 0;
  if (set)
    CPU_FREE(set);
  return n > 0 ? n : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* The first number of OMP_NUM_THREADS, whose others are for loops within loops; 0: it is not set.
 */
static int asked_for(char *error, size_t error_size) {
  const char *text = getenv("OMP_NUM_THREADS");
  if (!text || !*text)
    return 0;
  char *end;
  long n = strtol(text, &end, 10);
  end += strspn(end, " ");
  if (n >= 1 && n <= MOST_THREADS && (!*end || *end == ','))
    return (int)n;
  snprintf(error, error_size, "OMP_NUM_THREADS=%s is no number of threads from 1 to %d", text,
           MOST_THREADS);
  return -1;
}

/* A child process has the thread that made it and none of the others. */
static void lose_workers(void) {
  pool.count = pool.count ? 1 : 0;
  atomic_store(&pool.sleepers, 0);
  atomic_flag_clear(&pool.busy);
}

static void close_threads(void) {
  atomic_store(&pool.stops, true);
  ring(INT_MAX);
  for (int i = 1; i < pool.count; i++)
    pthread_join(pool.thread[i], NULL);
  free(pool.thread);
  free(pool.range);
  pool.thread = NULL;
  pool.range = NULL;
  pool.count = 0;
}

/* Workers block all signals, which are for the thread that runs the program. */
static int start_workers(int n) {
  sigset_t all, before;
  int failed = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (pool.count = 1; pool.count < n && !failed; pool.count += !failed)
    failed = pthread_create(&pool.thread[pool.count], NULL, work, (void *)(intptr_t)pool.count);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

static int open_threads(int n, char *error, size_t error_size) {
  static bool watches;
  int all = processors();
  close_threads();
  if (!n && (n = asked_for(error, error_size)) < 0)
    return -1;
  n = n ? n : all;
  pool.spins = n <= all;
  atomic_store(&pool.stops, false);
  pool.thread = calloc((size_t)n, sizeof *pool.thread);
  pool.range = aligned_alloc(LINE, (size_t)n * sizeof *pool.range);
  int failed = !pool.thread || !pool.range ? ENOMEM : 0;
  if (!failed && !watches)
    failed = pthread_atfork(NULL, NULL, lose_workers);
  watches = !failed;
  if (!failed)
    failed = start_workers(n);
  if (!failed)
    return 0;
  snprintf(error, error_size, "cannot start %d threads: %s", n, strerror(failed));
  close_threads();
  return -1;
}

/* Binds the thread to the processor `cpu` alone. Returns an error number. */
static int pin_one(pthread_t thread, int cpu) {
  cpu_set_t *one = CPU_ALLOC(MOST_PROCESSORS);
  if (!one)
    return ENOMEM;
  CPU_ZERO_S(SET_BYTES, one);
  CPU_SET_S(cpu, SET_BYTES, one);
  int failed = pthread_setaffinity_np(thread, SET_BYTES, one);
  CPU_FREE(one);
  return failed;
}

/* Threads 1, 2, ... get the second of the allowed processors, the third, ... */
static int pin(char *error, size_t error_size) {
  cpu_set_t *set = allowed();
  int all = set ? CPU_COUNT_S(SET_BYTES, set) : 0, failed = 0;
  if (all < pool.count) {
    snprintf(error, error_size,
             "%d threads cannot each have one of the %d processors that this process may use",
             pool.count, all);
    failed = EINVAL;
  }
  for (int cpu = 0, thread = -1; !failed && thread + 1 < pool.count; cpu++)
    if (CPU_ISSET_S(cpu, SET_BYTES, set) && ++thread > 0 &&
        (failed = pin_one(pool.thread[thread], cpu)))
      snprintf(error, error_size, "cannot bind thread %d to processor %d: %s", thread, cpu,
               strerror(failed));
  if (set)
    CPU_FREE(set);
  return failed ? -1 : 0;
}

static int count(void) {
  return pool.count > 1 ? pool.count : 1;
}

static int number(void) {
  return own_number;
}

const AmprtThreads amprt_threads = {.open = open_threads,
                                    .close = close_threads,
                                    .pin = pin,
                                    .count = count,
                                    .number = number,
                                    .loop = loop};
