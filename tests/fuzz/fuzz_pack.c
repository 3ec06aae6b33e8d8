/* Reads any bytes as a pack, as they are and with corrected checksums, since most tests come after
 * that of the checksums. Each record of a pack that opens must be whole or refused, with a label
 * below the number of classes. */
#define _GNU_SOURCE /* memfd_create */
#include "runtime/data/pack.h"
#include "runtime/record/crc32c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t sink;

/* Makes header, index and records what their checksums say, as far as they can be found. */
static void seal(unsigned char *file, size_t size) {
  if (size < AMPRT_PACK_HEADER + AMPRT_PACK_TRAILER)
    return;
  unsigned char *trailer = file + size - AMPRT_PACK_TRAILER;
  uint64_t n = amprt_little(file + 16, 4), at = amprt_little(file + 48, 8);
  uint64_t note = amprt_little(file + 36, 4), names = amprt_little(file + 40, 8);
  if (at > size || n * AMPRT_PACK_ENTRY > size - at || names > size || note > size ||
      AMPRT_PACK_HEADER + note + names > size)
    return;
  for (uint64_t i = 0; i < n; i++) {
    unsigned char *entry = file + at + i * AMPRT_PACK_ENTRY;
    uint64_t begin = amprt_little(entry, 8), bytes = amprt_little(entry + 8, 4);
    if (begin <= at && bytes <= at - begin && i % 2)
      amprt_put_little(entry + 20, amprt_crc32c(file + begin, bytes), 4);
  }
  amprt_put_little(trailer + 8, size, 8);
  amprt_put_little(trailer, amprt_crc32c(file, AMPRT_PACK_HEADER + note + names), 4);
  amprt_put_little(trailer + 4, amprt_crc32c(file + at, n * AMPRT_PACK_ENTRY), 4);
}

static void look(const AmprtDataset *set, int64_t index, AmprtRoom *room) {
  AmprtError error;
  AmprtRecord record;
  char place[100];
  set->reader->place(set, index, place, sizeof place);
  set->reader->ahead(set, index);
  if (set->reader->fetch(set, index, room, &record, &error))
    return;
  if (record.label < 0 || record.label >= set->classes || !record.size ||
      (set->height && record.size != (size_t)(set->height * set->width * set->channels)))
    abort();
  for (size_t i = 0; i < record.size; i++)
    sink += record.data[i];
  for (int i = 0; i < record.n_boxes; i++)
    sink += record.box[i].ymin < record.box[i].xmax;
}

static void open_one(const unsigned char *data, size_t size) {
  char path[64];
  AmprtError error;
  AmprtDataset set = {0};
  AmprtRoom room = {0};
  int fd = memfd_create("fuzz", 0);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size)
    abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (!amprt_pack_open(path, &set, &error)) {
    sink += strlen(amprt_pack_note(&set));
    for (int64_t c = 0; set.class_name && c < set.classes; c++)
      sink += strlen(set.class_name[c]);
    for (int64_t i = 0; i < set.n; i++)
      look(&set, i, &room);
  }
  amprt_dataset_free(&set);
  free(room.data);
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unsigned char *copy = calloc(1, size + 1);
  if (!copy)
    abort();
  if (size)
    memcpy(copy, data, size);
  open_one(copy, size);
  seal(copy, size);
  open_one(copy, size);
  free(copy);
  return 0;
}
