/* A stream of batches, prepared ahead by worker threads. The stream is a function of its plan
 * alone: any number of threads gives the same bytes, and opening it at position p gives what a
 * longer stream has from p on. */
#ifndef AMPRT_FEED_H
#define AMPRT_FEED_H

#include "runtime/data/augment.h"
#include "runtime/data/data.h"

typedef struct AmprtFeedPlan {
  const AmprtDataset *set; /* must outlive the feed */
  AmprtImageSpec image;
  int64_t batch_size;
  uint64_t seed;
  const char *purpose; /* separates the random numbers of feeds: "train", "stats" */
  bool shuffle;        /* a new order each epoch; else the set's own */
  uint64_t position;   /* examples before the first batch: epoch * set->n + place in the epoch */
  uint64_t end;        /* the stream stops at this position; UINT64_MAX: never */
  int threads;         /* >= 1 */
  bool pixels;         /* images as bytes, for a device that makes floats of them; synthetic data is
                          floats all the same */
} AmprtFeedPlan;

/* Batches run on across epochs. Only the last before `end` may be short: `count` examples, then
 * zeros. */
typedef struct AmprtBatch {
  const float *image;   /* [batch_size, height, width, channels]; NULL: bytes take its place */
  const int32_t *label; /* [batch_size] */
  int64_t count;
  bool fixed;                  /* the stream has no other images and labels */
  const unsigned char *pixel;  /* as image */
  const AmprtScaling *scaling; /* [batch_size] */
} AmprtBatch;

typedef struct AmprtFeed AmprtFeed;

AmprtStatus amprt_feed_open(AmprtFeed **out, const AmprtFeedPlan *plan, AmprtError *error);
/* The next batch, valid until the next call; NULL at the end. */
const AmprtBatch *amprt_feed_next(AmprtFeed *feed);
void amprt_feed_close(AmprtFeed *feed); /* NULL is fine */

#endif
