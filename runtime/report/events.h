/* An event file, as TensorBoard reads it: records (runtime/record) of Event messages. Values gather
 * until they are written as one event. */
#ifndef AMPRT_EVENTS_H
#define AMPRT_EVENTS_H

#include "runtime/base/file.h"
#include "runtime/watch/histogram.h"

typedef struct AmprtEvents {
  int fd; /* -1: not open, and then nothing gathers */
  char path[AMPRT_PATH];
  struct Amprt__Summary__Value **value; /* gathered, all of them malloc'ed */
  size_t n, room;
  bool failed; /* no memory for one of them */
} AmprtEvents;

/* A new file DIR/events.out.tfevents.SECONDS.HOST.PROCESS, with the event that says its version.
 * `dir` is made if need be. */
AmprtStatus amprt_events_open(AmprtEvents *events, const char *dir, AmprtError *error);
void amprt_events_close(AmprtEvents *events);
bool amprt_events_is_name(const char *name); /* could a file of this name be one */

void amprt_events_scalar(AmprtEvents *events, const char *tag, double value);
/* As amprt_png_write. */
void amprt_events_image(AmprtEvents *events, const char *tag, const unsigned char *pixel,
                        int64_t height, int64_t width, int64_t channels);
/* A histogram of the values times `factor`, without those that are not finite. */
void amprt_events_histogram(AmprtEvents *events, const char *tag, const AmprtHistogram *histogram,
                            double factor);
/* Writes the values that have gathered, if there are any, as the event of `step`. */
AmprtStatus amprt_events_write(AmprtEvents *events, int64_t step, AmprtError *error);
/* A run begins or goes on with `step`: TensorBoard then drops what an earlier one wrote from there
 * on. */
AmprtStatus amprt_events_start(AmprtEvents *events, int64_t step, AmprtError *error);

#endif
