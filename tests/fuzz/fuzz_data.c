/* Reads any bytes as a data set. The first byte chooses the format, the next two are the size of
 * the first of two files (idx). A set that is accepted must have labels below the number of classes
 * and pixels that can be read. */
#include "runtime/data/augment.h"
#include "runtime/data/data.h"

#include <stdlib.h>
#include <string.h>

static AmprtBytes copy(const uint8_t *data, size_t size) {
  AmprtBytes bytes = {malloc(size + 1), size};
  if (!bytes.data)
    abort();
  if (size)
    memcpy(bytes.data, data, size);
  return bytes;
}

static AmprtStatus read_idx(const uint8_t *data, size_t size, AmprtDataset *set,
                            AmprtError *error) {
  if (size < 2)
    return AMPRT_INPUT;
  size_t n = (size_t)(data[0] | data[1] << 8);
  n = n > size - 2 ? size - 2 : n;
  AmprtBytes images = copy(data + 2, n), labels = copy(data + 2 + n, size - 2 - n);
  return amprt_idx_parse(&images, "images", &labels, "labels", set, error);
}

static AmprtStatus parse_cifar(AmprtCifar which, const uint8_t *data, size_t size,
                               AmprtDataset *set, AmprtError *error) {
  AmprtBytes file = copy(data, size);
  AmprtStatus status = amprt_cifar_parse(which, &file, "file", set, error);
  if (!status)
    status = amprt_cifar_parse(which, &file, "file", set, error); /* the next file of five */
  free(file.data);
  return status;
}

static AmprtStatus read_cifar10(const uint8_t *data, size_t size, AmprtDataset *set,
                                AmprtError *error) {
  return parse_cifar(AMPRT_CIFAR10, data, size, set, error);
}

static AmprtStatus read_cifar100(const uint8_t *data, size_t size, AmprtDataset *set,
                                 AmprtError *error) {
  return parse_cifar(AMPRT_CIFAR100, data, size, set, error);
}

static AmprtStatus read_cifar100_coarse(const uint8_t *data, size_t size, AmprtDataset *set,
                                        AmprtError *error) {
  return parse_cifar(AMPRT_CIFAR100_COARSE, data, size, set, error);
}

static AmprtStatus read_gzip(const uint8_t *data, size_t size, AmprtDataset *set,
                             AmprtError *error) {
  AmprtBytes file = copy(data, size);
  (void)set;
  amprt_gunzip(&file, 1 << 20, "file", error);
  free(file.data);
  return AMPRT_INPUT;
}

static void check(const AmprtDataset *set, const AmprtProgram *program) {
  static unsigned char out[32 * 32 * 3];
  AmprtImageSpec spec = {program->height, program->width, program->channels, .standardize = true};
  AmprtRoom room = {0};
  for (int64_t i = 0; i < set->n; i++) {
    AmprtRecord record;
    AmprtError error;
    if (set->reader->fetch(set, i, &room, &record, &error) || record.label < 0 ||
        record.label >= program->n_classes)
      abort();
    amprt_image_prepare(&spec, record.data, set->height, set->width, (AmprtWords){{0}}, out);
  }
  free(room.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  /* with the classes and channels of the model */
  static const struct {
    AmprtStatus (*read)(const uint8_t *, size_t, AmprtDataset *, AmprtError *);
    int classes, channels;
  } format[] = {{read_idx, 8, 1},
                {read_cifar10, 10, 3},
                {read_gzip, 8, 1},
                {read_cifar100, 100, 3},
                {read_cifar100_coarse, 20, 3}};
  if (!size)
    return 0;
  size_t kind = data[0] % (sizeof format / sizeof *format);
  AmprtProgram program = {.n_classes = format[kind].classes,
                          .height = 32,
                          .width = 32,
                          .channels = format[kind].channels};
  AmprtDataset set = {0};
  AmprtError error = {0};
  AmprtStatus status = format[kind].read(data + 1, size - 1, &set, &error);
  if (!status && set.n < 1 << 12) /* otherwise padding all images to 32x32 would take too long */
    status = amprt_dataset_check(&set, &program, "training", &error);
  else
    status = AMPRT_INPUT;
  if (!status)
    check(&set, &program);
  amprt_dataset_free(&set);
  return 0;
}
