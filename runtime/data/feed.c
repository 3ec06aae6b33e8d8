#include "runtime/data/feed.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 4 }; /* batches in memory, the one in use included */

typedef struct Place {
  uint64_t epoch;
  uint32_t example;
} Place;

typedef struct Slot {
  AmprtBatch batch;
  float *image; /* NULL: batches are bytes */
  unsigned char *pixel;
  AmprtScaling *scaling;
  int32_t *label;
  Place *place;
  bool ready;
} Slot;

struct AmprtFeed {
  AmprtFeedPlan plan;
  AmprtKey shuffle_key, augment_key;
  AmprtBatch fixed; /* synthetic data */
  pthread_t *thread;
  int n_threads;
  pthread_mutex_t lock; /* guards all that follows; slots belong to a worker from claim to ready */
  pthread_cond_t changed;
  Slot slot[DEPTH];
  uint64_t position;          /* of the next batch to claim */
  uint64_t n_claimed, n_done; /* batches; the consumer has given back n_done */
  bool holding, stop;
  uint32_t *order; /* the examples of order_epoch */
  uint64_t order_epoch;
};

static void set_order(AmprtFeed *feed, uint64_t epoch) {
  if (feed->order_epoch == epoch)
    return;
  feed->order_epoch = epoch;
  amprt_rng_permute(feed->shuffle_key, epoch, feed->order, (uint32_t)feed->plan.set->n);
}

/* Takes the next batch of the stream into `slot`: which examples, in claim order. */
static void claim(AmprtFeed *feed, Slot *slot) {
  uint64_t n = (uint64_t)feed->plan.set->n, size = (uint64_t)feed->plan.batch_size;
  uint64_t left = feed->plan.end - feed->position;
  slot->batch.count = (int64_t)(left < size ? left : size);
  slot->ready = false;
  for (int64_t i = 0; i < slot->batch.count; i++, feed->position++) {
    uint64_t epoch = feed->position / n, at = feed->position % n;
    if (feed->plan.shuffle)
      set_order(feed, epoch);
    slot->place[i] = (Place){epoch, feed->plan.shuffle ? feed->order[at] : (uint32_t)at};
  }
  feed->n_claimed++;
}

static void prepare(const AmprtFeed *feed, Slot *slot) {
  const AmprtFeedPlan *plan = &feed->plan;
  size_t n = (size_t)(plan->image.height * plan->image.width * plan->image.channels);
  size_t count = (size_t)slot->batch.count, missing = (size_t)plan->batch_size - count;
  for (size_t i = 0; i < count; i++) {
    Place place = slot->place[i];
    AmprtWords random = amprt_rng_at(feed->augment_key, place.example, place.epoch);
    slot->scaling[i] = amprt_image_prepare(&plan->image, plan->set->pixel + n * place.example,
                                           random, slot->pixel + n * i);
    slot->label[i] = plan->set->label[place.example];
  }
  memset(slot->pixel + n * count, 0, n * missing);
  memset(slot->label + count, 0, missing * sizeof *slot->label);
  for (size_t i = count; i < count + missing; i++)
    slot->scaling[i] = (AmprtScaling){0, 1};
  for (size_t i = 0; slot->image && i < count + missing; i++)
    amprt_image_floats(slot->pixel + n * i, n, slot->scaling[i], slot->image + n * i);
}

static void *work(void *arg) {
  AmprtFeed *feed = arg;
  pthread_mutex_lock(&feed->lock);
  while (!feed->stop && feed->position < feed->plan.end) {
    if (feed->n_claimed - feed->n_done == DEPTH) {
      pthread_cond_wait(&feed->changed, &feed->lock);
      continue;
    }
    Slot *slot = &feed->slot[feed->n_claimed % DEPTH];
    claim(feed, slot);
    pthread_mutex_unlock(&feed->lock);
    prepare(feed, slot);
    pthread_mutex_lock(&feed->lock);
    slot->ready = true;
    pthread_cond_broadcast(&feed->changed);
  }
  pthread_mutex_unlock(&feed->lock);
  return NULL;
}

/* Workers take no signals: those are for the thread that waits for them. */
static AmprtStatus start(AmprtFeed *feed, AmprtError *error) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = 0;
  while (feed->n_threads < feed->plan.threads && !failed) {
    failed = pthread_create(&feed->thread[feed->n_threads], NULL, work, feed);
    feed->n_threads += !failed;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!feed->n_threads) /* one is enough */
    return amprt_fail(error, AMPRT_ENV,
                      "no thread that prepares batches can be started: %s (memory, or the number "
                      "of threads, is limited)",
                      strerror(failed));
  return AMPRT_OK;
}

static AmprtStatus allocate(AmprtFeed *feed, AmprtError *error) {
  const AmprtImageSpec *image = &feed->plan.image;
  size_t batch = (size_t)feed->plan.batch_size;
  size_t n = (size_t)(image->height * image->width * image->channels) * batch;
  bool good = true;
  feed->thread = calloc((size_t)feed->plan.threads, sizeof *feed->thread);
  feed->order = malloc((size_t)feed->plan.set->n * sizeof *feed->order);
  for (int i = 0; i < DEPTH; i++) {
    Slot *slot = &feed->slot[i];
    slot->image = feed->plan.pixels ? NULL : malloc(n * sizeof *slot->image);
    slot->pixel = malloc(n);
    slot->scaling = malloc(batch * sizeof *slot->scaling);
    slot->label = malloc(batch * sizeof *slot->label);
    slot->place = malloc(batch * sizeof *slot->place);
    slot->batch = (AmprtBatch){
        .image = slot->image, .label = slot->label, .pixel = slot->pixel, .scaling = slot->scaling};
    good = good && (slot->image || feed->plan.pixels) && slot->pixel && slot->scaling &&
           slot->label && slot->place;
  }
  if (!good || !feed->thread || !feed->order)
    return amprt_fail_memory(error, DEPTH * n * (feed->plan.pixels ? 1 : sizeof(float)), "batches");
  return AMPRT_OK;
}

AmprtStatus amprt_feed_open(AmprtFeed **out, const AmprtFeedPlan *plan, AmprtError *error) {
  char purpose[64];
  AmprtFeed *feed = calloc(1, sizeof *feed);
  if (!feed)
    return amprt_fail_memory(error, sizeof *feed, "the data feed");
  feed->plan = *plan;
  feed->position = plan->position;
  feed->order_epoch = UINT64_MAX;
  snprintf(purpose, sizeof purpose, "%s.shuffle", plan->purpose);
  feed->shuffle_key = amprt_rng_key(plan->seed, purpose);
  snprintf(purpose, sizeof purpose, "%s.augment", plan->purpose);
  feed->augment_key = amprt_rng_key(plan->seed, purpose);
  pthread_mutex_init(&feed->lock, NULL);
  pthread_cond_init(&feed->changed, NULL);
  AmprtStatus status = AMPRT_OK;
  if (plan->set->pixel) {
    status = allocate(feed, error);
    if (!status)
      status = start(feed, error);
  }
  if (status)
    amprt_feed_close(feed);
  else
    *out = feed;
  return status;
}

static const AmprtBatch *next_fixed(AmprtFeed *feed) {
  uint64_t left = feed->plan.end - feed->position, size = (uint64_t)feed->plan.batch_size;
  uint64_t count = left < size ? left : size;
  feed->position += count;
  feed->fixed =
      (AmprtBatch){feed->plan.set->batch_image, feed->plan.set->batch_label, (int64_t)count, true};
  return count ? &feed->fixed : NULL;
}

const AmprtBatch *amprt_feed_next(AmprtFeed *feed) {
  if (!feed->plan.set->pixel)
    return next_fixed(feed);
  pthread_mutex_lock(&feed->lock);
  feed->n_done += feed->holding;
  feed->holding = false;
  pthread_cond_broadcast(&feed->changed);
  const Slot *slot = &feed->slot[feed->n_done % DEPTH];
  for (;;) {
    bool claimed = feed->n_claimed > feed->n_done;
    if (claimed && slot->ready)
      feed->holding = true;
    if (feed->holding || (!claimed && feed->position >= feed->plan.end))
      break;
    pthread_cond_wait(&feed->changed, &feed->lock);
  }
  pthread_mutex_unlock(&feed->lock);
  return feed->holding ? &slot->batch : NULL;
}

void amprt_feed_close(AmprtFeed *feed) {
  if (!feed)
    return;
  pthread_mutex_lock(&feed->lock);
  feed->stop = true;
  pthread_cond_broadcast(&feed->changed);
  pthread_mutex_unlock(&feed->lock);
  for (int i = 0; i < feed->n_threads; i++)
    pthread_join(feed->thread[i], NULL);
  for (int i = 0; i < DEPTH; i++) {
    free(feed->slot[i].image);
    free(feed->slot[i].pixel);
    free(feed->slot[i].scaling);
    free(feed->slot[i].label);
    free(feed->slot[i].place);
  }
  pthread_cond_destroy(&feed->changed);
  pthread_mutex_destroy(&feed->lock);
  free(feed->thread);
  free(feed->order);
  free(feed);
}
