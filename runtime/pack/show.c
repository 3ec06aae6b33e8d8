#include "runtime/pack/show.h"

#include "runtime/core/stop.h"
#include "runtime/data/pack.h"
#include "runtime/pack/job.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_number(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Classes without a name are shown only if they have records, since there may be 2^31 of them. */
static AmprtStatus list_classes(const AmprtDataset *set, AmprtError *error) {
  size_t n = (size_t)set->n;
  int32_t *label = malloc(n * sizeof *label);
  if (!label)
    return amprt_fail_memory(error, n * sizeof *label, "labels");
  for (size_t i = 0; i < n; i++)
    label[i] = amprt_pack_label(set, (int64_t)i);
  qsort(label, n, sizeof *label, by_number);
  amprt_print(stdout, "%10s %10s%s\n", "class", "records", set->class_name ? "  name" : "");
  size_t at = 0;
  for (int64_t c = set->class_name ? 0 : label[0]; c < set->classes;) {
    size_t first = at;
    while (at < n && label[at] == c)
      at++;
    amprt_print(stdout, "%10" PRId64 " %10zu", c, at - first);
    if (set->class_name)
      amprt_print(stdout, "  %s", set->class_name[c]);
    amprt_print(stdout, "\n");
    if (!set->class_name && at == n)
      break;
    c = set->class_name ? c + 1 : label[at];
  }
  free(label);
  return AMPRT_OK;
}

AmprtStatus pack_list(const char *path, AmprtError *error) {
  AmprtDataset set = {0};
  AmprtStatus status = amprt_pack_open(path, &set, error);
  if (!status) {
    uint64_t all = 0;
    uint32_t least = UINT32_MAX, most = 0;
    for (int64_t i = 0; i < set.n; i++) {
      uint32_t size = amprt_pack_size(&set, i);
      all += size;
      least = size < least ? size : least;
      most = size > most ? size : most;
    }
    amprt_print(stdout, "made by:  %s\n", amprt_pack_note(&set));
    if (set.height)
      amprt_print(stdout, "records:  %" PRId64 ", pixels of %" PRId64 "x%" PRId64 "x%" PRId64,
                  set.n, set.height, set.width, set.channels);
    else
      amprt_print(stdout, "records:  %" PRId64 ", JPEG and PNG files", set.n);
    amprt_print(stdout, "; %" PRIu32 " to %" PRIu32 " bytes, together %.1f MB\n", least, most,
                (double)all * 1e-6);
    amprt_print(stdout, "classes:  %" PRId64 "%s%s\n", set.classes,
                set.exact ? ", for models with as many" : " or more",
                set.background ? ", or one more for the background" : "");
    status = list_classes(&set, error);
  }
  amprt_dataset_free(&set);
  return status;
}

AmprtStatus pack_verify(const char *path, AmprtLog *log, AmprtError *error) {
  enum { AHEAD = 16 };
  AmprtDataset set = {0};
  AmprtRoom room = {0};
  AmprtRecord record;
  PackProgress progress = {0};
  int64_t bad = 0, done = 0;
  uint64_t bytes = 0;
  AmprtStatus status = amprt_pack_open(path, &set, error);
  for (; !status && done < set.n && !amprt_stop_signal(); done++) {
    pack_progress(log, &progress, "check", done, set.n, bytes);
    if (done + AHEAD < set.n)
      set.reader->ahead(&set, done + AHEAD);
    status = set.reader->fetch(&set, done, &room, &record, error);
    bytes += amprt_pack_size(&set, done);
    if (status == AMPRT_INPUT) {
      amprt_warn(log, "%s", error->text);
      bad++;
      status = AMPRT_OK;
    }
  }
  if (!status && done == set.n && !bad && !log->quiet)
    amprt_say(log, "%s: all %" PRId64 " records are whole (%.1f MB)", path, set.n,
              (double)bytes * 1e-6);
  if (!status && bad)
    status = amprt_fail(error, AMPRT_INPUT, "%s: %" PRId64 " of %" PRId64 " records are damaged",
                        path, bad, set.n);
  amprt_dataset_free(&set);
  free(room.data);
  return status;
}
