/* CIFAR-10, binary version: records of 1 label byte and 32x32 planes of red, green and blue. */
#include "runtime/data/data.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, AREA = SIDE * SIDE, RECORD = 1 + 3 * AREA, CIFAR_LIMIT = 1 << 30 };

static void unpack(const unsigned char *record, unsigned char *pixel) {
  for (int i = 0; i < AREA; i++)
    for (int c = 0; c < 3; c++)
      pixel[3 * i + c] = record[1 + c * AREA + i];
}

static void *grown(void *old, size_t size, AmprtError *error) {
  void *more = realloc(old, size);
  if (!more)
    amprt_fail_memory(error, size, "the data set");
  return more;
}

AmprtStatus amprt_cifar_parse(const AmprtBytes *file, const char *path, AmprtDataset *set,
                              AmprtError *error) {
  if (file->size == 0 || file->size % RECORD || file->size > CIFAR_LIMIT)
    return amprt_fail(error, AMPRT_INPUT,
                      "%s: has %zu bytes; CIFAR-10 records have %d each, so it is short or another "
                      "format",
                      path, file->size, RECORD);
  size_t more = file->size / RECORD, n = (size_t)set->n;
  for (size_t i = 0; i < more; i++)
    if (file->data[i * RECORD] > 9)
      return amprt_fail(error, AMPRT_INPUT, "%s: record %zu has label %d; CIFAR-10 has 0 to 9",
                        path, i, file->data[i * RECORD]);
  unsigned char *pixel = grown(set->pixel, (n + more) * 3 * AREA, error);
  if (!pixel)
    return error->status;
  set->pixel = pixel;
  unsigned char *label = grown(set->label, n + more, error);
  if (!label)
    return error->status;
  set->label = label;
  for (size_t i = 0; i < more; i++) {
    label[n + i] = file->data[i * RECORD];
    unpack(file->data + i * RECORD, pixel + (n + i) * 3 * AREA);
  }
  set->n += (int64_t)more;
  set->height = set->width = SIDE;
  set->channels = 3;
  return AMPRT_OK;
}

AmprtStatus amprt_read_cifar10(const char *dir, const char *name, AmprtDataset *set,
                               AmprtError *error) {
  char path[AMPRT_PATH];
  AmprtBytes file = {0};
  AmprtStatus status = amprt_path(path, dir, name, error);
  if (!status)
    status = amprt_read_file(path, CIFAR_LIMIT, &file, error);
  if (!status)
    status = amprt_cifar_parse(&file, path, set, error);
  free(file.data);
  return status;
}
