#include "runtime/report/report.h"

#include "runtime/report/hooks.h"

#include <stdlib.h>

static const AmprtSink *const sinks[] = {&amprt_tensorboard, &amprt_benchmark, &amprt_run_stats,
                                         &amprt_mllog};
enum { N_SINKS = sizeof sinks / sizeof *sinks };

struct AmprtReport {
  AmprtSession *session;
  void *state[N_SINKS];
};

/* Calls this function of each kind of report that is asked for and has it. */
#define for_each_sink(report, i, function)                                                         \
  for (int i = 0; (report) && i < N_SINKS; i++)                                                    \
    if ((report)->state[i] && sinks[i]->function)

AmprtStatus amprt_report_check(const AmprtSession *session, AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  for (int i = 0; i < N_SINKS && !status; i++)
    status = sinks[i]->check ? sinks[i]->check(session, error) : AMPRT_OK;
  return status;
}

bool amprt_report_looks_inside(const AmprtOptions *options) {
  bool wanted[AMPRT_N_HOOKS];
  amprt_hooks_wanted(options->hooks, wanted);
  return wanted[AMPRT_HOOK_PROFILER];
}

AmprtStatus amprt_report_open(AmprtSession *session, AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  AmprtReport *report = calloc(1, sizeof *report);
  if (!report)
    return amprt_fail_memory(error, sizeof *report, "reports");
  report->session = session;
  session->report = report;
  for (int i = 0; i < N_SINKS && !status; i++)
    status = sinks[i]->open(session, &report->state[i], error);
  return status;
}

void amprt_report_close(AmprtSession *session, AmprtStatus status, int stopped) {
  for_each_sink(session->report, i, close) sinks[i]->close(session->report->state[i], status,
                                                           stopped);
  free(session->report);
  session->report = NULL;
}

void amprt_report_cycle(AmprtReport *report, double epochs) {
  for_each_sink(report, i, cycle) sinks[i]->cycle(report->state[i], epochs);
}

bool amprt_report_begin(AmprtReport *report, int64_t number, const AmprtBatch *batch) {
  bool alone = false;
  for_each_sink(report, i, begin) alone |= sinks[i]->begin(report->state[i], number, batch);
  return alone;
}

int amprt_report_hooks(AmprtReport *report, AmprtHook *hook, int most) {
  int n = 0;
  for_each_sink(report, i, hook) n += n < most && sinks[i]->hook(report->state[i], &hook[n]);
  return n;
}

void amprt_report_step(AmprtReport *report, const AmprtResult *result, double seconds) {
  if (!report)
    return;
  const AmprtProgress *progress = &report->session->progress;
  uint64_t batch = (uint64_t)amprt_step_examples(report->session);
  AmprtStepEnd end = {(int64_t)(progress->examples / batch) - 1, progress->step, result, seconds};
  for_each_sink(report, i, step) sinks[i]->step(report->state[i], &end);
}

void amprt_report_evaluate(AmprtReport *report) {
  for_each_sink(report, i, evaluate) sinks[i]->evaluate(report->state[i]);
}

void amprt_report_score(AmprtReport *report, const AmprtScore *score) {
  for_each_sink(report, i, score) sinks[i]->score(report->state[i], score);
}

struct AmprtEvents *amprt_report_events(AmprtReport *report) {
  struct AmprtEvents *events = NULL;
  for_each_sink(report, i, events) events = events ? events : sinks[i]->events(report->state[i]);
  return events;
}
