/* Processes that a launcher started without MPI (torchrun, a Kubernetes operator) meet at rank 0
 * by TCP, and tell each other small things through it. No gradient travels here. */
#ifndef AMPRT_RENDEZVOUS_H
#define AMPRT_RENDEZVOUS_H

#include "runtime/base/status.h"
#include "runtime/parallel/watchdog.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct AmprtStar AmprtStar; /* rank 0 is connected to every other one */

typedef struct AmprtStarWhere {
  const char *host, *port; /* of rank 0, as MASTER_ADDR and MASTER_PORT have them */
  int skip;                /* the first ports from `port` on that others use */
  uint64_t job;            /* equal in all processes of a job, different in another job's */
} AmprtStarWhere;

/* Reads host, port and what else torchrun tells from the environment. */
AmprtStarWhere amprt_star_where(const char *host, const char *port);

/* Rank 0 takes the first free port of 16 from `port` on, the others look for it there. All must
 * have come within so many seconds: rank 0's error names those who have not. */
AmprtStatus amprt_star_open(AmprtStar **star, AmprtStarWhere where, int rank, int size,
                            double seconds, AmprtError *error);
/* Collective. The missing ranks are told to the watchdog, whose wait the caller has begun. */
AmprtStatus amprt_star_gather(AmprtStar *star, const void *mine, void *all, size_t bytes,
                              AmprtWatchdog *watchdog, AmprtError *error);
/* Has a process ended that this one is connected to? Does not wait. */
bool amprt_star_broken(const AmprtStar *star, int *rank);
/* The others see that this process has ended. NULL is fine. */
void amprt_star_close(AmprtStar *star);

#endif
