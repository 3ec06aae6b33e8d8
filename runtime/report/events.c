#include "runtime/report/events.h"

#include "runtime/base/clock.h"
#include "runtime/record/event.pb-c.h"
#include "runtime/record/record.h"
#include "runtime/report/png.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char prefix[] = "events.out.tfevents.";

bool amprt_events_is_name(const char *name) {
  return !strncmp(name, prefix, sizeof prefix - 1);
}

static AmprtStatus write_event(AmprtEvents *events, Amprt__Event *event, AmprtError *error) {
  event->wall_time = amprt_wall_seconds();
  size_t size = amprt__event__get_packed_size(event);
  unsigned char *data = malloc(size + 1);
  if (!data)
    return amprt_fail_memory(error, size, events->path);
  amprt__event__pack(event, data);
  AmprtStatus status = amprt_record_write(events->fd, events->path, data, size, error);
  free(data);
  return status;
}

static AmprtStatus write_version(AmprtEvents *events, AmprtError *error) {
  char version[] = "brain.Event:2";
  Amprt__Event event = AMPRT__EVENT__INIT;
  event.what_case = AMPRT__EVENT__WHAT_FILE_VERSION;
  event.file_version = version;
  return write_event(events, &event, error);
}

/* The name of the machine, with `_` in place of slashes. */
static void host_name(char *out, size_t size) {
  if (gethostname(out, size) < 0 || !*out)
    snprintf(out, size, "localhost");
  out[size - 1] = '\0';
  for (char *c = out; *c; c++)
    if (*c == '/')
      *c = '_';
}

AmprtStatus amprt_events_open(AmprtEvents *events, const char *dir, AmprtError *error) {
  char name[256], host[128];
  *events = (AmprtEvents){.fd = -1};
  host_name(host, sizeof host);
  AmprtStatus status = amprt_make_dir(dir, error);
  for (int i = 0; !status && events->fd < 0; i++) { /* ".2" if that second has one already, ... */
    snprintf(name, sizeof name, "%s%010lld.%s.%ld%s%.0d", prefix, (long long)time(NULL), host,
             (long)getpid(), i ? "." : "", i ? i + 1 : 0);
    status = amprt_path(events->path, dir, name, error);
    if (!status)
      events->fd = open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (!status && events->fd < 0 && errno != EEXIST)
      status = amprt_fail_errno(error, "open", events->path);
  }
  return status ? status : write_version(events, error);
}

static void drop_values(AmprtEvents *events) {
  for (size_t i = 0; i < events->n; i++)
    protobuf_c_message_free_unpacked(&events->value[i]->base, NULL);
  events->n = 0;
}

void amprt_events_close(AmprtEvents *events) {
  drop_values(events);
  free(events->value);
  if (events->fd >= 0)
    close(events->fd);
  *events = (AmprtEvents){.fd = -1};
}

/* A new value with its tag, in the list: NULL if the file is closed or there is no memory. What a
 * value points to is malloc'ed, as protobuf-c frees it. */
static Amprt__Summary__Value *add(AmprtEvents *events, const char *tag) {
  if (events->fd < 0)
    return NULL;
  if (events->n == events->room) {
    size_t room = events->room ? 2 * events->room : 16;
    void *more = realloc(events->value, room * sizeof *events->value);
    events->failed |= !more;
    if (!more)
      return NULL;
    events->value = more;
    events->room = room;
  }
  Amprt__Summary__Value *value = malloc(sizeof *value);
  char *copy = strdup(tag);
  events->failed |= !value || !copy;
  if (!value || !copy) {
    free(value);
    free(copy);
    return NULL;
  }
  amprt__summary__value__init(value);
  value->tag = copy;
  events->value[events->n++] = value;
  return value;
}

void amprt_events_scalar(AmprtEvents *events, const char *tag, double number) {
  Amprt__Summary__Value *value = add(events, tag);
  if (!value)
    return;
  value->value_case = AMPRT__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
  value->simple_value = (float)number;
}

void amprt_events_image(AmprtEvents *events, const char *tag, const unsigned char *pixel,
                        int64_t height, int64_t width, int64_t channels) {
  AmprtBytes file;
  if (events->fd < 0 || !amprt_png_write(pixel, height, width, channels, &file))
    return;
  Amprt__Summary__Image *image = malloc(sizeof *image);
  Amprt__Summary__Value *value = image ? add(events, tag) : NULL;
  if (!value) {
    events->failed = true;
    free(file.data);
    free(image);
    return;
  }
  amprt__summary__image__init(image);
  image->height = (int32_t)height;
  image->width = (int32_t)width;
  image->colorspace = (int32_t)channels;
  image->encoded_image_string = (ProtobufCBinaryData){file.size, file.data};
  value->value_case = AMPRT__SUMMARY__VALUE__VALUE_IMAGE;
  value->image = image;
}

/* The next bucket; empty ones in a row become one. */
static void add_bucket(Amprt__HistogramProto *out, double limit, int64_t count) {
  size_t n = out->n_bucket;
  if (n && count == 0 && out->bucket[n - 1] == 0)
    n--;
  out->bucket_limit[n] = limit;
  out->bucket[n] = (double)count;
  out->n_bucket = out->n_bucket_limit = n + 1;
}

/* The bounds of buckets are powers of two. First come negative values, from the largest magnitude
 * to the smallest, then those equal to 0, then positive ones. */
static void fill_buckets(Amprt__HistogramProto *out, const AmprtHistogram *histogram,
                         double factor) {
  for (int e = AMPRT_N_EXPONENTS - 1; e >= 0; e--)
    add_bucket(out, -ldexp(factor, e + AMPRT_LEAST_EXPONENT), histogram->negative[e]);
  add_bucket(out, ldexp(factor, AMPRT_LEAST_EXPONENT), histogram->zero);
  for (int e = 0; e < AMPRT_N_EXPONENTS; e++)
    add_bucket(out, ldexp(factor, e + 1 + AMPRT_LEAST_EXPONENT),
               histogram->count[e] - histogram->negative[e]);
  if (out->n_bucket > 1 && out->bucket[out->n_bucket - 1] == 0)
    out->n_bucket = --out->n_bucket_limit;
}

void amprt_events_histogram(AmprtEvents *events, const char *tag, const AmprtHistogram *histogram,
                            double factor) {
  enum { MOST = 2 * AMPRT_N_EXPONENTS + 1 };
  if (events->fd < 0)
    return;
  Amprt__HistogramProto *out = malloc(sizeof *out);
  double *limit = malloc(MOST * sizeof *limit), *bucket = malloc(MOST * sizeof *bucket);
  Amprt__Summary__Value *value = out && limit && bucket ? add(events, tag) : NULL;
  if (!value) {
    events->failed = true;
    free(out);
    free(limit);
    free(bucket);
    return;
  }
  amprt__histogram_proto__init(out);
  out->bucket_limit = limit;
  out->bucket = bucket;
  fill_buckets(out, histogram, factor);
  out->min = histogram->least * factor;
  out->max = histogram->most * factor;
  out->sum = histogram->sum * factor;
  out->sum_squares = histogram->squares * factor * factor;
  out->num = (double)histogram->finite;
  value->value_case = AMPRT__SUMMARY__VALUE__VALUE_HISTO;
  value->histo = out;
}

AmprtStatus amprt_events_write(AmprtEvents *events, int64_t step, AmprtError *error) {
  Amprt__Event event = AMPRT__EVENT__INIT;
  Amprt__Summary summary = AMPRT__SUMMARY__INIT;
  AmprtStatus status = AMPRT_OK;
  if (events->fd < 0 || !events->n)
    return AMPRT_OK;
  summary.n_value = events->n;
  summary.value = events->value;
  event.step = step;
  event.what_case = AMPRT__EVENT__WHAT_SUMMARY;
  event.summary = &summary;
  status = events->failed ? amprt_fail_memory(error, 1 << 16, events->path)
                          : write_event(events, &event, error);
  drop_values(events);
  return status;
}

AmprtStatus amprt_events_start(AmprtEvents *events, int64_t step, AmprtError *error) {
  Amprt__Event event = AMPRT__EVENT__INIT;
  Amprt__SessionLog start = AMPRT__SESSION_LOG__INIT;
  start.status = AMPRT__SESSION_LOG__SESSION_STATUS__START;
  event.step = step;
  event.what_case = AMPRT__EVENT__WHAT_SESSION_LOG;
  event.session_log = &start;
  return events->fd < 0 ? AMPRT_OK : write_event(events, &event, error);
}
