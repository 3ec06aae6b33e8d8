#include "runtime/parallel/watchdog.h"

#include "runtime/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 2, SHOWN = 8 };
static const double tick = 0.1; /* seconds */

typedef struct Wait {
  char what[96], who[160];
  double limit, begun, lasted;
} Wait;

struct AmprtWatchdog {
  int rank, size;
  double warn;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t over;
  bool closing, warned;
  Wait wait[DEPTH];  /* the innermost is the last */
  int depth, deeper; /* deeper: waits beyond the room for them, which are not watched */
};

void amprt_ranks_text(char *to, size_t size, const int *rank, int n) {
  size_t at = (size_t)snprintf(to, size, n == 1 ? "rank" : "ranks");
  int shown = n <= SHOWN ? n : SHOWN;
  for (int i = 0; i < shown && at < size; i++) {
    const char *before = i == 0 ? "" : i + 1 == n ? " and" : ",";
    at += (size_t)snprintf(to + at, size - at, "%s %d", before, rank[i]);
  }
  if (shown < n && at < size)
    snprintf(to + at, size - at, " and %d more", n - shown);
}

/* One line in one write: the main thread may hold the lock of stderr, and other processes write to
 * the same terminal. */
static void say(const AmprtWatchdog *w, const char *kind, const Wait *wait) {
  char text[768], what[208] = "";
  for (int i = 0; i < w->depth; i++) {
    size_t n = strlen(what);
    snprintf(what + n, sizeof what - n, "%s%s", i ? ", " : "", w->wait[i].what);
  }
  const char *who = w->wait[w->depth - 1].who;
  int n = snprintf(text, sizeof text, "rank %d of %d: %s: %s has waited %.0f s for %s%s", w->rank,
                   w->size, kind, what, wait->lasted, *who ? who : "the other processes",
                   *who ? "" : ", of which one has stopped, ended, or lost its network");
  amprt_make_plain(text, 0);
  if (n >= (int)sizeof text)
    n = (int)sizeof text - 1;
  text[n] = '\n';
  for (ssize_t done = 0, k; done <= n && (k = write(2, text + done, (size_t)(n + 1 - done))) > 0;)
    done += k;
}

static void *watch(void *arg) {
  AmprtWatchdog *w = arg;
  /* The rank that complains is mostly rank 0, and its launcher ends the others; if that is the one
   * that hangs, rank 1 is next. So there is one line for people to read, not one per rank. */
  double patience = 0.1 * (w->rank < 10 ? w->rank : 10);
  pthread_mutex_lock(&w->lock);
  double before = amprt_seconds();
  while (!w->closing) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(tick * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&w->over, &w->lock, &until);
    double now = amprt_seconds(), passed = now - before;
    before = now;
    /* A process that was suspended, with or without the others, wakes up with all its time. */
    if (passed > 10 * tick)
      passed = tick;
    for (int i = 0; i < w->depth; i++) {
      Wait *wait = &w->wait[i];
      double since = now - wait->begun; /* it may have begun in the middle of a tick */
      wait->lasted += since < passed ? since : passed;
      if (wait->limit > 0 && wait->lasted > wait->limit + patience) {
        say(w, "error", wait);
        _exit(AMPRT_ENV);
      }
      if (!w->warned && wait->lasted > w->warn + patience) {
        w->warned = true;
        say(w, "warning", wait);
      }
    }
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

AmprtStatus amprt_watchdog_open(AmprtWatchdog **watchdog, int rank, int size, double warn,
                                AmprtError *error) {
  AmprtWatchdog *w = calloc(1, sizeof *w);
  if (!w)
    return amprt_fail_memory(error, sizeof *w, "the watchdog");
  w->rank = rank, w->size = size, w->warn = warn;
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&w->over, &attributes);
  pthread_condattr_destroy(&attributes);
  sigset_t all, before; /* signals are the main thread's */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&w->thread, NULL, watch, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    free(w);
    return amprt_fail(error, AMPRT_ENV, "pthread_create: %s", strerror(failed));
  }
  *watchdog = w;
  return AMPRT_OK;
}

void amprt_watchdog_begin(AmprtWatchdog *w, const char *what, double limit) {
  pthread_mutex_lock(&w->lock);
  if (w->depth < DEPTH) {
    Wait *wait = &w->wait[w->depth++];
    *wait = (Wait){.limit = limit, .begun = amprt_seconds()};
    snprintf(wait->what, sizeof wait->what, "%s", what);
  } else {
    w->deeper++;
  }
  pthread_mutex_unlock(&w->lock);
}

void amprt_watchdog_end(AmprtWatchdog *w) {
  pthread_mutex_lock(&w->lock);
  if (w->deeper)
    w->deeper--;
  else if (w->depth)
    w->depth--;
  pthread_mutex_unlock(&w->lock);
}

void amprt_watchdog_missing(AmprtWatchdog *w, const int *rank, int n, bool behind) {
  pthread_mutex_lock(&w->lock);
  if (w->depth) {
    char *who = w->wait[w->depth - 1].who;
    size_t size = sizeof w->wait[0].who;
    *who = 0;
    if (n > 0)
      amprt_ranks_text(who, size, rank, n);
    if (n > 0 && behind)
      snprintf(who + strlen(who), size - strlen(who), ", or one that %s for",
               n == 1 ? "it waits" : "they wait");
  }
  pthread_mutex_unlock(&w->lock);
}

void amprt_watchdog_close(AmprtWatchdog *w) {
  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  w->closing = true;
  pthread_cond_signal(&w->over);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  pthread_cond_destroy(&w->over);
  pthread_mutex_destroy(&w->lock);
  free(w);
}
