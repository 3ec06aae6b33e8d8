/* Which result of a step was the first that is not finite. A step that went wrong is run once more,
 * kernel by kernel, and what each kernel stored is looked at before another can take its place;
 * good steps pay nothing. */
#ifndef AMPRT_FINITE_H
#define AMPRT_FINITE_H

#include "runtime/base/json.h"
#include "runtime/core/machine.h"

typedef struct AmprtTally {
  int64_t elements, inf, nan;
  double largest; /* magnitude of the largest finite element; 0 if there is none */
} AmprtTally;

AmprtTally amprt_tally(AmprtDType dtype, const void *at, int64_t n);

typedef struct AmprtFinding {
  bool found;
  const char
      *op; /* of the text form: "conv2d"; "input" and "variable" for what the step began with */
  const char *value, *layer; /* `layer` may be "" */
  const char *makers;        /* as in AmprtValue, or NULL */
  AmprtDType dtype;
  AmprtTally tally;
} AmprtFinding;

/* What a step may change although it is skipped, so that it can be run again: the loss scale, or
 * with `whole` all of the state. */
typedef struct AmprtKept {
  unsigned char *bytes;
  bool whole;
} AmprtKept;

AmprtStatus amprt_kept_open(AmprtKept *kept, const AmprtProgram *program, bool whole,
                            AmprtError *error);
void amprt_kept_close(AmprtKept *kept);
void amprt_kept_take(const AmprtKept *kept, const AmprtMachine *machine);
void amprt_kept_put_back(const AmprtKept *kept, AmprtMachine *machine);

/* Runs the first `past` kernels again from what was kept, and leaves state and arena as it found
 * them, which is how those kernels left them the first time. Hooks see each kernel's results before
 * the search does. False: no memory for it. */
bool amprt_find(AmprtMachine *machine, const AmprtGraph *graph, int past, const AmprtInputs *inputs,
                const AmprtKept *kept, const AmprtHook *hook, int n_hooks, AmprtFinding *finding);

/* Are all variables but the copies finite? Else *finding is the first that is not. */
bool amprt_state_is_finite(const AmprtMachine *machine, AmprtFinding *finding);

/* "conv1 (conv2d), F16: 3 Inf, 0 NaN of 512 elements, largest finite 65472"; "" unless found */
void amprt_finding_text(const AmprtFinding *finding, AmprtText *text);

#endif
