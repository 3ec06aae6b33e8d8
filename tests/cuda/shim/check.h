/* What the shim's parts tell each other. */
#ifndef AMPCC_TESTS_SHIM_CHECK_H
#define AMPCC_TESTS_SHIM_CHECK_H

#include "run.h"

#include <stdbool.h>

enum { WARP = 32, MAX_THREADS = 1024, SHARED_LIMIT = 48 * 1024 };

/* launch.c: ends the launch; `code` is where in the text, or NULL. */
__attribute__((noreturn, format(printf, 2, 3))) void launch_fail(const void *code,
                                                                 const char *format, ...);
int launch_thread(void);          /* that runs, in its block; -1: none */
bool launch_owns(const void *at); /* on the running thread's stack */

/* check.c */
void check_add(const char *name, void *at, size_t bytes);
void check_drop(void *at);
void check_mark(void *at, size_t bytes, ShimMark mark);
const void *check_unwritten(const void *at, size_t bytes);
void check_share(void *at, size_t bytes); /* block known as shared memory from now on */
void check_atomic(void *at, size_t bytes, const void *code);
/* Ordered events: a launch, a block of it, a barrier in it, a barrier of one of its warps. */
void check_launch(void);
void check_block(void);
void check_barrier(void);
void check_warp(int warp);

/* meet.c */
int meet_skip(int line);

/* shared.c: shared memory of the launch; of the block: fresh. */
void shared_launch(size_t dynamic);
void shared_block(void);

#endif
