/* Grid, blocks, threads. A thread that finishes without waiting costs no switch: the fiber that ran
 * it takes the next one. A thread that waits keeps its fiber, and the scheduler goes on with
 * another. */
#include "check.h"
#include "fiber.h"
#include "meet.h"
#include "shim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern const unsigned char __ehdr_start[] __attribute__((visibility("hidden")));

ShimNow shim_now;

static const ShimLaunch *launch;
static Thread thread[MAX_THREADS];
static Fiber fiber[MAX_THREADS];
static Fiber *fiber_of[MAX_THREADS]; /* the fiber of each thread that has started */
static Fiber *idle[MAX_THREADS];     /* fibers without a thread */
static uint16_t order[MAX_THREADS];  /* the order in which the threads of a block run */
static int n_threads, n_fibers, n_idle, n_begun;
static int running = -1; /* the running thread, or -1 */
static Fiber *running_fiber;
static char error[400];

int launch_thread(void) {
  return running;
}

bool launch_owns(const void *at) {
  return (uintptr_t)at - (uintptr_t)running_fiber->stack < FIBER_STACK;
}

static void say(int who, const void *code, const char *format, va_list args) {
  char what[256], place[64] = "";
  vsnprintf(what, sizeof what, format, args);
  if (code)
    snprintf(place, sizeof place, " (code %#zx)", (size_t)code - (size_t)__ehdr_start);
  ShimIndex b = shim_now.block;
  snprintf(error, sizeof error, "%s: block %u,%u,%u thread %d %s%s", launch->name, b.x, b.y, b.z,
           who, what, place);
}

void launch_fail(const void *code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(running, code, format, args);
  va_end(args);
  running = -1;
  for (;;)
    fiber_leave(); /* goes back to the scheduler, which sees the error and abandons all fibers */
}

static void fail_of(int who, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail_of(int who, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(who, NULL, format, args);
  va_end(args);
}

/* ---- order ---- */

static uint64_t random_state;

static uint64_t next_random(void) { /* splitmix64 */
  uint64_t x = random_state += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static void shuffle_threads(void) {
  for (int i = n_threads - 1; launch->seed && i > 0; i--) {
    int j = (int)(next_random() % (uint64_t)(i + 1));
    uint16_t t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
}

/* Block number i in an order that visits each block once: up or down from some block. */
static unsigned block_at(unsigned i, unsigned n) {
  if (launch->seed == 0)
    return i;
  unsigned from = (unsigned)(launch->seed * 0x9e3779b1u % n);
  return (unsigned)(((uint64_t)from + (launch->seed % 2 ? n - i : i)) % n);
}

/* ---- threads ---- */

static void set_thread(int t) {
  unsigned x = launch->block[0], y = launch->block[1];
  running = t;
  shim_now.thread = (ShimIndex){(unsigned)t % x, (unsigned)t / x % y, (unsigned)t / x / y};
}

/* The body of a fiber: runs one thread after the other until none is left. */
static void run_threads(void) {
  for (;;) {
    Fiber *mine = running_fiber;
    while (n_begun < n_threads) {
      int t = order[n_begun++];
      fiber_of[t] = mine;
      thread[t].state = THREAD_RUNS;
      set_thread(t);
      launch->kernel(launch->parameter);
      thread[t].state = THREAD_DONE;
    }
    idle[n_idle++] = mine;
    running = -1;
    fiber_leave();
  }
}

static void enter(Fiber *f) {
  running_fiber = f;
  fiber_enter(f, run_threads);
  running = -1;
}

Thread *launch_self(void) {
  return &thread[running];
}

void launch_wait(void) {
  int t = running;
  thread[t].state = THREAD_WAITS;
  fiber_leave();
  set_thread(t);
}

static void begin_all(void) {
  n_begun = 0;
  while (n_begun < n_threads && !*error)
    enter(n_idle > 0 ? idle[--n_idle] : &fiber[n_fibers++]);
}

/* Runs all threads until each of them has finished or waits. */
static void continue_all(void) {
  for (int i = 0; i < n_threads && !*error; i++) {
    int t = order[i];
    if (thread[t].state != THREAD_MAY_RUN)
      continue;
    thread[t].state = THREAD_RUNS;
    enter(fiber_of[t]);
  }
}

static int count_done(void) {
  int n = 0;
  for (int t = 0; t < n_threads; t++)
    n += thread[t].state == THREAD_DONE;
  return n;
}

/* ---- blocks ---- */

static void run_block(unsigned b) {
  unsigned x = launch->grid[0], y = launch->grid[1];
  shim_now.block = (ShimIndex){b % x, b / x % y, b / x / y};
  check_block();
  shared_block();
  shuffle_threads();
  begin_all();
  while (!*error && count_done() < n_threads) {
    char why[200];
    int who = meet_resolve(thread, n_threads, why, sizeof why);
    if (who >= 0)
      fail_of(who, "%s", why);
    shuffle_threads();
    continue_all();
  }
}

static bool is_possible(void) {
  const unsigned *g = launch->grid, *b = launch->block;
  uint64_t threads = (uint64_t)b[0] * b[1] * b[2];
  shim_now.block = (ShimIndex){0};
  if (threads == 0 || threads > MAX_THREADS || b[2] > 64)
    fail_of(0, "cannot be: blocks of %u x %u x %u threads", b[0], b[1], b[2]);
  else if (!g[0] || !g[1] || !g[2] || g[0] > 0x7fffffff || g[1] > 65535 || g[2] > 65535)
    fail_of(0, "cannot be: a grid of %u x %u x %u blocks", g[0], g[1], g[2]);
  else if (launch->shared > SHARED_LIMIT)
    fail_of(0, "cannot be: %zu bytes of shared memory", launch->shared);
  return !*error;
}

static void reset_fibers(void) {
  for (int i = 0; i < n_fibers; i++)
    fiber_reset(&fiber[i]);
  n_fibers = n_idle = 0;
}

static const char *run_launch(const ShimLaunch *what) {
  launch = what;
  *error = '\0';
  random_state = what->seed;
  if (!is_possible())
    return error;
  const unsigned *g = what->grid, *b = what->block;
  shim_now.threads = (ShimIndex){b[0], b[1], b[2]};
  shim_now.blocks = (ShimIndex){g[0], g[1], g[2]};
  n_threads = (int)(b[0] * b[1] * b[2]);
  for (int t = 0; t < n_threads; t++)
    order[t] = (uint16_t)t;
  check_launch();
  shared_launch(what->shared);
  uint64_t blocks = (uint64_t)g[0] * g[1] * g[2];
  for (uint64_t i = 0; i < blocks && !*error; i++)
    run_block(block_at((unsigned)i, (unsigned)blocks));
  if (*error)
    reset_fibers();
  return *error ? error : NULL;
}

__attribute__((visibility("default"))) const ShimApi shim_api = {
    run_launch, check_add, check_drop, check_mark, check_unwritten, meet_skip};
