/* batches SET DIR SET DIR: both data sets give the same batches, bit for bit, in training and in
 * evaluation, by every preprocessing that is for such images. Images that are too large for `plain`
 * are left out of the batches of both. */
#include "runtime/data/feed.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 8, SIDE = 64, PLAIN_SIDE = 96 };

static AmprtError error;

static int fail(const char *text) {
  fprintf(stderr, "batches: %s\n", text);
  return 1;
}

static AmprtStatus open_set(const char *name, const char *dir, AmprtDataset *set) {
  char folder[AMPRT_PATH];
  const AmprtSource *from = amprt_source_find(name);
  if (!from)
    return amprt_fail(&error, AMPRT_USAGE, "no data set %s", name);
  AmprtStatus status = amprt_source_folder(from, dir, folder, &error);
  return status ? status : from->open(folder, from->train_files, set, &error);
}

/* Two epochs of each; how many batches, or -1. */
static int compare_feeds(AmprtFeedPlan plan, const AmprtDataset set[2]) {
  AmprtFeed *feed[2] = {NULL, NULL};
  const AmprtBatch *batch[2];
  int n = 0;
  size_t size = (size_t)(plan.example.image.height * plan.example.image.width *
                         plan.example.image.channels * BATCH);
  plan.end = 2 * (uint64_t)set[0].n;
  for (int i = 0; i < 2 && n == 0; i++) {
    plan.set = &set[i];
    if (amprt_feed_open(&feed[i], &plan, &error))
      n = -1;
  }
  for (bool more = n == 0; more;) {
    if (amprt_feed_next(feed[0], &batch[0], &error) ||
        amprt_feed_next(feed[1], &batch[1], &error)) {
      n = -1;
      break;
    }
    more = batch[0] && batch[1];
    if (!batch[0] != !batch[1] ||
        (more && (batch[0]->count != batch[1]->count ||
                  memcmp(batch[0]->image, batch[1]->image, size * sizeof(float)) != 0 ||
                  memcmp(batch[0]->label, batch[1]->label, sizeof(int32_t) * BATCH) != 0))) {
      amprt_fail(&error, AMPRT_INPUT, "batch %d differs", n);
      n = -1;
      break;
    }
    n += more;
  }
  /* Also after an error, as their threads read data sets that belong to the caller. */
  amprt_feed_close(feed[0]);
  amprt_feed_close(feed[1]);
  return n;
}

/* In every way that the data set can be prepared; how many batches, or -1. */
static int compare(const AmprtDataset set[2]) {
  int n = 0;
  int64_t channels = set[0].height ? set[0].channels : 3;
  for (int p = 0; p < AMPRT_N_PREPROCESSING; p++)
    for (int training = 0; training < 2; training++) {
      if (p != AMPRT_PLAIN && set[0].height)
        continue;
      int64_t least = p == AMPRT_PLAIN ? PLAIN_SIDE : SIDE;
      int64_t height = set[0].height > least ? set[0].height : least;
      int64_t width = set[0].width > least ? set[0].width : least;
      AmprtFeedPlan plan = {.batch_size = BATCH,
                            .seed = 9,
                            .purpose = "train",
                            .shuffle = training,
                            .masks = p == AMPRT_PLAIN,
                            .max_bad = p == AMPRT_PLAIN ? INT64_MAX : 0,
                            .threads = 3};
      plan.example.image =
          (AmprtImageSpec){height, width, channels, training ? 4 : 0, training, true};
      plan.example.photo = (AmprtPhotoSpec){height,   width,    channels, (AmprtPreprocessing)p,
                                            training, training, false};
      int some = compare_feeds(plan, set);
      if (some < 0)
        return -1;
      n += some;
    }
  return n;
}

int main(int argc, char **argv) {
  AmprtDataset set[2] = {{0}, {0}};
  if (argc != 5)
    return fail("usage: batches SET DIR SET DIR");
  int n = 0;
  for (int i = 0; i < 2 && n == 0; i++)
    n = open_set(argv[1 + 2 * i], argv[2 + 2 * i], &set[i]) ? -1 : 0;
  if (n == 0)
    n = compare(set);
  if (n > 0)
    printf("%d batches are the same, of %lld images in %lld classes\n", n, (long long)set[0].n,
           (long long)set[0].classes);
  amprt_dataset_free(&set[0]);
  amprt_dataset_free(&set[1]);
  return n > 0 ? 0 : fail(n ? error.text : "nothing was compared");
}
