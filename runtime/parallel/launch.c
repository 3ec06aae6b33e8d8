#include "runtime/parallel/launch.h"

#include <errno.h>
#include <stdlib.h>

static const AmprtLauncher launchers[] = {
#define LAUNCHER(name, size, rank, besides, meeting, library, instead)                             \
  {name, size, rank, besides, AMPRT_MEET_##meeting, AMPRT_MPI_##library, instead},
#include "runtime/parallel/launchers.def"
};

enum { N_LAUNCHERS = sizeof launchers / sizeof *launchers, MOST_RANKS = 1 << 20 };

static AmprtStatus read_number(const char *variable, int least, int most, int *out,
                               AmprtError *error) {
  const char *text = getenv(variable);
  char *end;
  errno = 0;
  long n = strtol(text, &end, 10);
  if (errno || end == text || *end || n < least || n > most)
    return amprt_fail(error, AMPRT_ENV, "%s is %s: a number from %d to %d was expected", variable,
                      *text ? text : "empty", least, most);
  *out = (int)n;
  return AMPRT_OK;
}

AmprtStatus amprt_launch_read(AmprtLaunch *launch, AmprtError *error) {
  *launch = (AmprtLaunch){.size = 1};
  for (const AmprtLauncher *l = launchers; l < launchers + N_LAUNCHERS; l++) {
    if (!getenv(l->size) || !getenv(l->rank) || (*l->besides && !getenv(l->besides)))
      continue;
    int size = 1, rank = 0;
    AmprtStatus status = read_number(l->size, 1, MOST_RANKS, &size, error);
    if (!status)
      status = read_number(l->rank, 0, size - 1, &rank, error);
    if (status || size == 1)
      return status;
    *launch = (AmprtLaunch){.launcher = l, .rank = rank, .size = size};
    if (l->meeting == AMPRT_MEET_MPI)
      return AMPRT_OK;
    if (l->meeting == AMPRT_MEET_NOWHERE)
      return amprt_fail(error, AMPRT_ENV,
                        "%s has started %d processes (%s), which cannot find each other: %s, or "
                        "unset %s to run one process",
                        l->name, size, l->size, l->instead, l->size);
    launch->host = getenv("MASTER_ADDR"), launch->port = getenv("MASTER_PORT");
    if (launch->host && *launch->host && launch->port && *launch->port)
      return AMPRT_OK;
    return amprt_fail(error, AMPRT_ENV,
                      "%s is %d, but %s is not set: start the program with torchrun, mpirun or "
                      "srun, or unset %s to run one process",
                      l->size, size, launch->host ? "MASTER_PORT" : "MASTER_ADDR", l->size);
  }
  return AMPRT_OK;
}
