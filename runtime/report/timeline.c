#include "runtime/report/timeline.h"

#include "runtime/base/clock.h"
#include "runtime/base/json.h"

#include <stdlib.h>

AmprtStatus amprt_timeline_open(AmprtTimeline *timeline, const AmprtMachine *machine,
                                AmprtError *error) {
  size_t bytes = ((size_t)machine->train->n_kernels + 1) * sizeof *timeline->end;
  *timeline = (AmprtTimeline){.machine = machine, .end = calloc(1, bytes)};
  return timeline->end ? AMPRT_OK : amprt_fail_memory(error, bytes, "a timeline");
}

void amprt_timeline_close(AmprtTimeline *timeline) {
  free(timeline->end);
  *timeline = (AmprtTimeline){0};
}

static void after(void *context, int kernel) {
  AmprtTimeline *timeline = context;
  timeline->end[kernel] = amprt_seconds();
}

void amprt_timeline_begin(AmprtTimeline *timeline, AmprtHook *hook) {
  *hook = (AmprtHook){after, timeline};
  timeline->start = amprt_seconds();
}

AmprtStatus amprt_timeline_write(const AmprtTimeline *timeline, const char *path,
                                 AmprtError *error) {
  const AmprtGraph *graph = timeline->machine->train;
  AmprtText text = {0};
  amprt_text_add(&text,
                 "{\"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, "
                 "\"args\": {\"name\": ");
  amprt_text_string(&text, timeline->machine->program->model);
  amprt_text_add(&text, "}}");
  double start = timeline->start;
  for (int i = 0; i < graph->n_kernels; i++) { /* times in microseconds */
    const AmprtKernel *kernel = &graph->kernel[i];
    amprt_text_add(&text, ",\n{\"name\": ");
    amprt_text_string(&text, kernel->name);
    amprt_text_add(&text,
                   ", \"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": %.3f, \"dur\": %.3f, "
                   "\"args\": {\"layer\": ",
                   1e6 * (start - timeline->start), 1e6 * (timeline->end[i] - start));
    amprt_text_string(&text, kernel->layer ? kernel->layer : "");
    amprt_text_add(&text, "}}");
    start = timeline->end[i];
  }
  amprt_text_add(&text, "\n]}\n");
  if (text.failed)
    return amprt_fail_memory(error, text.room, path);
  AmprtStatus status = amprt_write_file(path, text.data, text.size, error);
  amprt_text_free(&text);
  return status;
}
