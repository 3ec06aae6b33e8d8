/* Streams of the fake cudart. Work is done as late as possible, when somebody waits for it. So work
 * that a program forgot to wait for is not done when its results are used. */
#ifndef AMPCC_TESTS_FAKE_STREAM_H
#define AMPCC_TESTS_FAKE_STREAM_H

#include "fake.h"

#include <cuda_runtime_api.h>

/* Runs everything that was added to any stream. */
void stream_drain_all(void);
void stream_add(cudaStream_t stream, FakeWork *work, const void *data, size_t bytes);
int stream_is_capturing(void); /* is any stream capturing? */

/* memory.c: device memory can be touched only while work runs. */
void memory_open(void);
void memory_close(void);
/* Calls a function for each block of device memory. */
void memory_each(void (*call)(void *at, size_t bytes));
/* The first failure of work: every later call returns it. */
extern cudaError_t fake_sticky;
void fake_fault(const char *why, cudaError_t status);

#endif
