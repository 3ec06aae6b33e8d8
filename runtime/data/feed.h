/* A stream of batches, prepared ahead by worker threads. The stream is a function of its plan
 * alone: any number of threads gives the same bytes, and opening it at position p gives what a
 * longer stream has from p on. */
#ifndef AMPRT_FEED_H
#define AMPRT_FEED_H

#include "runtime/data/example.h"
#include "runtime/data/mix.h"

typedef struct AmprtFeedPlan {
  const AmprtDataset *set; /* must outlive the feed */
  int32_t first_label;     /* added to the set's labels */
  AmprtExampleSpec example;
  int64_t batch_size;
  AmprtMixSpec mix; /* how batches say that their examples are to be mixed */
  uint64_t seed;
  const char *purpose;    /* separates the random numbers of feeds: "train", "stats" */
  bool shuffle;           /* a new order each epoch; else the set's own */
  int64_t shuffle_buffer; /* if not 0, the order is that of a shuffle buffer of so many examples */
  int64_t epoch;          /* examples of an epoch, at most set->n; 0: all of them */
  uint64_t position; /* examples before the first batch: epoch * `epoch` + place in the epoch */
  int64_t row,
      stride;      /* of every `stride` batches of the stream this feed has the first `row`, from
                          `position` on; the others are not read. stride 0: all of them */
  uint64_t end;    /* the stream stops at this position; UINT64_MAX: never */
  bool masks;      /* examples that cannot be read are left out of their batch; else another
                          example of the batch stands in for each */
  int64_t max_bad; /* more examples than so many that cannot be read are an error */
  int threads;     /* >= 1 */
  bool pixels;     /* images as bytes, for a device that makes floats of them; synthetic data is
                          floats all the same */
  AmprtLog *log;   /* is told of examples that cannot be read; NULL: nobody is */
  int (*stopped)(void); /* not 0: the run is to end, so nobody waits for data; may be NULL */
} AmprtFeedPlan;

/* Batches run on across epochs. Where `count` is below the batch size, zeros follow: in the last
 * batch before `end`, and where the plan masks what cannot be read. */
typedef struct AmprtBatch {
  const float *image;   /* [batch_size, height, width, channels]; NULL: bytes take its place */
  const int32_t *label; /* [batch_size] */
  int64_t count;
  bool fixed;                  /* the stream has no other images and labels */
  const unsigned char *pixel;  /* as image */
  const AmprtScaling *scaling; /* [batch_size, channels] */
  AmprtMix mix;                /* what the step is to do with the images */
} AmprtBatch;

typedef struct AmprtFeed AmprtFeed;

AmprtStatus amprt_feed_open(AmprtFeed **out, const AmprtFeedPlan *plan, AmprtError *error);
/* The next batch, valid until the next call. *batch is NULL at the end, and where the plan's
 * `stopped` ended the wait for it: then the same batch is the next one still. */
AmprtStatus amprt_feed_next(AmprtFeed *feed, const AmprtBatch **batch, AmprtError *error);
/* Seconds that amprt_feed_next has waited for data so far, and examples that could not be read. */
double amprt_feed_waited(const AmprtFeed *feed);
int64_t amprt_feed_bad(const AmprtFeed *feed);
void amprt_feed_close(AmprtFeed *feed); /* NULL is fine */

#endif
