/* Reads any bytes as a file of records, and as one tf.Example. Each record that the walk finds can
 * be read or is refused, and all that an example points to can be read to its last byte. */
#define _GNU_SOURCE /* memfd_create */
#include "runtime/record/record.h"
#include "runtime/record/tf_example.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile size_t sink;

static void try_example(const unsigned char *data, size_t size) {
  AmprtTfExample example;
  size_t sum = 0;
  if (!amprt_tf_example_parse(&example, data, size)) {
    for (size_t i = 0; i < example.size; i++)
      sum += example.encoded[i];
    for (int i = 0; i < example.n_boxes; i++)
      sum += example.ymin[i] < example.ymax[i] && example.xmin[i] < example.xmax[i];
  }
  sink = sum;
  amprt_tf_example_close(&example);
}

static bool each(void *context, uint64_t offset, uint64_t length) {
  AmprtError error;
  unsigned char *room = malloc(length + AMPRT_RECORD_HEAD + AMPRT_RECORD_TAIL);
  if (!room)
    abort();
  if (!amprt_record_read(context, offset, length, room, &error))
    try_example(room + AMPRT_RECORD_HEAD, length);
  free(room);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  AmprtError error;
  AmprtRecordFile file = {memfd_create("fuzz", 0), size, "fuzz"};
  if (file.fd < 0 || write(file.fd, data, size) != (ssize_t)size)
    abort();
  amprt_records_walk(&file, each, &file, &error);
  amprt_records_close(&file);
  try_example(data, size);
  return 0;
}
