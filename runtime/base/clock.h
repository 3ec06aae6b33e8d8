#ifndef AMPRT_CLOCK_H
#define AMPRT_CLOCK_H

#include <pthread.h>
#include <time.h>

/* Seconds of the monotonic clock, for differences between two calls. */
static inline double amprt_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds since 1970, as the machine's clock has it. */
static inline double amprt_wall_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Waits for the condition for at most a tenth of a second. A signal does not wake a thread that
 * waits for a condition, so a thread that must obey signals calls this again and again. The lock is
 * held before and after. */
static inline void amprt_wait_briefly(pthread_cond_t *changed, pthread_mutex_t *lock) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 100000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(changed, lock, &until);
}

#endif
