/* The hooks of the official programs (specs/resnet.md 1.5): which of them --hooks names, and when
 * they fire. */
#ifndef AMPRT_HOOKS_H
#define AMPRT_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum AmprtHookKind {
#define AMPRT_HOOKS(HOOK)                                                                          \
  HOOK(LOGGING_TENSOR, "LoggingTensorHook")                                                        \
  HOOK(PROFILER, "ProfilerHook")                                                                   \
  HOOK(EXAMPLES_PER_SECOND, "ExamplesPerSecondHook")                                               \
  HOOK(LOGGING_METRIC, "LoggingMetricHook")
#define AMPRT_HOOK_ID(id, name) AMPRT_HOOK_##id,
  AMPRT_HOOKS(AMPRT_HOOK_ID) AMPRT_N_HOOKS
} AmprtHookKind;

/* The value of --hooks: names with commas between, capital or small letters; "" is none. That there
 * are no others is for the parser of flags (flags/official.def). */
void amprt_hooks_wanted(const char *names, bool wanted[AMPRT_N_HOOKS]);

/* Fires at its first step and then every so many steps or seconds: one of both is 0. */
typedef struct AmprtTimer {
  int64_t every_steps;
  double every_seconds;
  bool fired;
  int64_t step; /* when it did last */
  double at;
} AmprtTimer;

bool amprt_timer_due(const AmprtTimer *timer, int64_t step, double now);
/* Notes that it fires. False the first time; later *steps and *seconds are what has passed since
 * the last time. */
bool amprt_timer_fire(AmprtTimer *timer, int64_t step, double now, int64_t *steps, double *seconds);

/* ExamplesPerSecondHook: nothing up to step `warm`; the timer's first firing after that only arms
 * it. */
typedef struct AmprtRate {
  AmprtTimer timer;
  int64_t warm, batch_size;
  int64_t steps; /* of all windows */
  double seconds;
} AmprtRate;

/* After global step `step`. True: *average is of all steps since the timer was armed, *current of
 * those since it fired last; examples per second. */
bool amprt_rate_step(AmprtRate *rate, int64_t step, double now, double *average, double *current);

#endif
