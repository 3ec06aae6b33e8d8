#include "runtime/pack/job.h"

#include "runtime/base/clock.h"
#include "runtime/base/rng.h"
#include "runtime/core/stop.h"
#include "runtime/pack/image.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS_A_THREAD = 4 };

/* A record between the thread that makes it and the one that writes it. */
typedef struct Slot {
  AmprtRoom room;
  AmprtRecord record;
  AmprtBytes made; /* a smaller image in place of the record's, or NULL */
  AmprtError error;
  bool ready;
} Slot;

typedef struct Line {
  PackJob *job;
  uint32_t *order; /* NULL: the set's own */
  Slot *slot;
  int n_slots, n_threads;
  pthread_t *thread;
  pthread_mutex_t lock; /* guards all that follows, and Slot.ready */
  pthread_cond_t changed;
  int64_t taken, written; /* records */
  bool stop;
} Line;

static int64_t record_at(const Line *line, int64_t place) {
  return line->order ? line->order[place] : place;
}

void pack_progress(AmprtLog *log, PackProgress *progress, const char *name, int64_t done, int64_t n,
                   uint64_t bytes) {
  enum { BAR = 24 };
  static const char full[] = "========================", empty[] = "                        ";
  double now = amprt_seconds(), every = log->terminal ? .1 : 10;
  if (!progress->start)
    progress->start = progress->shown = now;
  if (now - progress->shown < every)
    return;
  char text[200];
  double span = now - progress->start;
  int bar = (int)(BAR * done / n),
      left = (int)(span / (double)(done ? done : 1) * (double)(n - done));
  snprintf(text, sizeof text,
           "%-5s [%.*s%.*s] %3d%%  %" PRId64 "/%" PRId64 "  %.0f/s  %.1f MB/s  %d:%02d left", name,
           bar, full, BAR - bar, empty, (int)(100 * done / n), done, n, (double)done / span,
           (double)bytes / span * 1e-6, left / 60, left % 60);
  amprt_log_progress(log, text, false);
  progress->shown = now;
}

/* ---- threads ---- */

static void make(const Line *line, int64_t place, AmprtPhotoRoom *room, Slot *slot) {
  const AmprtDataset *set = line->job->set;
  int64_t index = record_at(line, place);
  slot->error.status = AMPRT_OK;
  slot->made = (AmprtBytes){0};
  if (set->reader->ahead && place + line->n_slots < set->n)
    set->reader->ahead(set, record_at(line, place + line->n_slots));
  if (set->reader->fetch(set, index, &slot->room, &slot->record, &slot->error) || set->height)
    return;
  AmprtError error;
  AmprtStatus status = pack_image(slot->record.data, slot->record.size, line->job->options, room,
                                  &slot->made, &error);
  char where[AMPRT_PATH];
  set->reader->place(set, index, where, sizeof where);
  if (status)
    amprt_fail(&slot->error, status, "%.1500s: %.500s", where, error.text);
}

static void *work(void *arg) {
  Line *line = arg;
  AmprtPhotoRoom *room = amprt_photo_room_new();
  pthread_mutex_lock(&line->lock);
  while (!line->stop && line->taken < line->job->set->n) {
    if (line->taken - line->written == line->n_slots) {
      pthread_cond_wait(&line->changed, &line->lock);
      continue;
    }
    int64_t place = line->taken++;
    Slot *slot = &line->slot[place % line->n_slots];
    pthread_mutex_unlock(&line->lock);
    if (room)
      make(line, place, room, slot);
    else
      amprt_fail_memory(&slot->error, 1, "decoding images");
    pthread_mutex_lock(&line->lock);
    slot->ready = true;
    pthread_cond_broadcast(&line->changed);
  }
  pthread_mutex_unlock(&line->lock);
  amprt_photo_room_free(room);
  return NULL;
}

/* ---- the thread that writes ---- */

/* Waits for a record; false if a signal came. */
static bool wait_for(Line *line, Slot *slot) {
  pthread_mutex_lock(&line->lock);
  while (!slot->ready && !amprt_stop_signal())
    amprt_wait_briefly(&line->changed, &line->lock);
  pthread_mutex_unlock(&line->lock);
  return !amprt_stop_signal();
}

static AmprtStatus write_one(PackJob *job, const Slot *slot, AmprtError *error) {
  if (slot->error.status == AMPRT_INPUT) {
    job->bad++;
    if (job->bad > job->options->max_bad)
      return amprt_fail(error, AMPRT_INPUT,
                        "%.1800s; --max-bad-examples=N leaves out up to N such images (%" PRId64
                        " so far)",
                        slot->error.text, job->bad);
    amprt_warn(job->log, "%s; left out (%" PRId64 " so far)", slot->error.text, job->bad);
    return AMPRT_OK;
  }
  if (slot->error.status) {
    *error = slot->error;
    return error->status;
  }
  AmprtRecord record = slot->record;
  job->bytes_in += record.size;
  if (slot->made.data) {
    record.data = slot->made.data;
    record.size = slot->made.size;
    job->resized++;
  }
  return pack_write_record(job->writer, &record, error);
}

static AmprtStatus write_all(Line *line, AmprtError *error) {
  PackJob *job = line->job;
  PackProgress progress = {0};
  AmprtStatus status = AMPRT_OK;
  while (!status && line->written < job->set->n) { /* no other thread changes `written` */
    Slot *slot = &line->slot[line->written % line->n_slots];
    pack_progress(job->log, &progress, job->name, line->written, job->set->n, job->writer->at);
    if (!wait_for(line, slot))
      break;
    status = write_one(job, slot, error);
    free(slot->made.data);
    slot->made.data = NULL;
    pthread_mutex_lock(&line->lock);
    slot->ready = false;
    line->written++;
    pthread_cond_broadcast(&line->changed);
    pthread_mutex_unlock(&line->lock);
  }
  return status;
}

/* Threads take no signals: those are for the one that writes. */
static AmprtStatus start(Line *line, int n_threads, AmprtError *error) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = 0;
  while (line->n_threads < n_threads && !failed) {
    failed = pthread_create(&line->thread[line->n_threads], NULL, work, line);
    line->n_threads += !failed;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (line->n_threads) /* a single thread is enough */
    return AMPRT_OK;
  return amprt_fail(error, AMPRT_ENV, "no thread can be started: %s", strerror(failed));
}

static AmprtStatus shuffle(Line *line, AmprtError *error) {
  const PackJob *job = line->job;
  size_t n = (size_t)job->set->n;
  line->order = malloc(n * sizeof *line->order);
  if (!line->order)
    return amprt_fail_memory(error, n * sizeof *line->order, "the order of the records");
  AmprtKey key = amprt_rng_key((uint64_t)job->options->shuffle, "pack.shuffle");
  amprt_rng_permute(key, 0, line->order, (uint32_t)n);
  return AMPRT_OK;
}

AmprtStatus pack_job_run(PackJob *job, AmprtError *error) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  int64_t wanted = job->options->threads;
  int n_threads = wanted            ? (int)wanted
                  : processors > 64 ? 64
                  : processors > 1  ? (int)processors
                                    : 1;
  Line line = {.job = job, .n_slots = SLOTS_A_THREAD * n_threads};
  line.slot = calloc((size_t)line.n_slots, sizeof *line.slot);
  line.thread = calloc((size_t)n_threads, sizeof *line.thread);
  pthread_mutex_init(&line.lock, NULL);
  pthread_cond_init(&line.changed, NULL);
  double begin = amprt_seconds();
  job->resized = 0;
  job->bytes_in = 0;
  AmprtStatus status = AMPRT_OK;
  if (!line.slot || !line.thread)
    status = amprt_fail_memory(error, (size_t)line.n_slots * sizeof *line.slot, "records");
  if (!status && job->options->shuffle >= 0)
    status = shuffle(&line, error);
  if (!status)
    status = start(&line, n_threads, error);
  if (!status)
    status = write_all(&line, error);
  pthread_mutex_lock(&line.lock);
  line.stop = true;
  pthread_cond_broadcast(&line.changed);
  pthread_mutex_unlock(&line.lock);
  for (int i = 0; i < line.n_threads; i++)
    pthread_join(line.thread[i], NULL);
  for (int i = 0; line.slot && i < line.n_slots; i++) {
    free(line.slot[i].room.data);
    free(line.slot[i].made.data);
  }
  pthread_cond_destroy(&line.changed);
  pthread_mutex_destroy(&line.lock);
  free(line.order);
  free(line.slot);
  free(line.thread);
  job->seconds = amprt_seconds() - begin;
  return status;
}
