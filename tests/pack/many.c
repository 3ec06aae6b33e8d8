/* many write N FILE: a pack of N tiny JPEGs in 1000 classes, as large an index as that of N
 * photographs. many read FILE: how long it takes to open it, to have the first shuffled batch, and
 * to have one from the middle of the third epoch, and how much memory all of that took. */
#include "runtime/base/clock.h"
#include "runtime/data/feed.h"
#include "runtime/data/pack.h"
#include "runtime/pack/write.h"
#include "tests/image/pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 16, CLASSES = 1000, BATCH = 128 };

static AmprtError error;

static int fail(void) {
  fprintf(stderr, "many: %s\n", error.text);
  return 1;
}

static AmprtStatus write_many(int64_t n, const char *path) {
  const AmprtDataset like = {.n = n, .classes = CLASSES, .exact = true};
  PackWriter writer;
  AmprtBytes picture[KINDS];
  for (int i = 0; i < KINDS; i++)
    picture[i] = picture_jpeg(1 + i % 4, 1 + i / 4, (JpegKind){.components = 1});
  AmprtStatus status = pack_write_begin(&writer, path, &like, "made by tests/pack/many", &error);
  for (int64_t i = 0; i < n && !status; i++) {
    AmprtRecord record = {.data = picture[i % KINDS].data,
                          .size = picture[i % KINDS].size,
                          .label = (int32_t)(i * 7919 % CLASSES)};
    status = pack_write_record(&writer, &record, &error);
  }
  if (!status)
    status = pack_write_tables(&writer, &error);
  AmprtError ignored;
  AmprtStatus ended = pack_write_end(&writer, !status, status ? &ignored : &error);
  for (int i = 0; i < KINDS; i++)
    free(picture[i].data);
  return status ? status : ended;
}

/* The peak memory of this program alone: the figure of getrusage begins with that of the program
 * that started this one. */
static double peak_mb(void) {
  FILE *status = fopen("/proc/self/status", "r");
  char line[256];
  double kib = 0;
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %lf kB", &kib) == 1)
      break;
  if (status)
    fclose(status);
  return kib * 1024e-6;
}

/* Seconds until the first batch at `position` is there; negative: it failed. */
static double first_batch(const AmprtDataset *set, uint64_t position) {
  AmprtFeed *feed = NULL;
  const AmprtBatch *batch;
  AmprtFeedPlan plan = {.set = set,
                        .batch_size = BATCH,
                        .purpose = "train",
                        .shuffle = true,
                        .position = position,
                        .end = UINT64_MAX,
                        .threads = 1,
                        .pixels = true};
  plan.example.image = (AmprtImageSpec){4, 4, 1, 0, false, false};
  plan.example.photo = (AmprtPhotoSpec){4, 4, 1, AMPRT_PLAIN, true, false, false};
  double begin = amprt_seconds();
  if (amprt_feed_open(&feed, &plan, &error) || amprt_feed_next(feed, &batch, &error))
    return -1;
  double seconds = amprt_seconds() - begin;
  amprt_feed_close(feed);
  return seconds;
}

static AmprtStatus read_many(const char *path) {
  AmprtDataset set = {0};
  double before = peak_mb(), begin = amprt_seconds();
  AmprtStatus status = amprt_pack_open(path, &set, &error);
  double open = amprt_seconds() - begin;
  double start = status ? -1 : first_batch(&set, 0);
  double middle = start < 0 ? -1 : first_batch(&set, (uint64_t)(2.5 * (double)set.n));
  if (middle >= 0)
    printf("%lld records: open %.3f s, first batch %.3f s, one in the middle %.3f s, %.1f MB of "
           "memory\n",
           (long long)set.n, open, start, middle, peak_mb() - before);
  amprt_dataset_free(&set);
  return middle >= 0 ? AMPRT_OK : error.status;
}

int main(int argc, char **argv) {
  if (argc == 4 && !strcmp(argv[1], "write"))
    return write_many(atoll(argv[2]), argv[3]) ? fail() : 0;
  if (argc == 3 && !strcmp(argv[1], "read"))
    return read_many(argv[2]) ? fail() : 0;
  amprt_fail(&error, AMPRT_USAGE, "usage: many write N FILE, many read FILE");
  return fail();
}
