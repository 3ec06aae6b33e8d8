/* Threads that wait for each other: barriers of a block, and what the threads of a warp do
 * together.
 */
#ifndef AMPCC_TESTS_SHIM_MEET_H
#define AMPCC_TESTS_SHIM_MEET_H

#include "shim.h"

typedef enum ThreadState {
  THREAD_RUNS,
  THREAD_WAITS,
  THREAD_MAY_RUN, /* what it waited for is there */
  THREAD_DONE
} ThreadState;

typedef struct Thread {
  ThreadState state;
  /* of one that waits */
  ShimMeet what;
  const char *site;
  uint32_t mask;
  unsigned lane;
  uint64_t value;
} Thread;

/* launch.c: gives the running thread's place to others; returns its record, before and after. */
Thread *launch_self(void);
void launch_wait(void);

/* No thread of the block can run. Lets those go on whose meeting is complete; if there are none,
 * returns one that waits in vain, and why; else -1. */
int meet_resolve(Thread *thread, int n_threads, char *why, size_t size);

#endif
