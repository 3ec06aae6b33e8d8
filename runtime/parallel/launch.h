/* Who am I? The variables that launchers set tell a process its rank, before any library is
 * opened: launchers.def. */
#ifndef AMPRT_LAUNCH_H
#define AMPRT_LAUNCH_H

#include "runtime/base/status.h"
#include "runtime/parallel/mpi.h"

typedef enum AmprtMeeting { AMPRT_MEET_MPI, AMPRT_MEET_TCP, AMPRT_MEET_NOWHERE } AmprtMeeting;

typedef struct AmprtLauncher {
  const char *name, *size, *rank, *besides;
  AmprtMeeting meeting;
  AmprtMpiKind library;
  const char *instead;
} AmprtLauncher;

typedef struct AmprtLaunch {
  const AmprtLauncher *launcher; /* NULL: started alone */
  int rank, size;
  const char *host, *port; /* AMPRT_MEET_TCP: of rank 0; they point into the environment */
} AmprtLaunch;

/* AMPRT_ENV: a variable holds no sensible number, or one that belongs to the others is not set, or
 * the launcher has not been told how its processes are to meet. */
AmprtStatus amprt_launch_read(AmprtLaunch *launch, AmprtError *error);

#endif
