/* Finds the first result of a step that is not finite. A step that went wrong is run once more,
 * kernel by kernel, and what each kernel stored is examined before another kernel can overwrite it.
 * Good steps cost nothing extra. */
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
      *op; /* "conv2d", as in the text form; "input" or "variable" for what the step began with */
  const char *value, *layer; /* `layer` may be "" */
  const char *makers;        /* as in AmprtValue, or NULL */
  AmprtDType dtype;
  AmprtTally tally;
  int place; /* the number of the graph's value, or one of these */
} AmprtFinding;
/* its image; variable i is AMPRT_FOUND_VARIABLE - i */
enum { AMPRT_FOUND_IMAGE = -1, AMPRT_FOUND_VARIABLE = -2 };

/* A copy of the variables of some kinds: a bit 1 << AmprtKind for each. */
typedef struct AmprtKept {
  unsigned char *bytes;
  unsigned kinds;
} AmprtKept;

enum {
  AMPRT_KEEP_SCALE = 1 << AMPRT_SCALE, /* what a step changes even if it is skipped */
  AMPRT_KEEP_STATS = 1 << AMPRT_STAT,
  AMPRT_KEEP_ALL = -1 /* every bit */
};

AmprtStatus amprt_kept_open(AmprtKept *kept, const AmprtProgram *program, unsigned kinds,
                            AmprtError *error);
void amprt_kept_close(AmprtKept *kept);
void amprt_kept_take(const AmprtKept *kept, const AmprtMachine *machine);
void amprt_kept_put_back(const AmprtKept *kept, AmprtMachine *machine);

/* Runs the first `past` kernels again from what was kept. Afterwards state and arena are as these
 * kernels left them the first time: the variables that they change are copied before and put back,
 * which are statistics alone if graph->first_update is not among the kernels, and else may be any.
 * Hooks are called before a kernel's results are examined. Returns false if there is no memory for
 * the copy. */
bool amprt_find(AmprtMachine *machine, const AmprtGraph *graph, int past, const AmprtInputs *inputs,
                const AmprtKept *kept, const AmprtHook *hook, int n_hooks, AmprtFinding *finding);

/* What another process has found in the same graph, by `place` and `tally` alone. */
AmprtFinding amprt_finding_at(const AmprtProgram *program, const AmprtGraph *graph, int place,
                              const AmprtTally *tally);

/* Are all variables but the copies finite? If not, *finding is the first that is not. */
bool amprt_state_is_finite(const AmprtMachine *machine, AmprtFinding *finding);

/* "conv1 (conv2d), F16: 3 Inf, 0 NaN of 512 elements, largest finite 65472"; "" unless found */
void amprt_finding_text(const AmprtFinding *finding, AmprtText *text);

#endif
