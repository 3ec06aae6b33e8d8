#include "runtime/data/feed.h"

#include "runtime/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
  DEPTH = 4,  /* batches in memory, the one in use included */
  CHUNK = 16, /* raw images that a worker takes at once; image files are taken one by one */
};

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
  AmprtError *failed;      /* [batch_size]: why an example could not be read, or status AMPRT_OK */
  int64_t n, taken, ready; /* examples of the batch; those that workers have begun, and ended */
} Slot;

struct AmprtFeed {
  AmprtFeedPlan plan;
  AmprtKey shuffle_key, augment_key, erase_key, mix_key;
  AmprtBatch fixed; /* synthetic data */
  pthread_t *thread;
  int n_threads;
  int64_t n_bad;
  double waited;
  pthread_mutex_t lock; /* guards all that follows, and n, taken and ready of slots */
  pthread_cond_t changed;
  Slot slot[DEPTH];
  uint64_t position;         /* of the next batch to begin */
  int64_t in_row;            /* batches begun since the last that were left out */
  uint64_t n_begun, n_given; /* batches; the consumer has given back n_given */
  bool holding, stop;
  uint32_t *order; /* the examples of order_epoch */
  uint64_t order_epoch;
};

/* ---- which examples, in which order ---- */

/* The order that a buffer of `size` examples gives: each example of the set's own order takes the
 * place of a random one in the buffer, which goes out; at the end the buffer is emptied likewise.
 * tf.data's shuffle(size) does this. */
static void shuffle_through_buffer(AmprtKey key, uint64_t epoch, uint32_t *order, uint32_t n,
                                   uint32_t size) {
  AmprtWords words = {{0}};
  /* order[out..out+held-1] is the buffer; what follows it still has the set's order */
  for (uint32_t i = 0; i < n; i++)
    order[i] = i;
  for (uint32_t out = 0; out < n; out++) {
    uint32_t held = n - out < size ? n - out : size;
    if (out % 4 == 0)
      words = amprt_rng_at(key, out / 4, epoch);
    uint32_t pick = out + amprt_rng_below(words.v[out % 4], held), first = order[out];
    order[out] = order[pick];
    order[pick] = first;
  }
}

static void set_order(AmprtFeed *feed, uint64_t epoch) {
  uint32_t n = (uint32_t)feed->plan.set->n;
  int64_t buffer = feed->plan.shuffle_buffer;
  if (feed->order_epoch == epoch)
    return;
  feed->order_epoch = epoch;
  if (buffer && buffer < n)
    shuffle_through_buffer(feed->shuffle_key, epoch, feed->order, n, (uint32_t)buffer);
  else
    amprt_rng_permute(feed->shuffle_key, epoch, feed->order, n);
}

/* Fills the batch behind its examples with zeros. */
static void clear_after(const AmprtFeed *feed, Slot *slot, size_t count) {
  const AmprtFeedPlan *plan = &feed->plan;
  size_t missing = (size_t)plan->batch_size - count,
         channels = (size_t)plan->example.image.channels;
  size_t n = (size_t)(plan->example.image.height * plan->example.image.width) * channels;
  memset(slot->pixel + n * count, 0, n * missing);
  memset(slot->label + count, 0, missing * sizeof *slot->label);
  for (size_t i = count * channels; i < (count + missing) * channels; i++)
    slot->scaling[i] = (AmprtScaling){0, 1};
  if (slot->image)
    memset(slot->image + n * count, 0, n * missing * sizeof *slot->image);
}

/* Of the batch that begins where the stream is. */
static AmprtMix draw_mix(const AmprtFeed *feed) {
  const AmprtImageSpec *image = &feed->plan.example.image;
  return amprt_mix_draw(feed->plan.mix, feed->mix_key, feed->position, image->height, image->width);
}

/* A batch has been begun, and the stream is behind its examples: leaves out those that are not this
 * feed's. */
static void skip_others(AmprtFeed *feed) {
  const AmprtFeedPlan *plan = &feed->plan;
  if (!plan->stride || ++feed->in_row < plan->row)
    return;
  feed->in_row = 0;
  feed->position += (uint64_t)((plan->stride - plan->row) * plan->batch_size);
}

/* Begins the next batch of the stream: says which examples it will hold. */
static Slot *begin_batch(AmprtFeed *feed) {
  Slot *slot = &feed->slot[feed->n_begun % DEPTH];
  const AmprtFeedPlan *plan = &feed->plan;
  uint64_t size = (uint64_t)plan->batch_size, left = plan->end - feed->position;
  uint64_t epoch_size = (uint64_t)(plan->epoch ? plan->epoch : plan->set->n);
  slot->n = slot->batch.count = (int64_t)(left < size ? left : size);
  slot->batch.mix = draw_mix(feed);
  slot->taken = slot->ready = 0;
  for (int64_t i = 0; i < slot->n; i++, feed->position++) {
    uint64_t epoch = feed->position / epoch_size, at = feed->position % epoch_size;
    if (plan->shuffle)
      set_order(feed, epoch);
    slot->failed[i].status = AMPRT_OK;
    slot->place[i] = (Place){epoch, plan->shuffle ? feed->order[at] : (uint32_t)at};
  }
  skip_others(feed);
  feed->n_begun++;
  return slot;
}

/* ---- workers ---- */

/* Workers keep errors for the thread that takes the batch, so that reports come in the order of the
 * stream. */
static void prepare_one(const AmprtFeed *feed, Slot *slot, size_t i, AmprtExampleRoom *room) {
  const AmprtFeedPlan *plan = &feed->plan;
  size_t channels = (size_t)plan->example.image.channels;
  size_t n = (size_t)(plan->example.image.height * plan->example.image.width) * channels;
  AmprtScaling *scaling = slot->scaling + channels * i;
  AmprtExampleDraw draw = {feed->augment_key, feed->erase_key, slot->place[i].epoch,
                           slot->place[i].example};
  if (amprt_example_prepare(&plan->example, plan->set, draw, room, slot->pixel + n * i, scaling,
                            &slot->label[i], &slot->failed[i]))
    return;
  slot->label[i] += plan->first_label;
  if (slot->image)
    amprt_image_floats(slot->pixel + n * i, n, channels, scaling, slot->image + n * i);
}

static void *work(void *arg) {
  AmprtFeed *feed = arg;
  const AmprtDataset *set = feed->plan.set;
  int64_t chunk = set->height ? CHUNK : 1;
  AmprtExampleRoom room = {0};
  pthread_mutex_lock(&feed->lock);
  while (!feed->stop) {
    Slot *slot = feed->n_begun ? &feed->slot[(feed->n_begun - 1) % DEPTH] : NULL;
    if (!slot || slot->taken == slot->n) {
      if (feed->position >= feed->plan.end)
        break;
      if (feed->n_begun - feed->n_given == DEPTH) {
        pthread_cond_wait(&feed->changed, &feed->lock);
        continue;
      }
      slot = begin_batch(feed);
      clear_after(feed, slot, (size_t)slot->n);
      for (int64_t i = 0; i < slot->n && set->reader->ahead; i++)
        set->reader->ahead(set, slot->place[i].example);
    }
    int64_t first = slot->taken, left = slot->n - first;
    int64_t past = first + (left < chunk ? left : chunk);
    slot->taken = past;
    pthread_mutex_unlock(&feed->lock);
    for (int64_t i = first; i < past; i++)
      prepare_one(feed, slot, (size_t)i, &room);
    pthread_mutex_lock(&feed->lock);
    slot->ready += past - first;
    if (slot->ready == slot->n)
      pthread_cond_broadcast(&feed->changed);
  }
  pthread_mutex_unlock(&feed->lock);
  amprt_example_room_free(&room);
  return NULL;
}

/* Workers block all signals, which are for the thread that waits for the batches. */
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
  if (!feed->n_threads) /* a single worker is enough */
    return amprt_fail(error, AMPRT_ENV,
                      "no thread that prepares batches can be started: %s (memory, or the number "
                      "of threads, is limited)",
                      strerror(failed));
  return AMPRT_OK;
}

static AmprtStatus allocate(AmprtFeed *feed, AmprtError *error) {
  const AmprtImageSpec *image = &feed->plan.example.image;
  size_t batch = (size_t)feed->plan.batch_size, channels = (size_t)image->channels;
  size_t n = (size_t)(image->height * image->width) * channels * batch;
  bool good = true;
  feed->thread = calloc((size_t)feed->plan.threads, sizeof *feed->thread);
  feed->order = malloc((size_t)feed->plan.set->n * sizeof *feed->order);
  for (int i = 0; i < DEPTH; i++) {
    Slot *slot = &feed->slot[i];
    slot->image = feed->plan.pixels ? NULL : malloc(n * sizeof *slot->image);
    slot->pixel = malloc(n);
    slot->scaling = malloc(batch * channels * sizeof *slot->scaling);
    slot->label = malloc(batch * sizeof *slot->label);
    slot->place = malloc(batch * sizeof *slot->place);
    slot->failed = calloc(batch, sizeof *slot->failed);
    slot->batch = (AmprtBatch){
        .image = slot->image, .label = slot->label, .pixel = slot->pixel, .scaling = slot->scaling};
    good = good && (slot->image || feed->plan.pixels) && slot->pixel && slot->scaling &&
           slot->label && slot->place && slot->failed;
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
  snprintf(purpose, sizeof purpose, "%s.erase", plan->purpose);
  feed->erase_key = amprt_rng_key(plan->seed, purpose);
  snprintf(purpose, sizeof purpose, "%s.mix", plan->purpose);
  feed->mix_key = amprt_rng_key(plan->seed, purpose);
  pthread_mutex_init(&feed->lock, NULL);
  pthread_cond_init(&feed->changed, NULL);
  AmprtStatus status = AMPRT_OK;
  if (plan->set->reader) {
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

/* ---- the consumer ---- */

static const AmprtBatch *next_fixed(AmprtFeed *feed) {
  uint64_t size = (uint64_t)feed->plan.batch_size;
  uint64_t left = feed->plan.end > feed->position ? feed->plan.end - feed->position : 0;
  uint64_t count = left < size ? left : size;
  feed->fixed = (AmprtBatch){feed->plan.set->batch_image, feed->plan.set->batch_label,
                             (int64_t)count, true, .mix = draw_mix(feed)};
  feed->position += count;
  skip_others(feed);
  return count ? &feed->fixed : NULL;
}

/* Example `from` of the batch takes the place of example `to`. */
static void copy_example(const AmprtFeed *feed, Slot *slot, int64_t from, int64_t to) {
  size_t channels = (size_t)feed->plan.example.image.channels;
  size_t n = (size_t)(feed->plan.example.image.height * feed->plan.example.image.width) * channels;
  size_t a = (size_t)to, b = (size_t)from;
  memcpy(slot->pixel + n * a, slot->pixel + n * b, n);
  memcpy(slot->scaling + channels * a, slot->scaling + channels * b,
         channels * sizeof *slot->scaling);
  slot->label[a] = slot->label[b];
  if (slot->image)
    memcpy(slot->image + n * a, slot->image + n * b, n * sizeof *slot->image);
}

/* Reports the examples of a batch that could not be read, and goes on without them or gives up. */
static AmprtStatus settle(AmprtFeed *feed, Slot *slot, AmprtError *error) {
  const AmprtFeedPlan *plan = &feed->plan;
  int64_t good = 0, bad_before = feed->n_bad;
  for (int64_t i = 0; i < slot->batch.count; i++) {
    const AmprtError *failed = &slot->failed[i];
    if (!failed->status) {
      good++;
      continue;
    }
    if (failed->status != AMPRT_INPUT) {
      *error = *failed;
      return failed->status;
    }
    if (++feed->n_bad > plan->max_bad)
      return amprt_fail(error, AMPRT_INPUT,
                        "%.1500s; --max-bad-examples=N goes on past N such examples (%lld so far)",
                        failed->text, (long long)feed->n_bad);
    if (plan->log)
      amprt_warn(plan->log, "%s; left out (%lld so far)", failed->text, (long long)feed->n_bad);
  }
  if (feed->n_bad == bad_before)
    return AMPRT_OK;
  if (!good && !plan->masks)
    return amprt_fail(error, AMPRT_INPUT, "a whole batch of examples could not be read");
  int64_t kept = 0, donor = 0;
  for (int64_t i = 0; i < slot->batch.count; i++)
    if (!slot->failed[i].status && plan->masks)
      copy_example(feed, slot, i, kept++);
  for (int64_t i = 0; i < slot->batch.count && !plan->masks; i++) {
    if (!slot->failed[i].status)
      continue;
    while (slot->failed[donor].status) /* the first that can be read, then the one after it, ... */
      donor = (donor + 1) % slot->batch.count;
    copy_example(feed, slot, donor, i);
    donor = (donor + 1) % slot->batch.count;
  }
  if (plan->masks) {
    slot->batch.count = kept;
    clear_after(feed, slot, (size_t)kept);
  }
  return AMPRT_OK;
}

AmprtStatus amprt_feed_next(AmprtFeed *feed, const AmprtBatch **batch, AmprtError *error) {
  *batch = NULL;
  if (!feed->plan.set->reader) {
    *batch = next_fixed(feed);
    return AMPRT_OK;
  }
  double start = amprt_seconds(), told = 30;
  pthread_mutex_lock(&feed->lock);
  feed->n_given += feed->holding;
  feed->holding = false;
  pthread_cond_broadcast(&feed->changed);
  Slot *slot = &feed->slot[feed->n_given % DEPTH];
  for (;;) {
    bool begun = feed->n_begun > feed->n_given;
    feed->holding = begun && slot->ready == slot->n;
    if (feed->holding || (!begun && feed->position >= feed->plan.end))
      break;
    if (feed->plan.stopped && feed->plan.stopped())
      break;
    amprt_wait_briefly(&feed->changed, &feed->lock);
    if (amprt_seconds() - start > told && feed->plan.log) {
      amprt_warn(feed->plan.log, "no data for %.0f seconds: the file system of the data set stalls",
                 told);
      told *= 2;
    }
  }
  pthread_mutex_unlock(&feed->lock);
  feed->waited += amprt_seconds() - start;
  AmprtStatus status = feed->holding ? settle(feed, slot, error) : AMPRT_OK;
  *batch = feed->holding && !status ? &slot->batch : NULL;
  return status;
}

double amprt_feed_waited(const AmprtFeed *feed) {
  return feed->waited;
}

int64_t amprt_feed_bad(const AmprtFeed *feed) {
  return feed->n_bad;
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
    free(feed->slot[i].failed);
  }
  pthread_cond_destroy(&feed->changed);
  pthread_mutex_destroy(&feed->lock);
  free(feed->thread);
  free(feed->order);
  free(feed);
}
